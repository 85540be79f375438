"""Parts of the log, against the obvious way to make them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.messages import Record
from holdfast.kernel.node import InvariantBroken
from holdfast.model import Filter
from holdfast.protocols.core.commands import CoreState, LoggedEvents
from holdfast.protocols.core.cursor import Cursor
from holdfast.protocols.cursors.messages import CursorEnded, CursorEvents, LogRefused, RangeRead
from holdfast.protocols.desks.ranges import CursorPart, RangePart
from holdfast.protocols.sessions.messages import Refusal
from tests.sessions.bench import batch

TEXTS = ("", "n > 3", "n < 4", "n = 2 OR n = 5")


def wanted(text: str, n: int) -> bool:
    return {"": True, "n > 3": n > 3, "n < 4": n < 4, "n = 2 OR n = 5": n in (2, 5)}[text]


@st.composite
def logs(draw: st.DrawFn) -> tuple[int, list[int], list[tuple[int, Record]]]:
    """Where the log begins, the numbers of its events, and the same as records."""
    first = draw(st.integers(1, 5))
    sizes = draw(st.lists(st.integers(1, 4), max_size=5))
    numbers = draw(st.lists(st.integers(0, 7), min_size=sum(sizes), max_size=sum(sizes)))
    records: list[tuple[int, Record]] = []
    at = 0
    for size in sizes:
        records.append((first + at, LoggedEvents(first + at, 0, batch(*numbers[at : at + size]))))
        at += size
    return first, numbers, records


def holding(records: list[tuple[int, Record]], start: int) -> list[tuple[int, Record]]:
    """Those from the record that holds a position on, as a driver gives them."""
    ends = [number for number, _ in records[1:]]
    return [record for place, record in enumerate(records) if place >= len(ends) or ends[place] > start]


@given(given_log=logs(), text=st.sampled_from(TEXTS), skip=st.integers(0, 20), length=st.integers(0, 20))
@settings(max_examples=300)
def test_a_range_holds_what_matches_between_its_bounds(
    given_log: tuple[int, list[int], list[tuple[int, Record]]], text: str, skip: int, length: int
) -> None:
    first, numbers, records = given_log
    start = first + skip
    last = first + len(numbers) - 1
    end = start + length
    if start > last:
        records = []
    part = RangePart(7, "disk", Filter(text), start, end)
    message, through, count = part.make(holding(records, start), last + 1)
    found = [p for p in range(start, min(end, last) + 1) if wanted(text, numbers[p - first])]
    assert isinstance(message, RangeRead)
    assert message.positions == found
    assert message.events == batch(*[numbers[p - first] for p in found])
    assert (through, count) == (max(start - 1, min(end, last)), len(found))
    assert (message.through, message.scanned) == (through, through - start + 1)


@given(
    given_log=logs(),
    cuts=st.lists(st.integers(0, 20), max_size=3, unique=True).map(sorted),
    texts=st.lists(st.sampled_from(TEXTS), min_size=4, max_size=4),
    skip=st.integers(0, 20),
    room=st.integers(1, 6),
    until=st.integers(0, 25),
)
@settings(max_examples=500)
def test_a_cursor_gets_each_event_by_the_filter_that_counted_then(
    given_log: tuple[int, list[int], list[tuple[int, Record]]],
    cuts: list[int],
    texts: list[str],
    skip: int,
    room: int,
    until: int,
) -> None:
    first, numbers, records = given_log
    after = first - 1 + skip
    until = max(after, until)
    last = first + len(numbers) - 1
    filters = [(0, texts[0]), *((cut + 1, text) for cut, text in zip(cuts, texts[1:], strict=False))]
    if after >= last:
        records = []
    part = CursorPart(3, (), tuple((a, Filter(t)) for a, t in filters), after, room, until)
    message, through, count = part.make(holding(records, after + 1), last + 1)
    found, reached = [], after
    for position in range(after + 1, min(last, until) + 1):
        text = [t for a, t in filters if a < position][-1]
        if wanted(text, numbers[position - first]):
            found.append(position)
        reached = position
        if len(found) == room:
            break
    assert isinstance(message, CursorEvents)
    assert message.positions == found
    assert message.events == batch(*[numbers[p - first] for p in found])
    assert (message.cursor, message.after, message.through, message.attempts) == (3, after, reached, [])
    assert (through, count) == (reached, len(found))


def test_attempts_are_those_of_the_cursor() -> None:
    cursor = Cursor("risk", Filter(""), 0)
    cursor.take_over(("c", 1, 1), 1, 0)
    cursor.take_over(("d", 1, 1), 2, 2)
    cursor.take_over(("c", 1, 1), 3, 1)
    part = CursorPart(1, tuple(cursor.takeovers), tuple(cursor.filters), 0, 9, 9)
    cursor.move(0, Filter(""))  # what was asked for before is as it was
    message, _, _ = part.make([(1, LoggedEvents(1, 0, batch(1, 2, 3)))], 4)
    assert isinstance(message, CursorEvents)
    assert message.attempts == [3, 2, 1]


def test_what_is_gone_is_said_with_where_the_log_begins() -> None:
    assert RangePart(7, "disk", Filter(""), 3, 9).gone(5) == LogRefused(
        7, Refusal.POSITION_GONE, "the log begins at position 5, behind 3", 5
    )
    cursor = Cursor("risk", Filter(""), 0)
    assert CursorPart(1, (), tuple(cursor.filters), 2, 9, 9).gone(5) == CursorEnded(
        1, Refusal.POSITION_GONE, "the log begins at position 5, behind 3", 5
    )


@pytest.mark.parametrize("record", [CoreState(1, b""), LoggedEvents(2, 0, batch(1))])
def test_a_log_that_holds_something_else_stops_the_node(record: Record) -> None:
    with pytest.raises(InvariantBroken, match="at their positions"):
        RangePart(1, "disk", Filter(""), 1, 9).make([(1, record)], 2)
