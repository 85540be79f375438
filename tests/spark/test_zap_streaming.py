"""The pipeline as a stream gives what it gives in batch, in however many micro-batches, and after a crash (D4-H3)."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyarrow.dataset import dataset
from pyspark.sql import DataFrame, SparkSession

from holdfast.apps.zapviewers.pipeline import streaming
from holdfast.apps.zapviewers.pipeline.bronze import raw_lines
from holdfast.apps.zapviewers.pipeline.silver import parsed, zap_events
from holdfast.apps.zapviewers.pipeline.tables import SCHEMAS, Progress, Tables
from holdfast.apps.zapviewers.pipeline.viewers import box_states, count_viewers
from holdfast.spark.errors import PipelineError
from tests.spark import zap_reference as reference
from tests.spark.zap_samples import EVENTS, after, events, mixed_payloads, viewers_of


def write_files(spark: SparkSession, folder: Path, pieces: list[list[tuple[int, bytes]]]) -> None:
    """A file for each micro-batch; a stream takes them by their time."""
    for number, piece in enumerate(pieces):
        target = folder / f"{number}"
        events(spark, piece).coalesce(1).write.parquet(str(target))
        (data,) = target.glob("*.parquet")
        data.replace(folder / f"{number}.parquet")
        shutil.rmtree(target)


def rows_of(tables: Tables, name: str, piece: int | None = None) -> list[tuple[Any, ...]]:
    """A table as any reader of Parquet finds it; no job of Spark is needed for that."""
    columns = [column.split()[0] for column in SCHEMAS[name].split(", ")]
    found = dataset(tables.path(name, piece), partitioning=None).to_table(columns=columns)
    return [tuple(row.values()) for row in found.to_pylist()]


def test_a_stream_in_pieces_through_a_crash_equals_the_reference(spark: SparkSession, tmp_path: Path) -> None:
    payloads = mixed_payloads()
    half = len(payloads) // 2
    pieces = [payloads[:half], payloads[half - 2 :]]  # two events come again
    write_files(spark, tmp_path / "events", pieces)
    source = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "events"))
    tables = Tables(tmp_path / "tables")
    taken = []

    def crashing(new: DataFrame, number: int, tables: Tables) -> None:
        taken.append(number)
        original(new, number, tables)
        if len(taken) == 2:
            raise RuntimeError("a crash after all was written, and before Spark knows it")

    original = streaming.take
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(streaming, "take", crashing)
        with pytest.raises(Exception, match="a crash after all was written"):
            streaming.start_stream(source, tables).awaitTermination()
        streaming.start_stream(source, tables).awaitTermination()
    assert taken == [0, 1, 1]

    lines = reference.lines_of(payloads)
    found = reference.intervals(lines)
    # Without the intervals that go on, until they are asked for.
    assert sorted(rows_of(tables, "intervals"), key=repr) == sorted(
        (tuple(one) for one in found if one.ended is not None), key=repr
    )
    streaming.write_gold(spark, tables)
    assert sorted(rows_of(tables, "intervals"), key=repr) == sorted(map(tuple, found), key=repr)
    assert sorted((position, line, text) for position, line, _, text in rows_of(tables, "bronze")) == lines
    assert {(come, to): zaps for come, to, zaps in rows_of(tables, "changes")} == reference.changes(lines)

    audience = after(payloads)
    assert dict(rows_of(tables, "viewers_now")) == viewers_of(audience)
    assert tables.progress_before(1 << 62) == Progress(
        batch=1,
        last=payloads[-1][0],
        lines=audience.lines,
        malformed=audience.malformed,
        late=reference.late(pieces[0], payloads[half:], streaming.DELAY_S),
        watermark=reference.watermark([pieces[0], payloads[half:]], streaming.DELAY_S),
    )
    assert len(rows_of(tables, "quarantine")) == audience.malformed
    assert len(rows_of(tables, "silver")) == audience.lines - audience.malformed
    for number in (0, 1):  # The first is kept while the second may be repeated.
        assert (
            len(rows_of(tables, "boxes", number))
            == after([pair for piece in pieces[: number + 1] for pair in piece]).boxes
        )


def test_lines_and_boxes_run_as_streams_of_their_own(spark: SparkSession, tmp_path: Path) -> None:
    payloads = mixed_payloads()
    half = len(payloads) // 2
    write_files(spark, tmp_path / "events", [payloads[half:], payloads[:half]])  # boxes do not care what comes first
    source = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "events"))
    lines = raw_lines(source)
    for name, rows, mode in [
        ("zap_lines", parsed(lines), "append"),
        ("zap_boxes", box_states(zap_events(lines)), "complete"),
    ]:
        writer = rows.writeStream.format("memory").queryName(name).outputMode(mode).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / name)).start().awaitTermination()
    audience = after(payloads)
    counts = spark.table("zap_lines").selectExpr("count(*)", "count(reason)").collect()
    assert [tuple(row) for row in counts] == [(audience.lines, audience.malformed)]
    now = {row.channel: row.viewers for row in count_viewers(spark.table("zap_boxes")).collect()}
    assert now == viewers_of(audience)
    spark.catalog.dropTempView("zap_lines")
    spark.catalog.dropTempView("zap_boxes")


def test_a_new_stream_does_not_write_beside_old_tables(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    tables.path("silver").mkdir()
    source = spark.readStream.schema(EVENTS).parquet(str(tmp_path))
    with pytest.raises(PipelineError, match="no checkpoint"):
        streaming.start_stream(source, tables)
    with pytest.raises(PipelineError, match="run one first"):
        streaming.write_gold(spark, tables)
