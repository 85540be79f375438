"""The level `none` with disks: what a restarted home broker still knows, and whom it reaches (docs/levels.md)."""

from __future__ import annotations

import pytest

from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Broker, Client, Kill, Publish, Scenario, ScenarioEvent, Subscribe
from holdfast.trace import schema
from holdfast.trace.schema import Row

EVENT = ScenarioEvent(attributes={"n": 1}, topic="t")


class Numbers:
    def __init__(self) -> None:
        self.delivered: list[int] = []

    def see(self, row: Row) -> None:
        if isinstance(row, schema.Delivered):
            self.delivered.append(int(row.event.rpartition("/")[2]))


def delivered(victim: str, durable: bool, advertisements: bool) -> list[int]:
    """Of events 1 to 10, one a second, those that a subscriber two brokers away gets, which does not subscribe again;
    the victim is down while the third is published."""
    numbers = Numbers()
    scenario = Scenario(
        name="none-with-data",
        seed=1,
        settings={"reliability": "none", "advertisements": advertisements},
        links=[("b1", "b2"), ("b2", "b3")],
        brokers=[Broker(id=name, durable=durable) for name in ("b1", "b2", "b3")],
        clients=[Client(id="p", brokers=("b1",)), Client(id="s", brokers=("b3",), resubscribe=False)],
        actions=[
            Subscribe(at_ms=0, client="s", name="all", filter=""),
            *(Publish(at_ms=3_000 + 1_000 * place, client="p", events=[EVENT]) for place in range(10)),
        ],
        faults=[Kill(at_ms=4_500, for_ms=1_000, host=victim)],
        safety_ms=15_000,
        liveness_ms=5_000,
        checkers=["only-matching", "at-most-once"],
    )
    assert run_scenario(scenario, sinks=[numbers]).clean
    return numbers.delivered


def test_a_restarted_home_broker_with_data_tells_what_its_clients_want_where_nobody_has_to_advertise() -> None:
    assert delivered("b3", durable=True, advertisements=False) == [1, 2, 4, 5, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    ("victim", "durable", "advertisements"), [("b3", True, True), ("b3", False, False), ("b2", True, False)]
)
def test_else_a_restart_ends_what_has_to_pass_the_broker(victim: str, durable: bool, advertisements: bool) -> None:
    assert delivered(victim, durable, advertisements) == [1, 2]
