"""One failure after the other against a group under load, and what came of it."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from experiments.replication.gaps import Gaps, apart, gaps_of
from experiments.replication.group import ReplicaGroup
from experiments.replication.load import Load
from experiments.replication.verdict import Verdict, judge
from holdfast.runtime import loop


class Fault(NamedTuple):
    """What failed, and the time in which a gap is put down to it: monotonic nanoseconds."""

    what: str
    start: int
    end: int


class FaultsResult(NamedTuple):
    faults: dict[str, int]  # what failed → how often
    gaps: dict[str, Gaps]  # the same → how long nothing was acknowledged
    verdict: Verdict
    notes: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        return not self.verdict.problems

    def __str__(self) -> str:
        done = ", ".join(f"{count} {what}" for what, count in self.faults.items())
        lines = [f"{done}: {self.verdict}", *self.notes]
        lines += [f"gap between acknowledgements at {what}: {gaps}" for what, gaps in self.gaps.items()]
        return "\n".join(lines)


def run_with_group(
    scene: Callable[[ReplicaGroup], Awaitable[FaultsResult]], replicas: int, protocol: str, spares: int = 0
) -> FaultsResult:
    """A scene with a group of processes that are gone afterwards, and so are their files."""

    async def within() -> FaultsResult:
        with (
            tempfile.TemporaryDirectory(prefix="holdfast-") as folder,
            ReplicaGroup(Path(folder), replicas, protocol, spares=spares) as group,
        ):
            await group.start_beside()
            await group.caught_up()
            return await scene(group)

    return loop.run(within())


async def conclude(group: ReplicaGroup, load: Load, faults: list[Fault], notes: tuple[str, ...] = ()) -> FaultsResult:
    records = await load.settle()
    verdict = judge(records, await group.heads())
    kinds = Counter(fault.what for fault in faults)
    moments = apart([(fault.start, fault.end) for fault in faults], records.answered_at)
    gaps = {
        what: gaps_of(
            records.answered_at,
            [moment for fault, moment in zip(faults, moments, strict=True) if fault.what == what],
        )
        for what in kinds
        if not load.pace.probe_s  # or they would be the probe's own pauses
    }
    return FaultsResult(dict(kinds), gaps, verdict, notes)
