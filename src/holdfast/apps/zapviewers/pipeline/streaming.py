"""The pipeline as a stream: the same functions, a micro-batch at a time, with the state of every box (D4-H3).

`bronze.raw_lines`, `silver.zap_events`, `silver.quarantine` and `viewers.box_states` run under `writeStream` as they
are. Intervals need what came before. Spark's ways to keep a state for each key run Python for it; here the state is a
table instead, one row a box, and a micro-batch is a step from one table to the next: the boxes as they were, written as
lines that they might have said, and the new lines behind them, go through the `stretches` of the batch pipeline. What
is closed is written; what is open is the next state. So batch and stream can't differ, and all of it is SQL.

**Exactly once.** Everything that a micro-batch writes lies in pieces that carry its number. If it is repeated, it
starts from the state of the one before and replaces its pieces. `progress` is written last.

**Order, doubled and late lines.** Positions rise from one micro-batch to the next, as they do in a log. An event whose
position was taken already is dropped, in the same micro-batch or in a later one. A line that a box says twice is two
lines, and counts as it does at the brokers. Viewers follow the order (position, line) and not `at`: however late a line
is by the box's clock, it counts. The watermark is DELAY_S behind the median of `at` in any micro-batch so far (and not
behind the greatest: one box whose clock leapt would make all others late). Lines behind it are counted as late in
`progress`; they revise windows that a reader may have taken for final, and that is all.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from holdfast.apps.zapviewers.pipeline import batch
from holdfast.apps.zapviewers.pipeline.bronze import once, raw_lines
from holdfast.apps.zapviewers.pipeline.intervals import boxes_of, closed, intervals_of, stretches
from holdfast.apps.zapviewers.pipeline.moments import seconds_of
from holdfast.apps.zapviewers.pipeline.silver import POWER_OFF, POWER_ON, parsed
from holdfast.apps.zapviewers.pipeline.tables import CHECKPOINT, Progress, Tables
from holdfast.apps.zapviewers.pipeline.viewers import count_viewers
from holdfast.spark.errors import PipelineError

DELAY_S = 60
OPEN = "open"  # the piece of `intervals` that go on, which is there while no stream runs

_SAID = ["position", "line", "at", "box", "kind", "to_channel"]


def start_stream(events: DataFrame, tables: Tables, every: str = "") -> StreamingQuery:
    """Starts a query that keeps the tables up: `every` so often ("5 seconds"), or until it has taken all that is there.

    It carries on where the last one stopped. `write_gold` makes the other tables from what it wrote.
    """
    checkpoint = tables.path(CHECKPOINT)
    if not checkpoint.exists() and any(tables.path(name).exists() for name in ("silver", "boxes")):
        raise PipelineError(
            f"{tables.folder} has tables, but no checkpoint of a stream that wrote them: a new stream would write "
            "everything again beside them. Give an empty folder, or remove this one."
        )

    def take_batch(new: DataFrame, number: int) -> None:
        take(new, number, tables)

    writer = events.writeStream.foreachBatch(take_batch).option("checkpointLocation", str(checkpoint))
    return (writer.trigger(processingTime=every) if every else writer.trigger(availableNow=True)).start()


def take(events: DataFrame, number: int, tables: Tables) -> Progress:
    """Takes one micro-batch: the same number again gives the same tables."""
    spark = events.sparkSession
    before = tables.progress_before(number)
    tables.drop("intervals", OPEN)
    new = once(events) if before is None else once(events).where(F.col("position") > before.last)
    lines = parsed(raw_lines(new)).persist()
    good = F.col("reason").isNull()
    progress = _progress(lines, number, before)
    tables.write("bronze", lines, number)
    tables.write("silver", lines.where(good), number)
    tables.write("quarantine", lines.where(~good), number)
    said = lines.where(good).select(*_SAID)
    if before is not None:
        said = remembered(tables.read(spark, "boxes", before.batch)).unionByName(said)
    found = stretches(said).persist()
    tables.write("intervals", intervals_of(found).where(F.col("ended").isNotNull()), number)
    tables.write("boxes", boxes_of(found), number)
    tables.write("viewers_now", count_viewers(tables.read(spark, "boxes", number)).coalesce(1))
    found.unpersist()
    lines.unpersist()
    tables.write_progress(progress)
    if before is not None:
        # The one before is kept: this micro-batch may be repeated.
        for old in tables.path("boxes").glob("batch=*"):
            if int(old.name.partition("=")[2]) < before.batch:
                tables.drop("boxes", old.name.partition("=")[2])
    return progress


def write_gold(spark: SparkSession, tables: Tables, tell: Callable[[str], None] = lambda _: None) -> None:
    """Adds the intervals that go on, and makes the tables that are made from whole tables."""
    last = tables.last_progress()
    if last is None:
        raise PipelineError(f"{tables.folder} holds nothing that a stream has written: run one first.")
    tables.write("intervals", open_intervals(tables.read(spark, "boxes", last.batch)), OPEN)
    batch.run_stages(batch.gold_stages(spark, tables), tell)


def remembered(boxes: DataFrame) -> DataFrame:
    """What boxes are known to be, as lines that would make them so, before all others."""
    return boxes.select(
        F.coalesce("position", F.lit(-1).cast("bigint")).alias("position"),
        F.coalesce("line", F.lit(0)).alias("line"),
        F.col("began").alias("at"),
        "box",
        F.when(F.col("watching"), POWER_ON).otherwise(POWER_OFF).alias("kind"),
        F.col("channel").alias("to_channel"),
    )


def open_intervals(boxes: DataFrame) -> DataFrame:
    """The intervals that go on."""
    return closed(boxes.where(F.col("began").isNotNull()).withColumn("ended", F.lit(None).cast("timestamp_ntz")))


def _progress(lines: DataFrame, number: int, before: Progress | None) -> Progress:
    at = seconds_of(F.col("at"))
    watermark = None if before is None else before.watermark
    counts = lines.agg(
        F.max("position").alias("last"),
        F.count("*").alias("lines"),
        F.count("reason").alias("malformed"),
        F.count_if(at < F.lit(watermark)).alias("late"),
        F.percentile_approx(at, 0.5).alias("median"),
    ).first()
    assert counts is not None, "an aggregation without groups gives one row"
    marks = [mark for mark in (watermark, counts.median and counts.median - DELAY_S) if mark is not None]
    return Progress(
        batch=number,
        last=max(-1 if before is None else before.last, -1 if counts.last is None else counts.last),
        lines=counts.lines + (before.lines if before else 0),
        malformed=counts.malformed + (before.malformed if before else 0),
        late=counts.late + (before.late if before else 0),
        watermark=max(marks, default=None),
    )
