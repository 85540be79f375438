"""Planted bugs in fast rounds: each is caught by the seed that is known to catch it, and the real replica passes it."""

from __future__ import annotations

import pytest

from tests.paxos.fast_mutants import FAST_MUTANTS, FastMutant
from tests.paxos.fast_swarm import problem

MORE = 5  # seeds, in long runs: how often the mistake is seen by chance
WITHIN = 1_000


@pytest.mark.parametrize("mutant", FAST_MUTANTS, ids=lambda mutant: mutant.mistake)
def test_a_mistake_in_fast_rounds_is_seen(mutant: FastMutant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mutant.seed < WITHIN
    mutant.patch(monkeypatch)
    assert problem(mutant.seed, mutant.play, make_replica=mutant.make_replica), "not caught by its seed"
    monkeypatch.undo()
    assert problem(mutant.seed, mutant.play) == "", "the same seed, without the mistake"


@pytest.mark.long
@pytest.mark.parametrize("mutant", FAST_MUTANTS, ids=lambda mutant: mutant.mistake)
def test_how_often_a_mistake_in_fast_rounds_is_seen_by_chance_is_told(
    mutant: FastMutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant.patch(monkeypatch)
    seeds = range(mutant.seed + 1, mutant.seed + 1 + MORE)
    caught = [bool(problem(seed, mutant.play, make_replica=mutant.make_replica)) for seed in seeds]
    print(f"{mutant.mistake}: seed {mutant.seed}, and {sum(caught)} of {MORE} more")


def test_there_are_enough_mistakes_and_each_is_another() -> None:
    assert len({mutant.mistake for mutant in FAST_MUTANTS}) == len(FAST_MUTANTS) >= 20
