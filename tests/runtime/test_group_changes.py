"""Groups of processes that change while they serve: by command, and under load."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from experiments.replication.group import ReplicaGroup
from experiments.replication.replacements import HEALTHY, LOST, run_replacements


def command(group: ReplicaGroup, *words: str) -> tuple[int, str]:
    """What `holdfast group …` says."""
    verb, *options = words
    line = [sys.executable, "-m", "holdfast.cli", "group", verb, str(group.site), *options]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_each_of_three_replicas_is_replaced_in_turn_under_load_and_nothing_is_lost() -> None:
    """One of them after it lost its disk."""
    result = run_replacements(3, seed=1)
    assert result.verdict.problems == ()
    assert (result.verdict.lost, result.verdict.doubled, result.verdict.inverted) == (0, 0, 0)
    assert result.verdict.read_back >= result.verdict.acknowledged > 0
    assert result.verdict.delivered == (result.verdict.read_back,) * 3
    assert result.faults == {HEALTHY: 2, LOST: 1}


def test_an_operator_changes_a_group_and_is_told_why_when_it_can_not_be(tmp_path: Path) -> None:
    with ReplicaGroup(tmp_path, 3, spares=1) as group:
        group.start(*group.names, *group.spares)
        asyncio.run(group.leader())
        assert command(group, "add", "--id", "r4")[0] == 0
        code, said = command(group, "members")
        assert (code, said.split(";")[0]) == (0, "members: r1, r2, r3, r4")
        code, said = command(group, "remove", "--id", "r9")
        assert (code, said) == (1, "not changed: there is no replica 'r9' that votes; there is r1, r2, r3, r4\n")
        code, said = command(group, "protocol", "--to", "slow")
        assert (code, said) == (1, "not changed: there is no protocol 'slow'; there is multi, batch, fast\n")
        code, said = command(group, "add", "--id", "r7")
        assert code == 2
        assert "where r7 is to be found is not known" in said
        assert command(group, "cancel") == (1, "not changed: no change is under way\n")
        assert command(group, "protocol", "--to", "multi")[0] == 0
        assert command(group, "remove", "--id", "r1")[0] == 0
        assert command(group, "add", "--id", "r1")[1].startswith("not changed: r1 was a member before")


def test_a_removed_replica_does_not_come_back_with_an_old_site_file(tmp_path: Path) -> None:
    with ReplicaGroup(tmp_path, 3) as group:
        group.start()
        asyncio.run(group.leader())
        assert command(group, "remove", "--id", "r3")[0] == 0
        group.stop("r3")
        line = [sys.executable, "-m", "holdfast.cli", "broker", str(group.site), "--id", "r3"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 4
        assert "r3 is no member of the group, which is r1, r2" in done.stderr
