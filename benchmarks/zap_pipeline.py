"""How fast the ZapViewers pipeline is: a day of zaps in batch, and the same as a backlog for a stream.

    .venv/bin/python -m benchmarks.zap_pipeline [--zaps 20000000] [--cores 2] [--memory 4g] [--folder DIR] [--json]

The log is synthetic, from 00:00 to 24:00, and lies as Parquet in the form in which the connector gives it: events of
200 lines. Making it is not measured, and one that lies in the folder already is used again. A zap is a change of
channel: a fifth of the lines are about something else. Memory is that of this process, the JVM and all their children
together, looked at twice a second; `--memory` bounds the JVM's heap, which is most of it. Where the machine is shared,
seconds of the processor say more than those of the clock; both are printed. At the end the top lists of batch, stream
and a broker's own state are compared.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.machine import description
from holdfast.apps.zapviewers.audience import Audience
from holdfast.apps.zapviewers.generator import BOXES, ZapSettings, generate, rate_max
from holdfast.apps.zapviewers.pipeline import batch, streaming
from holdfast.apps.zapviewers.pipeline.tables import Tables
from holdfast.apps.zapviewers.pipeline.viewers import ranked
from holdfast.apps.zapviewers.publications import payloads
from holdfast.apps.zapviewers.rhythm import DAY_S
from holdfast.spark import make_session

BATCH_GOAL_S = 600
MEMORY_GOAL_GB = 8
STREAM_GOAL = 60_000  # zaps a second

ZAPS_A_LINE = 0.82
EVENTS_A_FILE = 2_500
TOP = 10
SUMMARY = "_log.json"  # Spark passes over what begins with an underscore
EVENTS = pa.schema(
    [
        ("position", pa.int64()),
        ("topic", pa.string()),
        ("published_at", pa.timestamp("us", "UTC")),
        ("payload", pa.binary()),
    ]
)
SPARK_EVENTS = "position bigint, topic string, published_at timestamp, payload binary"


class Log(msgspec.Struct, frozen=True):
    """What was made, and what a broker would say of it."""

    asked: int
    events: int
    lines: int
    zaps: int
    boxes: int
    top: list[tuple[str, int]]


def make_log(folder: Path, zaps: int, boxes: int = BOXES) -> Log:
    """A day of about so many zaps, as files of events."""
    summary = folder / SUMMARY
    if summary.exists():
        found = msgspec.json.decode(summary.read_bytes(), type=Log)
        if found.asked == zaps:
            return found
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rate = zaps / ZAPS_A_LINE / DAY_S
    boxes = max(boxes, int(boxes * rate / rate_max(boxes)) + 1)
    audience = Audience()
    published = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    texts = (turn.text for turn in islice(generate(ZapSettings(boxes=boxes, rate=rate, start_s=0)), DAY_S))
    changes = position = 0
    events = payloads(texts)
    while bodies := list(islice(events, EVENTS_A_FILE)):
        for body in bodies:
            position += 1
            changes += body.count(b",") - 3 * (body.count(b"\n") + 1)  # others have a comma less
            audience.take(body, position)
        count = len(bodies)
        columns = [range(position - count + 1, position + 1), ["zap"] * count, [published] * count, bodies]
        pq.write_table(
            pa.table([pa.array(column, kind.type) for column, kind in zip(columns, EVENTS, strict=True)], EVENTS),
            folder / f"{position:09}.parquet",
        )
    top = [(channel, viewers) for channel, viewers in audience.compute_top_list(TOP)]
    made = Log(zaps, position, audience.lines, changes, audience.boxes, top)
    summary.write_bytes(msgspec.json.encode(made))
    return made


class Watch:
    """The most memory that this process and all below it held since `restart`."""

    def __init__(self) -> None:
        self.most = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def restart(self) -> None:
        self.most = 0

    def _watch(self) -> None:
        while True:
            self.most = max(self.most, _tree()[0])
            time.sleep(0.5)


def _tree() -> tuple[int, float]:
    """Bytes that this process and all below it hold, and the seconds of the processor that they have used."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(stat.parent.name)] = int(fields[1])
        ticks[int(stat.parent.name)] = int(fields[11]) + int(fields[12])
        sizes[int(stat.parent.name)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    ours = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= more
    known = ours & sizes.keys()
    return sum(sizes[process] for process in known), sum(ticks[process] for process in known) / os.sysconf("SC_CLK_TCK")


@contextmanager
def measured(name: str, watch: Watch, into: dict[str, dict[str, float]]) -> Iterator[None]:
    watch.restart()
    started, busy = time.perf_counter(), _tree()[1]
    yield
    seconds, processor = time.perf_counter() - started, _tree()[1] - busy
    into[name] = {"s": round(seconds, 1), "processor_s": round(processor, 1), "gb": round(watch.most / 1e9, 2)}
    print(
        f"{name:>20} {seconds:8.1f} s {processor:8.1f} s of the processor {watch.most / 1e9:6.2f} GB",
        file=sys.stderr,
        flush=True,
    )


def measure(spark: SparkSession, told: Log, folder: Path, files_a_batch: int) -> dict[str, object]:
    log = folder / "log"
    watch = Watch()
    stages: dict[str, dict[str, float]] = {}

    in_batch = Tables(folder / "batch")
    in_batch.clear()
    for name, run in batch.stages(spark.read.schema(SPARK_EVENTS).parquet(str(log)), in_batch):
        with measured(name, watch, stages):
            run()
    total = sum(stage["s"] for stage in stages.values())

    in_stream = Tables(folder / "stream")
    in_stream.clear()
    stream: dict[str, dict[str, float]] = {}
    source = spark.readStream.schema(SPARK_EVENTS).option("maxFilesPerTrigger", files_a_batch).parquet(str(log))
    with measured("stream", watch, stream):
        streaming.start_stream(source, in_stream).awaitTermination()
    with measured("gold of the stream", watch, stream):
        streaming.write_gold(spark, in_stream)

    tops = {
        name: [(row.channel, row.viewers) for row in ranked(tables.read(spark, "viewers_now"), TOP).collect()]
        for name, tables in {"batch": in_batch, "stream": in_stream}.items()
    }
    return {
        "stages": stages,
        "batch_s": round(total, 1),
        "batch_zaps_a_second": round(told.zaps / total),
        "gb": max(stage["gb"] for stage in (*stages.values(), *stream.values())),
        "stream": stream,
        "stream_zaps_a_second": round(told.zaps / stream["stream"]["s"]),
        "equal": all(top == told.top for top in tops.values()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zaps", type=int, default=20_000_000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="of the JVM's heap")
    parser.add_argument("--partitions", type=int, default=16, help="of shuffles")
    parser.add_argument("--files", type=int, default=2, help=f"of {EVENTS_A_FILE} events, in a micro-batch")
    parser.add_argument("--folder", type=Path, help="for the log and the tables, which then stay there")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="zap-pipeline-"))
    told = make_log(folder / "log", options.zaps)
    print(f"{told.lines:,} lines, {told.zaps:,} zaps, {told.boxes:,} boxes", file=sys.stderr, flush=True)
    spark = make_session(
        "zap-pipeline",
        master=f"local[{options.cores}]",
        memory=options.memory,
        settings={
            "spark.sql.shuffle.partitions": str(options.partitions),
            "spark.local.dir": str(folder / "spark"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        },
    )
    try:
        found = measure(spark, told, folder, options.files)
    finally:
        spark.stop()
        if options.folder is None:
            shutil.rmtree(folder)
    if options.json:
        print(json.dumps({**description(), "lines": told.lines, "zaps": told.zaps, **found}, indent=1))
    else:
        print(
            f"batch: {found['batch_s']} s (goal at 20,000,000 zaps: {BATCH_GOAL_S}), {found['gb']} GB "
            f"(goal: {MEMORY_GOAL_GB}); stream: {found['stream_zaps_a_second']:,} zaps/s (goal: {STREAM_GOAL:,}); "
            f"batch = stream = broker: {'yes' if found['equal'] else 'NO'}"
        )
    if not found["equal"]:
        sys.exit("the top lists differ")


if __name__ == "__main__":
    main()
