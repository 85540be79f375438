"""Gives up what is damaged, so that a log can be opened again; only when someone asks for it.

From the first damaged segment on, everything that is provably good is written anew, in the folder `repairing`. In the
place of lost numbers stands a record that says so: reading them raises `RecordsLost`, and they are never used again.
Then a plan is written and carried out: damaged segments get another name (nothing is deleted), the new ones theirs. A
crash before the plan leaves the log as it was; one after it, a log that only a further repair opens.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from holdfast.errors import LogLocked, NotALog
from holdfast.storage.closing import CLOSED
from holdfast.storage.files import Files, write_whole
from holdfast.storage.format import LOST, OWN_STREAM, PAGE, REPAIRED, salt_of
from holdfast.storage.group import Group, Stream
from holdfast.storage.header import Header
from holdfast.storage.opening import Opened, make_segment
from holdfast.storage.preparation import Preparation
from holdfast.storage.recovery import (
    IDENTITY,
    PLAN,
    Examination,
    Opening,
    SegmentFile,
    examine,
    reading,
    segment_name,
    sequences,
)
from holdfast.storage.scan import SegmentScan, StreamState
from holdfast.storage.segment import Segment
from holdfast.storage.settings import COUNT_MAX, MEBIBYTE, LogSettings
from holdfast.storage.shelf import Shelf
from holdfast.storage.tail import Tail

WORKSHOP: Final = "repairing"
# If nobody knows how many numbers were lost at the end, this many are never used: some may have been handed out.
UNKNOWN_NUMBERS: Final = 1_000_000_000


@dataclass(slots=True)
class RepairReport:
    """What a repair did. `lost` has, by stream, ranges [first, end) of numbers."""

    needed: bool = False
    lost: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    unknown_end: list[str] = field(default_factory=list)  # streams that lost nobody knows how many at the end
    set_aside: list[str] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)


def repair(files: Files, folder: str, settings: LogSettings) -> RepairReport:
    """Repairs the log in a folder, if it is damaged."""
    if not sequences(files.names(folder)):
        raise NotALog(folder, "there is no segment in this folder to begin from")
    identity = files.open(os.path.join(folder, IDENTITY), write=True, create=True)
    try:
        if not files.lock(identity):
            raise LogLocked(folder)
        if PLAN in files.names(folder):
            return _finish(files, folder)
        found = examine(files, folder, every=True, step=settings.index_bytes)
        if not found.damages:
            return RepairReport()
        report = _rebuild(files, folder, settings, found)
        _write_plan(files, folder, report)
        return _finish(files, folder)
    finally:
        files.close(identity)


def _first_to_rewrite(found: Examination) -> int:
    """The place of the first damaged segment, or of the one before it if it has no header to go on from."""
    damaged = min(sequences([os.path.basename(damage.file) for damage in found.damages]), default=0)
    usable = [p for p, s in enumerate(found.segments) if s.sequence <= damaged and s.header is not None]
    return usable[-1] if usable else 0


def _rebuild(files: Files, folder: str, settings: LogSettings, found: Examination) -> RepairReport:
    log_id = next((s.header.log_id for s in reversed(found.segments) if s.header is not None), None)
    if log_id is None:
        problem = (
            "the headers of all its segments are damaged: nothing in it can be proved good; restore it from a copy"
        )
        raise NotALog(folder, problem)
    place = _first_to_rewrite(found)
    old = found.segments[place:]
    report = RepairReport(needed=True)
    workshop = os.path.join(folder, WORKSHOP)
    files.make_folder(workshop)
    for name in files.names(workshop):
        files.remove(os.path.join(workshop, name))
    start = old[0].header or Header(log_id, old[0].sequence, 0, 0, 0, 1, salt_of(log_id), 0)
    unsynced = _Unsynced(files)
    new = _NewLog(unsynced, workshop, settings, start, report, found)
    for segment, following in zip(old, [*old[1:], None], strict=True):
        after = following.header if following is not None and following.sequence == segment.sequence + 1 else None
        _salvage(files, segment, after, salt_of(log_id), new)
    for damage in found.damages:
        report.unknown_end += [
            n for n, (_, end) in damage.streams.items() if end is None and n not in report.unknown_end
        ]
    newest = old[-1]
    whole = newest.header.size if newest.header is not None else max(s.size for s in found.segments)
    if newest.size < whole:
        # What was cut off the newest file may have held anything.
        report.unknown_end = sorted({*report.unknown_end, *(state.name for state in new.states.values())})
    new.finish(place == 0, [segment_name(segment.sequence) for segment in old])
    for name in files.names(workshop):
        file = files.open(os.path.join(workshop, name), write=True)
        files.sync(file)
        files.close(file)
    files.sync_folder(workshop)
    return report


def _salvage(files: Files, segment: SegmentFile, after: Header | None, salt: int, new: _NewLog) -> None:
    """Hands over every record of a valid block that was durable."""
    header = segment.header or Header(b"", segment.sequence, segment.size, 0, 0, 1, 0, 0, length=PAGE)
    for id, entry in header.streams.items():
        new.meet(StreamState(id, entry.name, entry.next, entry.first))
    scan = SegmentScan(segment.path, header, salt, new.states, LogSettings().index_bytes, new.take)
    scan.astray = segment.header is None
    with reading(files, segment.path) as (read, _):
        scan.run(read, stop=after.previous_end if after is not None else 0)


class _NewLog:
    """Writes records with the numbers and times that they had."""

    def __init__(
        self, files: Files, folder: str, settings: LogSettings, start: Header, report: RepairReport, found: Examination
    ) -> None:
        self._report = report
        self._start = start
        self._found = found.streams
        self.states: dict[int, StreamState] = {
            id: StreamState(id, entry.name, entry.next, entry.first) for id, entry in start.streams.items()
        }
        header = Header(
            start.log_id, start.segment, settings.segment_bytes, start.previous_end, start.previous_group,
            start.first_group, start.previous_chain, start.time, start.streams, start.previous_index, start.repairs,
        )  # fmt: skip
        header.size = max(header.size, 2 * len(header.encode()))
        path, file = make_segment(files, folder, Preparation(files, folder, ahead=False), header, header.size)
        streams = {e.name: Stream(id, e.name, e.next, e.first) for id, e in start.streams.items()}
        self._by_id = {stream.id: stream for stream in streams.values()}
        self._shelf = Shelf(streams, [Segment(files, path, header, {}, header.length)])
        repairs = tuple(repair.decode() for repair in start.repairs)
        opened = Opened(
            Opening(start.log_id.hex(), False, 1, None, repairs), start.log_id, 0, file, self._shelf.segments, streams,
            start.previous_chain, start.first_group - 1, start.time, False,
        )  # fmt: skip
        self._tail = Tail(files, folder, replace(settings, prepare_ahead=False), self._shelf, opened)
        self._group = Group(settings.block_bytes)
        self._bytes = 0
        self._time = start.time

    def take(self, time: int, id: int, kind: int, flags: int, count: int, number: int, body: bytes) -> None:
        """One record that was saved."""
        if id == OWN_STREAM:
            return  # What these said is written anew.
        if time != self._time or self._bytes > MEBIBYTE:
            self._commit()
            self._time = max(self._time, time)
        stream = self._stream(id)
        if number < stream.next:
            return
        self._report.lost.setdefault(stream.name, []).extend(self._lose(stream, number))
        self._group.add(stream, kind, body, count, flags)
        self._bytes += len(body)

    def meet(self, state: StreamState) -> None:
        """A header tells of a stream."""
        known = self.states.setdefault(state.id, state)
        known.name = state.name
        known.next, known.first = max(known.next, state.next), max(known.first, state.first)

    def finish(self, from_oldest: bool, set_aside: list[str]) -> None:
        """Notes what is missing at the end, where streams begin, and that this is a repaired log."""
        for state in self._found.values():
            self.meet(state)
        lost, self._report.lost = self._report.lost, {}
        for id, state in sorted(self.states.items()):
            stream = self._stream(id)
            missing = self._lose(stream, state.next)
            if state.name in self._report.unknown_end:
                missing += self._lose(stream, state.next + UNKNOWN_NUMBERS)
            first = min(max(state.first, stream.first), stream.next)
            entry = self._start.streams.get(id)
            ranges = [*lost.get(stream.name, []), *missing]
            if from_oldest and entry is not None and first < entry.next:
                # Older segments are missing: the stream begins where the oldest one that is there does.
                ranges.insert(0, (first, entry.next))
                first = entry.next
            if first > stream.truncated:
                self._group.truncate(stream, first)
            ranges = [(a, b) for a, b in ranges if b > state.first]
            if ranges:
                self._report.lost[state.name] = ranges
        note = {"lost": self._report.lost, "unknown_end": self._report.unknown_end, "set_aside": set_aside}
        text = json.dumps(note).encode()
        self._tail.repairs.append(text)
        self._group.add_own(REPAIRED, text)
        self._commit()
        self._tail.mark()
        self._tail.close()
        self._report.set_aside = set_aside

    def _stream(self, id: int) -> Stream:
        stream = self._by_id.get(id)
        if stream is None:
            state = self._found.get(id) or self.states.get(id)
            name = state.name if state is not None else f"#{id}"
            stream = self._by_id[id] = self._shelf.streams[name] = Stream(id, name, 1, 1)
            self._group.declare(stream)
        return stream

    def _lose(self, stream: Stream, up_to: int) -> list[tuple[int, int]]:
        """Puts records that say so in the place of numbers that are lost."""
        lost = [(stream.next, up_to)] if stream.next < up_to else []
        while stream.next < up_to:
            self._group.add(stream, 0, b"", min(up_to - stream.next, COUNT_MAX), LOST)
        return lost

    def _commit(self) -> None:
        blocks = self._group.take()
        if blocks:
            self._tail.write(blocks, self._time)
        self._bytes = 0


def _write_plan(files: Files, folder: str, report: RepairReport) -> None:
    """From here on, the repair is to be finished."""
    aside = _suffix(files.names(folder))
    plan = {
        "needed": True,
        "lost": report.lost,
        "unknown_end": report.unknown_end,
        "set_aside": [[name, name.replace(".segment", aside)] for name in report.set_aside],
        "rewritten": sequences(files.names(os.path.join(folder, WORKSHOP))),
    }
    draft = os.path.join(folder, PLAN + ".draft")
    text = json.dumps(plan).encode()
    file = files.open(draft, write=True, create=True)
    write_whole(files, file, text, 0)
    files.sync(file)
    files.close(file)
    files.rename(draft, os.path.join(folder, PLAN))
    files.sync_folder(folder)


def _suffix(names: list[str]) -> str:
    taken = {name.partition(".")[2] for name in names}
    return next(f".damaged-{n}" for n in range(1, len(names) + 2) if f"damaged-{n}" not in taken)


def _finish(files: Files, folder: str) -> RepairReport:
    """Carries out the plan; what a crash left undone is done now."""
    with reading(files, os.path.join(folder, PLAN)) as (read, size):
        plan = json.loads(read(size, 0))
    workshop = os.path.join(folder, WORKSHOP)
    waiting = files.names(workshop)
    for sequence in plan["rewritten"]:
        name = segment_name(sequence)
        if name not in waiting:
            continue  # done already
        for damaged, aside in plan["set_aside"]:
            if damaged == name and name in files.names(folder):
                files.rename(os.path.join(folder, name), os.path.join(folder, aside))
                files.sync_folder(folder)
        files.rename(os.path.join(workshop, name), os.path.join(folder, name))
        files.sync_folder(folder)
        files.sync_folder(workshop)
    for damaged, aside in plan["set_aside"]:
        names = files.names(folder)
        if aside not in names and damaged in names:
            files.rename(os.path.join(folder, damaged), os.path.join(folder, aside))
    with suppress(FileNotFoundError):
        files.remove(os.path.join(folder, CLOSED))  # of the log as it was, whose groups are counted anew
    files.sync_folder(folder)
    files.remove(os.path.join(folder, PLAN))
    files.sync_folder(folder)
    return RepairReport(
        True,
        {name: [(a, b) for a, b in ranges] for name, ranges in plan["lost"].items()},
        plan["unknown_end"],
        [aside for _, aside in plan["set_aside"]],
        [segment_name(sequence) for sequence in plan["rewritten"]],
    )


class _Unsynced:
    """Files whose syncs are left for later: what is made in the workshop counts only when all of it is on the disk."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.names, self.open, self.close, self.lock = files.names, files.open, files.close, files.lock
        self.size, self.read, self.write = files.size, files.read, files.write
        self.make_folder, self.rename, self.remove = files.make_folder, files.rename, files.remove

    def sync(self, file: int) -> None:
        """Later."""

    def sync_folder(self, folder: str) -> None:
        """Later."""
