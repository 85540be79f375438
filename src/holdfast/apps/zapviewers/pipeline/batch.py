"""The pipeline in batch: every table from the events of a log, one stage after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pyspark.sql import DataFrame, SparkSession

from holdfast.apps.zapviewers.pipeline import gold
from holdfast.apps.zapviewers.pipeline.bronze import raw_lines
from holdfast.apps.zapviewers.pipeline.moments import MINUTE_S
from holdfast.apps.zapviewers.pipeline.silver import quarantine, zap_events
from holdfast.apps.zapviewers.pipeline.tables import Tables

DAY_MINUTES = 24 * 60


Stage = tuple[str, Callable[[], None]]


def run_batch(events: DataFrame, tables: Tables, tell: Callable[[str], None] = lambda _: None) -> None:
    """All tables, in place of what was there. `events` has (position, published_at, payload)."""
    tables.clear()
    run_stages(stages(events, tables), tell)


def run_stages(stages: Iterable[Stage], tell: Callable[[str], None]) -> None:
    """Runs one after another, and tells which."""
    all_of_them = list(stages)
    for number, (name, run) in enumerate(all_of_them, start=1):
        tell(f"table {number} of {len(all_of_them)}: {name}")
        run()


def stages(events: DataFrame, tables: Tables) -> Iterator[Stage]:
    """The stages by name, in their order; each reads what the ones before it have written."""
    spark = events.sparkSession
    yield "bronze", lambda: tables.write("bronze", raw_lines(events))
    yield "silver", lambda: tables.write("silver", zap_events(tables.read(spark, "bronze")))
    yield "quarantine", lambda: tables.write("quarantine", quarantine(tables.read(spark, "bronze")))
    yield "intervals", lambda: tables.write("intervals", gold.intervals(tables.read(spark, "silver")))
    yield "viewers_now", lambda: tables.write("viewers_now", gold.open_viewers(tables.read(spark, "intervals")))
    yield from gold_stages(spark, tables)


def gold_stages(spark: SparkSession, tables: Tables) -> Iterator[Stage]:
    """The stages that are the same for tables that a stream has written.

    Their tables are small, and a file each: by `repartition`, since `coalesce` leaves the work before it to one task.
    """

    def by_minute() -> None:
        steps = gold.viewer_steps(tables.read(spark, "intervals"), MINUTE_S).cache()
        tables.write("viewers_by_minute", gold.viewers_by_minute(steps).repartition(1))
        steps.unpersist()

    yield "viewers_by_minute", by_minute
    yield "windows", lambda: tables.write("windows", gold.windows(tables.read(spark, "intervals")).repartition(1))
    yield (
        "days",
        lambda: tables.write("days", gold.windows(tables.read(spark, "intervals"), DAY_MINUTES).repartition(1)),
    )
    yield "changes", lambda: tables.write("changes", gold.changes(tables.read(spark, "silver")).repartition(1))
