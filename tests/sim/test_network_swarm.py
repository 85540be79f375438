"""Networks under faults, by seed: trees and graphs of 3 to 30 brokers at every level; and what breaks them is seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.protocols.routing.settings import Reliability
from holdfast.sim.campaign import Campaign, run_campaign
from holdfast.sim.draw_network import NetworkShape, draw_network_scenario
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Cut, Kill, Pause, PowerCut, check_scenario
from tests.sim.network_mutants import MUTANTS

SEEDS = 2_000
SEEDS_LONG = 50_000
PROGRESS_EVERY = 1_000

# The mutants that only small networks made for them show: tests/sim/test_network_levels.py.
DIRECTED = ("acknowledges-before-storing", "sends-before-storing", "drops-what-was-said")


def _summarise(failed: Sequence[Any]) -> str:
    return "\n".join(f"seed {o.seed}: {o.broken or o.violations[0]}" for o in failed)


def test_seeds_of_networks_are_clean() -> None:
    """D1-C2, D1-C3, D1-C4, D1-C5, D0-C25"""
    campaign = run_campaign(NetworkShape(), range(1, SEEDS + 1), jobs=2)
    assert _summarise(campaign.failed) == ""
    assert campaign.runs == SEEDS
    # A campaign in which nothing happens proves nothing.
    assert campaign.events_delivered > 10 * SEEDS
    assert campaign.faults > SEEDS


@pytest.mark.long
def test_many_seeds_of_networks_are_clean() -> None:
    def show(campaign: Campaign) -> None:
        if campaign.runs % PROGRESS_EVERY == 0:
            print(f"{campaign.runs:,} of {SEEDS_LONG:,} seeds, {len(campaign.failed)} failed", flush=True)

    campaign = run_campaign(NetworkShape(name="networks"), range(1, SEEDS_LONG + 1), jobs=2, progress=show)
    print(f"{campaign.runs:,} networks, {campaign.events_delivered:,} deliveries, {campaign.faults:,} faults")
    assert _summarise(campaign.failed) == ""


def test_seeds_reach_every_level_every_kind_of_graph_and_every_fault() -> None:
    levels: Counter[Reliability] = Counter()
    faults: Counter[type] = Counter()
    brokers: Counter[int] = Counter()
    settings: Counter[tuple[str, bool]] = Counter()
    for seed in range(1, SEEDS + 1):
        scenario = draw_network_scenario(seed)
        routing = scenario.routing
        assert routing is not None
        levels[routing.reliability] += 1
        brokers[len(scenario.brokers)] += 1
        faults.update(type(fault) for fault in scenario.faults)
        settings["advertisements", routing.advertisements] += 1
        settings["covering", routing.covering] += 1
        settings["ask", routing.ask_neighbours] += 1
        settings["cycle", len(routing.links) >= len(scenario.brokers)] += 1
    assert set(levels) == set(Reliability)
    assert {3, 4, 5, 6, 7, 12, 20, 30} <= set(brokers)
    assert min(faults[kind] for kind in (Kill, PowerCut, Pause, Cut)) > 300
    assert min(settings[name, value] for name, _ in settings for value in (True, False)) > 300
    assert min(levels.values()) > 300


def test_a_drawn_network_is_a_scenario_that_files_may_hold() -> None:
    for seed in range(1, 60):
        check_scenario(draw_network_scenario(seed), f"seed {seed}")


def test_the_same_seed_gives_the_same_run() -> None:
    shape = NetworkShape(reliability=Reliability.BYPASS_BUFFERED)
    digests = [run_scenario(draw_network_scenario(7, shape)).digest for _ in range(2)]
    assert digests[0] == digests[1]


@pytest.mark.parametrize("name", [name for name in MUTANTS if name not in DIRECTED])
def test_a_mutant_is_caught_by_its_seed(name: str) -> None:
    mutant = MUTANTS[name]
    scenario = draw_network_scenario(mutant.seed, NetworkShape(reliability=mutant.level))
    assert run_scenario(scenario).clean
    assert not run_scenario(scenario, mutant.factories).clean, name
