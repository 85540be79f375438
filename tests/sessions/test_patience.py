"""A client with several brokers to turn to leaves a silent one soon, and learns when that was wrong."""

from __future__ import annotations

from holdfast.kernel.outbox import Connect, Disconnect
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.sessions.messages import Accepted, Ping, Pong, SessionOpened
from tests.sessions.bench import ClientBench, shown


def leaves_after(bench: ClientBench, step: int = 50 * MILLISECOND) -> int:
    """How long the client waits for a broker that says nothing more."""
    waited = 0
    while waited < 60 * SECOND:
        waited += step
        if any(isinstance(effect, Disconnect) for effect in bench.advance(step)):
            return waited
    return waited


def test_a_silent_broker_is_left_within_a_second_if_there_is_another() -> None:
    bench = ClientBench("a:1", "a:2")
    bench.open()
    assert 750 * MILLISECOND <= leaves_after(bench) <= SECOND


def test_a_silent_broker_is_waited_for_if_there_is_no_other() -> None:
    bench = ClientBench("a:1")
    bench.open()
    assert 15 * SECOND <= leaves_after(bench) <= 20 * SECOND


def test_a_broker_that_answers_slowly_is_given_more_time() -> None:
    bench = ClientBench("a:1", "a:2")
    bench.open()
    assert ("b1", Ping()) in shown(bench.advance(250 * MILLISECOND))
    bench.advance(400 * MILLISECOND)
    bench.say(Pong())
    assert 1_600 * MILLISECOND <= leaves_after(bench) <= 2_000 * MILLISECOND


def test_pings_are_saved_while_something_is_heard() -> None:
    bench = ClientBench("a:1", "a:2")
    bench.open()
    said = []
    for _ in range(40):
        said += shown(bench.advance(50 * MILLISECOND))
        bench.say(Pong())
    assert said == []


def test_patience_does_not_grow_from_one_failed_broker_to_the_next_while_traffic_saves_the_pings() -> None:
    bench = ClientBench("a:1", "a:2")
    bench.open()
    for _ in range(4):
        assert leaves_after(bench) <= SECOND
        bench.handle(bench.down())
        (address,) = (effect.address for effect in bench.advance(50 * MILLISECOND) if isinstance(effect, Connect))
        bench.handle(bench.up(address=address))
        bench.say(SessionOpened(5, 0, 100, 9))
        pinged = False
        for _ in range(20):
            pinged |= ("b1", Ping()) in shown(bench.advance(50 * MILLISECOND))
            bench.say(Pong() if pinged else Accepted(0))  # something is heard all the time
        assert pinged
