"""Networks that see to their stand-ins by themselves, under faults, by seed: brokers that flap, hang and are slow, who
sees to it fails, and so do spares."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.protocols.routing.settings import Reliability
from holdfast.schemes.tree.draw_on_demand import OnDemandShape
from holdfast.schemes.tree.settings import routing_settings
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Cut, Kill, Pause, PowerCut, Reset
from holdfast.sim.scenario_file import check_scenario
from holdfast.sim.swarm import settings_of
from tests.sim.claims import claims_watched
from tests.sim.clean import check_block, check_campaign
from tests.standin.cycle.life import Life
from tests.tiers import blocks, scarce

SEEDS = 320
SEEDS_LONG = 2_000
PROMISED = {"map-history"}  # among others: no network is left split, and nobody has two stand-ins

# What happens in a run, at the least, on average over a block.
HAPPENS = {
    "complaints": 1.5,
    "cases of crashes": 0.5,
    "cases of congestion": 0.02,
    "replaced": 0.3,
    "place back": 0.1,
    "given up": 0.2,
    "refused by a member": 0.02,
    "more than one down": 0.02,
    "who saw to it failed": 0.02,
}


@pytest.mark.parametrize("seeds", blocks(SEEDS, size=40))
def test_seeds_of_networks_that_see_to_their_stand_ins_are_clean(seeds: range) -> None:
    """D0-A8, D0-A9, D0-A10, D0-A35, D0-B2, D0-F6"""
    life = Life()
    check_block(OnDemandShape(), seeds, delivered=20, faults=1, sinks=[life], factories=claims_watched())
    assert life.wrong == []
    assert scarce(life.what, HAPPENS, len(seeds)) == {}


@pytest.mark.long
def test_many_seeds_of_networks_that_see_to_their_stand_ins_are_clean() -> None:
    check_campaign(OnDemandShape(name="sees-to-it"), range(1, SEEDS_LONG + 1), "networks that see to their stand-ins")


def test_seeds_reach_every_level_remedy_and_fault() -> None:
    levels: Counter[Reliability] = Counter()
    remedies: Counter[str] = Counter()
    faults: Counter[type] = Counter()
    for seed in range(1, SEEDS + 1):
        scenario = OnDemandShape().draw(seed)
        check_scenario(scenario, f"seed {seed}")
        assert set(scenario.checkers) >= PROMISED
        settings = routing_settings(settings_of(scenario))
        levels[settings.reliability] += 1
        remedies[settings.stand_ins.levels.congestion.value] += 1
        remedies[settings.stand_ins.levels.protocol.value] += 1
        faults.update({type(fault) for fault in scenario.faults})
    assert set(levels) == {Reliability.NONE, Reliability.PERIODIC, Reliability.BUFFERED}
    assert set(remedies) == {"ms", "none", "basic", "synch", "increm"}
    assert set(faults) == {Kill, PowerCut, Pause, Cut, Reset}
    for counted in (levels, remedies, faults):
        assert {what: count for what, count in counted.items() if count < SEEDS // 20} == {}


def test_the_same_seed_gives_the_same_run() -> None:
    digests = [run_scenario(OnDemandShape().draw(7)).digest for _ in range(2)]
    assert digests[0] == digests[1]
