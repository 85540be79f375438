"""Groups that change keep every promise, in runs drawn from seeds."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.paxos.change_swarm import problem, problems
from tests.paxos.group import Group
from tests.tiers import blocks, scarce

SEEDS = 300  # test_campaign.py has more, for long runs


@pytest.mark.parametrize("seeds", blocks(SEEDS, 25, first=0))
def test_a_group_keeps_its_promises_while_its_members_change(seeds: range) -> None:
    """Most groups end with other voters than they began with, and through several epochs."""
    seen: Counter[str] = Counter()

    def see(group: Group) -> None:
        seen["epochs"] += group.watch.membership.epoch >= 2
        seen["former members"] += len(group.watch.membership.former)

    assert "\n".join(problems(seeds, see)) == ""
    assert scarce(seen, {"epochs": 0.8, "former members": 2}, len(seeds)) == {}


@pytest.mark.parametrize("seed", [31591, 33455, 34120, 34169])
def test_who_is_behind_catches_up_when_the_leader_that_it_knew_has_been_removed(seed: int) -> None:
    assert problem(seed) == ""


def test_nothing_is_decided_behind_a_change_by_the_voters_before_it() -> None:
    assert problem(158) == ""
