"""Segment headers: whose log, which segment, where the chain goes on; the streams; and the index of the segment before.

A header says all that opening must know about older segments, so that dropping them loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from struct import Struct, error
from typing import Final

from holdfast.storage.format import PAGE, VERSION, VERSIONS, align, extend
from holdfast.storage.index import StreamIndex

HEADER_MAGIC: Final = b"HOLDFAST"
# crc, header bytes, magic, version, reserved, used bytes
_START: Final = Struct("<II8sHHI")
# log id, segment, file size, previous end, previous group, first group, previous chain, streams, indexes,
# repairs, reserved, time
_FIXED: Final = Struct("<16sQQQQQIHHHHq")
_REPAIR: Final = Struct("<I")  # bytes of the text
_STREAM: Final = Struct("<HHQQ")  # id, bytes of the name, next, first
_INDEX: Final = Struct("<HHIIQQ")  # id, reserved, step, entries, records, bytes
HEADER_BYTES_MAX: Final = 256 * 1024 * 1024


class UnknownVersion(Exception):  # noqa: N818 - becomes a LogFormatUnknown, which names the file
    """A header of a format that is not ours."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


@dataclass(slots=True)
class StreamEntry:
    """A stream when the segment began."""

    name: str
    next: int
    first: int


@dataclass(slots=True)
class Header:
    log_id: bytes
    segment: int
    size: int  # of the file
    previous_end: int  # of the segment before: where its seal lies
    previous_group: int  # the last one before that seal
    first_group: int  # the first one here
    previous_chain: int
    time: int  # of the last group before
    streams: dict[int, StreamEntry] = field(default_factory=dict)
    previous_index: dict[int, StreamIndex] = field(default_factory=dict)
    repairs: list[bytes] = field(default_factory=list)  # what repairs did to the log, as JSON
    length: int = 0  # of the header: where blocks begin
    version: int = VERSION

    def encode(self) -> bytes:
        """The header's bytes, whole pages; sets `length`."""
        parts = [
            _FIXED.pack(
                self.log_id, self.segment, self.size, self.previous_end, self.previous_group, self.first_group,
                self.previous_chain, len(self.streams), len(self.previous_index), len(self.repairs), 0, self.time,
            )
        ]  # fmt: skip
        for id, stream in self.streams.items():
            name = stream.name.encode()
            parts += [_STREAM.pack(id, len(name), stream.next, stream.first), name]
        for id, index in self.previous_index.items():
            parts.append(_INDEX.pack(id, 0, index.step, len(index.numbers), index.records, index.bytes))
            parts += index.encode()
        for repair in self.repairs:
            parts += [_REPAIR.pack(len(repair)), repair]
        used = sum(map(len, parts))
        self.length = align(_START.size + used)
        rest = _START.pack(0, self.length, HEADER_MAGIC, self.version, 0, used)[4:] + b"".join(parts)
        rest = rest.ljust(self.length - 4, b"\0")
        return extend(0, rest).to_bytes(4, "little") + rest


def header_bytes(start: bytes) -> int:
    """How long the header is of which these are the first bytes, or 0 if they are no header's."""
    if len(start) < _START.size:
        return 0
    _, length, magic, _, _, _ = _START.unpack_from(start)
    if magic != HEADER_MAGIC or length % PAGE or not 0 < length <= HEADER_BYTES_MAX:
        return 0
    return int(length)


def decode_header(data: bytes) -> Header | None:
    """The header that these bytes are, or None if they are damaged."""
    if len(data) < PAGE or len(data) != header_bytes(data):
        return None
    crc, length, _, version, _, _ = _START.unpack_from(data)
    if extend(0, data[4:]) != crc:
        return None
    if version not in VERSIONS:
        raise UnknownVersion(version)
    try:
        return _decode(data, length, version)
    except (error, UnicodeDecodeError):
        return None


def _decode(data: bytes, length: int, version: int) -> Header:
    at = _START.size
    log_id, segment, size, end, group, first_group, chain, streams, indexes, repairs, _, time = _FIXED.unpack_from(
        data, at
    )
    at += _FIXED.size
    header = Header(log_id, segment, size, end, group, first_group, chain, time, length=length, version=version)
    for _ in range(streams):
        id, name_bytes, next, first = _STREAM.unpack_from(data, at)
        at += _STREAM.size
        header.streams[id] = StreamEntry(data[at : at + name_bytes].decode(), next, first)
        at += name_bytes
    for _ in range(indexes):
        id, _, step, entries, records, bytes_ = _INDEX.unpack_from(data, at)
        at += _INDEX.size
        header.previous_index[id], at = StreamIndex.decode(data, at, step, entries, records, bytes_)
    for _ in range(repairs):
        (text_bytes,) = _REPAIR.unpack_from(data, at)
        at += _REPAIR.size
        header.repairs.append(data[at : at + text_bytes])
        at += text_bytes
    return header
