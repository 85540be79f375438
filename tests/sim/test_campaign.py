"""Thousands of seeds of one broker, with crashes, cuts and clients that are started again, keep every promise."""

from collections import Counter

import msgspec
import pytest

from holdfast.protocols.sessions.messages import Overflow
from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim.campaign import run_campaign, scenario_for
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Publish, Scenario, Subscribe
from holdfast.sim.scenario_file import scenario_from_json, scenario_to_json
from holdfast.sim.shrink import count_pieces, shrink
from tests.sim.claims import claims_watched
from tests.sim.clean import check_block, check_campaign
from tests.sim.mutants import MUTANTS
from tests.tiers import blocks

SEEDS = 2_000
SEEDS_LONG = 100_000


@pytest.mark.parametrize("seeds", blocks(SEEDS))
def test_seeds_are_clean(seeds: range) -> None:
    check_block(OneBrokerShape(), seeds, delivered=20, faults=2, factories=claims_watched())


@pytest.mark.long
def test_a_hundred_thousand_seeds_are_clean() -> None:
    check_campaign(OneBrokerShape(), range(1, SEEDS_LONG + 1), "one broker")


def test_what_is_drawn_covers_what_can_be_configured() -> None:
    scenarios = [OneBrokerShape().draw(seed) for seed in range(1, 301)]
    faults = Counter(type(fault).__name__ for scenario in scenarios for fault in scenario.faults)
    assert {"Kill", "PowerCut", "Pause", "Cut", "ClockJump", "DiskSlow"} <= set(faults)
    assert min(faults.values()) >= 20
    subscriptions = [a for scenario in scenarios for a in scenario.actions if isinstance(a, Subscribe)]
    assert {subscription.overflow for subscription in subscriptions} == set(Overflow)
    assert {scenario.brokers[0].durable for scenario in scenarios} == {True, False}
    assert {scenario.network.adversary is None for scenario in scenarios} == {True, False}
    assert any(not scenario.faults for scenario in scenarios)
    retries = {a.retry for scenario in scenarios for a in scenario.actions if isinstance(a, Publish)}
    assert retries == {True, False}


def test_the_result_does_not_depend_on_the_number_of_processes() -> None:
    alone = run_campaign(OneBrokerShape(), range(1, 41), jobs=1)
    together = run_campaign(OneBrokerShape(), range(1, 41), jobs=2)
    assert msgspec.to_builtins(alone) == msgspec.to_builtins(together)


def test_a_scenario_read_from_its_file_runs_as_the_one_that_was_drawn() -> None:
    for seed in range(1, 11):
        scenario = OneBrokerShape().draw(seed)
        again = scenario_from_json(scenario_to_json(scenario), "memory")
        assert again == scenario
        assert run_scenario(again).digest == run_scenario(scenario).digest


def test_another_seed_is_another_run_of_the_same_scenario() -> None:
    scenario = OneBrokerShape().draw(5)
    other = scenario_for(scenario, 6)
    assert other.actions == scenario.actions
    assert run_scenario(other).digest != run_scenario(scenario).digest


def test_a_failing_scenario_is_shrunk_to_what_it_needs() -> None:
    mutant = next(m for m in MUTANTS if m.checker == "only-matching")

    def fails(scenario: Scenario) -> bool:
        return not run_scenario(scenario, mutant.factories).clean

    scenario = next(s for s in map(OneBrokerShape().draw, range(1, 50)) if fails(s))
    small = shrink(scenario, fails, tries=200)
    assert fails(small)
    # One subscription and one event that it does not want.
    assert count_pieces(small) == 2
    assert small.faults == []
    assert len(small.clients) <= 2


def test_what_does_not_fail_is_not_shrunk() -> None:
    scenario = OneBrokerShape().draw(1)
    assert shrink(scenario, lambda _: False, tries=20) == scenario
