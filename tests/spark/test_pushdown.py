"""Frames of what is wanted: the broker leaves out the rest, and no query gets the answer to another."""

from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import broadcast, col, length
from pyspark.sql.streaming.query import StreamingQuery

from holdfast import blocking
from holdfast.errors import FilterError
from holdfast.spark import pushed, read, spared, subscribe
from holdfast.spark.errors import OptionError
from tests.runtime.broker_process import BrokerProcess
from tests.spark.conftest import publish

SCHEMA = "position bigint, topic string, symbol string, price double, volume bigint, _rejected string"
EVENTS = 1000


def wanted() -> Column:
    """105 of the events. The last part of the condition is Spark's alone."""
    return ((col("volume") < 5) | (col("symbol") == "S7")) & (length("symbol") == 2)


def run(frame: DataFrame, sink: str, checkpoint: Path) -> StreamingQuery:
    """All that is there now, into a table of memory or into nothing."""
    writer = frame.writeStream.format(sink).queryName("pushdown").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    return query


def test_a_frame_gives_every_query_its_own_answer(spark: SparkSession, broker: BrokerProcess) -> None:
    publish(broker.url, EVENTS)
    try:
        # With a text there is no condition in the plan, whose absence is what Spark's own push-down overlooks.
        conditions: dict[str, Column | str] = {"false": wanted(), "true": "volume < 5 OR symbol = 'S7'"}
        for own_pushdown, condition_or_text in conditions.items():
            spark.conf.set("spark.sql.python.filterPushdown.enabled", own_pushdown)
            frame = read(spark, broker.url, condition_or_text, schema=SCHEMA)
            assert frame.filter(col("volume") == 7).count() == 1
            assert frame.count() == 105
        condition = col("volume") >= 990
        late = read(spark, broker.url, condition, schema=SCHEMA)
        condition &= col("volume") % 2 == 1
        odd = read(spark, broker.url, condition, schema=SCHEMA)
        cached = late.filter(col("volume") > 995).cache()
        assert cached.count() == 4
        together = odd.union(frame.filter(col("volume") == 7)).union(cached).union(late)
        assert together.count() == 5 + 1 + 4 + 10
        assert late.join(broadcast(odd), "volume").count() == 5
        cached.unpersist()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_condition_on_what_is_missing_finds_events_that_do_not_fit(
    spark: SparkSession, broker: BrokerProcess
) -> None:
    with blocking.connect(broker.url) as bus:
        bus.publish_many([({"volume": 1}, "a"), ({"volume": "many", "symbol": "S1"}, "a"), ({"symbol": "S2"}, "a")])
    rows = read(spark, broker.url, col("volume").isNull() & (col("topic") == "a"), schema=SCHEMA).collect()
    assert [(row.position, row.symbol, row._rejected is None) for row in rows] == [(2, None, False), (3, "S2", True)]


def test_the_broker_is_spared_what_a_stream_does_not_want(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    publish(broker.url, EVENTS)
    frame = subscribe(spark, broker.url, wanted(), schema=SCHEMA, from_="earliest", max_events_per_batch=400)
    query = run(frame, "noop", tmp_path / "one")
    assert [progress.numInputRows for progress in query.recentProgress] == [45, 40, 20]
    assert spared(query) == EVENTS - 105

    # Two frames of one log, one of them used twice.
    late = subscribe(spark, broker.url, col("volume") >= 990, schema=SCHEMA, from_="earliest")
    text = subscribe(spark, broker.url, "volume < 3", schema=SCHEMA, **{"from": 2})
    query = run(late.union(text).union(late.filter(col("volume") == 995)), "memory", tmp_path / "two")
    volumes = [row.volume for row in spark.table("pushdown").orderBy("volume").collect()]
    assert volumes == [1, 2, *range(990, 996), *range(995, 1000)]
    assert spared(query) == (EVENTS - 2 * 10) + (EVENTS - 1 - 2)

    # From the checkpoint on, only what is new counts.
    publish(broker.url, 10)
    query = run(frame, "noop", tmp_path / "one")
    assert spared(query) == 10 - 6


def test_what_is_pushed_can_be_looked_at(spark: SparkSession) -> None:
    assert pushed(spark, "") == ""
    assert pushed(spark, "price > 5") == "price > 5"
    assert pushed(spark, col("attributes")["price"]["f"] > 5) == "price > 5.0"
    assert pushed(spark, wanted(), schema=SCHEMA) == "(symbol = 'S7' OR volume < 5) AND symbol IS NOT NULL"


def test_what_can_not_be_asked_for_is_refused_at_once(spark: SparkSession) -> None:
    url = "holdfast://127.0.0.1:1"
    with pytest.raises(OptionError, match="'filter' is given already"):
        read(spark, url, col("topic") == "a", Filter="b")
    with pytest.raises(FilterError, match="ends too early"):
        subscribe(spark, url, "a =")
    with pytest.raises(TypeError, match="not bool"):
        read(spark, url, True)  # type: ignore[arg-type]
