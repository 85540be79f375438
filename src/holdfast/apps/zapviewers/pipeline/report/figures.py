"""What the report shows, read from the Parquet tables of a pipeline by pyarrow, without Spark.

Read are the small tables `viewers_now`, `viewers_by_minute`, `windows`, `days` and `changes`, and of `quarantine`
the reasons and the first few lines, batch by batch. Never read: bronze and silver, which grow with the log; and
`intervals` only where the others tell of so short a time that minutes are too coarse (`short_times`).

Boxes have clocks of their own, and some are years off. So the page is about the busiest day and the days around it
that have at least a hundredth of its viewing, a week at most; how many days were left out is said.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from holdfast.apps.zapviewers.pipeline.facts import Facts, read_facts
from holdfast.apps.zapviewers.pipeline.report.short_times import COLUMNS, SHORT, read_short_time
from holdfast.spark.errors import PipelineError

TOP = 10
MATRIX_CHANNELS = 20
SAMPLE_LINES = 12
POINTS_MAX = 1440
DAYS_MAX = 7
DAY_SHARE_MIN = 0.01
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
# Clocks may be centuries off, and such days have no neighbours that Python could count to.
EARLIEST, LATEST = datetime(1900, 1, 1), datetime(2200, 1, 1)
UNNAMED = "(no name)"
ALL = "all channels"


@dataclass(frozen=True)
class Ranked:
    """A channel, and a number that ranks it."""

    channel: str
    viewers: float


@dataclass(frozen=True)
class Series:
    """Viewers of one channel, or of all: one value for each step of the time that is shown."""

    channel: str
    values: list[float]
    average: float

    @property
    def peak(self) -> int:
        """The step at which most watched, the first of equals."""
        return max(range(len(self.values)), key=self.values.__getitem__)


@dataclass(frozen=True)
class Viewing:
    """Viewers over time: of all channels together, and of those with the most on average."""

    began: datetime
    step: timedelta
    total: Series
    channels: list[Series]
    days_left_out: int

    @property
    def ended(self) -> datetime:
        return self.began + self.step * len(self.total.values)

    def at(self, step: int) -> datetime:
        return self.began + self.step * step


@dataclass(frozen=True)
class Share:
    """What a channel had of all viewing, and how many different boxes saw it in its best window."""

    channel: str
    seconds: int
    share: float
    reach: int


@dataclass(frozen=True)
class Shares:
    """The channels by their share, and how long the windows are in which reach was counted."""

    window: timedelta
    channels: list[Share]


@dataclass(frozen=True)
class Changes:
    """How often boxes went from one channel to another, for the channels with the most changes."""

    channels: list[str]
    zaps: dict[tuple[str, str], int]
    total: int  # of all channels
    kinds: int  # pairs of channels with at least one change


@dataclass(frozen=True)
class Refused:
    """A line in quarantine."""

    position: int
    line: int
    text: bytes
    reason: str


@dataclass(frozen=True)
class Figures:
    """Everything that the page shows. A table that is empty or missing gives None or nothing."""

    facts: Facts
    missing: list[str]
    now: list[Ranked]
    viewing: Viewing | None
    shares: Shares | None
    changes: Changes | None
    reasons: list[tuple[str, int]] = field(default_factory=list)
    sample: list[Refused] = field(default_factory=list)

    @property
    def refused(self) -> int:
        return sum(count for _, count in self.reasons)


def read_figures(folder: Path) -> Figures:
    """The figures of the tables below a folder. PipelineError if it has none, or something else under their names."""
    tables = _Tables(folder)
    viewing = _viewing(tables)
    windows = ["window_start", "window_end", "channel", "seconds", "reach"]
    shares = _shares(tables.read("days" if tables.has("days") else "windows", windows), viewing)
    changes = _changes(tables.read("changes", ["from_channel", "to_channel", "zaps"]))
    now = _ranked(tables.read("viewers_now", ["channel", "viewers"]), "viewers")
    reasons, sample = _quarantine(tables)
    return Figures(
        facts=read_facts(folder) or Facts(),
        missing=tables.missing,
        now=[Ranked(channel, viewers) for channel, viewers in now[:TOP] if viewers],
        viewing=viewing,
        shares=shares,
        changes=changes,
        reasons=reasons,
        sample=sample,
    )


def viewers_now(folder: Path) -> dict[str, int]:
    """The viewers of every channel after the last line, from the tables below a folder."""
    return dict(_ranked(_Tables(folder).read("viewers_now", ["channel", "viewers"]), "viewers"))


class _Tables:
    """The tables of one folder, by name."""

    def __init__(self, folder: Path) -> None:
        self.missing: list[str] = []
        self._folder = folder
        known = ("viewers_now", "viewers_by_minute", "windows", "changes", "quarantine")
        if not any(self.has(name) for name in known):
            raise PipelineError(
                f"{folder}: there are no tables of a pipeline here; 'holdfast pipeline run zapviewers' makes them"
            )

    def has(self, name: str) -> bool:
        return (self._folder / name).is_dir()

    def dataset(self, name: str, columns: list[str]) -> Any | None:
        """A table as pyarrow sees it; None if it is missing, or no row was ever written."""
        if not self.has(name):
            self.missing.append(name)
            return None
        try:
            dataset = ds.dataset(committed_files(self._folder / name), format="parquet")
            if not dataset.files:
                return None
        except (pa.ArrowException, OSError) as problem:
            raise PipelineError(f"{self._folder / name}: this can't be read as Parquet: {problem}") from problem
        lacking = [column for column in columns if column not in dataset.schema.names]
        if lacking:
            raise PipelineError(f"{self._folder / name}: a table of something else: it has no column {lacking[0]!r}")
        return dataset

    def read(self, name: str, columns: list[str]) -> Any | None:
        """The columns of a table; None if it has no rows."""
        dataset = self.dataset(name, columns)
        if dataset is None:
            return None
        table = dataset.to_table(columns=columns)
        for place, column in enumerate(columns):
            if "channel" in column:
                table = table.set_column(place, column, pc.fill_null(table[column], UNNAMED))
        return table if table.num_rows else None


def committed_files(table: Path) -> Path | list[str]:
    """What belongs to a table: its folder; or, if a stream of Spark's own writes it, the files that this has entered
    in its list, and not those that a run which was killed has left."""
    entered = table / "_spark_metadata"
    if not entered.is_dir():
        return table
    batches = {int(path.name.partition(".")[0]): path for path in sorted(entered.glob("[0-9]*"))}
    # Now and then one says again what those before it said.
    start = max((number for number, path in batches.items() if path.suffix == ".compact"), default=0)
    files = []
    for number in sorted(batches):
        if number >= start:
            lines = batches[number].read_text().splitlines()[1:]
            files += [msgspec.json.decode(line)["path"] for line in lines]
    # By name only: the folder may have been moved.
    return [str(table / unquote(file.rpartition("/")[2])) for file in files]


def _viewing(tables: _Tables) -> Viewing | None:
    table = tables.read("viewers_by_minute", ["minute", "channel", "viewers"])
    if table is None:
        return None
    table = table.set_column(0, "minute", pc.cast(table["minute"], pa.timestamp("us")))
    sane = table.filter(_between(table["minute"], EARLIEST, LATEST))
    if not sane.num_rows:
        return None
    first_day, last_day, left_out = _busy_days(sane)
    table = sane.filter(_between(sane["minute"], first_day, last_day + DAY))
    span = pc.min_max(table["minute"]).as_py()
    if span["max"] - span["min"] < SHORT and tables.has("intervals"):
        viewing = _short_viewing(tables, span["min"], span["max"], left_out)
        if viewing is not None:
            return viewing
    count = (span["max"] - span["min"]) // MINUTE + 1
    width = -(-count // POINTS_MAX)
    began, steps = span["min"], -(-count // width)
    lengths = [min(width, count - step * width) for step in range(steps)]

    def series(channel: str, rows: Any) -> Series:
        sums = [0] * steps
        for minute, viewers in zip(rows["minute"].to_pylist(), rows["viewers_sum"].to_pylist(), strict=True):
            sums[(minute - began) // MINUTE // width] += viewers
        return Series(channel, [each / length for each, length in zip(sums, lengths, strict=True)], sum(sums) / count)

    by_minute = table.group_by("minute").aggregate([("viewers", "sum")])
    top = _ranked(table.group_by("channel").aggregate([("viewers", "sum")]), "viewers_sum")[:TOP]
    channels = []
    for channel, _ in top:
        rows = table.filter(pc.equal(table["channel"], channel)).group_by("minute").aggregate([("viewers", "sum")])
        channels.append(series(channel, rows))
    return Viewing(began, MINUTE * width, series(ALL, by_minute), channels, left_out)


def _short_viewing(tables: _Tables, first: datetime, last: datetime, left_out: int) -> Viewing | None:
    intervals = tables.dataset("intervals", COLUMNS)
    found = None if intervals is None else read_short_time(intervals, first, last, UNNAMED)
    if found is None:
        return None
    series = [
        Series(channel, [float(count) for count in counts], sum(counts) / len(counts))
        for channel, counts in found.viewers.items()
        if any(counts)
    ]
    if not series:
        return None
    totals = [sum(values) for values in zip(*(one.values for one in series), strict=True)]
    total = Series(ALL, totals, sum(totals) / len(totals))
    ranked = sorted(series, key=lambda one: (-one.average, one.channel))
    return Viewing(found.began, found.step, total, ranked[:TOP], left_out)


def _between(moments: Any, first: datetime, end: datetime) -> Any:
    return pc.and_(pc.greater_equal(moments, pa.scalar(first)), pc.less(moments, pa.scalar(end)))


def _busy_days(table: Any) -> tuple[datetime, datetime, int]:
    """The first and the last day to be shown, and how many other days have viewers."""
    days = pc.floor_temporal(table["minute"], unit="day")
    sums = pa.table({"day": days, "viewers": table["viewers"]}).group_by("day").aggregate([("viewers", "sum")])
    viewing = dict(zip(sums["day"].to_pylist(), sums["viewers_sum"].to_pylist(), strict=True))
    busiest = max(viewing, key=lambda day: (viewing[day], day))
    enough = viewing[busiest] * DAY_SHARE_MIN
    first = last = busiest
    while (last - first) // DAY + 1 < DAYS_MAX:
        if viewing.get(first - DAY, 0) > enough:
            first -= DAY
        elif viewing.get(last + DAY, 0) > enough:
            last += DAY
        else:
            break
    return first, last, sum(1 for day, viewers in viewing.items() if viewers and not first <= day <= last)


def _shares(table: Any | None, viewing: Viewing | None) -> Shares | None:
    if table is None:
        return None
    starts, ends = (pc.cast(table[name], pa.timestamp("us")) for name in ("window_start", "window_end"))
    if viewing is not None:
        wanted = pc.and_(pc.greater(ends, pa.scalar(viewing.began)), pc.less(starts, pa.scalar(viewing.ended)))
        table, starts, ends = (column.filter(wanted) for column in (table, starts, ends))
    total = pc.sum(table["seconds"]).as_py()
    if not total:
        return None
    rows = table.group_by("channel").aggregate([("seconds", "sum"), ("reach", "max")])
    reach = dict(zip(rows["channel"].to_pylist(), rows["reach_max"].to_pylist(), strict=True))
    shares = [
        Share(channel, seconds, seconds / total, reach[channel])
        for channel, seconds in _ranked(rows, "seconds_sum")
        if seconds
    ]
    return Shares(pc.subtract(ends, starts)[0].as_py(), shares)


def _changes(table: Any | None) -> Changes | None:
    if table is None:
        return None
    grouped = table.group_by(["from_channel", "to_channel"]).aggregate([("zaps", "sum")])
    pairs = zip(grouped["from_channel"].to_pylist(), grouped["to_channel"].to_pylist(), strict=True)
    zaps = {pair: count for pair, count in zip(pairs, grouped["zaps_sum"].to_pylist(), strict=True) if count}
    ends: Counter[str] = Counter()
    for (came_from, to), count in zaps.items():
        ends[came_from] += count
        ends[to] += count
    channels = [channel for channel, _ in sorted(ends.items(), key=lambda item: (-item[1], item[0]))[:MATRIX_CHANNELS]]
    if not channels:
        return None
    kept = set(channels)
    inside = {pair: count for pair, count in zaps.items() if kept.issuperset(pair)}
    return Changes(channels, inside, sum(zaps.values()), len(zaps))


def _quarantine(tables: _Tables) -> tuple[list[tuple[str, int]], list[Refused]]:
    columns = ["position", "line", "text", "reason"]
    dataset = tables.dataset("quarantine", columns)
    if dataset is None:
        return [], []
    reasons: Counter[str] = Counter()
    first: list[Refused] = []
    for batch in dataset.to_batches(columns=columns):
        names = batch.column("reason").to_pylist()
        reasons.update(names)
        places = zip(batch.column("position").to_pylist(), batch.column("line").to_pylist(), strict=True)
        chosen = heapq.nsmallest(SAMPLE_LINES, ((*place, row) for row, place in enumerate(places)))
        texts = batch.column("text")
        first += [Refused(position, line, texts[row].as_py() or b"", names[row]) for position, line, row in chosen]
        first = heapq.nsmallest(SAMPLE_LINES, first, key=lambda refused: (refused.position, refused.line))
    return sorted(reasons.items(), key=lambda item: (-item[1], item[0])), first


def _ranked(table: Any | None, column: str) -> list[tuple[str, int]]:
    """The channels of a table, those with the largest number first, equals by name."""
    if table is None:
        return []
    pairs = zip(table["channel"].to_pylist(), table[column].to_pylist(), strict=True)
    return sorted(((channel, number or 0) for channel, number in pairs), key=lambda pair: (-pair[1], pair[0]))
