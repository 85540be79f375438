"""Events of a feed that travel together, with their numbers; and where they are cut, so that they fit into messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from holdfast.model.batch import EventBatch

BATCH_EVENTS: Final = 1_024
BATCH_BYTES: Final = 256 * 1024


class FeedBatch(NamedTuple):
    """Events with numbers from `first` on, without gaps."""

    first: int
    events: EventBatch

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1

    @property
    def bytes(self) -> int:
        return self.events.bytes

    def after(self, number: int) -> FeedBatch:
        """What comes behind a number that is in the batch."""
        return FeedBatch(number + 1, self.events.behind(number + 1 - self.first))

    def split(self, number: int) -> tuple[FeedBatch, FeedBatch]:
        """What it has up to a number that is in it, and what comes behind."""
        return FeedBatch(self.first, self.events.part(0, number + 1 - self.first)), self.after(number)

    def shifted(self, distance: int) -> FeedBatch:
        """The same events, with numbers that are higher by so many."""
        return FeedBatch(self.first + distance, self.events)

    def parts(self, rows: Sequence[int]) -> list[FeedBatch]:
        """Those of rising rows, in runs of numbers without gaps; copied, as they may wait for long."""
        return [FeedBatch(self.first + start, self.events.take(range(start, end))) for start, end in runs(rows)]

    def has_expired(self, wall: int) -> bool:
        """Whether an event of it has no time left."""
        return 0 < self.events.soonest <= wall

    def alive(self, wall: int) -> list[FeedBatch]:
        """What has time left."""
        deadlines = self.events.deadlines or ()
        return self.parts([row for row, deadline in enumerate(deadlines) if not 0 < deadline <= wall])


def in_messages(events: EventBatch) -> Iterator[EventBatch]:
    """The events in parts, each of which fits into a message."""
    start = 0
    while start < len(events):
        end = min(start + BATCH_EVENTS, max(start + 1, events.rows_within(start, BATCH_BYTES)))
        yield events.part(start, end)
        start = end


def numbered(first: int, events: EventBatch) -> list[FeedBatch]:
    """Events with numbers from `first` on, each part of which fits into a message."""
    batches = []
    for part in in_messages(events):
        batches.append(FeedBatch(first, part))
        first += len(part)
    return batches


def runs(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Rising rows as ranges without gaps."""
    if not rows:
        return []
    if rows[-1] - rows[0] == len(rows) - 1:
        return [(rows[0], rows[-1] + 1)]
    found: list[tuple[int, int]] = []
    for row in rows:
        if found and found[-1][1] == row:
            found[-1] = (found[-1][0], row + 1)
        else:
            found.append((row, row + 1))
    return found


def joined(batches: Sequence[FeedBatch]) -> Iterator[FeedBatch]:
    """Some batches in few messages: what came in one turn from several sides goes on together."""
    together: list[FeedBatch] = []
    count = size = 0
    for batch in batches:
        events = len(batch.events)
        follows = bool(together) and together[-1].last + 1 == batch.first
        if not follows or count + events > BATCH_EVENTS or size + batch.bytes > BATCH_BYTES:
            if together:
                yield _join(together)
            together, count, size = [], 0, 0
        together.append(batch)
        count, size = count + events, size + batch.bytes
    if together:
        yield _join(together)


def _join(batches: Sequence[FeedBatch]) -> FeedBatch:
    return FeedBatch(batches[0].first, EventBatch.joined([batch.events for batch in batches]))
