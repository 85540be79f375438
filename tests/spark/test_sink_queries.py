"""The sink under Spark: streaming queries that are started again, and single writes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.spark.sink import DurableBroker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DurableBroker]:
    with DurableBroker(tmp_path_factory.mktemp("sink")) as process:
        yield process
        assert process.staged_bytes() == 0


def write(frame: DataFrame, broker: DurableBroker, **options: str) -> None:
    frame.write.format("holdfast").mode("append").options(url=broker.url, **options).save()


def test_a_stream_that_is_started_again_publishes_every_row_once(
    spark: SparkSession, broker: DurableBroker, tmp_path: Path
) -> None:
    files, checkpoint = tmp_path / "files", tmp_path / "checkpoint"
    files.mkdir()

    def put(name: str, *numbers: int) -> None:
        (files / f"{name}.json").write_text("".join(json.dumps({"n": n, "key": "k"}) + "\n" for n in numbers))

    def run() -> list[int]:
        """Runs the query over what there is: a file is a partition. Its epochs."""
        stream = spark.readStream.schema("n BIGINT, key STRING").json(str(files)).filter("n >= 0")
        query = (
            stream.writeStream.format("holdfast")
            .options(url=broker.url, topic_column="key", checkpointLocation=str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [progress.batchId for progress in query.recentProgress if progress.numInputRows]

    with broker.published() as found:
        put("a", 0, 1, 2)
        put("b", 3, 4, 5)
        put("c", -1)  # and so a task without rows
        assert run() == [0]
        # A driver that died behind the commit: Spark does not know of it, and replays the epoch.
        for name in ("0", ".0.crc"):
            (checkpoint / "commits" / name).unlink()
        put("d", 6, 7)
        assert run() == [0, 1]
    assert sorted((event["topic"], event["n"]) for event in found) == [("k", n) for n in range(8)]


def test_a_write_publishes_a_frame_and_its_repetition_nothing_if_it_has_a_name(
    spark: SparkSession, broker: DurableBroker
) -> None:
    frame = spark.sql(
        "SELECT * FROM VALUES (1, CAST(0.5 AS FLOAT), NULL, TRUE, X'00'), (NULL, NULL, 'é', NULL, NULL) "
        "AS t (i, f, s, b, payload)"
    ).coalesce(1)
    with broker.published() as found:
        for _ in range(2):
            write(frame, broker, topic="t", query="named")
        write(frame, broker)
        # What was read is written back without what brokers give.
        given = ("position", "id", "publisher", "sequence", "published_at")
        options = {"url": broker.url, "filter": "i = 1 AND topic = 't'", "from": str(broker.head() - 3)}
        write(spark.read.format("holdfast").options(**options).load().drop(*given), broker)
    named: list[dict[str, Any]] = [
        {"topic": "t", "payload": b"\x00", "i": 1, "f": 0.5, "b": True},
        {"topic": "t", "s": "é"},
    ]
    assert found == [*named, *({key: event[key] for key in event if key != "topic"} for event in named), named[0]]


def test_what_can_not_be_written_fails_the_query_and_publishes_nothing(
    spark: SparkSession, broker: DurableBroker
) -> None:
    with broker.published() as found:
        with pytest.raises(PySparkException, match=r"column 'at' is of type timestamp.*cast it"):
            write(spark.range(2).select(f.current_timestamp().alias("at")), broker)
        with pytest.raises(PySparkException, match="can't be overwritten"):
            spark.range(2).write.format("holdfast").mode("overwrite").save()
        bad = spark.range(4).select(f.when(f.col("id") == 3, float("nan")).otherwise(1.0).alias("x")).coalesce(1)
        with pytest.raises(PySparkException, match=r"partition 0, row 3, column 'x': is nan.*nothing was published"):
            write(bad, broker)
    assert found == []
