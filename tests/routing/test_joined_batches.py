"""Events that several publishers publish at one time go to the next broker in one message."""

from __future__ import annotations

from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Broker, Client, Publish, Scenario, ScenarioEvent, Subscribe
from holdfast.trace.schema import Hop
from tests.sim.scripted import Rows


def test_what_comes_in_one_turn_goes_on_in_one_message() -> None:
    """D1-B2: each event once per link, and a turn's events together, in their order."""
    publishers = [f"p{number}" for number in range(5)]
    scenario = Scenario(
        name="joined",
        seed=1,
        links=[("b1", "b2")],
        settings={"advertisements": False},
        brokers=[Broker(id="b1", gather_us=5_000), Broker(id="b2")],
        clients=[Client(id="s1", brokers=("b2",)), *(Client(id=name, brokers=("b1",)) for name in publishers)],
        actions=[
            Subscribe(at_ms=2_000, client="s1", name="all", filter=""),
            *(
                Publish(at_ms=5_000, client=name, events=[ScenarioEvent(topic=name), ScenarioEvent(topic=name)])
                for name in publishers
            ),
        ],
        faults=[],
        safety_ms=10_000,
        checkers=["network", "at-most-once", "publisher-order"],
    )
    rows = Rows()
    outcome = run_scenario(scenario, sinks=[rows])
    assert outcome.clean
    assert outcome.events_delivered == 10
    forwards = [row for row in rows.of(Hop) if row.what == "Forward"]
    assert [len(row.events) for row in forwards] == [10]
