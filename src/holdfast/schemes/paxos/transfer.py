"""Catching up by snapshot: parts in order, one hash over all, and nothing is changed before it is whole."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.codec import UNREADABLE
from holdfast.schemes.paxos.membership import Membership, flaw
from holdfast.schemes.paxos.messages import ReplicaState, SnapshotPart


class _Header(msgspec.Struct, frozen=True, array_like=True):
    """What travels in front of the state."""

    commands: int
    membership: Membership | None
    wall: int
    origins: list[tuple[int, int]] = []
    trimmed: int = 0


_read_header = msgspec.msgpack.Decoder(_Header).decode
_LENGTH: Final = 4  # bytes
Origins = Sequence[tuple[int, int]]


def _header(commands: int, membership: Membership | None, wall: int, origins: Origins, trimmed: int) -> bytes:
    # Without what is not there as it was before there was any: the hashes of those snapshots are still to be right.
    later = [origins, trimmed] if trimmed else [origins] if origins else []
    return msgspec.msgpack.encode([commands, membership, wall, *later])


def make_state(
    slot: int,
    commands: int,
    state: bytes,
    membership: Membership | None = None,
    wall: int = 0,
    origins: Origins = (),
    trimmed: int = 0,
) -> ReplicaState:
    header = _header(commands, membership, wall, origins, trimmed)
    digest = hashlib.sha256(b"%d " % slot + header + state).digest()
    return ReplicaState(slot, commands, state, digest, membership, wall, list(origins), trimmed)


def pack(state: ReplicaState) -> bytes:
    """The bytes that travel."""
    header = _header(state.commands, state.membership, state.wall, state.origins, state.trimmed)
    return len(header).to_bytes(_LENGTH, "big") + header + state.state


def unpack(slot: int, data: bytes) -> ReplicaState | None:
    """The other way round; None if they are no state at all."""
    end = _LENGTH + int.from_bytes(data[:_LENGTH], "big")
    try:
        header = _read_header(data[_LENGTH:end])
    except UNREADABLE:
        return None
    if header.membership is not None and flaw(header.membership):
        return None
    if not 0 <= header.trimmed <= slot:
        return None  # votes would be forgotten that nothing stands for
    return make_state(slot, header.commands, data[end:], header.membership, header.wall, header.origins, header.trimmed)


class IncomingSnapshot:
    """The parts of a snapshot that came so far. Another snapshot begins anew."""

    def __init__(self) -> None:
        self.slot = 0
        self._size = 0
        self._digest = b""
        self._data = bytearray()

    @property
    def offset(self) -> int:
        """Where the next part has to begin."""
        return len(self._data)

    def add(self, part: SnapshotPart) -> ReplicaState | None:
        """The whole, if this was the last part and the hash is right; a wrong one is thrown away."""
        if (part.slot, part.size, part.digest) != (self.slot, self._size, self._digest):
            if part.offset != 0:
                return None
            self.slot, self._size, self._digest, self._data = part.slot, part.size, part.digest, bytearray()
        if part.offset != len(self._data):
            return None
        self._data += part.data
        if len(self._data) < self._size:
            return None
        data, slot = bytes(self._data), self.slot
        self.__init__()  # type: ignore[misc]
        whole = unpack(slot, data)
        return whole if whole is not None and whole.digest == part.digest else None
