"""What ./demo runs: three replicas, each in a process of its own; the one that leads is killed, and another takes over.

Publishers go on all the time, one by one and in batches, and so do two plain subscribers and a named one. At the end
everything is counted: nothing may be lost, doubled or in another order, for anyone. The events are synthetic: numbers.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from pathlib import Path

from experiments.replication.gaps import largest_gap
from experiments.replication.group import ReplicaGroup
from experiments.replication.load import SHOWN, Load
from experiments.replication.verdict import Verdict, judge
from holdfast.kernel.time import MILLISECOND
from holdfast.runtime import loop

COLOUR = sys.stdout.isatty()
STARTED = time.monotonic()
BOLD, RED, GREEN, YELLOW = "1", "1;31", "1;32", "33"
LOOK_EVERY_S = 0.5
INTERRUPTED = 130


def say(text: str, code: str = "0") -> None:
    seconds = time.monotonic() - STARTED
    shown = f"\033[{code}m{text}\033[0m" if COLOUR else text
    print(f"{seconds:6.2f} s  {shown}", flush=True)


async def watch(load: Load, for_s: float) -> None:
    """Shows how far everyone is."""
    end = time.monotonic() + for_s
    while time.monotonic() < end:
        await asyncio.sleep(LOOK_EVERY_S)
        got = ", ".join(f"{name} {len(order):,}" for name, order in load.records.order.items())
        say(f"  acknowledged {load.records.acknowledged:,}; got: {got}")
        load.check_running()


async def scene(group: ReplicaGroup) -> Verdict:
    await group.start_beside()
    for name, process in group.processes.items():
        say(f"replica {name} serves at {group.addresses[name]}, process {process.pid}")
    leader = await group.leader()
    await group.caught_up()
    say(f"{leader} leads; clients were given all three addresses, and find it", BOLD)
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
        return judge(records, heads)


def conclude(verdict: Verdict) -> int:
    """Says what was proved; the exit code."""
    if verdict.problems:
        say(f"FAILED: {verdict}", RED)
        return 1
    say(str(verdict))
    say("proved: the same events in the same order for everyone and in the log, each once, none missing", GREEN)
    return 0


async def show() -> int:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder, ReplicaGroup(Path(folder)) as group:
        return conclude(await scene(group))


def main() -> int:
    try:
        return loop.run(show())
    except (KeyboardInterrupt, asyncio.CancelledError):
        say("interrupted; the replicas are stopped, and their files are gone")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
