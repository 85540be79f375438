"""Events that wait, as runs of the batches in which they came: taken from the front, read from anywhere.

A batch that came whole is kept whole, and read whole, without being looked at or copied. What is taken from its front
stays in memory with the rest, until that is less than half of it: then the rest is copied, and the batch is let go. So
a backlog takes up no more than as much again as it counts, and copies no more than it was given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.model.batch import EventBatch

NO_POSITIONS: Final[Sequence[int]] = ()


class Run(msgspec.Struct, frozen=True, gc=False):
    """Events one behind the other, and their positions in the log; none without one."""

    batch: EventBatch
    positions: Sequence[int] = NO_POSITIONS

    def take(self, rows: Sequence[int]) -> Run:
        """Those of rising rows; the run itself if these are all."""
        batch = self.batch.take(rows)
        if batch is self.batch:
            return self
        positions = self.positions
        return Run(batch, [positions[row] for row in rows] if positions else NO_POSITIONS)

    def part(self, start: int, end: int) -> Run:
        if start <= 0 and end >= len(self.batch):
            return self
        return Run(self.batch.part(start, end), self.positions[start:end])


class Backlog:
    __slots__ = ("_head", "_runs", "bytes", "count")

    def __init__(self) -> None:
        self._runs: deque[Run] = deque()
        self._head = 0  # events of the first run that are gone
        self.count = 0  # of events
        self.bytes = 0

    def __len__(self) -> int:
        return self.count

    def add(self, run: Run) -> None:
        self._runs.append(run)
        self.count += run.batch.count
        self.bytes += run.batch.bytes

    def drop(self, count: int) -> int:
        """Gives up so many of the oldest; their bytes."""
        if count == self.count:
            size = self.bytes
            self.clear()
            return size
        before, self.count = self.bytes, self.count - count
        while count:
            batch = self._runs[0].batch
            end = min(self._head + count, len(batch))
            self.bytes -= batch.bytes_of(self._head, end)
            count -= end - self._head
            self._head = end
            if end == len(batch):
                self._runs.popleft()
                self._head = 0
        if self._head:
            self._let_go()
        return before - self.bytes

    def _let_go(self) -> None:
        """Of the first batch, if little of it is left."""
        first = self._runs[0]
        count = first.batch.count
        if 2 * first.batch.bytes_of(self._head, count) < first.batch.bytes:
            rest = first.part(self._head, count)
            self._runs[0] = Run(rest.batch.apart(), rest.positions)
            self._head = 0

    def read(self, skipped: int, count: int) -> list[Run]:
        """Up to `count` events, behind so many that are passed over."""
        found: list[Run] = []
        if skipped and skipped >= self.count:
            return found
        if self._runs and skipped == self.count - self._runs[-1].batch.count and self.count - skipped <= count:
            return [self._runs[-1]]  # what came last: mostly that is it
        # What was passed over was sent before: as a rule there is little behind it, and it is found from the end.
        first, start = self._place(self._head + skipped)
        for place in range(first, len(self._runs)):
            if count <= 0:
                break
            part = self._runs[place].part(start, start + count)
            found.append(part)
            count -= len(part.batch)
            start = 0
        return found

    def _place(self, skipped: int) -> tuple[int, int]:
        """The run in which an event lies, and where in it, of those that begin with the first run."""
        if 2 * skipped < self._head + self.count:
            place = 0
            while place < len(self._runs) and skipped >= len(self._runs[place].batch):
                skipped -= len(self._runs[place].batch)
                place += 1
            return place, skipped
        left = self._head + self.count - skipped
        place = len(self._runs)
        while left > 0:
            place -= 1
            left -= len(self._runs[place].batch)
        return place, -left

    def take(self, count: int) -> list[Run]:
        """The oldest so many, which are gone from here."""
        taken = self.read(0, count)
        self.drop(min(count, self.count))
        return taken

    def clear(self) -> None:
        self._runs.clear()
        self._head = self.count = self.bytes = 0


def batch_of(runs: Sequence[Run]) -> EventBatch:
    """All events of some runs."""
    return EventBatch.joined([run.batch for run in runs])


def positions_of(runs: Sequence[Run]) -> list[int]:
    return [position for run in runs for position in run.positions]
