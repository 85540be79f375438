"""Parts of the log as messages: what a driver makes of records when it has read them. Pure; no state of a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from holdfast.kernel.messages import Message, Record
from holdfast.kernel.node import broken
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.model.event import EventBytes, decode_batch, slices_of
from holdfast.protocols.cursors.cursor import attempt
from holdfast.protocols.cursors.messages import CursorEnded, CursorEvents, LogRefused, RangeRead
from holdfast.protocols.sessions.commands import EventBatch
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
        if self._index is None:
            slices = slices_of(batch)
            return slices, list(range(len(slices)))
        events, slices = decode_batch(batch)
        matched = self._index.match_batch([(event.attributes, event.topic) for event in events])
        return slices, [row for row, found in enumerate(matched) if found]


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

    def make(self, records: Sequence[tuple[int, Record]], end: int) -> tuple[Message, int, int]:
        matchers = [(after, _Matcher(filter)) for after, filter in self.filters]
        positions: list[int] = []
        events: list[EventBytes] = []
        through = self.after
        for batch in _batches(records):
            for place, (after, matcher) in enumerate(matchers):
                until = matchers[place + 1][0] if place + 1 < len(matchers) else None
                if until is not None and until < batch.first:
                    continue
                slices, rows = matcher.rows(batch.events)
                last = min(batch.first + len(slices) - 1, self.until)
                for row in rows:
                    position = batch.first + row
                    if position > last:
                        break
                    if position <= max(after, self.after) or (until is not None and position > until):
                        continue
                    positions.append(position)
                    events.append(slices[row])
                    if len(events) == self.room:
                        return self._message(positions[-1], positions, events), positions[-1], len(events)
                through = max(through, last)
                if until is None or until >= last:
                    break
        return self._message(through, positions, events), through, len(events)

    def _message(self, through: int, positions: list[int], events: list[EventBytes]) -> CursorEvents:
        return cursor_events(self.number, self.takeovers, self.after, through, positions, events)

    def gone(self, first: int) -> Message:
        return CursorEnded(self.number, Refusal.POSITION_GONE, gone(first, self.after + 1), first)


def cursor_events(
    number: int, takeovers: Sequence[int], after: int, through: int, positions: list[int], events: list[EventBytes]
) -> CursorEvents:
    attempts: list[int] = []
    if positions and attempt(takeovers, positions[0]) > 1:
        attempts = [attempt(takeovers, position) for position in positions]
    return CursorEvents(number, after, through, positions, events, attempts)
