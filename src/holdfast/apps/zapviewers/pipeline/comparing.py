"""Do Spark and the brokers count the same? At one position of the log, number by number (D4-H3)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from holdfast.apps.zapviewers.asking import ask_counts, ask_top, ask_viewers
from holdfast.apps.zapviewers.pipeline.bronze import raw_lines
from holdfast.apps.zapviewers.pipeline.silver import parsed
from holdfast.apps.zapviewers.pipeline.viewers import totals, viewers_now
from holdfast.apps.zapviewers.viewership import ASKED_CHANNELS_MAX
from holdfast.client import Bus
from holdfast.errors import PipelineError

ATTEMPTS: Final = 20
BETWEEN_ATTEMPTS_S: Final = 0.5
SHOWN_MAX: Final = 5
NUMBERS: Final = ("position", "lines", "malformed", "boxes", "watching")


class Count(msgspec.Struct, frozen=True):
    """Who watches what after the last event with lines up to `position`. Channels without viewers are left out."""

    position: int
    lines: int
    malformed: int
    boxes: int
    watching: int
    viewers: dict[str, int]

    def top(self, n: int) -> list[tuple[str, int]]:
        """The n channels that most watch, equals by name."""
        return sorted(self.viewers.items(), key=lambda entry: (-entry[1], entry[0]))[:n]


def differences(first: Count, second: Count) -> list[str]:
    """In what two counts differ, a line each; nothing if they are equal."""
    found = [
        f"{name}: {getattr(first, name):,} and {getattr(second, name):,}"
        for name in NUMBERS
        if getattr(first, name) != getattr(second, name)
    ]
    for channel in sorted(first.viewers.keys() | second.viewers.keys()):
        here, there = first.viewers.get(channel, 0), second.viewers.get(channel, 0)
        if here != there:
            found.append(f"viewers of {channel!r}: {here:,} and {there:,}")
    return found if len(found) <= SHOWN_MAX else [*found[:SHOWN_MAX], f"and {len(found) - SHOWN_MAX} more"]


async def broker_count(bus: Bus, channels: Iterable[str] = ()) -> Count:
    """What the brokers count now. `channels` are those to ask for one by one, where there are more than brokers list.

    PipelineError if boxes go on reporting, so that no two answers are of one moment.
    """
    for _ in range(ATTEMPTS):
        before = await ask_counts(bus)
        top = await ask_top(bus, ASKED_CHANNELS_MAX)
        viewers = {channel: int(number) for channel, number in top["top"]}
        if top["channels"] > len(viewers):
            others = {channel: await ask_viewers(bus, channel) for channel in sorted(set(channels) - viewers.keys())}
            viewers |= {channel: number for channel, number in others.items() if number}
        after = await ask_counts(bus)
        if before["position"] == after["position"]:
            return Count(**{name: int(after[name]) for name in NUMBERS}, viewers=viewers)
        await asyncio.sleep(BETWEEN_ATTEMPTS_S)
    raise PipelineError("boxes go on reporting; counts can be compared when they have stopped for a moment")


def batch_count(events: DataFrame) -> Count:
    """What Spark counts in batch, from events with position, published_at and payload."""
    lines = parsed(raw_lines(events)).persist()
    try:
        counted = totals(lines).first()
        last = lines.agg(F.max("position")).first()
        assert counted is not None
        assert last is not None
        viewers = viewers_of(viewers_now(lines.where(F.col("reason").isNull())))
        return Count(last[0] or 0, counted.lines, counted.malformed, counted.boxes, counted.watching, viewers)
    finally:
        lines.unpersist()


def viewers_of(rows: DataFrame) -> dict[str, int]:
    """A table (channel, viewers), which has a row a channel, without those that nobody watches."""
    return {row.channel: row.viewers for row in rows.where(F.col("viewers") > 0).collect()}
