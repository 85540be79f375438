"""Every replica of a group is replaced by another one, in turn, while it serves; some after they lost their disks."""

from __future__ import annotations

import asyncio
import random
import shutil
import time

from experiments.replication.faults import Fault, FaultsResult, conclude, run_with_group
from experiments.replication.group import ReplicaGroup
from experiments.replication.load import CALM, FULL, Load
from holdfast.client.operator import BrokerDesk
from holdfast.kernel.time import SECOND
from holdfast.protocols.operating.messages import ChangeBegun

HEALTHY, LOST = "replacements", "replacements of lost disks"
LOOK_AFTER = 2 * SECOND
DONE_WITHIN_S = 60.0
LOOK_EVERY_S = 0.05


def run_replacements(
    count: int, seed: int = 1, replicas: int = 3, protocol: str = "batch", calm: bool = False
) -> FaultsResult:
    """`count` times: twice around, each of three is replaced by a new one."""
    return run_with_group(lambda group: _scene(group, count, random.Random(seed), calm), replicas, protocol, count)


async def _scene(group: ReplicaGroup, count: int, rng: random.Random, calm: bool) -> FaultsResult:
    faults: list[Fault] = []
    async with Load(group.url, pace=CALM if calm else FULL) as load:
        for number in range(count):
            await asyncio.sleep(rng.uniform(0.1, 0.5))
            old, new = group.names[0], group.spares[0]
            lost = number % 2 == 1
            await group.start_beside(new)
            start = time.monotonic_ns()
            if lost:
                await asyncio.to_thread(group.stop, old)
                shutil.rmtree(group.folder / old)
            await replace(group, old, new)
            if not lost:
                await asyncio.to_thread(group.stop, old)
            faults.append(Fault(LOST if lost else HEALTHY, start, start + LOOK_AFTER))
            await group.caught_up()
            load.check_running()
        load.url = group.url  # who comes only now finds nobody where the group began
        return await conclude(group, load, faults)


async def replace(group: ReplicaGroup, old: str, new: str) -> None:
    """As `holdfast group replace` does: asks whoever leads until it is done."""
    told = {"id": new, "address": group.addresses[new], "peer_address": group.peers[new], "replaces": old}
    deadline = time.monotonic() + DONE_WITHIN_S
    asked_of = ""
    while time.monotonic() < deadline:
        leader = await group.leader()
        answer = await group.inspect(leader)
        if answer is not None:
            members = answer.facts["members"].split(", ")
            if new in members and old not in members and "change" not in answer.facts:
                group.names = [name for name in group.names if name != old] + [new]
                group.spares.remove(new)
                return
            if "change" not in answer.facts and leader != asked_of:
                async with BrokerDesk(group.addresses[leader]) as desk:
                    begun = await desk.change("replace", told)
                    asked_of = leader if isinstance(begun, ChangeBegun) and not begun.problem else ""
        await asyncio.sleep(LOOK_EVERY_S)
    raise RuntimeError(f"{new} has not taken the place of {old} within {DONE_WITHIN_S:g} s")
