"""Groups of replicas with clients, under faults: what D4 promises holds by seed; and what breaks it is seen."""

from collections import Counter
from pathlib import Path

import pytest

from holdfast.schemes.paxos.draw import group_shape
from holdfast.schemes.paxos.settings import Protocol
from holdfast.sim.draw import IF_REMEMBERED
from holdfast.sim.network import Adversary
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import (
    Broker,
    ClockJump,
    Cut,
    DiskFull,
    DiskSlow,
    Kill,
    Network,
    Pause,
    PowerCut,
    Reset,
    Scenario,
)
from holdfast.sim.scenario_file import check_scenario
from holdfast.trace import schema
from holdfast.trace.schema import Row
from tests.sim.clean import check_block, check_campaign
from tests.sim.group_mutants import SHAPE
from tests.tiers import blocks, scarce

SEEDS = 400
SEEDS_LONG = 20_000

REGRESSIONS = Path(__file__).parent / "regressions"


class _Life:
    """Counts what happened to the groups of many runs."""

    def __init__(self) -> None:
        self.what: Counter[str] = Counter()

    def see(self, row: Row) -> None:
        if isinstance(row, schema.Control | schema.Hop):
            self.what[row.what] += 1


# What happens in a run, at the least, on average over a block: leaders change and are deposed, replicas catch up by
# values and by snapshot.
HAPPENS = {"leader": 1.5, "deposed": 0.04, "Redirect": 3, "SnapshotPart": 0.5, "Decided": 3}


@pytest.mark.parametrize("seeds", blocks(SEEDS))
def test_seeds_of_groups_are_clean(seeds: range) -> None:
    life = _Life()
    check_block(SHAPE, seeds, delivered=20, faults=3, sinks=[life])
    assert scarce(life.what, HAPPENS, len(seeds)) == {}


@pytest.mark.long
def test_many_seeds_of_groups_are_clean() -> None:
    check_campaign(SHAPE, range(1, SEEDS_LONG + 1), "groups")


def test_what_is_drawn_covers_what_can_befall_a_group() -> None:
    scenarios = [SHAPE.draw(seed) for seed in range(1, 301)]
    for scenario in scenarios:
        check_scenario(scenario, "drawn")
        assert set(IF_REMEMBERED) <= set(scenario.checkers)
    assert {len(scenario.brokers) for scenario in scenarios} == {3, 5, 7}
    groups = [scenario.settings for scenario in scenarios]
    assert {group["protocol"] for group in groups} == {"multi", "batch"}  # fast: test_fast_groups.py
    assert {group["pipeline"] for group in groups} == {1, 3, 10}
    assert any("no-forgetting" in scenario.checkers for scenario in scenarios)
    faults = [fault for scenario in scenarios for fault in scenario.faults]
    assert {type(fault) for fault in faults} == {Kill, PowerCut, Pause, Cut, Reset, ClockJump, DiskSlow, DiskFull}
    assert {fault.wipe for fault in faults if isinstance(fault, PowerCut)} == {True, False}
    resets = {(f.source[0], f.target[0]) for f in faults if isinstance(f, Reset)}
    assert resets == {("b", "b"), ("c", "b")}
    cuts = {(f.source[0], f.target[0], f.both) for f in faults if isinstance(f, Cut)}
    assert cuts >= {(*ends, both) for ends in ("bb", "bc", "cb") for both in (True, False)}
    assert {scenario.network.adversary is None for scenario in scenarios} == {True, False}


def test_replicas_that_do_not_listen_to_each_other_greet_at_a_bounded_rate() -> None:
    """Each answered every greeting of the other, as fast as the link allowed: a wiped replica kept all others busy."""
    scenario = Scenario(
        name="wiped",
        seed=1,
        system="paxos",
        brokers=[Broker(id=name, durable=True) for name in ("b1", "b2", "b3")],
        clients=[],
        network=Network(adversary=Adversary(duplication=0.3)),
        actions=[],
        faults=[PowerCut(at_ms=500, for_ms=10, host="b1", wipe=True)],
        safety_ms=4_000,
        liveness_ms=0,
        checkers=["liveness"],
    )
    life = _Life()
    assert run_scenario(scenario, sinks=[life]).clean
    assert life.what["wiped-disk"] == 1
    pairs, ways, repeats = 2, 2, 40  # each side of a pair greets every 100 ms, and is answered
    assert pairs * repeats < life.what["Greeting"] < 3 * pairs * ways * repeats


@pytest.mark.parametrize("count", [1, 3])
def test_a_site_has_its_brokers_protocol_and_pipeline(count: int) -> None:
    names = ["north", "east", "west"][:count]
    shape = group_shape(names, Protocol.MULTI, 4, name="site")
    for seed in range(1, 11):
        scenario = shape.draw(seed)
        assert (scenario.name, [broker.id for broker in scenario.brokers]) == ("site", names)
        assert (scenario.settings["protocol"], scenario.settings["pipeline"]) == ("multi", 4)
        assert run_scenario(scenario).clean
