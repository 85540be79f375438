"""One measurement: a subscribing and a publishing process at a server that is there, and what came of it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.peers.loads import Job, Load

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Outcome(msgspec.Struct, frozen=True):
    """What one run came to. The last three are microseconds of processor time for each event that was published."""

    rate: float  # events published, and delivered to everyone, a second
    lost: int
    p50_us: float | None
    p99_us: float | None
    server_us: float
    publisher_us: float
    subscriber_us: float


def measure(name: str, port: int, server: int, load: Load, events: int) -> Outcome:
    """Runs a load once. ChildProcessError if one of the processes fails."""
    job = Job(port, load, events)
    room, filled = os.pipe()
    with _start(name, "subscribe", job, filled) as subscriber:
        try:
            _answer(subscriber)  # it is ready
            before = _cpu_seconds(server)
            with _start(name, "publish", job, room) as publisher:
                try:
                    published, arrived = _answer(publisher), _answer(subscriber)
                finally:
                    _end(publisher)
            spent = _cpu_seconds(server) - before
        finally:
            _end(subscriber)
    return outcome(job, published, arrived, spent)


def outcome(job: Job, published: dict[str, Any], arrived: dict[str, Any], server_s: float) -> Outcome:
    """What a publisher and a subscriber said, put together."""
    seconds = (arrived["ended_at"] - published["began_at"]) / 1e9
    return Outcome(
        rate=arrived["received"] / job.load.deliveries / seconds,
        lost=job.expected - arrived["received"],
        p50_us=arrived["p50_us"],
        p99_us=arrived["p99_us"],
        server_us=server_s / job.events * 1e6,
        publisher_us=published["cpu_s"] / job.events * 1e6,
        subscriber_us=arrived["cpu_s"] / job.events * 1e6,
    )


def _start(name: str, role: str, job: Job, pace: int) -> subprocess.Popen[str]:
    """`pace` is the process's own from now on: if it ends, the other one notices."""
    told = msgspec.json.encode(msgspec.structs.replace(job, pace=pace)).decode()
    command = [sys.executable, "-m", "benchmarks.peers.worker", name, role, told]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=(pace,))
    os.close(pace)
    return process


def _answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ChildProcessError(f"a process ended without an answer: {process.args!r}")
    answer: dict[str, Any] = json.loads(line)
    return answer


def _end(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(5.0)
    except subprocess.TimeoutExpired:
        process.kill()


def _cpu_seconds(session: int) -> float:
    """What the processes of a session have used: some servers are started by a script that waits for them. Nothing, if
    there is no server."""
    if not session:
        return 0.0
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                total += int(fields[11]) + int(fields[12])
    return total / _CLOCK_TICKS
