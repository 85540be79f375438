"""Networks under faults, by seed: trees and graphs of 3 to 30 brokers at every level; and what breaks them is seen."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from holdfast.protocols.routing.settings import Reliability
from holdfast.schemes.tree.draw_network import NetworkShape
from holdfast.schemes.tree.settings import routing_settings
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Cut, Kill, Pause, PowerCut, Storm
from holdfast.sim.scenario_file import check_scenario
from holdfast.sim.swarm import settings_of
from tests.sim.claims import claims_watched
from tests.sim.clean import check_block, check_campaign
from tests.sim.network_mutants import BY_NAME
from tests.tiers import blocks

SEEDS = 2_000
SEEDS_LONG = 50_000


@pytest.mark.parametrize("seeds", blocks(SEEDS))
def test_seeds_of_networks_are_clean(seeds: range) -> None:
    """D1-C2, D1-C3, D1-C4, D1-C5, D0-C25"""
    check_block(NetworkShape(), seeds, delivered=10, faults=1, factories=claims_watched())


@pytest.mark.long
def test_many_seeds_of_networks_are_clean() -> None:
    check_campaign(NetworkShape(name="networks"), range(1, SEEDS_LONG + 1), "networks")


def test_seeds_reach_every_level_every_kind_of_graph_and_every_fault() -> None:
    levels: Counter[Reliability] = Counter()
    faults: Counter[type] = Counter()
    brokers: Counter[int] = Counter()
    settings: Counter[tuple[str, bool]] = Counter()
    for seed in range(1, SEEDS + 1):
        scenario = NetworkShape().draw(seed)
        routing = routing_settings(settings_of(scenario))
        levels[routing.reliability] += 1
        brokers[len(scenario.brokers)] += 1
        faults.update(type(fault) for fault in scenario.faults)
        settings["advertisements", routing.advertisements] += 1
        settings["covering", routing.covering] += 1
        settings["ask", routing.ask_neighbours] += 1
        settings["cycle", len(scenario.links) >= len(scenario.brokers)] += 1
    assert set(levels) == set(Reliability)
    assert {3, 4, 5, 6, 7, 12, 20, 30} <= set(brokers)
    assert min(faults[kind] for kind in (Kill, PowerCut, Pause, Cut)) > 300
    assert min(settings[name, value] for name, _ in settings for value in (True, False)) > 300
    assert min(levels.values()) > 300


def test_a_drawn_network_is_a_scenario_that_files_may_hold() -> None:
    for seed in range(1, 60):
        check_scenario(NetworkShape().draw(seed), f"seed {seed}")


def test_the_same_seed_gives_the_same_run() -> None:
    shape = NetworkShape(reliability=Reliability.BYPASS_BUFFERED)
    digests = [run_scenario(shape.draw(7)).digest for _ in range(2)]
    assert digests[0] == digests[1]


def test_brokers_that_answer_each_other_without_end_are_a_failure_and_not_a_run_without_end() -> None:
    storming = BY_NAME["forwards-back"]
    scenario = NetworkShape(reliability=storming.level).draw(8)
    assert run_scenario(scenario, storming.factories).problem.startswith("a run does not become a storm (")
    few = msgspec.structs.replace(scenario, storm=Storm(steps=10, sent_bytes=1 << 40))
    outcome = run_scenario(few)
    assert (outcome.steps, outcome.broken.partition(" (")[0]) == (11, "a run does not become a storm")
    assert run_scenario(msgspec.structs.replace(scenario, storm=None)).clean
