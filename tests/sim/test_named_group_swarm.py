"""Named subscriptions, positions and stages in groups of replicas, under faults: what is promised holds by seed."""

from collections import Counter

import pytest

from tests.sim.named_group_mutants import MUTANTS, NamedGroupMutant
from tests.sim.named_group_world import failing_group, run_group_seed

SEEDS = 250
SLICES = 10
LONG_SEEDS = 5_000
PROGRESS_EVERY = 250
MUTANT_SEEDS = 20  # besides the recorded one


@pytest.mark.parametrize("slice", range(SLICES))
def test_groups_keep_what_is_promised_of_names_and_positions(slice: int) -> None:
    assert failing_group(range(slice + 1, SEEDS + 1, SLICES)) is None


@pytest.mark.long
def test_groups_keep_what_is_promised_of_names_and_positions_in_a_campaign() -> None:
    failed: list[tuple[int, Exception]] = []
    happened: Counter[str] = Counter()
    for seed in range(SEEDS + 1, LONG_SEEDS + 1):
        try:
            happened += run_group_seed(seed).summary()
        except Exception as error:  # all of them are to be seen
            failed.append((seed, error))
        if seed % PROGRESS_EVERY == 0:
            print(f"{seed:,} of {LONG_SEEDS:,} seeds, {len(failed)} failed", flush=True)
    print(f"{LONG_SEEDS - SEEDS:,} seeds, {len(failed)} failed: {dict(happened)}")
    assert failed == []


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [run_group_seed(7) for _ in range(2)]
    assert runs[0].simulation.steps == runs[1].simulation.steps
    assert [reading.got for reading in runs[0].readings] == [reading.got for reading in runs[1].readings]


def test_the_runs_are_worth_looking_at() -> None:
    """Leaders change, snapshots leave holes that are filled, the log is given up, epochs are committed."""
    worlds = [run_group_seed(seed) for seed in range(1, 31)]
    happened = sum((world.summary() for world in worlds), Counter())
    assert happened["snapshots"] > 30
    assert happened["holes"] > 20
    assert happened["elections"] > 2 * len(worlds)
    assert happened["committed epochs"] > 60
    assert happened["heads"] > 300
    assert happened["ranges"] > 200
    assert happened["published"] > 1_000
    assert happened["given up"] > 50
    assert sum(bool(world.wiped) for world in worlds) > 2
    assert {len(world.brokers) for world in worlds} == {3, 5}
    assert sum(event.attempt > 1 for world in worlds for reading in world.readings for event in reading.got) > 100


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.mistake)
def test_a_mistake_is_seen(mutant: NamedGroupMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.patch(monkeypatch)
    more = range(mutant.seed + 1, mutant.seed + 1 + MUTANT_SEEDS)
    caught = failing_group([mutant.seed, *more], mutant.parts)
    assert caught is not None, f"not caught by its seed, nor by {MUTANT_SEEDS} more"
    monkeypatch.undo()
    assert failing_group([caught[0]]) is None, "the same seed, without the mistake"
