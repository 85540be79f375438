"""Groups with fast rounds: nothing that the watch looks for happens under faults, and in peace all is answered."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.protocols.paxos.settings import Protocol
from tests.paxos.fast_swarm import draw_fast, play_changing, play_fast, play_in_peace, problems

SEEDS = 300  # test_campaign.py has more, for long runs
BLOCK = 50
PEACEFUL_SEEDS = 100
CHANGING_SEEDS = 100


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_a_group_with_fast_rounds_keeps_its_promises_under_faults_and_serves_again_in_peace(first: int) -> None:
    assert "\n".join(problems(range(first, first + BLOCK))) == ""


@pytest.mark.parametrize("first", range(0, CHANGING_SEEDS, BLOCK))
def test_the_protocol_may_be_changed_while_the_group_runs(first: int) -> None:
    assert "\n".join(problems(range(first, first + BLOCK), play_changing)) == ""


@pytest.mark.parametrize("first", range(0, PEACEFUL_SEEDS, BLOCK))
def test_in_peace_all_is_answered_that_was_asked_once_and_fast_rounds_come_and_go(first: int) -> None:
    assert "\n".join(problems(range(first, first + BLOCK), play_in_peace)) == ""


def test_the_protocol_is_changed_often_in_those_runs() -> None:
    groups = [play_changing(seed) for seed in range(10, 31, 10)]
    changes = [max(replica.roster.membership.number for replica in group.replicas.values()) for group in groups]
    assert sum(changes) > 20


def test_the_fast_swarm_draws_every_kind_of_group() -> None:
    groups = [draw_fast(seed) for seed in range(200)]
    assert {group.members for group in groups} == {3, 4, 5, 7, 9}
    assert {group.protocol for group in groups} == {Protocol.FAST}
    assert {group.adversary is None for group in groups} == {True, False}


def test_the_runs_with_fast_rounds_are_worth_looking_at() -> None:
    """Fast rounds are opened often, decide, are split, and are recovered; classic rounds happen beside them."""
    seen: Counter[str] = Counter()
    for seed in range(60):
        group = play_fast(seed)
        fast = group.watch.fast
        seen["slots"] += group.watch.prefix
        seen["ballots with fast rounds"] += len(fast.opened)
        seen["ballots without"] += len(group.watch.elections) - len(fast.opened)
        seen["chosen in fast rounds"] += fast.chosen
        seen["split"] += fast.split
        seen["recovered"] += len(fast.recovered)
        seen["snapshots"] += sum(disk.state > 0 for disk in group.watch.disks.values())
    print(dict(seen))
    wanted = {"slots": 4_000, "ballots with fast rounds": 120, "ballots without": 15, "chosen in fast rounds": 1_300}
    wanted |= {"split": 300, "recovered": 400, "snapshots": 60}
    assert {what: seen[what] for what in wanted if seen[what] < wanted[what]} == {}
