"""A streaming query in a process of its own: events of topic `in` become events of topic `out`.

    python -m experiments.exactly_once.query URL CHECKPOINT [--die before:3]

With `--die`, the driver and its JVM are killed by kill -9 right before or right after the commit of an epoch, by the
worker that commits; the worker lives on, and goes on with what it was about to do: that, too, must do no harm.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from holdfast.spark import make_session
from holdfast.spark.source import HoldfastSource
from holdfast.spark.writer import HoldfastStreamWriter

SCHEMA = "number BIGINT, label STRING"
EVENTS_PER_BATCH = 2_000


class DyingWriter(HoldfastStreamWriter):
    """Kills the driver at one commit."""

    def __init__(self, options: dict[str, str], schema: StructType, die: str) -> None:
        # Named by options, which travel from the driver to the process that commits.
        self._when, self._epoch, self._victims = die.split(":")
        super().__init__(options, schema)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if batchId == int(self._epoch) and self._when == "before":
            self._kill()
        super().commit(messages, batchId)
        if batchId == int(self._epoch) and self._when == "after":
            self._kill()

    def _kill(self) -> None:
        for victim in self._victims.split("+"):
            os.kill(int(victim), signal.SIGKILL)


class DyingSource(HoldfastSource):
    def __init__(self, options: dict[str, str]) -> None:
        own = dict(options)
        self._die = own.pop("die")
        super().__init__(own)

    @classmethod
    def name(cls) -> str:
        return "dying"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DyingWriter:  # noqa: N802
        return DyingWriter(dict(self.options), schema, self._die)


def transformed(spark: SparkSession, url: str) -> DataFrame:
    source = spark.readStream.format("holdfast").schema(SCHEMA).option("url", url)
    events = source.options(**{"from": "earliest"}, filter="topic = 'in'", max_events_per_batch=str(EVENTS_PER_BATCH))
    return events.load().select("number", F.concat("label", F.lit("!")).alias("label"))


def start_query(spark: SparkSession, url: str, checkpoint: str, die: str = "") -> StreamingQuery:
    writer = transformed(spark, url).writeStream.option("url", url).option("topic", "out")
    if die:
        spark.dataSource.register(DyingSource)
        victims = f"{spark._jvm.java.lang.ProcessHandle.current().pid()}+{os.getpid()}"  # type: ignore[union-attr]
        writer = writer.format("dying").option("die", f"{die}:{victims}")
    else:
        writer = writer.format("holdfast")
    return writer.option("checkpointLocation", checkpoint).trigger(processingTime="0 seconds").start()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("checkpoint")
    parser.add_argument("--die", default="")
    arguments = parser.parse_args()
    spark = make_session("exactly-once", master="local[2]", memory="1g")
    query = start_query(spark, arguments.url, arguments.checkpoint, arguments.die)
    print("running", flush=True)
    # Whoever started this closes the pipe when the query is to stop.
    sys.stdin.read()
    query.processAllAvailable()
    query.stop()
    spark.stop()
    print("stopped", flush=True)


if __name__ == "__main__":
    main()
