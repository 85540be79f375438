"""Catching up by snapshot: parts in order, one hash over all, and nothing is changed before it is whole."""

from __future__ import annotations

import hashlib

from holdfast.protocols.paxos.messages import ReplicaState, SnapshotPart


def digest_of(slot: int, commands: int, state: bytes) -> bytes:
    return hashlib.sha256(b"%d %d " % (slot, commands) + state).digest()


def make_state(slot: int, commands: int, state: bytes) -> ReplicaState:
    return ReplicaState(slot, commands, state, digest_of(slot, commands, state))


def pack(state: ReplicaState) -> bytes:
    """The bytes that travel: the number of commands, then the state."""
    return state.commands.to_bytes(8, "big") + state.state


class IncomingSnapshot:
    """Parts that came so far. Another snapshot begins anew."""

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
        if len(data) < 8:
            return None
        commands, state = int.from_bytes(data[:8], "big"), data[8:]
        whole = make_state(slot, commands, state)
        return whole if whole.digest == part.digest else None
