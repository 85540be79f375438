"""Groups of replicas under faults: nothing that the watch looks for happens, and peace is always enough to go on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from functools import partial

import pytest

from holdfast.schemes.paxos.messages import Heartbeat
from tests.paxos.group import Group
from tests.paxos.swarm import draw, problem, problems
from tests.paxos.violation import Violation
from tests.repository import ROOT
from tests.tiers import blocks, scarce

SEEDS = 2_000
# Seeds beyond those that once showed something: the rest of a snapshot that was overtaken was asked for without end.
REGRESSIONS = [2419]


# What happens in a run, at the least, on average over a block: elections, restarts, wiped disks, snapshots, repeated
# requests and gaps.
HAPPENS = {"slots": 35, "again": 18, "elections": 2, "recovered values": 3, "lives": 10, "snapshots": 1, "wiped": 0.25}


def count(seen: Counter[str], group: Group) -> None:
    seen["slots"] += group.watch.prefix
    seen["again"] += sum(not fresh for _, _, fresh in group.watch.history)
    seen["elections"] += len(group.watch.elections)
    seen["recovered values"] += sum(len(picked) for _, picked in group.watch.elections.values())
    seen["lives"] += sum(host.life for host in group.hosts.values())
    seen["snapshots"] += sum(disk.state > 0 for disk in group.watch.disks.values())
    seen["wiped"] += len(group.watch.wiped)


@pytest.mark.parametrize("seeds", blocks(SEEDS, first=0))
def test_a_group_keeps_its_promises_under_faults_and_serves_again_in_peace(seeds: range) -> None:
    seen: Counter[str] = Counter()
    assert "\n".join(problems(seeds, partial(count, seen))) == ""
    assert scarce(seen, HAPPENS, len(seeds)) == {}


@pytest.mark.parametrize("seed", REGRESSIONS)
def test_what_was_found_once_is_not_there_any_more(seed: int) -> None:
    assert problem(seed) == ""


def test_the_swarm_draws_every_kind_of_group() -> None:
    groups = [draw(seed) for seed in range(200)]
    assert {group.members for group in groups} == {1, 3, 5, 7}
    assert len({group.protocol for group in groups}) == 2
    assert {group.adversary is None for group in groups} == {True, False}


def test_the_watch_sees_every_message_that_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat that claims too much is noticed in the step in which it leaves."""
    group = Group(1)
    group.start()
    assert group.run(5_000, lambda: group.watch.prefix > 0)
    leader = group.hosts[group.leader()]
    leader.out.send(next(name for name in group.hosts if name != leader.name), Heartbeat(1, 10**6, 1))
    with pytest.raises(Violation, match="executed what is not chosen"):
        group.run(200)


def test_the_same_seed_gives_the_same_run_under_any_hash_seed() -> None:
    code = (
        "from tests.paxos.swarm import play\n"
        "for seed in (0, 9, 11, 18):\n"
        "    group = play(seed)\n"
        "    print(group.simulation.steps, group.simulation.now, group.answered, group.watch.chains[-1])\n"
    )
    shown = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        shown.add(run.stdout)
    assert len(shown) == 1


def test_nothing_is_decided_without_a_majority() -> None:
    """D4-C3."""
    group = Group(2, members=5)
    group.start()
    assert group.run(5_000, lambda: group.watch.prefix > 5)
    for host in list(group.hosts.values())[:3]:
        host.stop(power_cut=False)
    group.run(1_000)
    before = dict(group.answered), len(group.watch.chosen)
    group.run(5_000)
    assert (group.answered, len(group.watch.chosen)) == before
