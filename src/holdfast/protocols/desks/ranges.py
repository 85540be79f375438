"""Parts of the log as messages: what a driver makes of records when it has read them. Pure; no state of a node."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import msgspec

from holdfast.kernel.messages import Message, Record
from holdfast.kernel.node import broken
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.backlog import Run, batch_of, positions_of
from holdfast.protocols.core.commands import LoggedEvents
from holdfast.protocols.core.cursor import attempt
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

    def rows(self, batch: EventBatch) -> Sequence[int]:
        return range(len(batch)) if self._index is None else self._index.rows_matching(batch)


def _runs(records: Sequence[tuple[int, Record]]) -> Iterator[tuple[int, int, Run]]:
    """The events of records, behind their first and last position."""
    for number, record in records:
        if not isinstance(record, LoggedEvents) or record.first != number:
            broken("the log holds batches of events, at their positions", number=number, record=type(record).__name__)
        batch = EventBatch.read(record.events, bounded=False)
        following = number + len(batch)
        yield number, following - 1, Run(batch, range(number, following))


def _within(rows: Sequence[int], first: int, last: int) -> Sequence[int]:
    """Those of rising rows that lie in a range."""
    return rows[bisect_left(rows, first) : bisect_right(rows, last)]


class RangePart(msgspec.Struct, frozen=True, gc=False):
    """A `LogMessage`: events from `start` to `end` that match."""

    request: int
    log_id: str
    filter: Filter
    start: int
    end: int

    def make(self, records: Sequence[tuple[int, Record]], end: int) -> tuple[Message, int, int]:
        matcher = _Matcher(self.filter)
        found: list[Run] = []
        through, scanned = self.start - 1, 0
        for first, last, run in _runs(records):
            rows = _within(matcher.rows(run.batch), self.start - first, self.end - first)
            if rows:
                found.append(run.take(rows))
            last = min(self.end, last)
            scanned += last - max(through, first - 1)
            through = last
            if through == self.end:
                break
        events = batch_of(found)
        message = RangeRead(self.request, self.log_id, through, positions_of(found), events.encoded, scanned)
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
        found: list[Run] = []
        expired: list[int] = []
        through, room = self.after, self.room
        for first, last, run in _runs(records):
            last = min(last, self.until)
            for place, (after, matcher) in enumerate(matchers):
                until = matchers[place + 1][0] if place + 1 < len(matchers) else None
                if until is not None and until < first:
                    continue
                counts_until = last if until is None else min(last, until)
                rows = _within(matcher.rows(run.batch), max(after, self.after) + 1 - first, counts_until - first)
                rows = self._alive(run, rows, expired)[:room]
                if rows:
                    found.append(run.take(rows))
                    room -= len(rows)
                if not room:
                    through = found[-1].positions[-1]
                    return self._message(through, found, [place for place in expired if place <= through])
                through = max(through, last)
                if until is None or until >= last:
                    break
        return self._message(through, found, expired)

    def _alive(self, run: Run, rows: Sequence[int], expired: list[int]) -> Sequence[int]:
        """Without the rows of what has expired and was not sent before, whose positions are noted."""
        deadlines = run.batch.deadlines if self.wall and rows else None
        if deadlines is None:
            return rows
        positions = run.positions
        over = {row for row in rows if positions[row] > self.flown and 0 < deadlines[row] <= self.wall}
        expired += [positions[row] for row in rows if row in over]
        return [row for row in rows if row not in over] if over else rows

    def _message(self, through: int, runs: list[Run], expired: list[int]) -> tuple[Message, int, int]:
        message = cursor_events(self.number, self.takeovers, self.after, through, runs, expired)
        return message, through, len(message.positions)

    def gone(self, first: int) -> Message:
        return CursorEnded(self.number, Refusal.POSITION_GONE, gone(first, self.after + 1), first)


def cursor_events(
    number: int, takeovers: Sequence[int], after: int, through: int, runs: Sequence[Run], expired: list[int]
) -> CursorEvents:
    attempts: list[int] = []
    positions = positions_of(runs)
    if positions and attempt(takeovers, positions[0]) > 1:
        attempts = [attempt(takeovers, position) for position in positions]
    return CursorEvents(number, after, through, positions, batch_of(runs).encoded, attempts, expired)
