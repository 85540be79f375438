"""What was told around a link that was silent for a while is told again over it, before events that depend on it.

Found by reading: a detour is not acknowledged, and the way around may fail as well. With a link that was suspected and
not replaced, neighbours lacked advertisements and subscriptions for good, and events overtook the advertisements that
they fall under.
"""

from __future__ import annotations

import pytest

from holdfast.sim.latency import Constant
from holdfast.sim.run import Outcome, run_scenario
from holdfast.sim.scenario import (
    Action,
    Broker,
    Client,
    Cut,
    Fault,
    Kill,
    Network,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
)

CHECKERS = ["no-loss", "network", "at-most-once", "only-matching", "liveness"]


def play(links: list[tuple[str, str]], homes: dict[str, str], actions: list[Action], faults: list[Fault]) -> Outcome:
    """p publishes, s subscribes; both at the broker that is their home."""
    scenario = Scenario(
        name="told-around",
        seed=1,
        brokers=[Broker(id=name, durable=True, sync_us=(100, 300)) for name in sorted({*sum(links, ())})],
        clients=[Client(id=name, brokers=(home,)) for name, home in homes.items()],
        links=links,
        settings={"reliability": "bypass+buffered"},
        network=Network(latency=Constant(delay_us=500)),
        actions=sorted(actions, key=lambda action: action.at_ms),
        faults=faults,
        safety_ms=32_000,
        liveness_ms=20_000,
        checkers=CHECKERS,
    )
    return run_scenario(scenario)


def publish(at_ms: int, topic: str = "t") -> Publish:
    return Publish(at_ms=at_ms, client="p", events=[ScenarioEvent(topic=topic, attributes={"n": at_ms})])


def subscribe(at_ms: int) -> Subscribe:
    return Subscribe(at_ms=at_ms, client="s", name="s", filter="topic = 't'")


TRIANGLE = [("b1", "b2"), ("b1", "b3"), ("b2", "b3")]  # the tree: b1 – b2, b1 – b3
SILENT: list[Fault] = [  # b1 – b2 is suspected, and not closed; then the way around breaks, too
    Cut(at_ms=4_000, for_ms=2_600, source="b1", target="b2"),
    Cut(at_ms=4_600, for_ms=6_000, source="b2", target="b3"),
]


@pytest.mark.parametrize("at_ms", [5_000, 5_300, 5_600, 5_900])
def test_a_subscription_that_was_told_around_is_told_again(at_ms: int) -> None:
    later = [publish(at) for at in range(30_000, 30_500, 100)]
    outcome = play(TRIANGLE, {"p": "b2", "s": "b1"}, [publish(1_000), subscribe(at_ms), *later], SILENT)
    assert outcome.problem == ""
    assert outcome.events_delivered >= 5


@pytest.mark.parametrize("at_ms", [5_200, 5_450, 5_700])
def test_an_advertisement_that_was_told_around_is_told_again_and_not_taken_for_answered(at_ms: int) -> None:
    """The answer to another topic is none to this one."""
    events = [publish(at_ms), publish(20_000, "u"), publish(25_000), publish(25_100)]
    outcome = play(TRIANGLE, {"p": "b1", "s": "b2"}, [subscribe(1_000), *events], SILENT)
    assert outcome.problem == ""
    assert outcome.events_delivered == 3


@pytest.mark.parametrize("then", ["the way around dies", "the way around breaks"])
def test_an_event_does_not_overtake_the_advertisement_that_it_falls_under(then: str) -> None:
    """b1 hears nothing of b2 and is heard: its events would get there, and its advertisements go around."""
    links = [("b1", "b2"), ("b2", "b3"), ("b1", "b4"), ("b2", "b4")]
    silent = Cut(at_ms=4_000, for_ms=2_300, source="b2", target="b1", both=False)
    dies = Kill(at_ms=5_501, for_ms=3_000, host="b4")
    breaks = Cut(at_ms=5_000, for_ms=6_000, source="b4", target="b2")
    events = [publish(at) for at in (5_500, 5_600, 5_700, 12_000)]
    second: Fault = dies if then == "the way around dies" else breaks
    outcome = play(links, {"p": "b1", "s": "b3"}, [subscribe(1_000), *events], [silent, second])
    assert outcome.problem == ""
    assert outcome.events_delivered == 4
