"""Named subscriptions under faults: nothing is lost, doubled within a life, out of order, or beyond the window."""

import pytest

from tests.sim.named_mutants import MUTANTS, NamedMutant
from tests.sim.named_world import failing, run_seed

SEEDS = 300
LONG_SEEDS = 5_000
SLICES = 10


@pytest.mark.parametrize("slice", range(SLICES))
def test_named_subscriptions_keep_their_promises(slice: int) -> None:
    assert failing(range(slice + 1, SEEDS + 1, SLICES)) is None


@pytest.mark.long
def test_named_subscriptions_keep_their_promises_in_a_campaign() -> None:
    assert failing(range(SEEDS + 1, LONG_SEEDS + 1)) is None


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [run_seed(7) for _ in range(2)]
    assert runs[0].simulation.steps == runs[1].simulation.steps
    assert [reading.got for reading in runs[0].readings] == [reading.got for reading in runs[1].readings]


def test_the_runs_are_worth_looking_at() -> None:
    """Takeovers, second attempts, changed filters and concurrent reads happen."""
    worlds = [run_seed(seed) for seed in range(1, 21)]
    readings = [reading for world in worlds for reading in world.readings]
    assert sum(event.attempt > 1 for reading in readings for event in reading.got) > 100
    assert sum(len(take.filters) > 1 for world in worlds for take in world.truth.takes().values()) > 20
    assert sum(len(world.ranges) for world in worlds) > 40
    assert sum(world.broker.life > 1 for world in worlds) > 5
    assert sum(len(world.published) for world in worlds) > 400


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.mistake)
def test_a_mistake_is_seen(mutant: NamedMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.patch(monkeypatch)
    caught = failing(range(mutant.start, mutant.start + mutant.seeds), mutant.parts)
    assert caught is not None, f"not caught within {mutant.seeds} seeds"
    monkeypatch.undo()
    assert failing([caught[0]]) is None, "the same seed, without the mistake"
