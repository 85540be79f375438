"""kill -9 for the leader or for followers at random moments; a majority is left, and the dead are started again."""

from __future__ import annotations

import asyncio
import random
import time

from experiments.replication.faults import Fault, FaultsResult, conclude, run_with_group
from experiments.replication.group import ReplicaGroup
from experiments.replication.load import CALM, FULL, Load
from holdfast.kernel.time import SECOND

LEADER, FOLLOWER = "kills of the leader", "kills of followers"
LEADER_SHARE = 0.6
LOOK_AFTER = 1 * SECOND  # a gap that begins within this time is put down to the kill


def run_kills(
    count: int, seed: int = 1, replicas: int = 3, protocol: str = "batch", calm: bool = False
) -> FaultsResult:
    return run_with_group(lambda group: _scene(group, count, random.Random(seed), calm), replicas, protocol)


async def _scene(group: ReplicaGroup, count: int, rng: random.Random, calm: bool) -> FaultsResult:
    faults: list[Fault] = []
    async with Load(group.url, pace=CALM if calm else FULL) as load:
        for _ in range(count):
            await asyncio.sleep(rng.uniform(0.1, 0.8))
            leader = await group.leader()
            followers = [name for name in group.names if name != leader]
            rng.shuffle(followers)
            many = rng.randint(1, len(followers) // 2)
            of_leader = rng.random() < LEADER_SHARE
            names = [leader, *followers][:many] if of_leader else followers[:many]
            start = time.monotonic_ns()
            await asyncio.gather(*(asyncio.to_thread(group.stop, name) for name in names))
            faults.append(Fault(LEADER if of_leader else FOLLOWER, start, start + LOOK_AFTER))
            # A process that starts takes a core for a while; where the gap is of interest it waits until that is over.
            await asyncio.sleep(rng.uniform(0.0, 0.4) + (1.0 if of_leader else 0.0))
            await group.start_beside()
            await group.caught_up()
            load.check_running()
        return await conclude(group, load, faults)
