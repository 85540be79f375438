"""The leader stands still (SIGSTOP) for longer than the others are patient, and wakes up deposed."""

from __future__ import annotations

import asyncio
import random
import time
from signal import SIGCONT, SIGSTOP

from experiments.replication.faults import Fault, FaultsResult, conclude, run_with_group
from experiments.replication.group import ReplicaGroup
from experiments.replication.load import CALM, FULL, Load
from experiments.replication.stubborn import StubbornClient
from holdfast.kernel.time import SECOND

PAUSE = "pauses of the leader"
PAUSE_S = 3.0
STALE = 5  # events for the leader that stands still
LOOK_AFTER = 1 * SECOND


def run_pauses(
    count: int, seed: int = 1, replicas: int = 3, protocol: str = "batch", calm: bool = False
) -> FaultsResult:
    return run_with_group(lambda group: _scene(group, count, random.Random(seed), calm), replicas, protocol)


async def _scene(group: ReplicaGroup, count: int, rng: random.Random, calm: bool) -> FaultsResult:
    faults: list[Fault] = []
    unknown = 0
    async with Load(group.url, pace=CALM if calm else FULL) as load:
        for number in range(1, count + 1):
            await asyncio.sleep(rng.uniform(0.1, 0.8))
            leader = await group.leader()
            stubborn = StubbornClient(f"stubborn-{number}", group.addresses[leader])
            await stubborn.open()
            start = time.monotonic_ns()
            group.send(leader, SIGSTOP)
            for _ in range(STALE):
                stubborn.publish()
                await asyncio.sleep(PAUSE_S / STALE)
            group.send(leader, SIGCONT)
            faults.append(Fault(PAUSE, start, time.monotonic_ns() + LOOK_AFTER))
            await stubborn.answered()
            await stubborn.close()
            load.records.claimed += stubborn.claimed
            unknown += stubborn.unknown
            await group.caught_up()
            load.check_running()
        return await conclude(group, load, faults, (stale(load, unknown),))


def stale(load: Load, unknown: int) -> str:
    """What clients were told that stay with a broker until it closes the link; then they go to the next leader too."""
    claimed = len(load.records.claimed)
    return f"published by clients that stayed with the old leader: {claimed + unknown}, acknowledged {claimed}"
