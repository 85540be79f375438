"""Groups of processes that change while they serve: by command, and under load."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.replication.group import ReplicaGroup
from experiments.replication.replacements import HEALTHY, LOST, run_replacements
from holdfast.cli import group_changes


def holdfast(*words: str) -> tuple[int, str]:
    line = [sys.executable, "-m", "holdfast.cli", *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def command(group: ReplicaGroup, *words: str) -> tuple[int, str]:
    """What `holdfast group …` says."""
    verb, *options = words
    return holdfast("group", verb, str(group.site), *options)


@pytest.mark.full
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


@pytest.mark.full
def test_any_member_leads_commands_to_the_leader_and_replicas_outside_the_group_need_not_run(tmp_path: Path) -> None:
    with ReplicaGroup(tmp_path, 3, spares=1) as group:
        group.start()
        leader = asyncio.run(group.leader())
        follower = next(name for name in group.names if name != leader)
        url = f"holdfast://{group.addresses[follower]}"
        assert holdfast("group", "leader", url) == (0, f"{leader} at {group.addresses[leader]}\n")
        assert f"{follower} follows {leader}, which is not among those who answered" in holdfast("status", url)[1]
        code, page = holdfast("status", str(group.site))
        assert code == 0  # the spare does not run, and nobody misses it
        assert "r4: " in page
        assert command(group, "protocol", "--to", "fast")[0] == 0
        assert "\nprotocol: fast, in " in holdfast("status", str(group.site))[1]
        old = next(name for name in group.names if name not in (leader, follower))
        group.stop(old)
        assert holdfast("status", str(group.site))[0] == 1
        assert command(group, "remove", "--id", old)[0] == 0
        assert holdfast("status", str(group.site))[0] == 0
        group.start(old)
        unaware = f"{old}: no member any more, and has not heard of it: stop it"
        shown = holdfast("status", str(group.site))[1]
        assert unaware in shown or "removed" in shown


def test_a_change_with_wrong_options_is_refused_before_anyone_is_asked(tmp_path: Path) -> None:
    group = ReplicaGroup(tmp_path, 3)
    where = ("--address", "127.0.0.1:7419", "--peer-address", "127.0.0.1:7519")
    for wait in ("nan", "-1", "0", "inf"):
        code, said = command(group, "remove", "--id", "r1", "--wait", wait)
        assert (code, "--wait is" in said) == (2, True)
    code, said = command(group, "add", "--id", "r 4", *where)
    assert (code, "'r 4' is no name" in said) == (2, True)
    code, said = holdfast("group", "add", group.url, "--id", "r4")
    assert code == 2
    assert said == "holdfast: where r4 is to be found is not known: use --address and --peer-address\n"
    code, said = command(group, "add", "--id", "r4", "--address", "here", "--peer-address", "there")
    assert (code, "'here' is no address" in said) == (2, True)
    code, said = command(group, "add", "--id", "r4", "--address", "0.0.0.0:7419", *where[2:])
    assert code == 2
    assert said == "holdfast: 0.0.0.0:7419 is where r4 may listen, and nobody can be sent there: name its machine\n"


def test_a_spare_says_that_it_is_one_and_an_interrupted_command_that_its_change_goes_on(tmp_path: Path) -> None:
    with ReplicaGroup(tmp_path, 3, spares=1) as group:
        group.start()
        asyncio.run(group.leader())
        line = [sys.executable, "-m", "holdfast.cli", "group", "add", str(group.site), "--id", "r4"]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as adding:
            assert adding.stdout is not None
            assert "r4 at" in adding.stdout.readline()
            adding.send_signal(signal.SIGINT)
            _, said = adding.communicate(timeout=30)
        assert (adding.returncode, said) == (130, f"{group_changes.GOES_ON}\n")
        assert "r4 at" in command(group, "members")[1]
        line = [sys.executable, "-m", "holdfast.cli", "broker", str(group.site), "--id", "r4"]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as spare:
            assert spare.stdout is not None
            told = [spare.stdout.readline() for _ in range(3)]
            while "members: r1, r2, r3, r4;" not in command(group, "members")[1]:
                pass
            spare.terminate()
        assert "the site file has it as a spare" in told[-1]
