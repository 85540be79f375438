"""How fast Spark's sink is: rows a second into one durable broker, each published once, and where the time goes.

    .venv/bin/python -m benchmarks.spark_sink [--rows 1000000] [--epoch 250000] [--runs 3] [--profile FOLDER] [--json]

Driver, two tasks and the broker, a process of its own with its data on the disk, share the machine. The rows (four
attributes, one of them a string that is missing now and then) lie in Parquet files, of which a streaming query with the
trigger `availableNow` takes two for each epoch. The best of the runs counts. Beside it: the same rows with one `write`,
as one epoch; how long the broker is deaf while it commits that (the longest time between a question to it and the
answer, with one question after the other); and the seconds of the processor that the broker took for a million rows.
With `--profile`, py-spy, where it is installed, samples the broker and writes one flame graph.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.machine import description
from holdfast.client.blocking import connect
from holdfast.spark import make_session
from tests.runtime.broker_process import BrokerProcess

ROWS_A_SECOND_TARGET = 60_000
TASKS = 2


def rows(spark: SparkSession, count: int, partitions: int) -> DataFrame:
    numbers = spark.range(0, count, 1, partitions)
    symbol = f.concat(f.lit("SYM"), f.col("id") % 500)
    return numbers.select(
        f.col("id").alias("n"),
        f.when(f.col("id") % 50 != 0, symbol).alias("symbol"),
        (f.rand(1) * 200).alias("price"),
        (f.col("id") % 3 == 0).alias("open"),
    )


def measure(spark: SparkSession, folder: Path, count: int, epoch: int, profile: Path | None) -> dict[str, float]:
    files = folder / "rows"
    epochs = max(1, count // epoch)
    if not files.exists():
        rows(spark, epochs * epoch, TASKS * epochs).write.parquet(str(files))
    data = Path(tempfile.mkdtemp(dir=folder))
    with BrokerProcess(data, entry=f'data = "{data}/data"\n') as broker:
        rate = _stream(spark, files, data, broker, epochs * epoch, profile)
        busy = broker.processor_seconds()
        deaf = Deafness(broker.url)
        started = time.perf_counter()
        frame = spark.read.parquet(str(files)).coalesce(TASKS)
        frame.write.format("holdfast").mode("append").options(url=broker.url, topic="t").save()
        taken = time.perf_counter() - started
        found = {
            "stream_rows_a_second": rate,
            "write_rows_a_second": epochs * epoch / taken,
            "broker_processor_s_a_million_rows": (broker.processor_seconds() - busy) * 1e6 / (epochs * epoch),
            "broker_deaf_s": deaf.longest(),
            "broker_peak_mb": broker.peak_bytes() / 1e6,
            "data_mb": sum(file.stat().st_size for file in (data / "data").rglob("*") if file.is_file()) / 1e6,
        }
        with connect(broker.url) as bus:
            head = bus.head().number
        if head != 2 * epochs * epoch:
            raise SystemExit(f"{head} events are in the log, and {2 * epochs * epoch} were written")
    shutil.rmtree(data)
    return found


def _stream(
    spark: SparkSession, files: Path, data: Path, broker: BrokerProcess, count: int, profile: Path | None
) -> float:
    stream = spark.readStream.schema("n BIGINT, symbol STRING, price DOUBLE, open BOOLEAN")
    stream = stream.option("maxFilesPerTrigger", TASKS)
    profiler = None
    if profile is not None:
        command = ["py-spy", "record", "--pid", str(broker.process.pid), "--output", str(profile), "--duration", "600"]
        profiler = subprocess.Popen(command)
    started = time.perf_counter()
    query = (
        stream.parquet(str(files))
        .writeStream.format("holdfast")
        .options(url=broker.url, topic="t", checkpointLocation=str(data / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    taken = time.perf_counter() - started
    if profiler is not None:
        profiler.send_signal(2)
        profiler.wait(30)
    return count / taken


class Deafness:
    """Asks a broker one thing after the other, in a thread; the longest that it had to wait."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = threading.Event()
        self._longest = 0.0
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        with connect(self._url) as bus:
            while not self._over.wait(0.01):
                asked = time.perf_counter()
                bus.tail()
                self._longest = max(self._longest, time.perf_counter() - asked)

    def longest(self) -> float:
        self._over.set()
        self._thread.join()
        return self._longest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--epoch", type=int, default=250_000, help="rows of one epoch (default 250,000)")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--profile", type=Path, help="where to write a flame graph of the broker (needs py-spy)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    spark = make_session("benchmark", master=f"local[{TASKS}]")
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            measure(spark, Path(folder), arguments.rows, arguments.epoch, arguments.profile)
            for _ in range(arguments.runs)
        ]
    spark.stop()
    found = {name: (max if name.endswith("_second") else min)(run[name] for run in runs) for name in runs[0]}
    if arguments.json:
        print(json.dumps({"machine": description(), **found}))
        return
    print(", ".join(f"{name} {value}" for name, value in description().items()))
    print(f"{arguments.rows:,} rows, epochs of {arguments.epoch:,}, best of {arguments.runs} runs")
    for name, value in found.items():
        print(f"  {name:36} {value:>14,.0f}" if value >= 100 else f"  {name:36} {value:>14,.3f}")
    print(f"  {'stream, beside 60,000':36} {found['stream_rows_a_second'] / ROWS_A_SECOND_TARGET:>13.2f} ×")


if __name__ == "__main__":
    main()
