"""What ./demo group runs: of three replicas, each in a process of its own, the leader is killed; another takes over.

Publishers go on all the time, one by one and in batches, and so do two plain subscribers and a named one. At the end
everything is counted: nothing may be lost, doubled or in another order, for anyone. The events are synthetic: numbers.
"""

from __future__ import annotations

import asyncio
import sys
import time

from examples.showing import BOLD, GREEN, RED, YELLOW, play, say, start
from experiments.replication.gaps import largest_gap
from experiments.replication.group import ReplicaGroup
from experiments.replication.load import SHOWN, Load
from experiments.replication.verdict import Verdict, judge
from holdfast.kernel.time import MILLISECOND

LOOK_EVERY_S = 0.5


async def watch(load: Load, for_s: float) -> None:
    """Shows how far everyone is."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        await asyncio.sleep(LOOK_EVERY_S)
        got = ", ".join(f"{name} {len(order):,}" for name, order in load.records.order.items())
        say(f"  acknowledged {load.records.acknowledged:,}; got: {got}")
        load.check_running()


async def scene(group: ReplicaGroup) -> int:
    leader = await start(group)
    async with Load(group.url, pace=SHOWN) as load:
        say("4 publishers, 2 plain subscribers and a named one begin", BOLD)
        await watch(load, 2.0)
        killed_at = time.monotonic_ns()
        group.stop(leader)
        say(f"kill -9 for {leader}, which leads, while everyone goes on", RED)
        new = await group.leader()
        say(f"{new} leads now, {(time.monotonic_ns() - killed_at) / MILLISECOND:,.0f} ms later", BOLD)
        await watch(load, 2.0)
        gap = largest_gap(load.records.answered_at, killed_at, time.monotonic_ns()) / MILLISECOND
        say(f"publishers and subscribers saw nothing but a gap: {gap:,.0f} ms without an acknowledgement", BOLD)
        await group.start_beside()
        say(f"{leader} is started again, with what its disk has", YELLOW)
        await group.caught_up()
        say(f"{leader} has caught up; {await group.leader()} leads, and the group may lose one again", BOLD)
        await watch(load, 1.0)
        records = await load.settle()
        heads = await group.heads()
        say(f"read back: {len(records.log):,} events; the last position at each replica: {heads}")
        return conclude(judge(records, heads))


def conclude(verdict: Verdict) -> int:
    """Says what was proved; the exit code."""
    if verdict.problems:
        say(f"FAILED: {verdict}", RED)
        return 1
    say(str(verdict))
    say("proved: the same events in the same order for everyone and in the log, each once, none missing", GREEN)
    return 0


if __name__ == "__main__":
    sys.exit(play(scene))
