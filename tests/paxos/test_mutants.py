"""Planted bugs: each is caught by the seed that is known to catch it; the real replica passes the same seed."""

from __future__ import annotations

import pytest

from tests.paxos.mutants import MUTANTS, Mutant
from tests.paxos.swarm import problem

MORE = 20  # seeds, in long runs: how often the mistake is seen by chance
WITHIN = 1_000


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.mistake)
def test_a_mistake_is_seen(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert mutant.seed < WITHIN
    mutant.patch(monkeypatch)
    assert problem(mutant.seed, make_replica=mutant.make_replica), "not caught by its seed"
    monkeypatch.undo()
    assert problem(mutant.seed) == "", "the same seed, without the mistake"


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.mistake)
def test_how_often_a_mistake_is_seen_by_chance_is_told(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.patch(monkeypatch)
    caught = [bool(problem(mutant.seed + n, make_replica=mutant.make_replica)) for n in range(1, MORE + 1)]
    print(f"{mutant.mistake}: seed {mutant.seed}, and {sum(caught)} of {MORE} more")


def test_there_are_enough_mistakes_and_each_is_another() -> None:
    assert len({mutant.mistake for mutant in MUTANTS}) == len(MUTANTS) >= 15
