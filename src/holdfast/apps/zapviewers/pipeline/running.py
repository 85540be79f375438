"""A run of the pipeline over a broker's log: which engine, from where to where, and what is written down about it.

A folder belongs to one log and one engine, and to one run at a time. Before a run it is written down which; after it,
how far it came.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from pyspark import __version__ as spark_version
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from holdfast import __version__, blocking
from holdfast.apps.zapviewers.pipeline import declared, gold
from holdfast.apps.zapviewers.pipeline.batch import run_batch
from holdfast.apps.zapviewers.pipeline.facts import Facts, read_facts, write_facts
from holdfast.apps.zapviewers.pipeline.streaming import start_stream, write_gold
from holdfast.apps.zapviewers.pipeline.tables import CHECKPOINT, Tables
from holdfast.apps.zapviewers.viewership import ZAP
from holdfast.spark import make_session
from holdfast.spark.connected import connected
from holdfast.spark.errors import PipelineError

BATCH, STREAMING, DECLARED = "batch", "streaming", "declared"
ENGINES = (BATCH, STREAMING, DECLARED)
EVENTS = "position BIGINT, published_at TIMESTAMP, payload BINARY"
# Of a stream: half a million lines or so, which a laptop's memory holds.
EVENTS_PER_BATCH = 2500
LOOK_EVERY_S = 1
NAME = "zapviewers"
COUNTING = "lines and boxes are counted"

Tell = Callable[[str], None]


def run(
    url: str,
    folder: Path,
    engine: str,
    *,
    to: int | None = None,
    every_s: float | None = None,
    memory: str = "2g",
    synthetic: bool = False,
    tell: Tell = lambda _: None,
    spark: SparkSession | None = None,
) -> Facts:
    """Brings the tables below a folder up to the end of a log, or up to position `to`, and says how far they are.

    With `every_s`, a stream goes on until it is interrupted, with a micro-batch so often. In `spark`, or else in a
    session of its own; what is declared always runs in one of its own.
    """
    if every_s is not None and engine != STREAMING:
        raise PipelineError(f"to go on with what comes is for the engine {STREAMING!r}, not for {engine!r}")
    if to is not None and engine != BATCH:
        raise PipelineError(
            f"the engine {engine!r} takes all that the log holds, and goes on from there the next time: a last "
            f"position is for the engine {BATCH!r}"
        )
    with blocking.connect(url) as bus:
        tail, head = bus.bounds()
    if to is not None and to > head.number:
        raise PipelineError(f"the log ends at position {head.number:,}, before {to:,}")
    if not head.number:
        raise PipelineError("the log has no events yet: 'holdfast zap publish' makes some")
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        before = read_facts(folder)
        _refuse_others(before, folder, engine, head.log)
        known = Facts(
            url=url,
            log=head.log,
            first=tail.number if before is None or engine == BATCH else before.first,
            engine=engine,
            synthetic=synthetic or (before is not None and before.synthetic),
            versions={"holdfast": __version__, "Spark": spark_version, "Python": platform.python_version()},
        )
        if before is None:
            write_facts(folder, known)
        try:
            if engine == DECLARED:
                facts = _as_declared(known, folder, memory, tell)
            else:
                with _session(spark, memory, tell) as session:
                    if engine == BATCH:
                        facts = _in_batch(known, folder, session, to or head.number, tell)
                    else:
                        facts = _as_stream(known, folder, session, tell, every_s)
        except PySparkException as problem:
            raise PipelineError(f"Spark gave up: {_brief(problem)}") from problem
        write_facts(folder, facts)
    return facts


def _in_batch(known: Facts, folder: Path, spark: SparkSession, to: int, tell: Tell) -> Facts:
    tables = Tables(folder)
    source = spark.read.format("holdfast").schema(EVENTS).options(**source_options(known.url), to=str(to))
    run_batch(source.load(), tables, tell)
    return _counted(known, to, lambda name: tables.read(spark, name), tell)


def _as_stream(known: Facts, folder: Path, spark: SparkSession, tell: Tell, every_s: float | None) -> Facts:
    tables = Tables(folder)
    source = spark.readStream.format("holdfast").schema(EVENTS).options(**source_options(known.url))
    events = source.option("max_events_per_batch", str(EVENTS_PER_BATCH)).load()
    if every_s is None:
        _follow(start_stream(events, tables), tables, tell)
        tell("the stream has taken all that the log holds")
    else:
        _follow_until_interrupted(start_stream(events, tables, f"{every_s:g} seconds"), tables, tell)
    write_gold(spark, tables, tell)
    return _counted(known, reached(tables.path(CHECKPOINT)), lambda name: tables.read(spark, name), tell)


def _follow_until_interrupted(query: StreamingQuery, tables: Tables, tell: Tell) -> None:
    try:
        _follow(query, tables, tell)
    except KeyboardInterrupt:
        tell("interrupted: the other tables are made from what came so far")


def _follow(query: StreamingQuery, tables: Tables, tell: Tell) -> None:
    """Until it ends: says how far each micro-batch came, and how many positions are waiting."""
    told = -1
    try:
        while not query.awaitTermination(LOOK_EVERY_S):
            last, now = tables.last_progress(), query.lastProgress
            if last is None or now is None or last.batch == told:
                continue
            told, source = last.batch, now["sources"][0]
            waiting = source["latestOffset"]["next"] - source["endOffset"]["next"] if source["latestOffset"] else 0
            tell(
                f"position {last.last:,}, {waiting:,} behind; {last.lines:,} lines, {last.malformed:,} malformed, "
                f"{last.late:,} late; {now['durationMs']['triggerExecution'] / 1000:.1f} s"
            )
    finally:
        query.stop()


def _as_declared(known: Facts, folder: Path, memory: str, tell: Tell) -> Facts:
    tell("Spark starts")
    with connected(NAME, memory=memory, settings=declared.settings_for(folder)) as spark:
        tell("Spark is there, and looks at which table is made from which")

        def events() -> DataFrame:
            return spark.readStream.format("holdfast").schema(EVENTS).options(**source_options(known.url)).load()

        declared.run_declared(spark, events, folder, tell)
        last = reached(folder / declared.CHECKPOINTS / declared.BRONZE_CHECKPOINT)
        return _counted(known, last, spark.read.table, tell)


def reached(checkpoint: Path) -> int:
    """The last position that a query has taken, by its checkpoint: the last of its offsets that is committed."""
    done = max((int(path.name) for path in (checkpoint / "commits").glob("*") if path.name.isdecimal()), default=None)
    if done is None:
        raise PipelineError(f"{checkpoint}: nothing was committed here")
    offset = json.loads((checkpoint / "offsets" / str(done)).read_text().splitlines()[-1])
    return int(offset["next"]) - 1


def source_options(url: str) -> dict[str, str]:
    # Events are few and large, with 200 lines each: a few of them are worth a task already.
    tasks = str(os.cpu_count() or 1)
    return {"url": url, "filter": f"topic = '{ZAP}'", "from": "earliest", "partitions": tasks}


def _counted(known: Facts, last: int, table: Callable[[str], DataFrame], tell: Tell) -> Facts:
    """The facts with the numbers that brokers count, too."""
    tell(COUNTING)
    row = gold.totals(table("bronze"), table("quarantine"), table("silver")).first()
    assert row is not None, "it is one row"
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return msgspec.structs.replace(known, last=last, when=when, **row.asDict())


def _refuse_others(before: Facts | None, folder: Path, engine: str, log: str) -> None:
    if before is None:
        return
    if before.engine != engine:
        raise PipelineError(
            f"{folder}: the engine {before.engine!r} makes these tables; give {engine!r} another folder"
        )
    if before.log != log:
        raise PipelineError(f"{folder}: these are tables of log {before.log}, and the broker's log is {log}")


@contextmanager
def _session(given: SparkSession | None, memory: str, tell: Tell) -> Iterator[SparkSession]:
    if given is not None:
        yield given
        return
    tell("Spark starts")
    session = make_session(NAME, memory=memory)
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Holds a lock on a folder, which ends with the process, however it ends."""
    with open(folder / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(f"{folder}: another run is at work on these tables") from None
        yield


def _brief(problem: Any) -> str:
    """What matters of an error of Spark: ours, if it was ours, else the first line."""
    lines = [line for line in str(problem).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("holdfast.errors.")]
    return (ours or lines or [type(problem).__name__])[0]
