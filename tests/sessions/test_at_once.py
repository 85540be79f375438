"""What is done for a batch at once comes to the same as what is done one by one."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.inputs import Requested
from holdfast.kernel.outbox import Send
from holdfast.model import Filter
from holdfast.model.event import Event
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


@given(st.lists(st.lists(st.sampled_from("pq"), min_size=1, max_size=4), max_size=5), st.integers(0, 8))
def test_events_taken_together_count_as_those_taken_one_by_one(batches: list[list[str]], consumed: int) -> None:
    together, singly = incoming(), incoming()
    sequence = 0
    for publishers in batches:
        events = [Event(name, 1, sequence + place, "", {}) for place, name in enumerate(publishers, 1)]
        sequence += len(events)
        assert together.take_all(events)
        assert all(singly.take(one) for one in events)
        for subscription in (together, singly):
            subscription.consume(consumed)
            subscription.check_invariants()
        assert state_of(together) == state_of(singly)


def test_after_the_broker_forgot_events_are_looked_at_one_by_one() -> None:
    subscription = incoming()
    assert subscription.take_all([Event("p", 1, 1, "", {})])
    subscription.forgotten(True)
    assert not subscription.take_all([Event("p", 1, 1, "", {})])
    assert subscription.received == 0


def test_a_subscription_keeps_all_of_a_batch_or_none() -> None:
    together, singly = (Subscription("c", 1, Filter(""), Overflow.DISCONNECT, 1) for _ in range(2))
    events = [event(n) for n in range(1, 4)]
    assert together.add_all(events, [7, 8, 9], 5, 1_000)
    assert all(singly.add(one, 7 + place, 5, 1_000) for place, one in enumerate(events))
    assert together.get_state() == singly.get_state()
    assert not together.add_all(events, [7, 8, 9], 5, 1_000)
    assert not together.add_all(events, [7, 8, 9], 9, together.bytes + 1)
    assert together.get_state() == singly.get_state()


def test_requests_are_filed_together_as_one_by_one() -> None:
    together, singly = Outgoing(10), Outgoing(10)
    events = [event(n) for n in range(5, 8)]
    together.add_all(1, 5, events, True)
    singly.add(1, [(place, place + 5, one) for place, one in enumerate(events)], [], True)
    for outgoing in (together, singly):
        assert outgoing.take(2, 1_000) == (1, events[:2], 0)
        assert outgoing.answer_all(2) == []
        assert outgoing.take(2, 1_000) == (3, events[2:], 0)
        assert outgoing.answer_all(3) == [(1, [])]
        outgoing.check_invariants()


def test_a_message_has_as_many_events_as_its_bytes_allow_and_at_least_one() -> None:
    outgoing, events = Outgoing(10), [event(n) for n in range(1, 5)]
    outgoing.add_all(1, 1, events, True)
    size = len(events[0])
    assert outgoing.take(10, 2 * size) == (1, events[:2], 0)
    assert outgoing.take(10, 1) == (3, events[2:3], 0)


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
