"""A network whose directory is a group: brokers are replaced though several are down, once each, and whatever becomes
of the group's leader meanwhile."""

from __future__ import annotations

import pytest

from holdfast.schemes.tree.draw_on_demand import OnDemandShape
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Kill
from tests.standin.cycle.directory_world import NetworkWithDirectory, with_directory
from tests.standin.cycle.life import Life
from tests.standin.cycle.star_on_demand import is_whole, play_on_demand, said, stood_in
from tests.standin.star import F
from tests.tiers import blocks, scarce

SEEDS = 128
SEEDS_LONG = 500
HAPPENS = {"cases of crashes": 0.5, "replaced": 0.4, "place back": 0.2, "leader killed": 0.15}


def check_seeds(seeds: range) -> None:
    life, factories = Life(), with_directory()
    for seed in seeds:
        outcome = run_scenario(OnDemandShape().draw(seed), factories, [life])
        assert outcome.problem == "", f"seed {seed}"
    assert life.wrong == []
    life.what["leader killed"] = sum(world.killed for world in NetworkWithDirectory.made)
    assert scarce(life.what, HAPPENS, len(seeds)) == {}


@pytest.mark.parametrize("seeds", blocks(SEEDS, size=16))
def test_seeds_of_networks_that_ask_a_group_are_clean(seeds: range) -> None:
    """D0-A10, D0-F6: the leader is killed when something is proposed to it."""
    check_seeds(seeds)


@pytest.mark.long
def test_many_seeds_of_networks_that_ask_a_group_are_clean() -> None:
    check_seeds(range(1, SEEDS_LONG + 1))


@pytest.mark.parametrize("killed_ms", [4_000, 5_000, 6_050, 6_200, 6_300, 6_400, 7_000])
def test_another_one_goes_on_when_who_sees_to_it_fails(killed_ms: int) -> None:
    """D0-F6: two are down at once, and each gets one stand-in; also if one was accepted and not made before."""
    faults = [Kill(at_ms=4_000, for_ms=25_000, host="n3"), Kill(at_ms=killed_ms, for_ms=25_000, host="n1")]
    played = play_on_demand(
        faults, factories=with_directory(), spares=("r", "r2"), settings={"patience_ms": 1_500}, until_ms=45_000
    )
    assert played.wrong == []
    replaced = [text.rpartition(" ")[2] for text in stood_in(played) if " stands in for " in text]
    assert sorted(replaced) == ["n1", "n3"]
    assert len([text for text in stood_in(played) if text.endswith("gets its place back")]) == 2
    assert is_whole(played)


def test_one_spare_is_enough_for_one_of_two() -> None:
    """Of the other one it is said why, and it comes back by itself."""
    faults = [Kill(at_ms=4_000, for_ms=25_000, host="n3"), Kill(at_ms=4_000, for_ms=25_000, host="n1")]
    played = play_on_demand(faults, factories=with_directory(), until_ms=45_000)
    assert played.wrong == []
    assert len([text for text in stood_in(played) if " stands in for " in text]) == 1
    assert any("n3 gets no stand-in: nothing is provided here" in text for text in said(played))
    assert is_whole(played)


def test_a_hub_and_a_leaf_of_it_that_fail_together_wait_for_one_of_them() -> None:
    """Nobody but the hub watches the leaf, and all that watch the hub have to complain of it."""
    faults = [Kill(at_ms=4_000, for_ms=20_000, host=F), Kill(at_ms=4_000, for_ms=8_000, host="n3")]
    played = play_on_demand(faults, factories=with_directory())
    assert played.wrong == []
    begun = [row.t // 1_000_000 for row in played.told("standin") if " stands in for f" in row.detail["what"]]
    assert len(begun) == 1
    assert begun[0] > 12_000
    assert is_whole(played)
