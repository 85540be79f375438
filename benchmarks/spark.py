"""How fast the Spark connector is, against a real broker with its log on disk, all on one machine.

    .venv/bin/python -m benchmarks.spark [--events 1000000] [--runs 5] [--only source sink batches] [--json]

The best of the runs counts. `typed` and `map` read the whole log into Spark and count it; `rows` is the same source
giving Python rows, as data sources do that do not make Arrow batches. `filtered` reads with a filter that one event in
a thousand matches, which the broker applies. `sink` publishes rows that Spark makes, exactly once. `batches` is
how long a micro-batch takes that has next to nothing to do: read, processed, published and committed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from benchmarks.machine import description
from experiments.durability.broker import DurableBroker
from holdfast.client import blocking
from holdfast.model.position import Position
from holdfast.spark import make_session
from holdfast.spark.batch_reader import HoldfastBatchReader
from holdfast.spark.options import source_options
from holdfast.spark.ranges import PositionRange
from holdfast.spark.schema import layout_of
from holdfast.spark.source import HoldfastSource

TYPED = "position BIGINT, topic STRING, symbol STRING, price DOUBLE, volume BIGINT, hot BOOLEAN, _rejected STRING"
TYPED_TARGET, MAP_TARGET, SINK_TARGET = 250_000, 100_000, 60_000
ONE_IN = 1_000
BATCHES = 20


class RowReader(HoldfastBatchReader):
    """What the reader would be without Arrow: one tuple for each event."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, PositionRange)
        start, end = Position(partition.log_id, partition.start), Position(partition.log_id, partition.end)
        with blocking.connect(self._options.url) as bus:
            for event in bus.read("", start, end):
                get = event.attributes.get
                assert event.position is not None
                yield (event.position.number, event.topic, get("symbol"), get("price"), get("volume"), get("hot"), None)


class RowSource(HoldfastSource):
    @classmethod
    def name(cls) -> str:
        return "holdfast_rows"

    def reader(self, schema: StructType) -> RowReader:
        return RowReader(source_options(self.options, stream=False), layout_of(schema))


def fill(url: str, count: int) -> None:
    with blocking.connect(url) as bus:
        bus.publish_many(
            (
                {"symbol": f"S{number % 100}", "price": number % 997 / 4, "volume": number, "hot": number % 2 == 0},
                "stock",
            )
            for number in range(count)
        )


def best(runs: int, count: int, work: Callable[[], Any]) -> float:
    """Rows a second, of the fastest run."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return count / min(times)


def drain(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def measure_source(spark: SparkSession, url: str, count: int, runs: int) -> dict[str, float]:
    spark.dataSource.register(RowSource)

    def frame(schema: str | None = TYPED, kind: str = "holdfast", **options: str) -> DataFrame:
        reader = spark.read.format(kind).option("url", url).options(**options)
        return (reader if schema is None else reader.schema(schema)).load()

    matching = f"volume < {max(1, count // ONE_IN)}"
    sent = frame(filter=matching).count()
    found = {
        "typed_rows_a_second": best(runs, count, lambda: drain(frame())),
        "map_rows_a_second": best(runs, count, lambda: drain(frame(None))),
        "python_rows_a_second": best(max(1, runs // 2), count, lambda: drain(frame(kind="holdfast_rows"))),
        "filtered_events_a_second": best(runs, count, lambda: drain(frame(filter=matching))),
        "filtered_sent": sent,
        "filtered_spared": count - sent,
    }
    found["arrow_against_rows"] = found["typed_rows_a_second"] / found["python_rows_a_second"]
    return found


def measure_sink(spark: SparkSession, url: str, count: int, runs: int) -> dict[str, float]:
    rows = spark.range(0, count, numPartitions=2).selectExpr(
        "concat('S', id % 100) AS symbol", "id / 4.0D AS price", "id AS volume", "id % 2 = 0 AS hot"
    )
    head = _head(url)

    def write() -> None:
        rows.write.format("holdfast").mode("append").option("url", url).option("topic", "made").save()

    found = {"sink_rows_a_second": best(runs, count, write)}
    if _head(url) - head != runs * count:
        raise RuntimeError(f"{runs * count} events were written, and the log has {_head(url) - head} more")
    return found


def measure_batches(spark: SparkSession, url: str, folder: Path) -> dict[str, float]:
    """Micro-batches of one event each, from the log and back."""
    source = spark.readStream.format("holdfast").schema("volume BIGINT").option("url", url)
    events = source.options(**{"from": "1"}, max_events_per_batch="1", filter="topic = 'stock'").load()
    query = (
        events.writeStream.format("holdfast")
        .option("url", url)
        .option("topic", "single")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    try:
        while len(query.recentProgress) < BATCHES + 1:
            query.awaitTermination(1)
        durations = [progress["durationMs"]["triggerExecution"] for progress in query.recentProgress[1:]]
    finally:
        query.stop()
    return {"batch_ms_median": statistics.median(durations), "batch_ms_best": min(durations)}


def _head(url: str) -> int:
    with blocking.connect(url) as bus:
        return bus.head().number


def main() -> None:
    parser = argparse.ArgumentParser(description="The speed of the Spark connector.")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--only", nargs="+", choices=("source", "sink", "batches"), default=("source", "sink", "batches")
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = DurableBroker(folder, folder / "data")
        broker.start()
        try:
            spark = make_session("benchmark", master="local[2]")
            fill(broker.url, arguments.events)
            if "source" in arguments.only:
                found |= measure_source(spark, broker.url, arguments.events, arguments.runs)
            if "batches" in arguments.only:
                found |= measure_batches(spark, broker.url, folder)
            if "sink" in arguments.only:
                found |= measure_sink(spark, broker.url, arguments.events // 2, arguments.runs)
            spark.stop()
        finally:
            broker.stop()
    if arguments.json:
        print(json.dumps({"machine": description(), **found}))
        return
    targets = {"typed": TYPED_TARGET, "map": MAP_TARGET, "sink": SINK_TARGET}
    print(f"{arguments.events:,} events, best of {arguments.runs}; {description()}")
    for key, value in found.items():
        target = targets.get(key.split("_")[0])
        print(f"  {key.replace('_', ' '):28} {value:12,.1f}" + (f"   (wanted {target:,})" if target else ""))


if __name__ == "__main__":
    main()
