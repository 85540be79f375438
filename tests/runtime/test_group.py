"""Groups of replicas in real processes: they form, serve as one broker, and go on when one of them is killed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from experiments.replication.group import ReplicaGroup
from holdfast.cli.main import STORAGE_FAILED
from tests.runtime.broker_process import BrokerProcess
from tests.tiers import one_always


def run(scene: Callable[[], Awaitable[Any]]) -> Any:
    async def within_time() -> Any:
        async with asyncio.timeout(60):
            return await scene()

    return asyncio.run(within_time())


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast.cli", *arguments], capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("protocol", one_always(["batch", "multi", "fast"]))
def test_a_killed_leader_costs_nothing_that_was_acknowledged_or_delivered(tmp_path: Path, protocol: str) -> None:
    """D4-C1, D4-C2."""

    async def scene() -> None:
        with ReplicaGroup(tmp_path, protocol=protocol) as group:
            group.start()
            async with (
                holdfast.connect(group.url, name="p") as publisher,
                holdfast.connect(group.url, name="s") as subscriber,
                subscriber.subscribe("n > 0") as events,
                subscriber.subscribe("n > 0", name="kept") as kept,
            ):
                for n in range(1, 31):
                    await publisher.publish({"n": n})
                    if n in (10, 20):
                        group.stop(await group.leader())
                        if n == 10:
                            group.start()
                        else:
                            assert len(group.processes) == 2
                got = [(await events.next()) for _ in range(30)]
                assert [event.attributes["n"] for event in got] == list(range(1, 31))
                assert [(await kept.next()).attributes["n"] for _ in range(30)] == list(range(1, 31))
                head = await publisher.head()
                assert head.number == 30
                assert [event.attributes["n"] async for event in publisher.read()] == list(range(1, 31))

    run(scene)


def test_status_and_group_show_who_leads_and_move_it(tmp_path: Path) -> None:
    with ReplicaGroup(tmp_path, log_level="info") as group:
        group.start()
        asyncio.run(group.leader())
        first = cli("group", "leader", str(group.site))
        assert first.returncode == 0
        leader = first.stdout.split()[0]
        assert first.stdout == f"{leader} at {group.addresses[leader]}\n"
        other = next(name for name in group.names if name != leader)
        moved = cli("group", "transfer", group.url, "--to", other)
        assert moved.stdout == f"{other} leads at {group.addresses[other]}, in place of {leader}\n", moved.stderr
        again = cli("group", "transfer", str(group.site), "--to", other)
        assert (again.returncode, again.stderr) == (1, f"not moved: {other} leads already\n")
        unknown = cli("group", "transfer", str(group.site), "--to", "r9")
        assert unknown.stderr == "not moved: there is no replica 'r9' that votes; there is r1, r2, r3\n"
        page = cli("status", str(group.site)).stdout
        assert f"{other} leads; the group survives 1 more failure\n" in page
        group.stop(leader)
        shown = cli("status", str(group.site))
        assert shown.returncode == 1
        assert f"{other} leads; the group survives 0 more failures, of 1 if all were there\n" in shown.stdout
        rows = json.loads(cli("status", str(group.site), "--json").stdout)["brokers"]
        assert {row.get("role") for row in rows} == {None, "leading", "following"}
        group.stop(other)
        alone = cli("group", "leader", str(group.site), "--wait", "0")
        assert alone.returncode == 1
        assert alone.stderr.startswith("no leader was found\n")
        logged = "".join((tmp_path / f"{name}.log").read_text() for name in group.names)
        assert f"{leader}: leader: replica='{leader}'" in logged
        assert f"{leader}: deposed: replica='{leader}'" in logged


@pytest.mark.full
def test_names_of_a_group_are_those_of_all_its_replicas_and_forgotten_by_all(tmp_path: Path) -> None:
    """Any replica may be asked: the leader answers, and what it forgets is in the decided log."""

    async def scene() -> None:
        with ReplicaGroup(tmp_path) as group:
            group.start()
            leader = await group.leader()
            follower = next(name for name in group.names if name != leader)
            asked = f"holdfast://{group.addresses[follower]}"
            async with holdfast.connect(group.url, name="c") as bus:
                async with bus.subscribe("n > 0", name="kept"):
                    await bus.publish_many([{"n": n} for n in range(5)])
                    held = await asyncio.to_thread(cli, "names", "forget", "kept", asked)
                    assert (held.returncode, held.stdout) == (1, "")
                    assert f"c reads 'kept' at {leader} right now: --force takes it away" in held.stderr
                shown = await asyncio.to_thread(cli, "names", "list", asked)
                assert [line.split()[:4] for line in shown.stdout.splitlines()[1:]] == [["kept", "-", "0", "5"]]
                page = await asyncio.to_thread(cli, "status", str(group.site), "--subscriptions", "3")
                assert page.stdout.count("names that are furthest behind") == 1, "once, not at each replica"
                gone = await asyncio.to_thread(cli, "names", "forget", "kept", str(group.site))
                assert gone.stdout == f"forgotten: 'kept' at {leader}, 5 events behind\n", gone.stderr
                group.stop(leader)
                again = None
                while again is None or again.returncode:  # until another one leads
                    again = await asyncio.to_thread(cli, "names", "list", str(group.site))
                assert again.stdout == "no named subscriptions\n", "also where another replica leads"

    run(scene)


def test_who_leads_is_waited_for_while_a_group_starts(tmp_path: Path) -> None:
    with ReplicaGroup(tmp_path) as group:
        command = [sys.executable, "-m", "holdfast.cli", "group", "leader", str(group.site), "--wait", "60"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asking:
            assert asking.stderr is not None
            assert asking.stderr.readline() == "nobody leads yet: waiting for up to 60 s\n"  # no replica runs so far
            group.start()
            shown, complaints = asking.communicate()
        leader = shown.split()[0]
        assert (asking.returncode, shown, complaints) == (0, f"{leader} at {group.addresses[leader]}\n", "")


def test_a_leader_is_not_waited_for_where_there_is_no_group(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        asked = cli("group", "leader", broker.url, "--wait", "100000")
        assert asked.returncode == 1
        assert asked.stderr == f"no leader was found\n  127.0.0.1:{broker.port}: b1 is no member of a group\n"


def test_a_replica_with_another_disk_takes_no_part(tmp_path: Path) -> None:
    """A wiped disk can't vote."""

    async def scene() -> None:
        with ReplicaGroup(tmp_path) as group:
            group.start()
            async with holdfast.connect(group.url, name="p") as publisher:
                await publisher.publish({"n": 1})
                leader = await group.leader()
                follower = next(name for name in group.names if name != leader)
                group.stop(follower)
                for file in (tmp_path / follower).iterdir():
                    file.unlink()
                group.start(follower)
                await publisher.publish({"n": 2})
                while (answer := await group.inspect(follower)) is None or answer.facts["role"] != "wiped":
                    await asyncio.sleep(0.05)
            wiped = f"{follower}: its disk is not the one that it voted with; it takes no part\n"
            assert wiped in (await asyncio.to_thread(cli, "status", str(group.site))).stdout

    run(scene)


def test_a_replica_whose_votes_are_damaged_does_not_start_and_not_when_they_were_given_up(tmp_path: Path) -> None:
    async def fill(group: ReplicaGroup) -> str:
        async with holdfast.connect(group.url, name="p") as publisher:
            for _ in range(20):
                await publisher.publish({"n": 1}, payload=b"x" * 4000)
        leader = await group.leader()
        return next(name for name in group.names if name != leader)

    with ReplicaGroup(tmp_path) as group:
        group.start()
        follower = asyncio.run(fill(group))
        group.stop(follower)
        folder = tmp_path / follower
        segment = min(folder.glob("*.segment"))
        data = bytearray(segment.read_bytes())
        data[data.index(b"x" * 4000) + 10] ^= 1  # in the first event, which is in a vote
        segment.write_bytes(data)
        with pytest.raises(RuntimeError, match=f"exit code {STORAGE_FAILED}"):
            group.start(follower)
        repaired = cli("log", "repair", str(folder), "--yes")
        assert repaired.returncode == 0, repaired.stderr
        with pytest.raises(RuntimeError, match=f"exit code {STORAGE_FAILED}"):
            group.start(follower)


def test_data_of_another_kind_of_broker_are_refused_and_none_of_them_is_shown(tmp_path: Path) -> None:
    with ReplicaGroup(tmp_path) as group:
        group.start()
        asyncio.run(group.leader())
        for name in group.names:
            group.stop(name)
        alone = tmp_path / "alone.toml"
        alone.write_text(f'[[broker]]\nid = "b1"\ndata = "{tmp_path / "r1"}"\n')
        refused = cli("broker", str(alone))
        assert refused.returncode == STORAGE_FAILED
        assert refused.stderr == (
            f"holdfast: {tmp_path / 'r1'}: the data are those of a broker of another scheme, or of a later version: "
            "'group' holds records that this one does not know; it needs its own folder\n"
        )
        other_limits = tmp_path / "limits.toml"
        other_limits.write_text(group.site.read_text() + "[limits]\nsessions = 7\n")
        refused = cli("broker", str(other_limits), "--id", "r1")
        assert refused.returncode == STORAGE_FAILED
        assert "sessions is 100000, here 7" in refused.stderr


def test_what_the_group_wrote_down_counts_and_not_the_order_of_a_later_site_file(tmp_path: Path) -> None:
    """By its place a replica makes ballots: were it another one, two would use the same."""
    with ReplicaGroup(tmp_path) as group:
        group.start()
        asyncio.run(group.leader())
        for name in group.names:
            group.stop(name)
        entries = group.site.read_text().split("[[broker]]")
        group.site.write_text("[[broker]]".join([entries[0], entries[3], entries[2], entries[1]]))
        group.start()
        asyncio.run(group.leader())
        assert cli("group", "members", str(group.site)).stdout.startswith("members: r1, r2, r3;")


def test_a_group_that_is_not_formed_says_what_it_waits_for(tmp_path: Path) -> None:
    with ReplicaGroup(tmp_path) as group:
        group.start("r1")
        shown = cli("status", str(group.site)).stdout
    assert "not formed yet: for its first start all replicas must hear each other" in shown
