"""When a client says how far it is: what comes alone costs no message of its own, and nobody waits for it too long."""

from typing import Any

import pytest

from holdfast.kernel.inputs import Started
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model.event import Event, encode_batch, encode_event
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.session_desk import report_every
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.messages import (
    CloseSession,
    Deliver,
    Overflow,
    Progress,
    SessionOpened,
    Subscribed,
    Unsubscribe,
)
from holdfast.protocols.sessions.requests import Close, EndSubscription, MakeSubscription
from tests.sessions.bench import ClientBench, shown
from tests.sessions.test_client import deliver, subscribed

MORTAL = Deliver(
    [(1, 1, 1)], encode_batch([encode_event(Event("p", 1, 1, "", {"n": 1}, lifetime=SECOND, published_at=2**62))])
)


def test_events_that_come_alone_are_reported_together_a_little_later() -> None:
    bench = subscribed(ping_every=10**6 * SECOND)
    said = []
    for number in range(1, 11):
        assert bench.say(deliver(number)) == [("deliver", 1, [number])]
        said += shown(bench.advance(100 * MILLISECOND))
    assert said == [("b1", Progress((1,), (10,), (0,)))]
    assert shown(bench.advance(10 * SECOND)) == []


def test_little_is_reported_before_the_broker_takes_it_for_lost() -> None:
    late = ClientSettings("", ()).report_little_after + DeskSettings().tick + SECOND  # a slow link, and a late tick
    assert late < DeskSettings().repeat_after


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"little_events": 2}, [deliver(1), deliver(2)]),
        ({"little_bytes": 10}, [deliver(1)]),
        ({}, [MORTAL]),
    ],
)
def test_much_and_what_has_a_lifetime_is_reported_soon(settings: dict[str, int], said: list[Deliver]) -> None:
    bench = subscribed(**settings)
    for message in said:
        bench.say(message)
    assert shown(bench.advance(10 * MILLISECOND)) == [("b1", Progress((1,), (len(said),), (0,)))]


def test_what_becomes_much_is_reported_sooner_than_it_was_to_be() -> None:
    bench = subscribed(little_events=3)
    bench.say(deliver(1))
    bench.advance(500 * MILLISECOND)
    bench.say(deliver(2))
    assert shown(bench.advance(100 * MILLISECOND)) == []
    bench.say(deliver(3))
    assert shown(bench.advance(10 * MILLISECOND)) == [("b1", Progress((1,), (3,), (0,)))]
    bench.say(deliver(4))
    assert shown(bench.advance(SECOND - 1)) == []
    assert shown(bench.advance(1)) == [("b1", Progress((1,), (4,), (0,)))]


def test_a_broker_that_keeps_few_events_hears_of_each_that_many() -> None:
    bench = ClientBench()
    bench.handle(Started(1))
    bench.handle(bench.up())
    bench.say(SessionOpened(5, 0, 100, 9, report_every=2))
    bench.ask(MakeSubscription("n > 0", Overflow.DISCONNECT, 100))
    bench.say(Subscribed(1), deliver(1))
    assert shown(bench.advance(10 * MILLISECOND)) == []
    bench.say(deliver(2))
    assert shown(bench.advance(10 * MILLISECOND)) == [("b1", Progress((1,), (2,), (0,)))]


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (CoreLimits(), 0),
        (CoreLimits(backlog_events=40), 10),
        (CoreLimits(backlog_events=2), 1),
        (CoreLimits(backlog_bytes=100_000), 1),
        (CoreLimits(backlog_bytes_per_session=100_000), 1),
    ],
)
def test_a_broker_says_so_if_it_keeps_few_events(limits: CoreLimits, told: int) -> None:
    assert report_every(limits) == told


@pytest.mark.parametrize(("asked", "said"), [(EndSubscription(1), Unsubscribe(1)), (Close(), CloseSession())])
def test_what_has_come_is_told_before_a_goodbye(asked: Any, said: Any) -> None:
    bench = subscribed()
    bench.say(deliver(1, 2))
    assert bench.ask(asked) == [("b1", Progress((1,), (2,), (0,))), ("b1", said)]
