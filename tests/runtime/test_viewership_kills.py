"""Replicas that count viewers, in processes of their own: the leader is killed, and all count what the log says."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path
from signal import SIGTERM

import pytest

import holdfast
from examples.recount import Entry, Evidence, ReplicaState, equal_states, gather, judge
from examples.who_watches import APPLICATION, Boxes
from experiments.processes import LOOK_EVERY_S
from experiments.replication.group import ReplicaGroup
from holdfast.apps.zapviewers.generator import ZapSettings
from holdfast.apps.zapviewers.publishing import PublishSettings
from holdfast.schemes.paxos.settings import PaxosSettings

SETTINGS = PublishSettings(run="kills", log=ZapSettings(boxes=2_000), publishers=3, rate=20_000)
TRIM_EVERY = PaxosSettings("", ()).trim_every


async def wait_for(boxes: Boxes, publications: int) -> None:
    wanted = boxes.tally.publications + publications
    while boxes.tally.publications < wanted:
        await asyncio.sleep(LOOK_EVERY_S)
        boxes.check_running()


async def executed(group: ReplicaGroup, name: str) -> int:
    answer = await group.inspect(name)
    return 0 if answer is None else answer.measures["replica_slots_executed"]


async def scene(group: ReplicaGroup) -> tuple[Evidence, dict[str, ReplicaState], list[Entry]]:
    """What is seen at the end, the states after a restart of all, and the log as `holdfast read` has it."""
    await group.start_beside()
    killed = await group.leader()
    async with Boxes(group.url, SETTINGS) as boxes:
        while await executed(group, killed) < TRIM_EVERY:  # so that it has a snapshot on its disk
            await wait_for(boxes, 20)
        group.stop(killed)
        assert await group.leader() != killed
        await wait_for(boxes, 200)
        await group.start_beside()
        await group.caught_up()
        await wait_for(boxes, 100)
        await boxes.finish()
        evidence = await gather(group, boxes.acknowledged)
    read = await asyncio.to_thread(read_log, group.url)
    for name in group.names:
        assert group.stop(name, SIGTERM) == 0
    await group.start_beside()
    async with holdfast.connect(group.url) as bus:
        await (
            bus.head()
        )  # whoever answers has executed all that was decided; before that all are equal at their snapshots
    return evidence, await equal_states(group), read


def read_log(url: str) -> list[Entry]:
    command = [sys.executable, "-m", "holdfast.cli", "read", "--url", url]
    rows = map(json.loads, subprocess.run(command, capture_output=True, check=True).stdout.splitlines())
    return [
        Entry(
            row["position"],
            row["topic"],
            (row["attributes"]["publisher"], row["attributes"]["number"]) if row["topic"] == "zap" else (0, 0),
            base64.b64decode(row.get("payload", "")),
        )
        for row in rows
    ]


@pytest.mark.full
def test_all_replicas_count_the_same_after_the_leader_was_killed_and_so_does_who_reads_the_log(tmp_path: Path) -> None:
    """D4-B9, D4-C5: also the one that was killed, from its snapshot on, and all of them when they are started anew."""
    # Each command in a slot of its own, so that there are enough for a snapshot.
    with ReplicaGroup(tmp_path, protocol="multi", rest=APPLICATION) as group:
        evidence, later, read = asyncio.run(scene(group))
    proof = judge(evidence)
    assert proof.problems == ()
    assert proof.acknowledged == len(set(evidence.acknowledged)) > 300
    assert judge(evidence._replace(log=read)).problems == ()
    assert read == evidence.log
    assert later == evidence.states
