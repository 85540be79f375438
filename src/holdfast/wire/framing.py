"""Frames: `u32 length | u8 kind | body`. The length counts kind and body, big-endian.

A reader takes whatever a read gives and hands out whole frames. It keeps no more than one frame's bytes and allocates
nothing because of what a length claims: a frame that is too long is refused when its length is seen.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from holdfast.errors import ProtocolError
from holdfast.wire.limits import WireLimits

Frame = tuple[int, bytes]

_HEADER = struct.Struct(">IB")
HEADER_BYTES = _HEADER.size
_unpack = _HEADER.unpack_from
_pack = _HEADER.pack
PIECE_BYTES = 4096  # smaller pieces of a frame are put together, or they would take more memory than it does


def encode_frame(kind: int, body: bytes) -> bytes:
    """The bytes of one frame."""
    return _pack(len(body) + 1, kind) + body


def encode_frames(frames: Iterable[Frame]) -> bytes:
    """The bytes of some frames."""
    pieces: list[bytes] = []
    for kind, body in frames:
        pieces.append(_pack(len(body) + 1, kind))
        pieces.append(body)
    return b"".join(pieces)


class FrameReader:
    """Cuts a stream of bytes into frames."""

    __slots__ = ("_held", "_large", "_limits", "_pieces", "_wanted")

    def __init__(self, limits: WireLimits, large: frozenset[int]) -> None:
        """`large` are the kinds whose frames may be; all others are control frames."""
        self._limits = limits
        self._large = large
        self._pieces: list[bytes | bytearray] = []  # of an unfinished frame, from its header on
        self._held = 0  # bytes in them
        self._wanted = 0  # bytes, before there is anything new to see

    @property
    def waiting(self) -> int:
        """How many bytes of an unfinished frame are held."""
        return self._held

    def feed(self, data: bytes) -> list[Frame]:
        """All frames that are whole now. ProtocolError for one that is too long; what came before it is lost then."""
        frames: list[Frame] = []
        position = 0
        if self._held:
            if self._held + len(data) < self._wanted:
                self._keep(data)
                return frames
            if self._wanted > HEADER_BYTES:
                position = self._wanted - self._held
                frames.append(self._finished(data, position))
            else:
                data = b"".join((*self._pieces, data))
            self._pieces = []
            self._held = 0
        end = len(data)
        self._wanted = HEADER_BYTES
        while end - position >= HEADER_BYTES:
            length, kind = _unpack(data, position)
            if length > self._limits.control_frame_bytes or length == 0:
                self._check(length, kind)
            following = position + 4 + length
            if following > end:
                self._wanted = following - position
                break
            frames.append((kind, data[position + HEADER_BYTES : following]))
            position = following
        if position < end:
            self._keep(data[position:])
        return frames

    def _keep(self, data: bytes) -> None:
        self._held += len(data)
        if len(data) >= PIECE_BYTES:
            self._pieces.append(data)
        elif self._pieces and isinstance(self._pieces[-1], bytearray):
            self._pieces[-1] += data
        else:
            self._pieces.append(bytearray(data))

    def _finished(self, data: bytes, missing: int) -> Frame:
        """The frame of which that many bytes were missing: a large one that comes in pieces is copied once."""
        first, *others = self._pieces
        _, kind = _unpack(first)
        return kind, b"".join((memoryview(first)[HEADER_BYTES:], *others, memoryview(data)[:missing]))

    def _check(self, length: int, kind: int) -> None:
        if length == 0:
            raise ProtocolError("a frame of no bytes has no kind")
        if kind not in self._large:
            limit = self._limits.control_frame_bytes
            raise ProtocolError(f"a control frame of {length} bytes is beyond control_frame_bytes, {limit}")
        if length > self._limits.frame_bytes:
            raise ProtocolError(f"a frame of {length} bytes is beyond frame_bytes, {self._limits.frame_bytes}")
