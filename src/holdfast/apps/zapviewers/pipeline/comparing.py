"""Do Spark and the brokers count the same? (D4-H3)

If the tables and the brokers have taken equally many lines, they are at the same place of the log, and are compared
with each other. Else the lines are counted once more, from the log, by the brokers' own code but here: up to where
the tables are, to be compared with those, and on to where the brokers are, to be compared with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import holdfast
from holdfast.apps.zapviewers.asking import ask_counts, ask_top
from holdfast.apps.zapviewers.audience import Audience
from holdfast.apps.zapviewers.pipeline.facts import Facts, read_facts
from holdfast.apps.zapviewers.pipeline.report.figures import viewers_now
from holdfast.apps.zapviewers.viewership import ASKED_CHANNELS_MAX, ZAP
from holdfast.client import Bus
from holdfast.spark.errors import PipelineError

TRIES = 20
COUNTED = ("lines", "malformed", "boxes", "watching")


@dataclass(frozen=True)
class State:
    """What somebody counted, up to some place of the log: of lines and boxes, and of the most watched channels."""

    who: str
    position: int
    counts: Mapping[str, int]
    viewers: Mapping[str, int]


@dataclass(frozen=True)
class Comparison:
    """Two states of the same place, and in what they differ: (what, one number, the other)."""

    one: State
    other: State
    differences: list[tuple[str, int, int]]


def compared(one: State, other: State) -> Comparison:
    """Every number of both, against each other."""
    differences = [
        (name, one.counts[name], other.counts[name]) for name in COUNTED if one.counts[name] != other.counts[name]
    ]
    for channel in sorted({*one.viewers, *other.viewers}):
        here, there = one.viewers.get(channel, 0), other.viewers.get(channel, 0)
        if here != there:
            differences.append((f"viewers of {channel!r}", here, there))
    return Comparison(one, other, differences)


async def compare(url: str, folder: Path) -> list[Comparison]:
    """The tables of a folder against the brokers that a URL names, and where they differ."""
    facts = read_facts(folder)
    if facts is None or facts.last is None:
        raise PipelineError(f"{folder}: no run has finished here; 'holdfast pipeline run zapviewers' makes tables")
    tables = _of_tables(facts, folder)
    async with holdfast.connect(url) as bus:
        if (await bus.head()).log != facts.log:
            raise PipelineError(f"{folder}: these are tables of another log, {facts.log}")
        brokers = await _of_brokers(bus)
        if tables.counts["lines"] == brokers.counts["lines"]:
            return [compared(tables, brokers)]
        return await _by_way_of_the_log(bus, facts, tables, brokers)


async def _by_way_of_the_log(bus: Bus, facts: Facts, tables: State, brokers: State) -> list[Comparison]:
    if facts.first != 1:
        raise PipelineError(
            f"the log begins at position {facts.first:,}: the brokers have counted lines that it does not hold any more"
        )
    audience, comparisons = Audience(), []
    after = 0
    for state in sorted((tables, brokers), key=lambda state: state.position):
        if state.position > after:
            async for batch in bus.read(f"topic = '{ZAP}'", after + 1, state.position).batches():
                for event in batch:
                    audience.take(event.payload, 0)
        after = state.position
        comparisons.append(compared(state, _of_audience(audience, state.position)))
    return comparisons


def _of_tables(facts: Facts, folder: Path) -> State:
    counts = {name: getattr(facts, name) for name in COUNTED}
    return State("Spark", facts.last or 0, counts, _most(viewers_now(folder)))


def _of_audience(audience: Audience, position: int) -> State:
    counts = {name: getattr(audience, name) for name in COUNTED}
    return State("the log", position, counts, dict(audience.compute_top_list(ASKED_CHANNELS_MAX)))


async def _of_brokers(bus: Bus) -> State:
    """What the brokers have counted; both answers are to be of one moment, though events may come meanwhile."""
    counts: dict[str, Any] = await ask_counts(bus)
    for _ in range(TRIES):
        top = await ask_top(bus, ASKED_CHANNELS_MAX)
        again = await ask_counts(bus)
        if again["lines"] == counts["lines"] == top["lines"]:
            viewers = dict(top["top"])
            return State("the brokers", counts["position"], {name: counts[name] for name in COUNTED}, viewers)
        counts = again
    raise PipelineError("the brokers count on too fast to be compared with; try when fewer lines come")


def _most(viewers: Mapping[str, int]) -> dict[str, int]:
    """So many channels as brokers tell of, in the same order."""
    ranked = sorted(
        ((channel, count) for channel, count in viewers.items() if count), key=lambda pair: (-pair[1], pair[0])
    )
    return dict(ranked[:ASKED_CHANNELS_MAX])
