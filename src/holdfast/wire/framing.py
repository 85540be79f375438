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


def encode_frames(frames: Iterable[Frame]) -> bytes:
    """The bytes of some frames."""
    pieces: list[bytes] = []
    for kind, body in frames:
        pieces.append(_pack(len(body) + 1, kind))
        pieces.append(body)
    return b"".join(pieces)


class FrameReader:
    """Cuts a stream of bytes into frames."""

    __slots__ = ("_buffer", "_large", "_limits", "_wanted")

    def __init__(self, limits: WireLimits, large: frozenset[int]) -> None:
        """`large` are the kinds whose frames may be; all others are control frames."""
        self._limits = limits
        self._large = large
        self._buffer = bytearray()  # grows in place: a large frame that comes in small pieces is copied once
        self._wanted = 0  # bytes, before there is anything new to see

    @property
    def waiting(self) -> int:
        """How many bytes of an unfinished frame are held."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Frame]:
        """All frames that are whole now. ProtocolError for one that is too long; what came before it is lost then."""
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._wanted:
                return []
            data = bytes(self._buffer)
            self._buffer = bytearray()
        frames: list[Frame] = []
        position, end = 0, len(data)
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
            self._buffer += data[position:]
        return frames

    def _check(self, length: int, kind: int) -> None:
        if length == 0:
            raise ProtocolError("a frame of no bytes has no kind")
        if kind not in self._large:
            limit = self._limits.control_frame_bytes
            raise ProtocolError(f"a control frame of {length} bytes is beyond control_frame_bytes, {limit}")
        if length > self._limits.frame_bytes:
            raise ProtocolError(f"a frame of {length} bytes is beyond frame_bytes, {self._limits.frame_bytes}")
