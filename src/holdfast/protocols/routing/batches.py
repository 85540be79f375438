"""Events of a feed that travel together, with their numbers; and where they are cut, so that they fit into messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.model.event import EventBytes

BATCH_EVENTS: Final = 1_024
BATCH_BYTES: Final = 256 * 1024


class Batch:
    """Events with numbers from `first` on. `deadlines` has 0 for an event that does not expire; None: none does."""

    __slots__ = ("_soonest", "bytes", "deadlines", "events", "first")

    def __init__(self, first: int, events: list[EventBytes], deadlines: list[int] | None) -> None:
        self.first = first
        self.events = events
        self.deadlines = deadlines
        self.bytes = sum(map(len, events))
        self._soonest = min((deadline for deadline in deadlines or () if deadline), default=0)

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1

    def after(self, number: int) -> Batch:
        """What comes behind a number that is in the batch."""
        skipped = number + 1 - self.first
        return Batch(number + 1, self.events[skipped:], None if self.deadlines is None else self.deadlines[skipped:])

    def split(self, number: int) -> tuple[Batch, Batch]:
        """What it has up to a number that is in it, and what comes behind."""
        count = number + 1 - self.first
        before = Batch(self.first, self.events[:count], None if self.deadlines is None else self.deadlines[:count])
        return before, self.after(number)

    def shifted(self, distance: int) -> Batch:
        """The same events, with numbers that are higher by so many."""
        return Batch(self.first + distance, self.events, self.deadlines)

    def has_expired(self, wall: int) -> bool:
        """Whether an event of it has no time left."""
        return 0 < self._soonest <= wall

    def alive(self, wall: int) -> list[Batch]:
        """What has time left, in runs of numbers without gaps."""
        runs: list[Batch] = []
        start = 0
        deadlines = self.deadlines or []
        for row, deadline in enumerate([*deadlines, wall]):  # one that is over ends the last run
            if 0 < deadline <= wall:
                if row > start:
                    runs.append(Batch(self.first + start, self.events[start:row], deadlines[start:row]))
                start = row + 1
        return runs


def in_batches(events: Sequence[EventBytes]) -> list[tuple[int, int]]:
    """Where to cut events so that each part fits into a message."""
    cuts, start, size = [], 0, 0
    for row, event in enumerate(events):
        if row - start == BATCH_EVENTS or (size and size + len(event) > BATCH_BYTES):
            cuts.append((start, row))
            start, size = row, 0
        size += len(event)
    if len(events) > start:
        cuts.append((start, len(events)))
    return cuts


def numbered(first: int, events: Sequence[EventBytes], deadlines: Sequence[int] | None) -> list[Batch]:
    """Events with numbers from `first` on, each part of which fits into a message."""
    return [
        Batch(first + start, list(events[start:end]), None if deadlines is None else list(deadlines[start:end]))
        for start, end in in_batches(events)
    ]


def runs(rows: list[int]) -> list[tuple[int, int]]:
    """Rising rows as ranges without gaps."""
    found: list[tuple[int, int]] = []
    for row in rows:
        if found and found[-1][1] == row:
            found[-1] = (found[-1][0], row + 1)
        else:
            found.append((row, row + 1))
    return found


def joined(batches: list[Batch]) -> list[tuple[int, list[EventBytes]]]:
    """Some batches in few messages: what came in one turn from several sides goes on together."""
    runs: list[tuple[int, list[EventBytes]]] = []
    size = 0
    for batch in batches:
        follows = bool(runs) and runs[-1][0] + len(runs[-1][1]) == batch.first
        fits = follows and len(runs[-1][1]) + len(batch.events) <= BATCH_EVENTS
        if fits and size + batch.bytes <= BATCH_BYTES:
            runs[-1] = (runs[-1][0], runs[-1][1] + batch.events)
            size += batch.bytes
        else:
            runs.append((batch.first, batch.events))
            size = batch.bytes
    return runs
