"""At the levels that buffer, what is accepted reaches whoever wanted it, also if those between have never been up.

Nobody knows what is wanted beyond a broker that has not answered: silence is no answer (D1-B4.1, D1-C3).
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.protocols.routing.settings import Reliability
from holdfast.sim.latency import Constant
from holdfast.sim.run import Factories, Outcome, run_scenario
from holdfast.sim.scenario import (
    Broker,
    Client,
    Cut,
    Fault,
    Kill,
    Network,
    PowerCut,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
)
from tests.sim.network_mutants import BY_NAME

CHAIN = ("b1", "b2", "b3", "b4")
LEVELS = [Reliability.BUFFERED, Reliability.BYPASS_BUFFERED]

OUTAGES: dict[str, list[Fault]] = {
    "the next broker has never been up": [Kill(at_ms=0, for_ms=6_000, host="b2")],
    "the one behind it has never been up": [Kill(at_ms=0, for_ms=6_000, host="b3")],
    "neither has, and the nearer one comes first": [
        Kill(at_ms=0, for_ms=4_000, host="b2"),
        Kill(at_ms=0, for_ms=8_000, host="b3"),
    ],
    "neither has, and the farther one comes first": [
        Kill(at_ms=0, for_ms=8_000, host="b2"),
        Kill(at_ms=0, for_ms=4_000, host="b3"),
    ],
    "and the publisher's broker is restarted meanwhile": [
        Kill(at_ms=0, for_ms=8_000, host="b2"),
        PowerCut(at_ms=4_000, for_ms=300, host="b1"),
    ],
    "and the link behind it breaks when it comes": [
        Kill(at_ms=0, for_ms=4_000, host="b2"),
        Cut(at_ms=0, for_ms=9_000, source="b2", target="b3"),
    ],
    "and the broker between is restarted with what it keeps": [
        Kill(at_ms=0, for_ms=6_000, host="b3"),
        PowerCut(at_ms=4_000, for_ms=300, host="b2"),
    ],
}


def play(level: Reliability, faults: list[Fault], covered: bool = True, factories: Factories | None = None) -> Outcome:
    """A subscriber at one end, who is there first; a publisher at the other, on two topics."""
    publications = [
        Publish(
            at_ms=2_500 + 200 * n,
            client="p",
            events=[ScenarioEvent(attributes={"n": n}, topic=topic) for topic in ("t", "u")],
        )
        for n in range(12)
    ]
    scenario = Scenario(
        name="first-events",
        seed=1,
        links=list(pairwise(CHAIN)),
        settings={"reliability": level.value, "covering": covered},
        brokers=[Broker(id=name, durable=True, sync_us=(100, 300)) for name in CHAIN],
        clients=[Client(id="p", brokers=("b1",)), Client(id="s", brokers=("b4",))],
        network=Network(latency=Constant(delay_us=500)),
        actions=[
            Subscribe(at_ms=1_000, client="s", name="some", filter="topic = 't' AND n > 1"),
            Subscribe(at_ms=1_000, client="s", name="all", filter="topic = 'u'"),
            *publications,
        ],
        faults=faults,
        safety_ms=12_000,
        liveness_ms=15_000,
        checkers=["no-loss", "at-most-once", "only-matching", "liveness", "network"],
    )
    return run_scenario(scenario, factories)


@pytest.mark.parametrize("covered", [True, False])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("outage", OUTAGES)
def test_nothing_that_was_accepted_is_lost(outage: str, level: Reliability, covered: bool) -> None:
    outcome = play(level, OUTAGES[outage], covered)
    assert outcome.problem == ""
    assert outcome.events_delivered == 10 + 12


@pytest.mark.parametrize("outage", OUTAGES)
def test_a_broker_that_takes_silence_for_an_answer_loses_events(outage: str) -> None:
    mutant = BY_NAME["takes-silence-for-an-answer"]
    assert "never reached" in play(Reliability.BUFFERED, OUTAGES[outage], factories=mutant.factories).problem
