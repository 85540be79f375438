"""What ./demo --spark runs: `who_watches`; and then Spark reads the same log, and is compared with the brokers."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from examples.showing import BOLD, GREEN, RED, play, say
from examples.who_watches import APPLICATION, scene
from experiments.replication.group import ReplicaGroup
from holdfast.apps.zapviewers.pipeline.comparing import Comparison, compare
from holdfast.apps.zapviewers.pipeline.report import write_report
from holdfast.apps.zapviewers.pipeline.running import DECLARED, run

TOP = 10


async def scene_in_spark(group: ReplicaGroup) -> int:
    code = await scene(group)
    if code:
        return code
    # Not in the group's folder, which goes with the group: the report is to be looked at.
    folder = Path(tempfile.mkdtemp(prefix="holdfast-report-"))
    tables = folder / "tables"
    say("Spark reads the same log: lines, typed events, intervals, viewers, as a declarative pipeline", BOLD)
    facts = await asyncio.to_thread(run, group.url, tables, DECLARED, synthetic=True, tell=told_to(say_below))
    say(f"  {facts.lines:,} lines of {facts.boxes:,} boxes, {facts.malformed:,} malformed, to position {facts.last:,}")
    say_below("the brokers' viewers are compared with Spark's")
    comparisons = await compare(group.url, tables)
    for comparison in comparisons:
        show(comparison)
    say_below("the report is written")
    write_report(tables, folder / "report.html")
    if any(comparison.differences for comparison in comparisons):
        say("FAILED: Spark and the brokers count differently", RED)
        return 1
    say("proved: at the same position, Spark counts the same viewers of every channel as the brokers do", GREEN)
    say(f"the report, for any browser: {folder / 'report.html'}", BOLD)
    return 0


def told_to(listener: Callable[[str], None]) -> Callable[[str], None]:
    """Takes what another thread tells to where the event loop runs."""
    loop = asyncio.get_running_loop()

    def tell(text: str) -> None:
        loop.call_soon_threadsafe(listener, text)

    return tell


def say_below(text: str) -> None:
    say(f"  {text}")


def show(comparison: Comparison) -> None:
    """The top lists of both, side by side."""
    one, other = comparison.one, comparison.other
    say(f"  {'':2} {one.who:>28}   {other.who:>28}")
    for place, (here, there) in enumerate(zip(ranked(one.viewers), ranked(other.viewers), strict=False), start=1):
        same = "=" if here == there else "DIFFERENT"
        say(f"  {place:2} {here[0]:>20} {here[1]:7,}   {there[0]:>20} {there[1]:7,}  {same}")
    for what, first, second in comparison.differences[:TOP]:
        say(f"  {what}: {first:,} and {second:,}", RED)


def ranked(viewers: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(viewers.items(), key=lambda entry: (-entry[1], entry[0]))[:TOP]


if __name__ == "__main__":
    sys.exit(play(scene_in_spark, APPLICATION))
