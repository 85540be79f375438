"""Viewers over so short a time that minutes are too coarse: from `intervals`, which is read batch by batch.

Steps are those of `viewers_by_minute`, only closer: each says how many watched when it began, and where a step is the
beginning of a minute, both say the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

COLUMNS = ["channel", "began", "ended", "retained"]
STEPS = [timedelta(seconds=seconds) for seconds in (1, 2, 5, 10, 15, 30)]
POINTS_WANTED = 120
SHORT = STEPS[-1] * POINTS_WANTED * 2  # from here on, minutes are as good
SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1)
MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class ShortTime:
    """Viewers by channel: one number for each step from `began` on."""

    began: datetime
    step: timedelta
    viewers: Mapping[str, list[int]]


def step_for(span: timedelta) -> timedelta:
    """The longest that gives a curve as many points as it should have; the shortest, if none does."""
    return max((step for step in STEPS if span / step >= POINTS_WANTED), default=STEPS[0])


def read_short_time(intervals: Any, first_minute: datetime, last_minute: datetime, unnamed: str) -> ShortTime | None:
    """From the first change of viewers that the first minute tells of to the last change that the last one does; None
    if nothing changed. `intervals` is a dataset of Arrow."""
    earliest, latest = _seconds(first_minute) - 59, _seconds(last_minute)
    changes = _changes(intervals.to_batches(columns=COLUMNS, filter=ds.field("retained")), earliest, latest, unnamed)
    # What happened before is in the first numbers.
    times = [at for channel in changes.values() for at, change in channel.items() if change and at >= earliest]
    if not times:
        return None
    first, last = min(min(times), _seconds(first_minute)), max(times)
    step = step_for((last - first) * SECOND)
    length = step // SECOND
    places = range(first // length, -(-last // length) + 1)
    viewers = {}
    for channel, of_channel in changes.items():
        by_place: Counter[int] = Counter()
        for at, change in of_channel.items():
            by_place[max(places[0], -(-at // length))] += change
        viewers[channel] = list(accumulate(by_place[place] for place in places))
    return ShortTime(EPOCH + places[0] * step, step, viewers)


def _changes(batches: Iterable[Any], earliest: int, latest: int, unnamed: str) -> dict[str, Counter[int]]:
    """By channel and second: how many viewers came less how many went. What happened before counts as just before."""
    changes: dict[str, Counter[int]] = defaultdict(Counter)
    for batch in batches:
        channels = pc.fill_null(batch.column("channel"), unnamed)
        for column, change in (("began", 1), ("ended", -1)):
            counted = _counts(channels, batch.column(column), earliest, latest)
            for channel, at, count in counted:
                changes[channel][at] += change * count
    return changes


def _counts(channels: Any, moments: Any, earliest: int, latest: int) -> Iterable[tuple[str, int, int]]:
    """(channel, second, how many), of the moments up to the latest; seconds are rounded up."""
    micros = pc.cast(pc.cast(moments, pa.timestamp("us")), pa.int64())
    seconds = pc.divide(pc.add(micros, MICROSECONDS - 1), MICROSECONDS)
    seconds = pc.max_element_wise(seconds, earliest - 1, skip_nulls=False)
    table = pa.table({"channel": channels, "at": seconds}).filter(pc.less_equal(seconds, latest))
    found = table.group_by(["channel", "at"]).aggregate([([], "count_all")])
    return zip(*(found[name].to_pylist() for name in ("channel", "at", "count_all")), strict=True)


def _seconds(at: datetime) -> int:
    return (at - EPOCH) // SECOND
