"""What is done for a batch at once comes to the same as what is done one by one."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.inputs import Requested
from holdfast.kernel.outbox import Send
from holdfast.model import Filter
from holdfast.model.batch import EventBatch, PublisherRun
from holdfast.protocols.core.backlog import Run
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.core.subscriptions import Subscription
from holdfast.protocols.sessions.incoming import IncomingSubscription, SubscriptionPhase
from holdfast.protocols.sessions.messages import Overflow, Publish, Subscribe, SubscriptionEnded
from holdfast.protocols.sessions.outgoing import Outgoing
from holdfast.protocols.sessions.requests import NewEvent, PublishEvents
from tests.sessions.bench import BrokerBench, ClientBench, batch, event


def incoming() -> IncomingSubscription:
    subscription = IncomingSubscription(1, 1, "", Overflow.DISCONNECT, 1_000)
    subscription.phase = SubscriptionPhase.LIVE
    return subscription


def state_of(subscription: object) -> list[object]:
    return [getattr(subscription, name) for name in type(subscription).__slots__]  # type: ignore[attr-defined]


def runs_of(events: list[tuple[str, int]]) -> list[PublisherRun]:
    """Publisher and sequence of each event."""
    return EventBatch.of([event(sequence, publisher=publisher) for publisher, sequence in events]).publishers


PIECE = st.lists(st.tuples(st.sampled_from("pq"), st.integers(1, 4), st.integers(0, 4)), min_size=1, max_size=4)


@given(st.lists(st.tuples(PIECE, st.sets(st.integers(0, 8)), st.integers(0, 8), st.booleans()), max_size=5))
def test_events_taken_together_count_as_those_taken_one_by_one(
    steps: list[tuple[list[tuple[str, int, int]], set[int], int, bool]],
) -> None:
    """Some are late, and some come again after the broker forgot."""
    together, singly = incoming(), incoming()
    for pieces, late, consumed, forgets in steps:
        # As publishers number them, from anywhere on: a broker that forgot begins anew somewhere.
        events = [(name, first + n) for name, count, first in pieces for n in range(1, count + 1)]
        late_rows = sorted(row for row in late if row < len(events))
        repeated = together.take(runs_of(events), late_rows)
        assert repeated == [
            row for row, one in enumerate(events) if singly.take(runs_of([one]), [0] if row in late_rows else [])
        ]
        for subscription in (together, singly):
            subscription.consume(consumed)
            subscription.check_invariants()
            if forgets:
                subscription.forgotten(True)
                subscription.phase = SubscriptionPhase.LIVE
        assert state_of(together) == state_of(singly)


def test_a_subscription_keeps_of_a_batch_what_it_keeps_of_its_events() -> None:
    together, singly = (Subscription("c", 1, Filter(""), Overflow.DISCONNECT, 1) for _ in range(2))
    events = [event(n) for n in range(1, 4)]
    run = Run(EventBatch.of(events), [7, 8, 9])
    assert together.add(run, 5, 1_000) == 3
    assert all(singly.add(run.part(row, row + 1), 5, 1_000) for row in range(3))
    assert together.get_state() == singly.get_state()
    assert together.add(run, 5, 1_000) == 2
    assert [singly.add(run.part(row, row + 1), 5, 1_000) for row in range(3)] == [1, 1, 0]
    assert together.add(run, 9, together.bytes + 1) == 0
    assert together.get_state() == singly.get_state()


def test_requests_are_filed_together_as_one_by_one() -> None:
    together, singly = Outgoing(10), Outgoing(10)
    events = EventBatch.read(batch(5, 6, 7))
    together.add_all(1, 5, events, True)
    singly.add(1, [(place, place + 5, events.part(place, place + 1)) for place in range(3)], [], True)
    for outgoing in (together, singly):
        assert outgoing.take(2, 1_000) == (1, events.part(0, 2), 0)
        assert outgoing.answer_all(2) == []
        assert outgoing.take(2, 1_000) == (3, events.part(2, 3), 0)
        assert outgoing.answer_all(3) == [(1, [])]
        outgoing.check_invariants()


def test_a_message_has_as_many_events_as_its_bytes_allow_and_at_least_one() -> None:
    outgoing, events = Outgoing(10), EventBatch.read(batch(1, 2, 3, 4))
    outgoing.add_all(1, 1, events, True)
    size = events.bytes // 4
    assert outgoing.take(10, 2 * size) == (1, events.part(0, 2), 0)
    assert outgoing.take(10, 1) == (3, events.part(2, 3), 0)


def test_a_message_takes_of_several_requests_what_its_bytes_allow() -> None:
    outgoing, events = Outgoing(10), EventBatch.read(batch(1, 2, 3, 4, 5, 6))
    for request, start in enumerate((0, 2, 4), 1):
        outgoing.add_all(request, start + 1, events.part(start, start + 2), True)
    size = events.bytes // 6
    assert outgoing.take(10, 3 * size) == (1, events.part(0, 3), 0)
    outgoing.check_invariants()
    assert outgoing.answer_all(1) == []
    outgoing.resend_all()
    assert outgoing.take(10, 10 * size) == (2, events.part(1, 6), 0)
    assert outgoing.answer_all(6) == [(1, []), (2, []), (3, [])]


def test_what_is_sent_whole_and_sent_again_is_the_bytes_that_were_made() -> None:
    outgoing, events = Outgoing(10), EventBatch.read(batch(1, 2))
    outgoing.add_all(1, 1, events, True)
    for _ in range(2):
        assert outgoing.take(10, 1_000)[1] is events
        outgoing.resend_all()


def test_a_traced_client_publishes_the_same_bytes() -> None:
    said = []
    for tracing in (False, True):
        client = ClientBench()
        client.open()
        client.out.tracing = tracing
        new = [NewEvent({"n": n, "text": "x" * (50 * n)}, "t", b"p") for n in range(5)]
        effects = client.handle(Requested(1, PublishEvents(new)))
        said.append([one.message for one in effects if isinstance(one, Send) and isinstance(one.message, Publish)])
    assert said[0] == said[1] != []


def test_who_overflows_at_an_earlier_event_ends_earlier() -> None:
    """Subscription 1 wants the first event and has room for it; 2 overflows before 1 does."""
    bench = BrokerBench(CoreLimits(backlog_events=2))
    bench.open("s", Subscribe(1, "n = 1 OR n > 4", window=1), Subscribe(2, "n > 1", window=1))
    bench.open("p")
    said = bench.say("p", Publish(1, batch(1, 2, 3, 4, 5, 6)))
    assert [row[1].subscription for row in said if isinstance(row[1], SubscriptionEnded)] == [2, 1]


def test_only_crowded_subscriptions_can_lack_room_for_a_small_batch() -> None:
    bench = BrokerBench(CoreLimits(backlog_events=4))
    bench.open("s", Subscribe(1, "n < 4", Overflow.BLOCK, 1), Subscribe(2, "n = 1", Overflow.BLOCK, 1))
    bench.open("p")
    bench.say("p", Publish(1, batch(1, 2, 3)))
    core = bench.node.parts[0]._core
    assert [s.number for s in core.crowding.possibly_full(2, 10)] == [1]
    assert [s.number for s in core.crowding.possibly_full(3, 10)] == [1, 2]
    assert [s.number for s in core.crowding.possibly_full(1, core.limits.backlog_bytes)] == [1, 2]
