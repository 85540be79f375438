"""What was found by playing against the cycle: each scenario failed once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import pytest

from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Action, Broker, Client, Fault, Kill, Operate, Scenario
from holdfast.topology.generators import Kind
from holdfast.trace.schema import Row
from tests.standin.star import Played

SOON: Final = {"unreachable_ms": 1_500, "start_ms": 2_000}
FOR_EVER: Final = 0


def play_network(
    members: Sequence[str],
    links: Sequence[tuple[str, str]],
    faults: Sequence[Fault],
    *,
    operations: Sequence[Operate] = (),
    spares: Sequence[str] = ("r",),
    settings: dict[str, Any] | None = None,
    clients: Sequence[Client] = (),
    actions: Sequence[Action] = (),
    slow_us: dict[str, int] | None = None,
    until_ms: int = 20_000,
) -> Played:
    slow = slow_us or {}
    scenario = Scenario(
        name="found",
        seed=1,
        brokers=[
            *(Broker(id=name, durable=True, service_us_per_message=slow.get(name, 0)) for name in members),
            *(Broker(id=name, durable=True, spare=True) for name in spares),
        ],
        links=list(links),
        settings={"stand_ins": True, "sla": True, "covering": False, **SOON, **(settings or {})},
        clients=list(clients),
        actions=sorted(actions, key=lambda action: action.at_ms),
        faults=list(faults),
        operations=list(operations),
        safety_ms=until_ms,
        liveness_ms=30_000,
        checkers=["only-matching", "at-most-once", "map-history"],
    )
    rows: list[Row] = []

    class Rows:
        def see(self, row: Row) -> None:
            rows.append(row)

    outcome = run_scenario(scenario, None, [Rows()], stop_at_violation=False)
    return Played(rows, [outcome.broken] if outcome.broken else [str(violation) for violation in outcome.violations])


def members_of(played: Played, broker: str) -> list[str]:
    """By the last map that a broker adopted."""
    adopted = [row for row in played.told("map-adopted") if row.node == broker]
    return list(adopted[-1].detail["members"])


def numbered(count: int) -> list[str]:
    return [f"b{number:02}" for number in range(1, count + 1)]


@pytest.mark.parametrize("kind", [Kind.CHAIN, Kind.STAR])
def test_more_brokers_than_strangers_are_kept_agree_and_complain(kind: Kind) -> None:
    """Whoever sees to it calls all others, and is called by all neighbours of the broker that failed: far more than a
    broker keeps links to strangers."""
    names = numbered(30)
    inner = names[5] if kind is Kind.CHAIN else names[1]
    links = list(pairwise(names))
    if kind is Kind.STAR:
        links = [(inner, name) for name in names if name != inner]
    played = play_network(names, links, [Kill(at_ms=3_000, for_ms=FOR_EVER, host=inner, for_ever=True)])
    assert played.wrong == []
    assert "r" in members_of(played, names[0])
    assert inner not in members_of(played, names[0])
