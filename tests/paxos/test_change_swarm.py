"""Groups that change keep every promise, in runs drawn from seeds; and each planted mistake is seen."""

from __future__ import annotations

import pytest

from tests.paxos.change_mutants import MUTANTS, Mutant
from tests.paxos.change_swarm import play, problem, problems

SEEDS, BLOCK = 200, 50  # test_campaign.py has more, for long runs


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_a_group_keeps_its_promises_while_its_members_change(first: int) -> None:
    assert "\n".join(problems(range(first, first + BLOCK))) == ""


def test_the_runs_are_worth_looking_at() -> None:
    """Most groups end with other voters than they began with, and through several epochs."""
    memberships = [play(seed).watch.membership for seed in range(40)]
    assert sum(membership.epoch >= 2 for membership in memberships) > 20
    assert sum(len(membership.former) for membership in memberships) > 40


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.mistake)
def test_a_mistake_in_changing_is_seen(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.patch(monkeypatch)
    assert problem(mutant.seed), "not caught by its seed"
