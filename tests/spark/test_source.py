"""The source against a real broker: every event of the log is a row, once, in batches and in streams."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from holdfast import blocking
from holdfast.spark.stream_reader import HoldfastStreamReader
from tests.runtime.broker_process import BrokerProcess
from tests.spark.conftest import publish

TYPED = "position bigint, topic string, symbol string, price double, volume bigint, _rejected string"


def batch(spark: SparkSession, broker: BrokerProcess, schema: str | None = TYPED, **options: str) -> DataFrame:
    reader = spark.read.format("holdfast").option("url", broker.url).options(**options)
    return (reader if schema is None else reader.schema(schema)).load()


def stream(spark: SparkSession, broker: BrokerProcess, **options: str) -> DataFrame:
    reader = spark.readStream.format("holdfast").option("url", broker.url).options(**options)
    return reader.schema(TYPED).load()


def to_files(frame: DataFrame, folder: Path, **trigger: Any) -> StreamingQuery:
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(**(trigger or {"availableNow": True})).start(str(folder / "out"))


def positions(spark: SparkSession, folder: Path) -> list[int]:
    return [row.position for row in spark.read.parquet(str(folder / "out")).orderBy("position").collect()]


def finish(query: StreamingQuery) -> None:
    try:
        assert query.awaitTermination(60)
    finally:
        query.stop()


def test_a_batch_reads_the_log_whole_or_in_part(spark: SparkSession, broker: BrokerProcess) -> None:
    publish(broker.url, 12_000)
    whole = batch(spark, broker, partitions="2")
    assert whole.rdd.getNumPartitions() == 2
    assert whole.selectExpr("count(*)", "count(distinct position)", "sum(volume)").first() == (
        12_000,
        12_000,
        71_994_000,
    )
    part = batch(spark, broker, **{"from": "5", "to": "7"}, filter="volume <> 5")
    assert [(row.position, row.symbol, row.price) for row in part.collect()] == [(5, "S4", 2.0), (7, "S6", 3.0)]
    generic = batch(spark, broker, None, to="3").selectExpr("topic", "attributes['volume'].i AS volume")
    assert [tuple(row) for row in generic.collect()] == [("stock", 0), ("stock", 1), ("stock", 2)]


def test_a_batch_of_nothing_has_no_rows(spark: SparkSession, broker: BrokerProcess) -> None:
    assert batch(spark, broker).collect() == []
    publish(broker.url, 2)
    assert batch(spark, broker, **{"from": "3"}).collect() == []


def test_an_event_that_does_not_fit_is_a_row_with_the_reason(spark: SparkSession, broker: BrokerProcess) -> None:
    publish(broker.url, 2)
    with blocking.connect(broker.url) as bus:
        bus.publish({"symbol": 5, "volume": 2}, topic="stock")
    rows = batch(spark, broker).collect()
    assert [(row.position, row.symbol, row.volume, row._rejected) for row in rows] == [
        (1, "S0", 0, None),
        (2, "S1", 1, None),
        (3, None, None, "attribute 'symbol' is a whole number, which is no string: 5"),
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"to": "9"}, "the log ends at position 2, before option 'to', 9"),
        ({"from": "4"}, "the log ends at position 2, before option 'from', 4"),
        ({"from": "new"}, "it can't begin with 'new'"),
        ({"colour": "red"}, "there is no option 'colour'"),
    ],
)
def test_what_can_not_be_read_is_a_clear_error(
    spark: SparkSession, broker: BrokerProcess, options: dict[str, str], problem: str
) -> None:
    publish(broker.url, 2)
    with pytest.raises(AnalysisException, match=problem):
        batch(spark, broker, **options).collect()


def test_a_stream_reads_what_is_available_in_pieces_and_carries_on(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    publish(broker.url, 250)
    frame = stream(spark, broker, **{"from": "earliest"}, max_events_per_batch="100")
    query = to_files(frame, tmp_path)
    finish(query)
    progress = [(p["batchId"], p["numInputRows"], p["sources"][0]["endOffset"]) for p in _progress(query)]
    assert [(number, rows, end["next"]) for number, rows, end in progress] == [
        (0, 100, 101),
        (1, 100, 201),
        (2, 50, 251),
    ]
    publish(broker.url, 30)
    finish(to_files(frame, tmp_path))
    assert positions(spark, tmp_path) == list(range(1, 281))


def _progress(query: StreamingQuery) -> list[dict[str, Any]]:
    return [json.loads(progress.json) for progress in query.recentProgress if progress["numInputRows"]]


def test_a_name_begins_where_it_stands_and_is_acknowledged(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    publish(broker.url, 10)
    with blocking.connect(broker.url) as bus, bus.subscribe(name="report", from_="earliest") as named:
        named.ack_up_to(bus.head())
    publish(broker.url, 5)
    finish(to_files(stream(spark, broker, name="report"), tmp_path))
    assert positions(spark, tmp_path) == [11, 12, 13, 14, 15]
    # Spark commits an offset when the next batch begins: the last one is acknowledged by the next run.
    publish(broker.url, 5)
    finish(to_files(stream(spark, broker, name="report"), tmp_path))
    with blocking.connect(broker.url) as bus, bus.subscribe(name="report") as named:
        assert named.acknowledged == 15
    assert positions(spark, tmp_path) == list(range(11, 21))


def test_a_name_is_acknowledged_batch_by_batch_while_its_query_runs(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    frame = stream(spark, broker, name="report", **{"from": "earliest"})
    publish(broker.url, 10)
    query = to_files(frame, tmp_path, processingTime="0 seconds")
    try:
        for batch in (1, 2, 3):
            wait_for(query, 10 * batch + 1)
            publish(broker.url, 10)
        wait_for(query, 41)
    finally:
        query.stop()
    assert positions(spark, tmp_path) == list(range(1, 41))
    with blocking.connect(broker.url) as bus, bus.subscribe(name="report") as named:
        assert named.acknowledged >= 30  # Spark commits an offset when the next batch begins


def test_a_query_whose_name_another_one_takes_fails(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> None:
    publish(broker.url, 10)
    query = to_files(stream(spark, broker, name="report", **{"from": "earliest"}), tmp_path, processingTime="0 seconds")
    try:
        wait_for(query, 11)
        with blocking.connect(broker.url) as bus, bus.subscribe(name="report"):
            publish(broker.url, 10)
            with pytest.raises(StreamingQueryException, match="the subscription is over"):
                query.awaitTermination(60)
    finally:
        query.stop()


def test_a_broker_that_restarts_is_waited_for(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> None:
    publish(broker.url, 10)
    query = to_files(stream(spark, broker, **{"from": "earliest"}), tmp_path, processingTime="0 seconds")
    try:
        wait_for(query, 11)
        broker.kill()
        broker.start()
        publish(broker.url, 10)
        wait_for(query, 21)
    finally:
        query.stop()
    assert positions(spark, tmp_path) == list(range(1, 21))


def wait_for(query: StreamingQuery, next: int) -> None:
    """Until the query is through with all before a position."""
    while True:
        problem = query.exception()
        assert problem is None, problem
        query.processAllAvailable()
        last = query.lastProgress
        if last is not None and json.loads(last["sources"][0]["endOffset"])["next"] >= next:
            return


def test_a_log_that_is_gone_stops_the_query_with_a_clear_message(spark: SparkSession, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, entry=f'data = "{tmp_path / "old"}"\n') as broker:
        publish(broker.url, 10)
        finish(to_files(stream(spark, broker, **{"from": "earliest"}), tmp_path))
        port = broker.port
    with BrokerProcess(tmp_path, port, entry=f'data = "{tmp_path / "new"}"\n') as broker:
        publish(broker.url, 20)
        query = to_files(stream(spark, broker, **{"from": "earliest"}), tmp_path)
        with pytest.raises(StreamingQueryException, match=r"PositionGone: the checkpoint is of log .*begin anew"):
            finish(query)
    assert positions(spark, tmp_path) == list(range(1, 11))


def test_a_broker_that_never_answers_is_waited_for_as_long_as_it_is_said(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.format("holdfast").option("url", "holdfast://127.0.0.1:1").option("wait_s", "0.2").load()
    with pytest.raises(
        AnalysisException, match=r"NotConnected: no broker of holdfast://127.0.0.1:1 answered within 0.2 s"
    ):
        frame.collect()


def test_what_goes_to_executors_holds_no_connection(broker: BrokerProcess) -> None:
    from holdfast.spark.options import source_options
    from holdfast.spark.schema import DEFAULT_SCHEMA, layout_of

    publish(broker.url, 1)
    reader = HoldfastStreamReader(source_options({"url": broker.url}, stream=True), layout_of(DEFAULT_SCHEMA))
    try:
        assert reader.initialOffset()["next"] == 2
        assert reader.__getstate__()["_bus"] is None
    finally:
        reader.stop()


def _last_lines(error: Exception) -> tuple[str, int, int]:
    """What is said last, and how many tracebacks and places in programs stand above it."""
    said = str(error).partition(" SQLSTATE")[0].rstrip()
    return said.splitlines()[-1], said.count("Traceback (most recent call last)"), said.count('  File "')


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"colour": "red"}, "there is no option 'colour'; there are url, filter, from, to, max_events_per_batch, name"),
        ({"url": "127.0.0.1"}, "option 'url': '127.0.0.1' does not begin with holdfast://"),
        ({"partitions": "ten"}, "option 'partitions': a whole number from 1 on, not 'ten'"),
    ],
)
def test_a_wrong_option_is_refused_where_it_is_given_in_a_line(
    spark: SparkSession, options: dict[str, str], problem: str
) -> None:
    """Nobody has to read through our functions to get to it. With a schema, Spark asks us at the first row only."""
    given = {"url": "holdfast://127.0.0.1:1", **options}
    attempts: list[Callable[[], object]] = [
        lambda: spark.read.format("holdfast").options(**given).load(),
        lambda: spark.readStream.format("holdfast").options(**given).load(),
        lambda: spark.read.format("holdfast").schema(TYPED).options(**given).load().collect(),
    ]
    for attempt in attempts:
        with pytest.raises(AnalysisException) as refused:
            attempt()
        last, tracebacks, places = _last_lines(refused.value)
        assert last.startswith(f"holdfast.spark.errors.OptionError: {problem}")
        assert tracebacks == 1
        assert places <= 3


def test_an_option_of_something_else_is_refused_in_a_line(spark: SparkSession, tmp_path: Path) -> None:
    """PySpark adds an error of its own to one that a stream's reader is not made for."""
    url = "holdfast://127.0.0.1:1"
    frame = spark.readStream.format("holdfast").option("url", url).option("to", "3").load()
    query = to_files(frame, tmp_path)
    with pytest.raises(StreamingQueryException) as refused:
        query.awaitTermination(60)
    last, tracebacks, places = _last_lines(refused.value)
    assert last == "holdfast.spark.errors.OptionError: option 'to' is for batches, which read makes"
    assert (tracebacks, places <= 5) == (1, True)
    with pytest.raises(AnalysisException) as refused_batch:
        spark.read.format("holdfast").option("url", url).option("name", "n").load().collect()
    last, tracebacks, places = _last_lines(refused_batch.value)
    assert last == "holdfast.spark.errors.OptionError: option 'name' is for streams, which readStream makes"
    assert (tracebacks, places <= 3) == (1, True)
    with pytest.raises(AnalysisException) as refused_write:
        spark.range(3).write.format("holdfast").option("url", url).option("topic", "t").option(
            "topic_column", "id"
        ).mode("append").save()
    last, tracebacks, places = _last_lines(refused_write.value)
    assert (
        last == "holdfast.spark.errors.OptionError: options 'topic' and 'topic_column' are both given; give one of them"
    )
    assert (tracebacks, places <= 3) == (1, True)
