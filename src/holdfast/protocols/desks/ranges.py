"""Parts of the log as messages: what a driver makes of records when it has read them. Pure; no state of a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.kernel.messages import Message, Record
from holdfast.kernel.node import broken
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.model.event import EventBytes, any_expires, deadlines_in, decode_batch, slices_of
from holdfast.protocols.core.commands import EventBatch
from holdfast.protocols.core.cursor import attempt
from holdfast.protocols.core.lifetimes import deadlines_of
from holdfast.protocols.cursors.messages import CursorEnded, CursorEvents, LogRefused, RangeRead
from holdfast.protocols.sessions.messages import Refusal


def gone(first: int, wanted: int) -> str:
    return f"the log begins at position {first}, behind {wanted}"


class _Matcher:
    """Looks at batches with one filter, or, if that is empty, does not look."""

    def __init__(self, filter: Filter) -> None:
        self._index: FilterIndex[int] | None = None
        if str(filter).strip():
            self._index = FilterIndex()
            self._index.add(0, filter)

    def rows(self, batch: EventBytes) -> tuple[list[EventBytes], list[int]]:
        """A batch's events, and the rows of those that match."""
        slices, rows, _ = self.rows_until(batch, 0)
        return slices, rows

    def rows_until(self, batch: EventBytes, wall: int) -> tuple[list[EventBytes], list[int], dict[int, int]]:
        """And, row → deadline, those that have one; none if `wall` is 0."""
        if self._index is None:
            slices = slices_of(batch)
            found = deadlines_in(batch) if wall else []
            return slices, list(range(len(slices))), dict(enumerate(found))
        events, slices = decode_batch(batch)
        matched = self._index.match_batch([(event.attributes, event.topic) for event in events])
        rows = [row for row, wanted in enumerate(matched) if wanted]
        return slices, rows, deadlines_of(events) if wall and any_expires(events) else {}


def _batches(records: Sequence[tuple[int, Record]]) -> Iterator[EventBatch]:
    for number, record in records:
        if not isinstance(record, EventBatch) or record.first != number:
            broken("the log holds batches of events, at their positions", number=number, record=type(record).__name__)
        yield record


class RangePart(msgspec.Struct, frozen=True, gc=False):
    """A `LogMessage`: events from `start` to `end` that match."""

    request: int
    log_id: str
    filter: Filter
    start: int
    end: int

    def make(self, records: Sequence[tuple[int, Record]], end: int) -> tuple[Message, int, int]:
        matcher = _Matcher(self.filter)
        positions: list[int] = []
        events: list[EventBytes] = []
        through, scanned = self.start - 1, 0
        for batch in _batches(records):
            slices, rows = matcher.rows(batch.events)
            for row in rows:
                if self.start <= batch.first + row <= self.end:
                    positions.append(batch.first + row)
                    events.append(slices[row])
            last = min(self.end, batch.first + len(slices) - 1)
            scanned += last - max(through, batch.first - 1)
            through = last
            if through == self.end:
                break
        message = RangeRead(self.request, self.log_id, through, positions, events, scanned)
        return message, through, len(events)

    def gone(self, first: int) -> Message:
        return LogRefused(self.request, Refusal.POSITION_GONE, gone(first, self.start), first)


class CursorPart(msgspec.Struct, frozen=True, gc=False):
    """A `LogMessage`: up to `room` events of a cursor behind position `after`, each by the filter that counted then;
    not beyond `until`, since later ones may be someone else's, or fall under another filter."""

    number: int
    takeovers: tuple[int, ...]  # of the cursor, when this was asked for
    filters: tuple[tuple[int, Filter], ...]
    after: int
    room: int
    until: int
    wall: int = 0  # what has expired by then is left out …
    flown: int = 0  # … behind this position: what lies before it was sent already, and comes again as it was

    def make(self, records: Sequence[tuple[int, Record]], end: int) -> tuple[Message, int, int]:
        matchers = [(after, _Matcher(filter)) for after, filter in self.filters]
        positions: list[int] = []
        events: list[EventBytes] = []
        expired: list[int] = []
        through = self.after
        for batch in _batches(records):
            for place, (after, matcher) in enumerate(matchers):
                until = matchers[place + 1][0] if place + 1 < len(matchers) else None
                if until is not None and until < batch.first:
                    continue
                slices, rows, deadlines = matcher.rows_until(batch.events, self.wall)
                last = min(batch.first + len(slices) - 1, self.until)
                for row in rows:
                    position = batch.first + row
                    if position > last:
                        break
                    if position <= max(after, self.after) or (until is not None and position > until):
                        continue
                    if deadlines and position > self.flown and 0 < deadlines.get(row, 0) <= self.wall:
                        expired.append(position)
                        continue
                    positions.append(position)
                    events.append(slices[row])
                    if len(events) == self.room:
                        return self._message(positions[-1], positions, events, expired), positions[-1], len(events)
                through = max(through, last)
                if until is None or until >= last:
                    break
        return self._message(through, positions, events, expired), through, len(events)

    def _message(
        self, through: int, positions: list[int], events: list[EventBytes], expired: list[int]
    ) -> CursorEvents:
        return cursor_events(self.number, self.takeovers, self.after, through, positions, events, expired)

    def gone(self, first: int) -> Message:
        return CursorEnded(self.number, Refusal.POSITION_GONE, gone(first, self.after + 1), first)


def cursor_events(
    number: int,
    takeovers: Sequence[int],
    after: int,
    through: int,
    positions: list[int],
    events: list[EventBytes],
    expired: list[int],
) -> CursorEvents:
    attempts: list[int] = []
    if positions and attempt(takeovers, positions[0]) > 1:
        attempts = [attempt(takeovers, position) for position in positions]
    return CursorEvents(number, after, through, positions, events, attempts, expired)
