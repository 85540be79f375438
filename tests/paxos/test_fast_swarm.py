"""Groups with fast rounds: nothing that the watch looks for happens under faults, and in peace all is answered."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from holdfast.schemes.paxos.settings import Protocol
from tests.paxos.fast_swarm import draw_fast, play_changing, play_in_peace, problems
from tests.paxos.group import Group
from tests.tiers import blocks, scarce

SEEDS = 300  # test_campaign.py has more, for long runs
PEACEFUL_SEEDS = 100
CHANGING_SEEDS = 100


# What happens in a run, at the least, on average over a block: fast rounds are opened often, decide, are split, and are
# recovered; classic rounds happen beside them.
HAPPENS = {
    "slots": 60,
    "ballots with fast rounds": 1.5,
    "ballots without": 0.4,
    "chosen in fast rounds": 18,
    "split": 5,
    "recovered": 8,
    "snapshots": 1.5,
}


def count(seen: Counter[str], group: Group) -> None:
    fast = group.watch.fast
    seen["slots"] += group.watch.prefix
    seen["ballots with fast rounds"] += len(fast.opened)
    seen["ballots without"] += len(group.watch.elections) - len(fast.opened)
    seen["chosen in fast rounds"] += fast.chosen
    seen["split"] += fast.split
    seen["recovered"] += len(fast.recovered)
    seen["snapshots"] += sum(disk.state > 0 for disk in group.watch.disks.values())


@pytest.mark.parametrize("seeds", blocks(SEEDS, first=0))
def test_a_group_with_fast_rounds_keeps_its_promises_under_faults_and_serves_again_in_peace(seeds: range) -> None:
    seen: Counter[str] = Counter()
    assert "\n".join(problems(seeds, see=partial(count, seen))) == ""
    assert scarce(seen, HAPPENS, len(seeds)) == {}


@pytest.mark.parametrize("seeds", blocks(CHANGING_SEEDS, 25, first=0))
def test_the_protocol_may_be_changed_while_the_group_runs(seeds: range) -> None:
    changes = 0

    def see(group: Group) -> None:
        nonlocal changes
        changes += max(parts.view.roster.membership.number for parts in group.made.values())

    assert "\n".join(problems(seeds, play_changing, see)) == ""
    assert changes > 2.5 * len(seeds)


@pytest.mark.parametrize("seeds", blocks(PEACEFUL_SEEDS, 25, first=0))
def test_in_peace_all_is_answered_that_was_asked_once_and_fast_rounds_come_and_go(seeds: range) -> None:
    assert "\n".join(problems(seeds, play_in_peace)) == ""


def test_the_fast_swarm_draws_every_kind_of_group() -> None:
    groups = [draw_fast(seed) for seed in range(200)]
    assert {group.members for group in groups} == {3, 4, 5, 7, 9}
    assert {group.protocol for group in groups} == {Protocol.FAST}
    assert {group.adversary is None for group in groups} == {True, False}
