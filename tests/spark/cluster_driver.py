"""What a user runs against a cluster, in a process of its own: reads, streams with the sink, makes the tables.

    python -m tests.spark.cluster_driver MASTER URL METRICS FOLDER [ARCHIVE]

Prints one JSON object about what was seen. An executor is killed by kill -9 in the middle of the stream, when the
broker has some of what it stages.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from holdfast.apps.zapviewers.pipeline.running import BATCH, STREAMING, run
from holdfast.spark import make_session

PARTITIONS = "2"
EVENTS_PER_BATCH = 14_000
KILLED_AT = 18_000  # in the second micro-batch, which is one task: all that is staged then is of that
STAGED_S_MAX = 60.0


def session(master: str, archive: str | None, folder: Path) -> SparkSession:
    return make_session(
        "cluster-test",
        master=master,
        memory="512m",
        archive=archive,
        settings={
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.sql.shuffle.partitions": "2",
            # Small, so that an executor that is killed has handed on a part of what it was given.
            "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
            "spark.local.dir": str(folder / "local"),
            # No task is given out before both executors are there.
            "spark.cores.max": "2",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
        },
    )


def batch(spark: SparkSession, url: str) -> DataFrame:
    source = spark.read.format("holdfast").schema("position BIGINT, number BIGINT, _rejected STRING")
    return source.options(url=url, filter="topic = 'in'", partitions=PARTITIONS).load()


def where_it_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For each task: its interpreter, where Holdfast was imported from, and whether its compiled kernel is used."""
    import holdfast.matching

    rows = sum(batch.num_rows for batch in batches)
    found = [sys.executable, holdfast.__file__, holdfast.matching.ENGINE, rows]
    yield pa.RecordBatch.from_arrays([pa.array([value]) for value in found], ["python", "file", "engine", "rows"])


def killing_once(marker: str, metrics: str) -> Any:
    """Hands on what it gets; the first to meet one number kills the executor that it works for."""

    def hand_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if KILLED_AT in batch.column("number").to_pylist() and not os.path.exists(marker):
                until = time.monotonic() + STAGED_S_MAX
                while not staged_bytes(metrics):
                    assert time.monotonic() < until, "nothing was staged of what was handed on"
                    time.sleep(0.05)
                Path(marker).touch()
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
                os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
            yield batch

    return hand_on


def staged_bytes(metrics: str) -> int:
    with urllib.request.urlopen(metrics, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(float(line.rpartition(" ")[2])) for line in lines if line.startswith("holdfast_staged_bytes"))


def stream(spark: SparkSession, url: str, metrics: str, folder: Path) -> list[int]:
    """Numbers from topic `in` to topic `out`, through the death of an executor. The sizes of its micro-batches."""
    source = spark.readStream.format("holdfast").schema("number BIGINT").option("from", "earliest")
    options = {"filter": "topic = 'in'", "partitions": PARTITIONS, "max_events_per_batch": str(EVENTS_PER_BATCH)}
    # Wide, so that no buffer on the way keeps a whole batch of rows.
    rows = source.options(url=url, **options).load().withColumn("filler", F.lit("x" * 200))
    query = (
        rows.mapInArrow(killing_once(str(folder / "killed"), metrics), "number BIGINT, filler STRING")
        .writeStream.format("holdfast")
        .options(url=url, topic="out", checkpointLocation=str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]


def tasks_of_executors(spark: SparkSession) -> dict[str, int]:
    """Tasks that were completed, by executor, also those that are gone. The driver is not one of them."""
    assert spark.sparkContext._jsc is not None
    listed = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    executors = [listed.apply(place) for place in range(listed.size())]
    return {found.id(): found.completedTasks() for found in executors if found.id() != "driver"}


def main() -> None:
    master, url, metrics, folder = *sys.argv[1:4], Path(sys.argv[4])
    spark = session(master, sys.argv[5] if len(sys.argv) > 5 else None, folder)
    read = batch(spark, url)
    counted = read.agg(F.count("number"), F.sum("number"), F.count("_rejected")).first()
    assert counted is not None
    places = read.mapInArrow(where_it_runs, "python STRING, file STRING, engine STRING, rows BIGINT").collect()
    read_tasks = tasks_of_executors(spark)
    micro_batches = stream(spark, url, metrics, folder)
    for engine in (BATCH, STREAMING):
        run(url, folder / engine, engine, spark=spark)
    seen = {
        "counted": list(counted),
        "places": [list(place) for place in places],
        "read_tasks": read_tasks,
        "micro_batches": micro_batches,
        "tasks": tasks_of_executors(spark),
    }
    spark.stop()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
