"""Gold: every metric equals a plain-Python reference, with honest and wild boxes in one log (D4-H2, X-D6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from pyarrow.dataset import dataset
from pyspark.sql import DataFrame, SparkSession

from holdfast.apps.zapviewers.pipeline import gold
from holdfast.apps.zapviewers.pipeline.batch import run_batch
from holdfast.apps.zapviewers.pipeline.bronze import raw_lines
from holdfast.apps.zapviewers.pipeline.silver import quarantine, zap_events
from holdfast.apps.zapviewers.pipeline.tables import SCHEMAS, Tables
from tests.spark import zap_reference as reference
from tests.spark.zap_samples import after, events, mixed_payloads, viewers_of


class Sample(NamedTuple):
    payloads: list[tuple[int, bytes]]
    lines: list[reference.Line]
    intervals: list[reference.Interval]
    spark_lines: DataFrame
    spark_events: DataFrame
    spark_intervals: DataFrame


@pytest.fixture(scope="module")
def sample(spark: SparkSession) -> Iterator[Sample]:
    payloads = mixed_payloads()
    lines = reference.lines_of(payloads)
    spark_lines = raw_lines(events(spark, payloads))
    spark_events = zap_events(spark_lines).cache()
    spark_intervals = gold.intervals(spark_events).cache()
    yield Sample(payloads, lines, reference.intervals(lines), spark_lines, spark_events, spark_intervals)
    spark_intervals.unpersist()
    spark_events.unpersist()


def test_intervals_are_the_stretches_that_boxes_were_on_a_channel(sample: Sample) -> None:
    rows = [tuple(row) for row in sample.spark_intervals.collect()]
    assert sorted(rows, key=repr) == sorted(map(tuple, sample.intervals), key=repr)
    # The sample has intervals that go on, that are too short, and that a leaping clock made too long.
    found = {(one.retained, one.seconds is None or one.seconds > 3) for one in sample.intervals}
    assert found == {(True, True), (False, False), (False, True)}
    assert any(one.ended is None for one in sample.intervals)


def test_viewers_over_time_are_counted_as_if_one_by_one(sample: Sample) -> None:
    steps = gold.viewer_steps(sample.spark_intervals).cache()
    rows = {tuple(row) for row in steps.collect()}
    assert rows == reference.steps(sample.intervals)
    usual = sorted(at for _, at, _ in rows if at.year == 2026)
    first = usual[0].replace(second=0) + timedelta(minutes=2)  # by then, every channel had a step of that day
    after_last = usual[-1] + timedelta(minutes=1)
    expected = reference.by_minute(sample.intervals, first, after_last)
    for found in (steps, gold.viewer_steps(sample.spark_intervals, every_s=60)):
        minutes = gold.viewers_by_minute(found).where(f"minute between '{first}' and '{after_last}'").collect()
        assert {tuple(row) for row in minutes} == expected
    instant = usual[len(usual) // 2]
    top = [(row.rank, row.channel, row.viewers) for row in gold.top_at(steps, instant, 3).collect()]
    viewers = reference.viewers_at(sample.intervals, instant)
    order = sorted(viewers, key=lambda channel: (-viewers[channel], channel))[:3]
    assert top == [(rank, channel, viewers[channel]) for rank, channel in enumerate(order, start=1)]
    steps.unpersist()


def test_windows_tell_seconds_reach_share_and_rank(sample: Sample) -> None:
    rows = gold.windows(sample.spark_intervals, minutes=2).collect()
    assert {
        (row.window_start, row.channel, row.seconds, row.reach, row.share, row.rank) for row in rows
    } == reference.windows(sample.intervals, minutes=2)
    assert all(row.window_end - row.window_start == timedelta(minutes=2) for row in rows)
    assert all(row.average_viewers == row.seconds / 120 for row in rows)


def test_changes_are_counted_from_channel_to_channel(sample: Sample) -> None:
    rows = gold.changes(sample.spark_events).collect()
    assert {(row.from_channel, row.to_channel): row.zaps for row in rows} == reference.changes(sample.lines)


def test_viewers_now_and_totals_are_the_brokers_own(sample: Sample) -> None:
    audience = after(sample.payloads)
    now = gold.viewers_now(sample.spark_events)
    viewers = {row.channel: row.viewers for row in now.collect()}
    assert viewers == viewers_of(audience)
    assert [(row.channel, row.viewers) for row in gold.ranked(now, 5).collect()] == audience.compute_top_list(5)
    counts = gold.totals(sample.spark_lines, quarantine(sample.spark_lines), sample.spark_events).collect()
    assert [tuple(row) for row in counts] == [(audience.lines, audience.malformed, audience.boxes, audience.watching)]


def test_a_batch_writes_every_table(sample: Sample, spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    run_batch(events(spark, sample.payloads), tables)
    now = dataset(tables.path("viewers_now")).to_table().to_pylist()
    found = Counter(one.channel for one in sample.intervals if one.ended is None)
    assert {row["channel"]: row["viewers"] for row in now} == found == viewers_of(after(sample.payloads))
    sizes = {name: dataset(tables.path(name)).count_rows() for name in SCHEMAS if name != "boxes"}
    assert sizes["bronze"] == len(sample.lines) == sizes["silver"] + sizes["quarantine"]
    assert sizes["intervals"] == len(sample.intervals)
    assert all(sizes.values())
