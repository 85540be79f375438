"""Reads one segment through, verifies all of it, and rebuilds what it says: streams, index, and where it ends.

Damage does not stop it: it goes on at the next valid block and notes what lies between. One rule tells damage from a
torn tail: what lies before a valid block of a later group was durable. Blocks of the last group prove nothing, since
of a group that was being written when the power went, any pages may be on the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.storage.format import (
    BLOCK_BYTES,
    BORROWS,
    DECLARATION,
    DECLARE,
    END,
    ENDS,
    LOST,
    MARK,
    OWN_STREAM,
    RECORD,
    RECORD_BYTES,
    REPAIRED,
    SEAL,
    TRUNCATE,
    TRUNCATION,
    BlockFields,
    Read,
    last_nonzero,
    search,
    walk,
)
from holdfast.storage.header import Header
from holdfast.storage.index import StreamIndex
from holdfast.storage.sharing import whole_body

Sink = Callable[[int, int, int, int, int, int, bytes], None]  # time, stream, kind, flags, count, number, body


@dataclass(slots=True)
class StreamState:
    """A stream as far as the log has been read."""

    id: int
    name: str
    next: int = 1
    first: int = 1


@dataclass(slots=True)
class Damage:
    """A range of a file that is not what was written, and the numbers that were in it as far as they are known."""

    file: str
    start: int
    end: int
    problem: str
    streams: dict[str, tuple[int, int | None]] = field(default_factory=dict)


class SegmentScan:
    """One segment, read through. `streams` is carried on from the segment before, or taken from the header."""

    def __init__(
        self, file: str, header: Header, salt: int, streams: dict[int, StreamState], step: int, sink: Sink | None = None
    ) -> None:
        self.file = file
        self.header = header
        self.streams = streams
        self.damages: list[Damage] = []
        self.index: dict[int, StreamIndex] = {}
        self.repairs = list(header.repairs)
        self.end = header.length  # of the last whole group
        self.chain = header.previous_chain  # after the last whole group
        self.group = header.first_group - 1  # the last whole one, and where it begins
        self.group_start = header.length
        self.time = header.time
        self.marked = False  # whether the last whole group is a mark
        self.sealed = False  # whether it is a seal
        self.torn: tuple[int, int] | None = None
        self._salt = salt
        self._step = step
        self._sink = sink
        self._pending: list[tuple[int, BlockFields, bytes]] = []  # blocks of a group that is not whole yet
        self._running = self.chain  # the chain's value after the last block
        self.astray = False  # just behind damage: the next block need not follow from what is known

    def run(self, read: Read, stop: int = 0) -> None:
        """Reads up to `stop`, or all of the newest segment, where a tail that nothing follows is torn."""
        size = stop or self.header.size
        at = self.end
        used = 0  # where zeros begin
        while True:
            at = self._follow(read, at, size)
            if at >= size:
                break
            used = used or last_nonzero(read, at, size)
            resume = self._after_damage(read, at, used, size)
            if resume is None:
                break
            self.damages.append(Damage(self.file, at, resume, "no valid block, but valid ones of later commits follow"))
            at = resume
            self.astray = True
        if not stop:
            self.torn = (self.end, used) if used > self.end else None
        elif self.end != stop or self._pending:
            # What follows the segment proves that it was whole up to here.
            start = at if self._pending else self.end
            self.damages.append(Damage(self.file, start, stop, "no valid block, but a later segment goes on from here"))
            self._flush()

    def _follow(self, read: Read, at: int, size: int) -> int:
        """Takes in the blocks that follow each other, and gives where they end."""
        for offset, fields, data, place in walk(read, at, size, self._salt, self.header.segment):
            _, previous, _, length, _, _, _, group, _, _, part, flags, _ = fields
            pending = self._pending
            if self.astray:
                if pending and pending[-1][1][7] != group:
                    self._flush()  # damaged, but later blocks prove that it was durable: what is valid of it counts
                self.astray = False
            elif previous != self._running or (
                (group != pending[-1][1][7] or part != pending[-1][1][10] + 1)
                if pending
                else (group != self.group + 1 or part)
            ):
                return at
            self._pending.append((offset, fields, data[place : place + length]))
            self._running = fields[0]
            at = offset + length
            if flags & END:
                self._flush()
        return at

    def _after_damage(self, read: Read, at: int, used: int, size: int) -> int | None:
        """Where to go on behind `at`, if a block of a later group proves that what is missing was durable."""
        begun = self._pending[-1][1][7] if self._pending else self.group + 1
        resume = None
        for offset, fields in search(read, at, used, size, self._salt, self.header.segment):
            resume = offset if resume is None else resume
            if fields[7] > begun:
                return resume
        return None

    def _flush(self) -> None:
        """The blocks that wait are good: takes in their records."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        for offset, fields, data in pending:
            self._take(offset, fields, data)
        offset, fields, data = pending[-1]
        self.group_start = pending[0][0]
        self.end = offset + len(data)
        self.chain = fields[0]
        self.group = fields[7]
        self.time = fields[8]
        self.marked = bool(fields[11] & MARK)
        self.sealed = bool(fields[11] & SEAL)

    def _take(self, offset: int, fields: BlockFields, data: bytes) -> None:
        time, at, end = fields[8], BLOCK_BYTES, len(data)
        unpack, streams, sink = RECORD.unpack_from, self.streams, self._sink
        seen: dict[int, list[int]] = {}  # stream → its first number here, records, bytes
        while at < end:
            length, id, kind, flags, count, number = unpack(data, at)
            following, whole = at + length, None
            if id == OWN_STREAM:
                self._take_own(kind, data[at + RECORD_BYTES : following])
            else:
                if flags & BORROWS:
                    flags, whole = self._borrowed(offset, data, at + RECORD_BYTES, following)
                    length = RECORD_BYTES + len(whole)
                state = streams.get(id)
                if state is None:
                    state = streams[id] = StreamState(id, f"#{id}", number)
                if number != state.next:
                    self._jump(state, number, offset, end)
                state.next = number + count
                entry = seen.get(id)
                if entry is None:
                    seen[id] = [number, 1, length]
                else:
                    entry[1] += 1
                    entry[2] += length
            if sink is not None:
                body = data[at + RECORD_BYTES : following] if whole is None else whole
                sink(time, id, kind, flags, count, number, body)
            at = following
        for id, (number, records, size) in seen.items():
            index = self.index.get(id)
            if index is None:
                index = self.index[id] = StreamIndex(self._step)
            index.add(number, offset, time, records, size)

    def _borrowed(self, offset: int, data: bytes, start: int, end: int) -> tuple[int, bytes]:
        """Flags and body of a record that borrows, as if it did not."""
        try:
            return 0, whole_body(data, BLOCK_BYTES, start, end)
        except ValueError as error:
            self.damages.append(Damage(self.file, offset, offset + len(data), str(error)))
            return LOST, b""

    def _take_own(self, kind: int, body: bytes) -> None:
        if kind == DECLARE:
            (id,) = DECLARATION.unpack_from(body)
            name = body[DECLARATION.size :].decode()
            self.streams.setdefault(id, StreamState(id, name)).name = name
        elif kind == TRUNCATE:
            id, before = TRUNCATION.unpack(body)
            if id in self.streams:
                self.streams[id].first = max(self.streams[id].first, before)
        elif kind == ENDS:
            for id, next in TRUNCATION.iter_unpack(body):
                state = self.streams.setdefault(id, StreamState(id, f"#{id}"))
                if state.next != next:
                    self._jump(state, next, self.end, self.end)
                    state.next = next
        elif kind == REPAIRED and body not in self.repairs:
            self.repairs.append(body)

    def _jump(self, state: StreamState, number: int, offset: int, length: int) -> None:
        """Numbers are missing: they were in what was damaged before. If nothing was, the log contradicts itself."""
        if not self.damages:
            self.damages.append(Damage(self.file, offset, offset + length, "numbers do not follow each other"))
        note_loss(self.damages[-1], state.name, state.next, number)


def note_loss(damage: Damage, stream: str, first: int, end: int) -> None:
    """Adds lost numbers to what is known about a damage."""
    known = damage.streams.get(stream)
    damage.streams[stream] = (first, end) if known is None else (min(known[0], first), end)
