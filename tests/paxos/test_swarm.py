"""Groups of replicas under faults: one history, nothing answered is lost, and everyone catches up in the end."""

from __future__ import annotations

import os
import subprocess
import sys
from random import Random

import msgspec
import pytest

from holdfast.kernel.inputs import Started
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.time import SECOND
from holdfast.protocols.paxos.formation import Standing
from holdfast.protocols.paxos.replica import Replica
from tests.paxos.swarm import Group, Ledger, play
from tests.repository import ROOT

SEEDS = 60
LONG_SEEDS = 100_000


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_group_has_one_history_and_serves_again_when_peace_comes(seed: int) -> None:
    assert play(seed).check() == []


@pytest.mark.long
def test_a_campaign() -> None:
    bad = [seed for seed in range(LONG_SEEDS) if play(seed).check()]
    print(f"{LONG_SEEDS:,} seeds, {len(bad)} with a violation: {bad[:20]}")
    assert bad == []


def test_a_replica_whose_disk_was_wiped_does_not_vote_and_is_not_listened_to() -> None:
    group = Group(1)
    group.start()
    group.run(2_000)
    wiped, *others = group.simulation.hosts.values()
    wiped.stop(power_cut=True)
    assert wiped.disk is not None
    wiped.disk.wipe()
    wiped.start()
    group.run(2_000)
    assert group.replicas[wiped.name].formation.standing is Standing.WIPED
    served = dict(group.answered)
    others[0].stop(power_cut=False)  # one that may vote is left, and one that may not: no majority
    group.run(3_000)
    now = {name: replica.decided.executed for name, replica in group.replicas.items()}
    group.run(3_000)
    assert {name: replica.decided.executed for name, replica in group.replicas.items()} == now
    others[0].start()
    group.run(3_000)
    assert all(group.answered[who] > number for who, number in served.items())
    assert group.check() == []


def test_a_disk_of_which_something_was_given_up_is_another_disk() -> None:
    group = Group(1)
    group.start()
    group.run(2_000)
    host, replica = next(iter(group.simulation.hosts.items()))[1], group.replicas["r0"]
    assert replica.formation.standing is Standing.FORMED
    assert host.disk is not None
    again = Replica(group.settings["r0"], Ledger(), msgspec.msgpack.encode, msgspec.msgpack.decode, Random(1))
    again.recover(host.disk.start())
    again.on_started(Started(2, host.disk.log_id, repairs=1), Outbox())
    assert again.formation.standing is Standing.WIPED


def test_replicas_that_wait_for_another_to_form_the_group_are_quiet() -> None:
    group = Group(3)
    hosts = list(group.simulation.hosts.values())
    for host in hosts[:2]:
        host.start()
    group.simulation.run(2 * SECOND)
    # A greeting each way every 100 ms, and attempts to reach the third.
    assert group.simulation.steps < 400


def test_nothing_is_decided_without_a_majority() -> None:
    """D4-C3."""
    group = Group(2, members=5)
    group.start()
    group.run(2_000)
    for host in list(group.simulation.hosts.values())[:3]:
        host.stop(power_cut=False)
    group.run(1_000)
    before = dict(group.answered)
    group.run(5_000)
    assert group.answered == before


def test_a_group_is_formed_only_when_everyone_has_been_there() -> None:
    group = Group(3)
    for host in list(group.simulation.hosts.values())[:2]:
        host.start()
    group.run(3_000)
    assert {replica.formation.standing for replica in group.replicas.values()} == {Standing.UNKNOWN}
    group.simulation.hosts["r2"].start()
    group.run(3_000)
    assert {replica.formation.standing for replica in group.replicas.values()} == {Standing.FORMED}


def test_the_same_seed_gives_the_same_run_under_any_hash_seed() -> None:
    code = (
        "from tests.paxos.swarm import play\n"
        "for seed in (3, 4):\n"
        "    group = play(seed)\n"
        "    print(group.simulation.steps, sorted(group.answered.items()), group.simulation.now)\n"
    )
    shown = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        shown.add(run.stdout)
    assert len(shown) == 1
