"""Publishers that wait for a blocking subscription: only those that it concerns, only so long, and in their order."""

from typing import Any

from holdfast.kernel.time import SECOND
from holdfast.model.event import Event, encode_batch, encode_event
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.sessions.messages import (
    Accepted,
    OpenSession,
    Overflow,
    Ping,
    Pong,
    Progress,
    Publish,
    Subscribe,
    Subscribed,
    SubscriptionEnded,
    Unsubscribe,
    Unsubscribed,
)
from tests.sessions.bench import BrokerBench, batch, event, sent, shown

S, P, Q = "client:s", "client:p", "client:q"


def blocked(**settings: Any) -> BrokerBench:
    """A subscriber with room for two events at its broker, and two publishers; `p` has two events there and waits."""
    settings.setdefault("limits", CoreLimits(backlog_events=2))
    bench = BrokerBench(silent_after=10**6 * SECOND, repeat_after=10**6 * SECOND, **settings)
    bench.open("s", Subscribe(1, "topic = 't'", Overflow.BLOCK, 100))
    bench.open("p")
    bench.open("q")
    assert bench.say("p", Publish(1, batch(1, 2, 3, 4, topic="t"))) == [
        (P, Accepted(2)),
        (S, "Deliver", [(1, 1, 1), (1, 2, 2)]),
    ]
    return bench


def test_a_publisher_waits_until_there_is_room_and_goes_on_in_order() -> None:
    bench = blocked()
    assert bench.say("p", Publish(5, batch(5, topic="t"), 2)) == []
    assert bench.say("s", Progress((1,), (1,), (1,))) == [(P, Accepted(3)), (S, "Deliver", [(1, 3, 3)])]
    assert bench.say("s", Progress((1,), (3,), (3,))) == [(P, Accepted(5)), (S, "Deliver", [(1, 4, 4), (1, 5, 5)])]
    assert bench.say("s", Progress((1,), (5,), (5,))) == []
    assert bench.say("p", Publish(6, batch(6, topic="t"), 5)) == [(P, Accepted(6)), (S, "Deliver", [(1, 6, 6)])]


def test_events_that_the_subscription_does_not_want_pass() -> None:
    bench = blocked()
    assert bench.say("q", Publish(1, batch(1, 2, topic="u"))) == [(Q, Accepted(2))]
    assert bench.say("q", Publish(3, batch(3, topic="t"), 2)) == []
    # One that waits keeps its own order: what comes behind waits too.
    assert bench.say("q", Publish(4, batch(4, topic="u"), 2)) == []


def test_control_is_never_blocked() -> None:
    bench = blocked()
    said = bench.say("p", Ping(), Subscribe(7, "n > 0"), Unsubscribe(7))
    assert said == [(P, Pong()), (P, Subscribed(7)), (P, Unsubscribed(7))]


def test_who_waited_longer_goes_first() -> None:
    bench = blocked()
    bench.say("q", Publish(1, batch(11, 12, topic="t")))
    # The publisher that comes in the same turn as the room, behind it, stands behind those that wait.
    effects = bench.handle(
        bench.received("s", Progress((1,), (2,), (2,))), bench.received("q", Publish(3, batch(13, topic="t")))
    )
    assert sent(shown(effects), S) == [("Deliver", [(1, 3, 3), (1, 4, 4)])]
    bench.drain()
    assert sent(bench.say("s", Progress((1,), (4,), (4,))), S) == [("Deliver", [(1, 5, 11), (1, 6, 12)])]
    assert sent(bench.say("s", Progress((1,), (6,), (6,))), S) == [("Deliver", [(1, 7, 13)])]


def test_a_repetition_of_what_waits_is_not_held_twice_and_a_gap_is_not_held() -> None:
    bench = blocked()
    assert bench.say("p", Publish(1, batch(1, 2, 3, 4, topic="t"))) == []
    assert bench.say("p", Publish(4, batch(4, 5, topic="t"), 2)) == []
    assert bench.say("p", Publish(7, batch(7, topic="t"), 2)) == []
    bench.say("s", Progress((1,), (2,), (2,)))
    assert bench.say("s", Progress((1,), (4,), (4,))) == [(P, Accepted(5)), (S, "Deliver", [(1, 5, 5)])]
    assert bench.say("s", Progress((1,), (5,), (5,))) == []


def test_a_repetition_of_what_was_accepted_needs_no_room() -> None:
    bench = blocked()
    bench.say("s", Progress((1,), (2,), (2,)))
    bench.say("s", Progress((1,), (3,), (3,)))
    said = bench.say("p", Publish(4, batch(4, 5, topic="t"), 3))
    assert said == [(P, Accepted(5)), (S, "Deliver", [(1, 5, 5)])]


def test_room_is_counted_in_bytes_too() -> None:
    size = len(event(1, topic="t", payload=b"x" * 100))
    bench = BrokerBench(CoreLimits(backlog_bytes=2 * size))
    bench.open("s", Subscribe(1, "topic = 't'", Overflow.BLOCK, 100))
    bench.open("p")
    large = batch(1, 2, 3, topic="t", payload=b"x" * 100)
    assert sent(bench.say("p", Publish(1, large)), S) == [("Deliver", [(1, 1, 1), (1, 2, 2)])]
    assert sent(bench.say("s", Progress((1,), (1,), (1,))), S) == [("Deliver", [(1, 3, 3)])]


def test_a_publisher_waits_no_longer_than_it_must() -> None:
    bench = blocked(block_max=10 * SECOND + 1)
    assert shown(bench.advance(10 * SECOND)) == []
    ended = SubscriptionEnded(1, "overflow: publishers waited 10 s for room")
    assert shown(bench.advance(1)) == [(S, ended), (P, Accepted(4))]
    assert ("sessions", "block") not in bench.timers


def test_each_publisher_waits_its_own_time() -> None:
    bench = blocked(block_max=10 * SECOND)
    bench.advance(5 * SECOND)
    bench.say("s", Subscribe(2, "topic = 'v'", Overflow.BLOCK, 100))
    bench.say("q", Publish(1, batch(1, 2, 3, topic="v")))
    bench.drain()
    assert sent(shown(bench.advance(5 * SECOND)), P) == [Accepted(4)]
    assert sent(shown(bench.advance(4 * SECOND)), Q) == []
    assert sent(shown(bench.advance(SECOND)), Q) == [Accepted(3)]


def test_no_event_waits_longer_because_some_before_it_found_room() -> None:
    bench = blocked(block_max=10 * SECOND)
    bench.advance(9 * SECOND)
    bench.say("s", Progress((1,), (1,), (1,)))
    assert SubscriptionEnded not in [type(message) for message in sent(shown(bench.advance(SECOND - 1)), S)]
    assert sent(shown(bench.advance(1)), P) == [Accepted(4)]


def test_an_event_waits_from_when_it_came_and_not_from_when_its_publisher_did() -> None:
    bench = blocked(block_max=10 * SECOND)
    bench.advance(9 * SECOND)
    bench.say("p", Publish(5, batch(5, topic="t"), confirmed=2))
    bench.say("s", Progress((1,), (2,), (2,)))
    assert SubscriptionEnded not in [type(message) for message in sent(shown(bench.advance(9 * SECOND)), S)]
    assert sent(shown(bench.advance(SECOND)), P) == [Accepted(5)]


def test_what_leaves_a_gap_is_not_held_so_that_what_is_missing_can_come() -> None:
    bench = blocked(block_max=10 * SECOND)
    assert bench.say("q", Publish(2, batch(2, 3, topic="t"))) == []
    bench.say("s", Progress((1,), (2,), (2,)))
    bench.say("s", Progress((1,), (4,), (4,)))
    assert sent(bench.say("q", Publish(1, batch(1, 2, topic="t"))), Q) == [Accepted(2)]


def test_only_full_subscriptions_that_want_the_event_end() -> None:
    bench = blocked(block_max=10 * SECOND + 1)
    bench.say("s", Subscribe(2, "topic = 'v'", Overflow.BLOCK, 100), Subscribe(3, "topic = 't'", Overflow.BLOCK, 100))
    bench.say("q", Publish(1, batch(1, 2, topic="v")))  # fills the second, and waits for nothing
    assert sent(shown(bench.advance(10 * SECOND + 1)), S) == [
        SubscriptionEnded(1, "overflow: publishers waited 10 s for room"),
        ("Deliver", [(3, 1, 3), (3, 2, 4)]),
    ]


def test_a_subscription_that_ends_lets_publishers_go() -> None:
    for end in ("unsubscribe", "new life", "away"):
        bench = blocked(away_after=5 * SECOND)
        if end == "unsubscribe":
            said = bench.say("s", Unsubscribe(1))
        elif end == "new life":
            bench.handle(bench.down("s"))
            said = bench.open("s", instance=2)
        else:
            bench.handle(bench.down("s"))
            said = shown(bench.advance(6 * SECOND))
        assert sent(said, P) == [Accepted(4)]


def test_a_publisher_that_goes_takes_with_it_what_waited() -> None:
    bench = blocked()
    bench.handle(bench.down("p"))
    assert bench.say("s", Progress((1,), (2,), (2,))) == []
    assert shown(bench.advance(9 * SECOND)) == []


def test_what_waited_in_an_old_session_is_not_published_in_a_new_one() -> None:
    bench = blocked()
    bench.say("q", Publish(1, batch(21, topic="t")))
    bench.say("q", OpenSession(2))
    assert sent(bench.say("s", Progress((1,), (2,), (2,))), S) == [("Deliver", [(1, 3, 3), (1, 4, 4)])]
    assert sent(bench.say("s", Progress((1,), (4,), (4,))), S) == []
    assert sent(bench.say("q", Publish(1, batch(22, topic="t"))), S) == [("Deliver", [(1, 5, 22)])]


def test_what_is_held_is_bounded_in_bytes_and_the_rest_comes_again() -> None:
    size = len(event(3, topic="t"))
    bench = blocked(held_bytes_max=3 * size)
    bench.say("p", Publish(5, batch(5, 6, 7, topic="t"), 2))
    assert bench.desk._admission._held[P].bytes == 3 * size
    bench.say("s", Progress((1,), (2,), (2,)))
    assert sent(bench.say("s", Progress((1,), (4,), (4,))), P) == [Accepted(5)]
    assert sent(bench.say("p", Publish(6, batch(6, 7, topic="t"), 5)), P) == [Accepted(6)]


def test_an_event_that_will_be_refused_waits_for_nobody() -> None:
    bench = blocked()
    bad = [Event("q", 1, n, "t", {"x": value}) for n, value in enumerate([float("nan"), 2**64 - 1], 1)]
    (answer,) = sent(bench.say("q", Publish(1, encode_batch([encode_event(one) for one in bad]))), Q)
    assert (answer.sequence, [number for number, _, _ in answer.refused]) == (2, [1, 2])
