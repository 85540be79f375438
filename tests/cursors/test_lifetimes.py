"""Named subscriptions skip events that have expired, live or read from the log; the log keeps them all (D1-A4)."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.messages import Record
from holdfast.kernel.time import SECOND
from holdfast.model import Filter
from holdfast.model.event import Event, EventBytes, encode_batch, encode_event
from holdfast.protocols.core.commands import LoggedEvents
from holdfast.protocols.cursors.messages import (
    CursorEvents,
    CursorOpened,
    CursorProgress,
    OpenCursor,
    RangeRead,
    ReadRange,
)
from holdfast.protocols.cursors.requests import ConsumeCursor, MakeCursor
from holdfast.protocols.desks.cursor_deliveries import DeliverySettings
from holdfast.protocols.desks.ranges import CursorPart, RangePart
from holdfast.protocols.sessions.messages import Publish, SessionOpened
from holdfast.protocols.sessions.requests import UNSOLICITED, EventsExpired
from tests.cursors.bench import LogBench, told
from tests.sessions.bench import WALL, ClientBench, event, sent, shown


def mortal(n: int, lifetime: int = 1 * SECOND) -> EventBytes:
    return encode_event(Event("p", 1, n, "", {"n": n}, b"", WALL, lifetime))


# --------------------------------------------------------------------------------------------------------- from the log
@given(
    lifetimes=st.lists(st.sampled_from([0, 0, 1, 5, 9]), min_size=1, max_size=12),
    size=st.integers(1, 4),
    text=st.sampled_from(["", "n > 3"]),
    room=st.integers(1, 5),
    after=st.integers(0, 4),
    by=st.integers(0, 10),
)
@settings(max_examples=300)
def test_a_cursor_gets_what_lives_and_is_told_what_does_not(
    lifetimes: list[int], size: int, text: str, room: int, after: int, by: int
) -> None:
    events = [mortal(n, lifetime) for n, lifetime in enumerate(lifetimes, 1)]
    records: list[tuple[int, Record]] = [
        (first + 1, LoggedEvents(first + 1, 0, encode_batch(events[first : first + size])))
        for first in range(0, len(events), size)
    ]
    after = min(after, len(events))
    held = [(number, record) for number, record in records if number + size > after + 1]
    part = CursorPart(3, (), ((0, Filter(text)),), after, room, len(events), WALL + by)
    message, through, count = part.make(held, len(events) + 1)
    found: list[int] = []
    gone: list[int] = []
    reached = after
    for position in range(after + 1, len(events) + 1):
        reached = position
        if text and position <= 3:
            continue
        (gone if 0 < lifetimes[position - 1] <= by else found).append(position)
        if len(found) == room:
            break
    assert isinstance(message, CursorEvents)
    assert (message.positions, message.expired, message.through) == (found, gone, reached)
    assert (through, count) == (reached, len(found))


def test_who_reads_a_range_of_the_log_gets_everything() -> None:
    part = RangePart(7, "disk", Filter("n > 0"), 1, 2)
    message, _, _ = part.make([(1, LoggedEvents(1, 0, encode_batch([mortal(1, 1), event(2)])))], 3)
    assert isinstance(message, RangeRead)
    assert message.positions == [1, 2]


# ----------------------------------------------------------------------------------------------------- at the broker
def follow(window: int = 2, **settings: Any) -> LogBench:
    bench = LogBench(**settings)
    bench.open("p")
    bench.open("c", OpenCursor(1, "risk", "n > 0", window=window))
    return bench


def say(bench: LogBench, *events: EventBytes, first: int = 1) -> list[Any]:
    return bench.say("p", Publish(first, encode_batch(list(events))))


def cursor_events(rows: list[Any]) -> list[CursorEvents]:
    return [message for message in told(rows, "c") if isinstance(message, CursorEvents)]


def test_what_expires_in_a_live_queue_is_left_out_and_told() -> None:
    bench = follow()
    (first,) = cursor_events(say(bench, mortal(1), mortal(2), mortal(3), event(4), mortal(5, 99 * SECOND)))
    assert first.positions == [1, 2], "it has room for two"
    bench.out.wall += SECOND
    second, third = cursor_events(bench.say("c", CursorProgress(1, 2, 2)))
    assert (second.positions, second.expired, second.through) == ([4], [3], 4)
    assert (third.positions, third.expired) == ([5], []), "what expired takes no room"


def test_if_nothing_is_left_the_client_is_told_how_far_it_is() -> None:
    bench = follow(window=1)
    say(bench, event(1), mortal(2))
    bench.out.wall += SECOND
    (message,) = cursor_events(bench.say("c", CursorProgress(1, 1, 1)))
    assert (message.positions, message.expired, message.after, message.through) == ([], [2], 1, 2)


def test_what_expires_before_a_slow_reader_comes_to_it_is_left_out_of_what_is_read() -> None:
    bench = follow(delivery=DeliverySettings(queue_events=1))
    say(bench, *(mortal(n) for n in range(1, 5)), event(5))
    bench.out.wall += SECOND
    rows = bench.say("c", CursorProgress(1, 2, 2))
    found = cursor_events(rows)
    assert [position for message in found for position in message.positions] == [5]
    assert [position for message in found for position in message.expired] == [3, 4]
    assert bench.logged() == {n: n for n in range(1, 6)}, "it is a log"
    rows = bench.say("c", ReadRange(9, "", 1, 5))
    (read,) = [message for message in told(rows, "c") if isinstance(message, RangeRead)]
    assert read.positions == [1, 2, 3, 4, 5]


def test_owners_say_what_expired_and_it_counts_once_over_all_of_their_links() -> None:
    bench = follow(window=9)
    say(bench, mortal(1), mortal(2), mortal(3))
    for expired in (1, 1, 2):
        bench.say("c", CursorProgress(1, 3, 3, expired=expired))
    assert bench.node.measure()["named_expired_total"] == 2
    bench.open("c", OpenCursor(1, "risk", "n > 0", window=9, generation=1, received=3))
    bench.say("c", CursorProgress(1, 3, 3, expired=3))
    assert bench.node.measure()["named_expired_total"] == 3
    bench.open("d", OpenCursor(1, "risk", "n > 0", window=9))
    bench.say("d", CursorProgress(1, 3, 3, expired=2))
    assert bench.node.measure()["named_expired_total"] == 5, "another owner counts anew"


def test_what_was_sent_and_expires_before_it_is_said_to_have_arrived_still_counts_against_the_window() -> None:
    bench = follow(window=2)
    (first,) = cursor_events(say(bench, mortal(1, 900_000_000), mortal(2, 900_000_000), event(3), event(4)))
    assert first.positions == [1, 2], "the client has them, and its word of that is late"
    found = cursor_events(shown(bench.advance(2 * SECOND)))
    held = set(first.positions).union(*(message.positions for message in found))
    assert held <= {1, 2}, "its window is two"
    rows = bench.say("c", CursorProgress(1, 2, 1, unconsumed=1))
    assert [position for message in cursor_events(rows) for position in message.positions] == [3]


# ----------------------------------------------------------------------------------------------------- at the client
def live(window: int = 4) -> ClientBench:
    bench = ClientBench()
    bench.open()
    bench.ask(MakeCursor("risk", "n > 0", 5, True, window))
    bench.say(CursorOpened(1, 3, 10, 10))
    return bench


def come(after: int, through: int, events: dict[int, EventBytes], *expired: int) -> CursorEvents:
    return CursorEvents(1, after, through, list(events), encode_batch(list(events.values())), [], list(expired))


def expired(count: int) -> tuple[Any, ...]:
    return ("complete", UNSOLICITED, EventsExpired(-1, count))


def test_what_comes_too_late_is_not_handed_over_and_counted_with_what_the_broker_left_out() -> None:
    bench = live()
    bench.out.wall = WALL + SECOND
    rows = bench.say(come(10, 16, {11: mortal(1), 12: event(2), 14: mortal(4), 16: mortal(6, 2 * SECOND)}, 13, 15))
    assert rows[:2] == [expired(4), ("deliver", -1, [2, 6])]
    assert sent(rows, "b1") == [CursorProgress(1, 16, 10, expired=4, unconsumed=2)]
    assert sent(bench.ask(ConsumeCursor(1, 1)), "b1") == [CursorProgress(1, 16, 12, expired=4, unconsumed=1)]
    assert sent(bench.ask(ConsumeCursor(1, 1)), "b1") == [CursorProgress(1, 16, 16, expired=4)]


def test_what_was_told_before_does_not_count_again() -> None:
    bench = live()
    bench.say(come(10, 12, {11: event(1)}, 12))
    assert expired(1) in bench.say(come(10, 14, {11: event(1)}, 12, 14))
    assert not [row for row in bench.say(come(10, 14, {11: event(1)}, 12, 14)) if row[0] == "complete"]


def test_if_all_is_late_there_is_room_again() -> None:
    bench = live(window=1)
    bench.out.wall = WALL + SECOND
    rows = bench.say(come(10, 11, {11: mortal(1)}))
    assert sent(rows, "b1") == [CursorProgress(1, 11, 11, expired=1)]
    assert not [row for row in rows if row[0] == "deliver"]


def test_over_a_lost_link_a_client_goes_on_counting() -> None:
    bench = live()
    bench.say(come(10, 12, {11: event(1)}, 12))
    bench.handle(bench.down())
    bench.advance(SECOND)
    bench.handle(bench.up())
    bench.say(SessionOpened(5, 0, 100, 9))
    bench.say(CursorOpened(1, 3, 10, 12))
    assert sent(bench.say(come(12, 13, {}, 13)), "b1") == [CursorProgress(1, 13, 10, expired=2, unconsumed=1)]
    assert not shown(bench.advance(SECOND // 2))
