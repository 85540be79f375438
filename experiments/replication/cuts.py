"""The leader is cut off from the others and from its clients, in one direction or in both, and comes back.

Every link between two replicas and every link of a client goes through a proxy; each replica has a site file of its
own, in which the others are where the proxies are. One client stays on the leader's side of the cut.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack
from itertools import combinations

from experiments.replication.faults import Fault, FaultsResult, conclude, run_with_group
from experiments.replication.group import ReplicaGroup
from experiments.replication.load import CALM, FULL, Load
from experiments.replication.pauses import LOOK_AFTER, STALE, stale
from experiments.replication.stubborn import StubbornClient
from holdfast.testing import FaultProxy

# How the leader is cut off: nothing gets through, as with a broken cable; nothing gets out; nothing gets in; or all
# connections are reset, and new ones too.
WAYS = ("silence", "mute", "deaf", "reset")


class Proxies:
    """Between all replicas, and before each for its clients."""

    def __init__(self, group: ReplicaGroup) -> None:
        self._group = group
        self._clients: dict[str, FaultProxy] = {}
        self._peers: dict[tuple[str, str], FaultProxy] = {}  # who dials, whom: the earlier in the file the later

    async def enter(self, stack: AsyncExitStack) -> None:
        """Starts the proxies, and writes what each replica is told of the others."""
        group = self._group
        for name in group.names:
            self._clients[name] = await stack.enter_async_context(FaultProxy(group.addresses[name]))
        for pair in combinations(group.names, 2):
            self._peers[pair] = await stack.enter_async_context(FaultProxy(group.peers[pair[1]]))
        addresses = {name: proxy.address for name, proxy in self._clients.items()}
        for name in group.names:
            peers = {other: proxy.address for (dialler, other), proxy in self._peers.items() if dialler == name}
            group.write_view(name, addresses, peers)

    @property
    def url(self) -> str:
        return "holdfast://" + ",".join(proxy.address for proxy in self._clients.values())

    def cut(self, name: str, way: str) -> None:
        links = [(self._clients[name], True)]  # and whether `name` is at the server's end
        links += [(proxy, pair[1] == name) for pair, proxy in self._peers.items() if name in pair]
        for proxy, serves in links:
            if way == "reset":
                proxy.refuse = True
                proxy.reset()
            out, into = way in ("silence", "mute"), way in ("silence", "deaf")
            proxy.stall(to_client=out if serves else into, to_server=into if serves else out)

    def heal(self) -> None:
        for proxy in (*self._clients.values(), *self._peers.values()):
            proxy.heal()


def run_cuts(count: int, seed: int = 1, replicas: int = 3, protocol: str = "batch", calm: bool = False) -> FaultsResult:
    async def within(group: ReplicaGroup) -> FaultsResult:
        async with AsyncExitStack() as stack:
            proxies = Proxies(group)
            await proxies.enter(stack)
            # From now on they find each other through the proxies.
            for name in group.names:
                await asyncio.to_thread(group.stop, name)
            await group.start_beside()
            await group.caught_up()
            return await _scene(group, proxies, count, random.Random(seed), calm)

    return run_with_group(within, replicas, protocol)


async def _scene(group: ReplicaGroup, proxies: Proxies, count: int, rng: random.Random, calm: bool) -> FaultsResult:
    faults: list[Fault] = []
    unknown = 0
    async with Load(proxies.url, pace=CALM if calm else FULL) as load:
        for number in range(1, count + 1):
            await asyncio.sleep(rng.uniform(0.1, 0.8))
            leader = await group.leader()
            way = WAYS[(number - 1) % len(WAYS)]
            stubborn = StubbornClient(f"stubborn-{number}", group.addresses[leader])
            await stubborn.open()
            start = time.monotonic_ns()
            proxies.cut(leader, way)
            lasts = rng.uniform(1.5, 3.0)
            for _ in range(STALE):
                stubborn.publish()
                await asyncio.sleep(lasts / STALE)
            proxies.heal()
            faults.append(Fault(f"cuts by {way}", start, time.monotonic_ns() + LOOK_AFTER))
            await stubborn.answered()
            await stubborn.close()
            load.records.claimed += stubborn.claimed
            unknown += stubborn.unknown
            await group.caught_up()
            load.check_running()
        return await conclude(group, load, faults, (stale(load, unknown),))
