"""What publishing and subscribing processes have in common: what they say to the one that started them, and pacing.

A process says JSON lines. A subscriber says that it is ready, then what arrived; a publisher says when it began and
ended. Times are of the monotonic clock, which is one for all processes of a machine.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.peers import loads
from benchmarks.peers.loads import EVENTS_A_SECOND, WARM_UP, Job, Load

QUIET_S = 5.0  # nothing more arrives if nothing has for so long
FIRST_S = 30.0  # from being ready until the first event

now = time.monotonic_ns


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Arrivals:
    """Counts what arrives in a subscriber. Callbacks change `count` themselves, and call `complete` with the last."""

    def __init__(self, job: Job) -> None:
        self.expected = job.expected
        self.count = 0
        self.latencies: list[int] = []
        self._pace = job.pace
        self._step = pace_step(job.load) * job.load.deliveries
        self._next_step = self._step
        self._ended_at = 0
        self._done = False
        self._cpu = cpu_seconds()

    def complete(self) -> None:
        self._ended_at = now()
        self._done = True

    def arrived(self) -> None:
        self.count += 1
        if self.count == self.expected:
            self.complete()

    def arrived_paced(self) -> None:
        """Lets the publisher go on, too."""
        self.arrived()
        if self.count == self._next_step:
            self._next_step += self._step
            os.write(self._pace, b".")

    def arrived_after(self, latency: int) -> None:
        self.latencies.append(latency)
        self.arrived()

    def ready(self) -> None:
        # What was set up stays: nobody's collector is to go through it again and again.
        gc.collect()
        gc.freeze()
        self._cpu = cpu_seconds()
        say(ready=True)

    @property
    def done(self) -> bool:
        return self._done

    def is_over(self, before: int, quiet_s: float) -> bool:
        """Whether nothing more will come: everything is here, or nothing has come for long since `before` were here."""
        return self._done or quiet_s > (QUIET_S if self.count else FIRST_S)

    async def wait(self) -> None:
        """Until everything is here, or nothing more comes."""
        before, quiet_s = 0, 0.0
        while not self.is_over(before, quiet_s):
            await asyncio.sleep(0.1)
            quiet_s = quiet_s + 0.1 if self.count == before else 0.0
            before = self.count

    def wait_blocking(self) -> None:
        before, quiet_s = 0, 0.0
        while not self.is_over(before, quiet_s):
            time.sleep(0.1)
            quiet_s = quiet_s + 0.1 if self.count == before else 0.0
            before = self.count

    def report(self) -> None:
        counted = sorted(self.latencies[WARM_UP:])
        say(
            received=self.count,
            ended_at=self._ended_at or now(),
            cpu_s=cpu_seconds() - self._cpu,
            p50_us=statistics.median(counted) / 1_000 if counted else None,
            p99_us=counted[int(len(counted) * 0.99)] / 1_000 if counted else None,
        )


def pace_step(load: Load) -> int:
    """After how many events the subscriber lets the publisher go on by as many."""
    return max(1, load.ahead // 2)


class Pace:
    """Keeps a publisher from getting too far before the subscriber: `await pace.room()` before each event."""

    def __init__(self, job: Job) -> None:
        self._room = job.load.ahead
        self._step = pace_step(job.load)
        self._pipe = job.pace
        self._came = asyncio.Event()
        self._is_over = False
        asyncio.get_running_loop().add_reader(job.pace, self._read)

    def _read(self) -> None:
        steps = len(os.read(self._pipe, 4_096))
        if not steps:
            self._is_over = True
            asyncio.get_running_loop().remove_reader(self._pipe)
        self._room += steps * self._step
        self._came.set()

    async def room(self) -> None:
        while not self._room:
            self._came.clear()
            if self._is_over:
                raise ChildProcessError("the subscriber has gone, and not all has arrived")
            await self._came.wait()
        self._room -= 1


async def publish_in_pace(job: Job, send: Callable[[str], Awaitable[object]]) -> None:
    """Publishes the events of many clients, each on its topic, by `send`."""
    pace, topics = Pace(job), loads.topics(job.load)
    for number in loads.keys_in_turn(job.load, job.events):
        await pace.room()
        await send(topics[number])


class Publishing:
    """`with Publishing():` around everything that is published; says when that began and ended."""

    def __enter__(self) -> Publishing:
        gc.collect()
        gc.freeze()
        self._cpu = cpu_seconds()
        self._began_at = now()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            say(began_at=self._began_at, ended_at=now(), cpu_s=cpu_seconds() - self._cpu)


async def paced(count: int, send: Callable[[], Awaitable[object]]) -> None:
    """Sends events at the rate at which latency is measured. One that is late does not delay those after it."""
    start = now()
    for number in range(count):
        due = start + number * 1_000_000_000 // EVENTS_A_SECOND
        if (early := due - now()) > 0:
            await asyncio.sleep(early / 1e9)
        await send()


def paced_blocking(count: int, send: Callable[[], object]) -> None:
    start = now()
    for number in range(count):
        due = start + number * 1_000_000_000 // EVENTS_A_SECOND
        if (early := due - now()) > 0:
            time.sleep(early / 1e9)
        send()
