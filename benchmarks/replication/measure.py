"""One run at a group that is there: the clients' processes, and what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.replication.loads import SUBSCRIBERS, Job
from experiments.replication.group import NO_PROTOCOL, ReplicaGroup

PIPELINE = 10  # D4-A4
IDLE_S, IDLE_CPU_S = 0.1, 0.002  # a group is idle if its processes take no more of a processor in that time
CPUCLOCK_SCHED = 2  # of linux/posix-timers.h: what a process's clock counts


class Running(NamedTuple):
    """A group that runs: where clients find it, and its processes."""

    url: str
    pids: list[int]


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """What one run with an offered load came to. Shares are of one core."""

    round: int
    replicas: int
    publishers: int
    p50_ms: float
    mean_ms: float
    p99_ms: float
    per_s: float
    lost: int
    late_ms: float  # how much later than planned a publication was made, in the middle
    publisher_share: float
    subscriber_share: float
    derived: int = 0  # events of the application, that came to those who follow it


class Saturated(msgspec.Struct, frozen=True, kw_only=True):
    """What one saturated run came to: events acknowledged a second; and the processor time that each replica took for
    an event, of all its threads and in the kernel, until it had nothing more to do."""

    round: int
    replicas: int
    protocol: str
    publishers: int
    per_s: float
    publisher_share: float
    cpu_us: list[float] = []


@contextlib.contextmanager
def running(replicas: int, protocol: str, folder: str | None = None, rest: str = "") -> Iterator[Running]:
    """A group that has a leader whom all follow, or one broker without replication. `rest` is more of the site file."""
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-replication-", dir=folder) as data,
        ReplicaGroup(Path(data), replicas, protocol if replicas > 1 else NO_PROTOCOL, PIPELINE, rest) as group,
    ):
        group.start()
        if replicas > 1:
            asyncio.run(_ready(group))
        yield Running(group.url, [process.pid for process in group.processes.values()])


async def _ready(group: ReplicaGroup) -> None:
    await group.leader()
    await group.caught_up()


def offer(job: Job, replicas: int, number: int) -> Offered:
    with _client("subscribe", job) as subscriber:
        _answer(subscriber)
        with _client("publish", job) as publisher:
            _begin(publisher)
            published, arrived = _answer(publisher), _answer(subscriber)
    return offered(job, replicas, number, published, arrived)


def offered(job: Job, replicas: int, number: int, published: dict[str, Any], arrived: dict[str, Any]) -> Offered:
    """What the publishers and the subscribers said, put together."""
    latencies = sorted(latency / 1e6 for latency in arrived["latencies"])
    # The last publication may come some time before the end of what was offered: nobody can process it sooner.
    seconds = max(job.seconds, (arrived["last_at"] - published["began_at"]) / 1e9)
    return Offered(
        round=number,
        replicas=replicas,
        publishers=job.publishers,
        p50_ms=statistics.median(latencies),
        mean_ms=statistics.fmean(latencies),
        p99_ms=latencies[int(len(latencies) * 0.99)],
        per_s=len(latencies) / SUBSCRIBERS / seconds,
        lost=SUBSCRIBERS * job.publications - len(latencies),
        late_ms=published["late_ns"] / 1e6,
        publisher_share=_share(published),
        subscriber_share=arrived["share"],
        derived=arrived.get("derived", 0),
    )


def saturate(job: Job, pids: Sequence[int], protocol: str, number: int) -> Saturated:
    """`pids`: the processes of the group."""
    with _client("publish", job) as publisher:
        _answer(publisher)
        before = _processor_seconds(pids)
        _say_begin(publisher)
        published = _answer(publisher)
        after = _processor_seconds_when_idle(pids)
    events = job.events // job.publishers * job.publishers
    return Saturated(
        round=number,
        replicas=len(pids),
        protocol=protocol,
        publishers=job.publishers,
        per_s=events / (published["ended_at"] - published["began_at"]) * 1e9,
        publisher_share=_share(published),
        cpu_us=[(end - start) / events * 1e6 for start, end in zip(before, after, strict=True)],
    )


def _processor_seconds(pids: Sequence[int]) -> list[float]:
    """What each process has taken of a processor so far, also in threads that have ended: clock_getcpuclockid(3)."""
    return [time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED) for pid in pids]


def _processor_seconds_when_idle(pids: Sequence[int]) -> list[float]:
    taken = _processor_seconds(pids)
    while True:
        time.sleep(IDLE_S)
        before, taken = taken, _processor_seconds(pids)
        if sum(taken) - sum(before) < IDLE_CPU_S * len(pids):
            return taken


def _share(published: dict[str, Any]) -> float:
    seconds: float = (published["ended_at"] - published["began_at"]) / 1e9
    return float(published["cpu_s"]) / seconds


@contextlib.contextmanager
def _client(role: str, job: Job) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.replication.clients", role, msgspec.json.encode(job).decode()]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
            process.wait(30.0)
        finally:
            process.kill()


def _begin(publisher: subprocess.Popen[str]) -> None:
    _answer(publisher)
    _say_begin(publisher)


def _say_begin(publisher: subprocess.Popen[str]) -> None:
    assert publisher.stdin is not None
    publisher.stdin.write("begin\n")
    publisher.stdin.flush()


def _answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ChildProcessError(f"a process ended without an answer: {process.args!r}")
    answer: dict[str, Any] = json.loads(line)
    return answer
