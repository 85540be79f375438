"""Looks at a log's folder and says what is there, without changing anything: clean, torn, or corrupt and where.

Opening acts on it, `inspect`, `verify` and `repair` report it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from holdfast.errors import LogCorrupt, LogFormatUnknown
from holdfast.storage.closing import read_closing
from holdfast.storage.files import Files
from holdfast.storage.format import BLOCK_BYTES, PAGE, SEAL, VERSION, Read, salt_of, walk
from holdfast.storage.header import Header, UnknownVersion, decode_header, header_bytes
from holdfast.storage.scan import Damage, SegmentScan, Sink, StreamState, note_loss

IDENTITY: Final = "log"  # the log's id, and the file that is locked
PREPARED: Final = "prepared"  # the next segment, before it is one
PLAN: Final = "repair.plan"  # what a repair will rename; it is to be finished
SUFFIX: Final = ".segment"
_IDENTITY_TEXT: Final = re.compile(rb"holdfast log ([0-9a-f]{32})\n")


@dataclass(frozen=True, slots=True)
class Cut:
    """A tail that was torn by a crash and has been cut off. Nothing in it had been acknowledged."""

    file: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Opening:
    """What was found when a log was opened."""

    log_id: str
    created: bool
    segments: int
    cut: Cut | None
    repairs: tuple[str, ...]  # what repairs did to this log, as JSON

    @property
    def verdict(self) -> str:
        return "torn" if self.cut else "clean"


@dataclass(slots=True)
class SegmentFile:
    sequence: int
    path: str
    size: int
    header: Header | None
    scan: SegmentScan | None = None


@dataclass(slots=True)
class Examination:
    """What the folder holds."""

    segments: list[SegmentFile] = field(default_factory=list)
    streams: dict[int, StreamState] = field(default_factory=dict)
    damages: list[Damage] = field(default_factory=list)
    repairs: list[bytes] = field(default_factory=list)
    seal_unsafe: bool = False  # that of the segment before the newest: a crash may have come between

    @property
    def newest(self) -> SegmentScan:
        scan = self.segments[-1].scan
        if scan is None:
            raise LogCorrupt("the segment's header is damaged", self.segments[-1].path)
        return scan


def segment_name(sequence: int) -> str:
    return f"{sequence:010d}{SUFFIX}"


def sequences(names: list[str]) -> list[int]:
    """The segments among the names, in order."""
    return sorted(int(n[: -len(SUFFIX)]) for n in names if n.endswith(SUFFIX) and n[: -len(SUFFIX)].isdecimal())


def identity_text(log_id: bytes) -> bytes:
    return b"holdfast log %s\n" % log_id.hex().encode()


def read_identity(files: Files, file: int) -> bytes | None:
    """The log's id, or None if the file is empty, as it is before the first segment is there."""
    text = files.read(file, PAGE, 0)
    found = _IDENTITY_TEXT.fullmatch(text)
    if found:
        return bytes.fromhex(found[1].decode())
    return None if not text.strip(b"\0") else b""


@contextmanager
def reading(files: Files, path: str) -> Iterator[tuple[Read, int]]:
    """A function that reads the file, and the file's size."""
    file = files.open(path)
    try:
        yield lambda count, offset: files.read(file, count, offset), files.size(file)
    finally:
        files.close(file)


def examine(files: Files, folder: str, every: bool, step: int, sink: Sink | None = None) -> Examination:
    """Reads the headers of all segments and all of the newest one, or of every one; `sink` gets each record."""
    found = Examination()
    names = files.names(folder)
    previous: SegmentFile | None = None
    for sequence in sequences(names):
        path = os.path.join(folder, segment_name(sequence))
        with reading(files, path) as (read, size):
            segment = SegmentFile(sequence, path, size, _read_header(read, path))
        if previous is not None and sequence != previous.sequence + 1:
            missing = os.path.join(folder, segment_name(previous.sequence + 1))
            found.damages.append(Damage(missing, 0, 0, "the segment's file is missing"))
        found.damages += _misfits(segment, previous)
        found.segments.append(segment)
        previous = segment
    if not found.segments:
        return found
    _scan(files, found, every, step, sink)
    _compare_with_oldest(found)
    if not found.damages:
        _compare_with_closing(files, found, folder)
    return found


def _read_header(read: Read, path: str) -> Header | None:
    start = read(PAGE, 0)
    length = header_bytes(start)
    if not length:
        return None
    try:
        return decode_header(start if length == PAGE else read(length, 0))
    except UnknownVersion as unknown:
        raise LogFormatUnknown(path, unknown.version, VERSION) from None


def _misfits(segment: SegmentFile, previous: SegmentFile | None) -> list[Damage]:
    """What is wrong with a segment's header and size, without looking at its blocks."""
    header = segment.header
    if header is None:
        return [Damage(segment.path, 0, PAGE, "the segment's header is damaged")]
    if header.segment != segment.sequence:
        return [Damage(segment.path, 0, header.length, f"this is segment {header.segment} under another's name")]
    if segment.size != header.size:
        return [
            Damage(segment.path, segment.size, header.size, f"the file has {segment.size} bytes, not {header.size}")
        ]
    before = previous.header if previous is not None else None
    if before is not None and before.log_id != header.log_id:
        return [Damage(segment.path, 0, header.length, "this is a segment of another log")]
    return []


def _scan(files: Files, found: Examination, every: bool, step: int, sink: Sink | None) -> None:
    log_id = next((s.header.log_id for s in reversed(found.segments) if s.header is not None), b"")
    salt = salt_of(log_id)
    last = len(found.segments) - 1
    for place, segment in enumerate(found.segments):
        header = segment.header
        after = found.segments[place + 1].header if place < last else None
        if header is None or (after is None and place < last):
            continue
        if every or place == last:
            _carry_over(found, header)
            scan = segment.scan = SegmentScan(segment.path, header, salt, found.streams, step, sink)
            with reading(files, segment.path) as (read, _):
                scan.run(read, stop=after.previous_end if after is not None else 0)
            found.damages += [damage for damage in scan.damages if not _is_known(damage, found.damages)]
            found.repairs = scan.repairs
    newest = found.segments[-1].scan
    if newest is not None and newest.sealed:
        # A seal is written when the next segment exists.
        missing = os.path.join(os.path.dirname(newest.file), segment_name(newest.header.segment + 1))
        lost: dict[str, tuple[int, int | None]] = {s.name: (s.next, None) for s in found.streams.values()}
        found.damages.append(Damage(missing, 0, 0, "the segment's file is missing", lost))
    _look_for_seals(files, found, salt, every)


def _carry_over(found: Examination, header: Header) -> None:
    """The header's table of streams says where each one stands; what was read before must agree."""
    for id, entry in header.streams.items():
        state = found.streams.get(id)
        if state is None:
            found.streams[id] = StreamState(id, entry.name, entry.next, entry.first)
            continue
        state.name = entry.name
        if state.next != entry.next:
            damage = found.damages[-1] if found.damages else Damage("", 0, 0, "numbers are missing")
            if not found.damages:
                found.damages.append(damage)
            note_loss(damage, state.name, state.next, entry.next)
            state.next = entry.next
        state.first = max(state.first, entry.first)


def _is_known(damage: Damage, known: list[Damage]) -> bool:
    """A file that is too short has been reported as a whole."""
    return any(d.file == damage.file and d.start <= damage.start and damage.end <= d.end for d in known)


def _look_for_seals(files: Files, found: Examination, salt: int, every: bool) -> None:
    """A sealed segment ends in a seal. Only a crash right after the next segment was made leaves it out or torn."""
    newest = found.segments[-1].scan
    pairs = list(pairwise(found.segments))
    for segment, following in pairs if every else pairs[-1:]:
        after = following.header
        if after is None or segment.header is None:
            continue
        start = after.previous_end
        with reading(files, segment.path) as (read, _):
            fields = next(
                (f for at, f, _, _ in walk(read, start, start + BLOCK_BYTES, salt, segment.sequence) if at == start),
                None,
            )
        if following is found.segments[-1] and newest is not None and newest.group < after.first_group:
            # Nothing was written after the seal: it may be missing, or in the page cache alone.
            found.seal_unsafe = True
        elif fields is None or not fields[11] & SEAL or fields[1] != after.previous_chain:
            found.damages.append(Damage(segment.path, start, start + BLOCK_BYTES, "the segment's seal is damaged"))


def _compare_with_oldest(found: Examination) -> None:
    """Older segments may be gone only if no stream needs them."""
    oldest = found.segments[0]
    if oldest.header is None:
        return
    lost = {
        state.name: (state.first, oldest.header.streams[id].next)
        for id, state in found.streams.items()
        if id in oldest.header.streams and state.first < oldest.header.streams[id].next
    }
    if lost:
        missing = os.path.join(os.path.dirname(oldest.path), segment_name(oldest.sequence - 1))
        found.damages.append(Damage(missing, 0, 0, "the segment's file is missing", dict(lost)))


def _compare_with_closing(files: Files, found: Examination, folder: str) -> None:
    """A log that was closed goes at least as far as it did then."""
    newest = found.newest
    if newest.group < read_closing(files, folder, newest.header.log_id):
        lost: dict[str, tuple[int, int | None]] = {state.name: (state.next, None) for state in found.streams.values()}
        problem = "the log was closed properly, and has lost its end since"
        found.damages.append(Damage(newest.file, newest.end, newest.header.size, problem, lost))
