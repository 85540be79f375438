"""The experiment that the paper lacks (D4-E9): throughput and latency over time while replicas crash.

For each group, a run for each crash: the leader, a follower, and f replicas with the leader among them. After some
seconds they are killed, and some seconds later started again. The events are synthetic: numbers. Throughput counts all
that a subscriber gets; latency is that of the probe's events, from before `publish` until they are there.
"""

from __future__ import annotations

import asyncio
import csv
import time
from pathlib import Path
from typing import NamedTuple, TypeAlias

from matplotlib.figure import Figure

import holdfast
from experiments.drawing import as_svg
from experiments.replication.faults import Fault, FaultsResult, conclude, run_with_group
from experiments.replication.gaps import largest_gap
from experiments.replication.group import ReplicaGroup
from experiments.replication.load import PATIENCE_S, PROBE, Load
from experiments.replication.plot import Panel, draw
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.trace.summary import percentile

CRASHES = ("leader", "follower", "f replicas")
SIZES = (3, 5)
KILL_AT_S, RESTART_AT_S, END_AT_S = 4.0, 8.0, 12.0
BIN = 100 * MILLISECOND


Arrival: TypeAlias = tuple[int, int]  # when, and after how long, in nanoseconds; 0: that is not known


class Bin(NamedTuple):
    """What happened in a tenth of a second."""

    at_ms: int  # from the beginning of the run
    delivered_per_s: float
    p50_ms: float | None  # None: nothing was delivered of the probe
    p99_ms: float | None


class Crash(NamedTuple):
    replicas: int
    what: str
    killed: int
    bins: list[Bin]
    gap_ms: float
    result: FaultsResult

    def __str__(self) -> str:
        before = [each.delivered_per_s for each in self.bins if SECOND <= each.at_ms * MILLISECOND < KILL_AT_S * SECOND]
        rate = sum(before) / len(before)
        outage = sum(each.delivered_per_s == 0 for each in self.bins if each.at_ms * MILLISECOND >= KILL_AT_S * SECOND)
        return (
            f"{self.replicas} replicas, crash of {self.what} ({self.killed}): {rate:,.0f} events/s "
            f"before; nothing acknowledged for {self.gap_ms:,.0f} ms, {outage} tenths of a second without a delivery\n"
            f"  {self.result.verdict}"
        )


def run_crash(replicas: int, what: str, protocol: str = "batch") -> Crash:
    bins: list[Bin] = []
    found: list[tuple[int, float]] = []

    async def scene(group: ReplicaGroup) -> FaultsResult:
        async with Load(group.url) as load, holdfast.connect(group.url, timeout_s=PATIENCE_S) as bus:
            arrivals: list[Arrival] = []
            async with bus.subscribe("number > 0", overflow="block") as events:
                watching = asyncio.create_task(_watch(events, arrivals))
                began = time.monotonic_ns()
                names = await _sleep_and_choose(group, what)
                killed_at = time.monotonic_ns()
                await asyncio.gather(*(asyncio.to_thread(group.stop, name) for name in names))
                await _sleep_until(began, RESTART_AT_S)
                await group.start_beside()
                await _sleep_until(began, END_AT_S)
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            await group.caught_up()
            fault = Fault(f"crash of {what}", killed_at, began + int(RESTART_AT_S * SECOND))
            result = await conclude(group, load, [fault])
            bins.extend(in_bins(arrivals, began, int(END_AT_S * SECOND)))
            gap = largest_gap(load.records.answered_at, fault.start, fault.end)
            found.append((len(names), gap / MILLISECOND))
            return result

    result = run_with_group(scene, replicas, protocol)
    return Crash(replicas, what, found[0][0], bins, found[0][1], result)


async def _watch(events: holdfast.Subscription, arrivals: list[Arrival]) -> None:
    while batch := await events.take():
        now = time.monotonic_ns()
        for event in batch:
            is_probe = event.attributes["publisher"] == PROBE
            arrivals.append((now, now - int(event.attributes["sent_ns"]) if is_probe else 0))


async def _sleep_until(began: int, at_s: float) -> None:
    await asyncio.sleep(max(0.0, at_s - (time.monotonic_ns() - began) / SECOND))


async def _sleep_and_choose(group: ReplicaGroup, what: str) -> list[str]:
    await asyncio.sleep(KILL_AT_S)
    leader = await group.leader()
    followers = [name for name in group.names if name != leader]
    most = len(followers) // 2
    return {"leader": [leader], "follower": followers[:1], "f replicas": [leader, *followers][:most]}[what]


def in_bins(arrivals: list[Arrival], began: int, lasts: int) -> list[Bin]:
    """In tenths of a second since the beginning."""
    by_bin: list[list[int]] = [[] for _ in range(lasts // BIN)]
    for at, latency in arrivals:
        if 0 <= at - began < len(by_bin) * BIN:
            by_bin[(at - began) // BIN].append(latency)
    bins = []
    for place, all_found in enumerate(by_bin):
        found = sorted(filter(None, all_found))
        p50, p99 = (percentile(found, share) / MILLISECOND if found else None for share in (0.5, 0.99))
        bins.append(Bin(place * BIN // MILLISECOND, len(all_found) * SECOND / BIN, p50, p99))
    return bins


def write(crashes: list[Crash], folder: Path) -> list[Path]:
    """crash.csv, and crash.svg, which is drawn from it."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "crash.csv"
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["replicas", "crash", *Bin._fields])
        for crash in crashes:
            for each in crash.bins:
                shown = ["" if value is None else f"{value:g}" for value in each]
                rows.writerow([crash.replicas, crash.what, *shown])
    return [table, write_picture(table)]


def write_picture(table: Path) -> Path:
    """crash.svg beside the table."""
    picture = table.with_suffix(".svg")
    picture.write_text(as_svg(picture_of(table)))
    return picture


def picture_of(table: Path) -> Figure:
    """A column for each crash: throughput above, latency below."""
    runs: dict[str, list[Bin]] = {}
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            p50, p99 = (float(row[name]) if row[name] else None for name in ("p50_ms", "p99_ms"))
            found = Bin(int(row["at_ms"]), float(row["delivered_per_s"]), p50, p99)
            runs.setdefault(f"{row['replicas']} replicas, {row['crash']}", []).append(found)
    panels = [
        Panel(
            title,
            [each.at_ms / 1000 for each in bins],
            {"events/s": [each.delivered_per_s for each in bins]},
            {"p50": [each.p50_ms for each in bins], "p99": [each.p99_ms for each in bins]},
            {"killed": KILL_AT_S, "started": RESTART_AT_S},
        )
        for title, bins in runs.items()
    ]
    return draw(panels, "Throughput and latency while replicas crash", "events/s", "latency, ms")
