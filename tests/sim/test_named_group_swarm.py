"""Named subscriptions, positions and stages in groups of replicas, under faults: what is promised holds by seed."""

from collections import Counter

import pytest

from tests.sim.named_group_world import problem, run_group_seed
from tests.tiers import blocks, scarce

SEEDS = 300
LONG_SEEDS = 5_000
PROGRESS_EVERY = 250

# What happens in a run, at the least, on average over a block: leaders change, snapshots leave holes that are filled,
# the log is given up, epochs are committed.
HAPPENS = {
    "snapshots": 0.6,
    "holes": 0.2,
    "fetched first": 0.3,
    "elections": 2,
    "committed epochs": 3,
    "heads": 10,
    "ranges": 8,
    "published": 45,
    "given up": 5,
    "groups of 3": 0.5,
    "groups of 5": 0.04,
    "second attempts": 25,
}


@pytest.mark.parametrize("seeds", blocks(SEEDS, 50))
def test_groups_keep_what_is_promised_of_names_and_positions(seeds: range) -> None:
    happened: Counter[str] = Counter()
    found = [problem(seed, see=lambda world: happened.update(world.summary())) for seed in seeds]
    assert "\n".join(filter(None, found)) == ""
    assert scarce(happened, HAPPENS, len(seeds)) == {}


def test_disks_are_lost_in_some_runs() -> None:
    wiped: list[str] = []
    assert [problem(seed, see=lambda world: wiped.append(world.wiped)) for seed in (8, 9, 11, 12)] == [""] * 4
    assert sum(map(bool, wiped)) >= 2


@pytest.mark.long
def test_groups_keep_what_is_promised_of_names_and_positions_in_a_campaign() -> None:
    happened: Counter[str] = Counter()
    failed: list[str] = []
    for seed in range(SEEDS + 1, LONG_SEEDS + 1):
        failed += filter(None, [problem(seed, see=lambda world: happened.update(world.summary()))])
        if seed % PROGRESS_EVERY == 0:
            print(f"{seed:,} of {LONG_SEEDS:,} seeds, {len(failed)} failed", flush=True)
    print(f"summary: {LONG_SEEDS - SEEDS:,} seeds, {len(failed)} failed: {dict(happened)}")
    assert failed == []


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [run_group_seed(7) for _ in range(2)]
    assert runs[0].simulation.steps == runs[1].simulation.steps
    assert [reading.got for reading in runs[0].readings] == [reading.got for reading in runs[1].readings]
