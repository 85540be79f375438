"""Whatever a client sends, its broker goes on: at worst the client's own link is closed."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.inputs import Received
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Append, Disconnect, Send
from holdfast.kernel.time import SECOND
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.core.register import EPOCH_MAX
from holdfast.protocols.cursors import messages as log
from holdfast.protocols.sessions.messages import (
    Accepted,
    Advertise,
    CloseSession,
    OpenSession,
    Overflow,
    Ping,
    Pong,
    Progress,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from holdfast.schemes.catalogue import MESSAGES, RECORDS
from tests.codec.test_hostile_bytes import EVENTS_OF_NOBODY
from tests.cursors.bench import LogBench
from tests.sessions.bench import EPOCH, BrokerBench, batch, sent, shown
from tests.sessions.command_strategies import FILTERS, batches, integers, raw, some

S, P = "client:s", "client:p"
LIMITS = CoreLimits(
    sessions=3,
    subscriptions_per_session=3,
    backlog_events=4,
    backlog_bytes=400,
    named_subscriptions=2,
    staged_bytes=200,
    backlog_bytes_per_session=600,
)


def closed(bench: BrokerBench, client: str, *said: Message) -> str:
    """Why the client's link is closed after it said something; nothing else may be said to it."""
    rows = bench.say(client, *said)
    assert len(rows) == 1, rows
    assert isinstance(rows[0], Disconnect)
    assert rows[0].link == bench.links[client]
    return rows[0].reason


def opened() -> BrokerBench:
    bench = BrokerBench(LIMITS, window_max=50, publish_window=20)
    bench.open("s", Subscribe(1, "n > 0", Overflow.DISCONNECT, 50))
    bench.open("p")
    bench.say("p", Publish(1, batch(1, 2)))
    return bench


@pytest.mark.parametrize("window", [0, -1, 51, 2**64 - 1])
def test_a_window_out_of_range_ends_the_link(window: int) -> None:
    assert "window is 1 to 50" in closed(opened(), "s", Subscribe(2, "n > 0", Overflow.BLOCK, window))


@pytest.mark.parametrize(("received", "consumed"), [(3, 0), (2**64 - 1, 0), (1, 2), (0, 1)])
def test_progress_beyond_what_exists_ends_the_link(received: int, consumed: int) -> None:
    assert "subscription 1 has 2 events" in closed(opened(), "s", Progress((1,), (received,), (consumed,)))


def test_progress_below_zero_is_no_progress() -> None:
    bench = opened()
    assert bench.say("s", Progress((1, 1), (-5, 1), (-9, 1))) == []
    assert bench.say("s", Progress((9,), (99,), (99,))) == []


@pytest.mark.parametrize(
    ("first", "count", "confirmed"),
    [(0, 1, 2), (-4, 1, 2), (22, 2, 2), (2**64 - 1, 1, 2), (3, 1, -1), (10, 13, 1), (21, 1, 0), (3, 21, 10**6)],
)
def test_a_publish_outside_the_window_ends_the_link(first: int, count: int, confirmed: int) -> None:
    events = batch(*range(count))
    assert "are beyond the window after" in closed(opened(), "p", Publish(first, events, confirmed))


def test_a_publish_that_fills_the_window_is_taken() -> None:
    assert sent(opened().say("p", Publish(3, batch(*range(1, 21)), 2)), P) == [Accepted(22)]


def test_a_client_that_never_confirms_can_not_pile_up_refusals() -> None:
    bench = opened()
    for first in range(3, 21):
        bench.say("p", Publish(first, batch(1, m=float("nan"))))
    assert "beyond the window after 0" in closed(bench, "p", Publish(21, batch(1, m=float("nan"))))
    assert len(bench.desk._core.sessions[P].refused) == 18


@pytest.mark.parametrize("fields", [((1,), (), ()), ((), (1,), ()), ((), (), (1,)), ((1, 2), (1, 1), (1,))])
def test_lists_of_different_lengths_end_the_link(fields: tuple[Any, Any, Any]) -> None:
    assert "different counts" in closed(opened(), "s", Progress(*fields))
    assert "different counts" in closed(opened(), "s", OpenSession(1, EPOCH, *fields))


@pytest.mark.parametrize("epoch", [-1, EPOCH_MAX + 1, 2**64 - 1])
def test_an_epoch_that_was_never_granted_ends_the_link(epoch: int) -> None:
    assert "an epoch is 0 to" in closed(opened(), "s", OpenSession(1, epoch))


@pytest.mark.parametrize("events", EVENTS_OF_NOBODY.values(), ids=EVENTS_OF_NOBODY)
def test_bytes_that_are_no_events_end_the_link(events: bytes) -> None:
    assert "in Publish, bytes are no events" in closed(opened(), "p", Publish(3, msgspec.Raw(events), 2))


def test_a_message_that_only_brokers_send_ends_the_link() -> None:
    assert "Pong is not for this node" in closed(opened(), "p", Pong())


def test_a_client_that_sends_and_never_reads_is_cut_off() -> None:
    bench = BrokerBench(unread_bytes_max=1000)
    bench.open("s")
    effects = [effect for _ in range(30) for effect in bench.handle(bench.received("s", Ping()))]
    assert 10 < sum(isinstance(effect, Send) for effect in effects) < 20
    assert [row for row in shown(effects) if isinstance(row, Disconnect)] == [
        Disconnect(1, "protocol error: more than 1000 bytes of answers are not read")
    ]


pairs = st.tuples(integers, integers)
overflows = st.sampled_from(Overflow)
epochs = st.sampled_from([0, EPOCH, EPOCH + 1, 2**62, 2**64 - 1])
small = st.integers(0, 6)
texts = st.one_of(st.sampled_from(FILTERS), st.text(max_size=9))
numbers = st.one_of(st.integers(0, 4), integers)
names = st.one_of(st.sampled_from(["risk", "audit", ""]), st.text(max_size=3))
log_messages = (
    st.builds(log.OpenCursor, st.integers(1, 3), names, texts, st.integers(-1, 6), st.booleans(), st.integers(1, 4)),
    st.builds(
        log.OpenCursor, numbers, names, texts, numbers, st.booleans(), st.integers(1, 4), numbers, numbers, numbers
    ),
    st.builds(log.OpenCursor, numbers, names, texts, integers, st.booleans(), integers, integers, integers, integers),
    st.builds(log.CloseCursor, numbers),
    st.builds(log.CursorProgress, st.integers(1, 3), small, small, st.booleans()),
    st.builds(log.CursorProgress, numbers, numbers, numbers, st.booleans()),
    st.builds(log.Acknowledge, numbers, numbers),
    st.builds(log.ForgetName, numbers, names),
    st.builds(log.AskLog, numbers, numbers, numbers),
    st.builds(log.ReadRange, numbers, texts, numbers, numbers, numbers, numbers),
    st.builds(log.StageEvents, numbers, names, numbers, numbers, names, numbers, st.one_of(batches, raw)),
    st.builds(log.CommitStages, numbers, names, numbers, st.lists(names, max_size=3).map(tuple)),
)
message = st.one_of(
    st.builds(OpenSession, st.integers(1, 2), epochs, some, some, some),
    st.builds(OpenSession, st.just(1), st.just(EPOCH), st.just((1, 2)), pairs, pairs),
    st.builds(Subscribe, st.integers(1, 4), texts, overflows, st.integers(1, 4)),
    st.builds(Subscribe, integers, texts, overflows, integers),
    st.builds(Unsubscribe, st.one_of(st.integers(1, 4), integers)),
    st.builds(Advertise, st.one_of(st.integers(1, 4), integers), texts),
    st.builds(Unadvertise, st.one_of(st.integers(1, 4), integers)),
    st.builds(Publish, st.integers(1, 12), batches, st.integers(0, 9)),
    st.builds(Publish, integers, raw, integers),
    st.builds(Progress, st.just((1, 2)), st.tuples(small, small), st.tuples(small, small), st.booleans()),
    st.builds(Progress, some, some, some, st.booleans()),
    st.just(CloseSession()),
    st.just(Ping()),
    *log_messages,
)

act = st.one_of(
    st.tuples(st.sampled_from(["x", "y"]), st.lists(message, min_size=1, max_size=4)),
    st.tuples(st.sampled_from(["x", "y"]), st.just("link")),
    st.tuples(st.just(""), st.sampled_from([SECOND // 2, 4 * SECOND, 20 * SECOND])),
)


@given(acts=st.lists(act, min_size=6, max_size=14), durable=st.booleans())
@settings(max_examples=250)
def test_no_client_stops_a_broker(acts: list[tuple[str, Any]], durable: bool) -> None:
    options: dict[str, Any] = {"block_max": 3 * SECOND, "away_after": 10 * SECOND, "publish_window": 16}
    bench = LogBench(limits=LIMITS, **options) if durable else BrokerBench(LIMITS, **options)
    effects = []
    for name in ("x", "y"):
        bench.open(name, Subscribe(1, "n > 0", Overflow.BLOCK, 2), Subscribe(2, "topic = 't'", Overflow.DROP_OLDEST, 2))
    for client, what in acts:
        if not client:
            effects += bench.advance(what)
        elif what == "link":
            effects += bench.handle(bench.down(client), bench.up(client))
        else:
            effects += bench.handle(bench.received(client, *what))
        bench.drain()
    for effect in effects:  # and everything that it says and writes has bytes
        if isinstance(effect, Send):
            MESSAGES.decode(*MESSAGES.encode(effect.message))
        elif isinstance(effect, Append):
            RECORDS.decode(*RECORDS.encode(effect.record))
    # Someone who behaves is served as if nothing had happened.
    core = bench.desk._core
    core.limits = CoreLimits()
    bench.open("z", Subscribe(1, "zebra IS NOT NULL"))
    assert ("client:z", "Deliver", [(1, 1, 7)]) in bench.say("z", Publish(1, batch(7, zebra=1)))
    core.set_state(core.get_state())


def test_nobody_publishes_under_another_name() -> None:
    bench = BrokerBench()
    bench.open("p")
    bench.open("thief")
    forged = Received(bench.links["thief"], "client:thief", [Publish(1, batch(1, publisher="p"))])
    (ended,) = bench.handle(forged)
    problem = "protocol error: an event names 'p' as its publisher, not 'thief'"
    assert ended == Disconnect(bench.links["thief"], problem)


@pytest.mark.parametrize(("events", "skipped"), [(batch(1), 1), (batch(), -1)])
def test_a_publication_has_events_or_skips_numbers(events: Any, skipped: int) -> None:
    assert "and skips" in closed(opened(), "p", Publish(1, events, 0, False, skipped))


def test_no_more_numbers_are_skipped_than_the_window_has() -> None:
    assert "are beyond the window after" in closed(opened(), "p", Publish(1, batch(), 0, False, 2**40))
    assert sent(opened().say("p", Publish(3, batch(), 2, False, 20)), P) == [Accepted(22)]
