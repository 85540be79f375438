"""Runs of the pipeline over a real broker's log: every engine, run after run; and Spark counts as the brokers do."""

from __future__ import annotations

import asyncio
import fcntl
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from examples import in_spark
from experiments.replication.group import ReplicaGroup
from holdfast.apps.zapviewers.pipeline import running
from holdfast.apps.zapviewers.pipeline.comparing import Comparison
from holdfast.apps.zapviewers.pipeline.facts import Facts, write_facts
from holdfast.apps.zapviewers.pipeline.report.figures import read_figures
from holdfast.apps.zapviewers.pipeline.running import COUNTING, reached, run
from holdfast.apps.zapviewers.pipeline.tables import Progress, Tables
from holdfast.cli.main import main
from holdfast.spark.errors import PipelineError
from tests.runtime.broker_process import BrokerProcess
from tests.spark.zap_runs import assert_counts, counted, counting_broker, halves, known, publish

LAST_TABLES = ["viewers_by_minute", "windows", "days", "changes"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with counting_broker(tmp_path) as counting:
        yield counting


def test_batch_and_stream_count_as_the_brokers_do(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = halves()
    middle = publish(broker.url, first)
    streamed, batched = tmp_path / "streamed", tmp_path / "batched"
    told: list[str] = []
    facts = run(broker.url, streamed, "streaming", synthetic=True, spark=spark, tell=told.append)
    assert told[-5:] == [*(f"table {n} of 4: {name}" for n, name in enumerate(LAST_TABLES, start=1)), COUNTING]
    assert (facts.first, facts.last, facts.engine, facts.synthetic) == (1, middle, "streaming", True)
    assert_counts(streamed, facts, counted(first))

    # The stream goes on where it was; the batch stops where it is told to.
    end = publish(broker.url, second)
    facts = run(broker.url, streamed, "streaming", spark=spark)
    assert (facts.first, facts.synthetic) == (1, True)
    assert facts.last is not None
    assert facts.last >= end
    assert_counts(streamed, facts, counted([*first, *second]))
    told.clear()
    facts = run(broker.url, batched, "batch", to=middle, spark=spark, tell=told.append)
    assert told[0] == "table 1 of 9: bronze"
    assert told[-2:] == [f"table 9 of 9: {LAST_TABLES[-1]}", COUNTING]
    assert facts.last == middle
    assert_counts(batched, facts, counted(first))

    # The brokers are where the stream is, and ahead of the batch.
    compare = ["pipeline", "compare", broker.url, "--tables"]
    capsys.readouterr()
    assert main([*compare, str(streamed)]) == 0
    assert capsys.readouterr().out.startswith(f"ok      position {known(streamed).last:,}: Spark and the brokers; ")
    assert main([*compare, str(batched)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(";")[0].partition(": ")[2] for line in told] == [
        "Spark and the log",
        "the brokers and the log",
    ]

    # A viewer more than there is, and a line less, are found.
    for part in (batched / "viewers_now").glob("*.parquet"):
        part.unlink()
    wrong = {**counted_viewers(first), "Nord": 1 + counted_viewers(first)["Nord"]}
    table = pa.table({"channel": list(wrong), "viewers": list(wrong.values())})
    pq.write_table(table, batched / "viewers_now" / "part.parquet")
    assert main([*compare, str(batched)]) == 1
    assert f"viewers of 'Nord': Spark {wrong['Nord']:,}, the log {wrong['Nord'] - 1:,}" in capsys.readouterr().out

    figures = read_figures(streamed)
    assert figures.missing == []
    assert figures.refused == counted([*first, *second]).malformed
    assert figures.shares is not None
    assert figures.shares.window.days == 1

    # A stream that stood in another log stops, and says so in a line.
    newest = max((streamed / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    *head, offset = newest.read_text().splitlines()
    newest.write_text("\n".join([*head, json.dumps({**json.loads(offset), "log": "f" * 32})]))
    newest.with_name(f".{newest.name}.crc").unlink()
    with pytest.raises(PipelineError, match=r"^Spark gave up: .*the checkpoint is of log ffffffff") as raised:
        run(broker.url, streamed, "streaming", spark=spark)
    assert "\n" not in str(raised.value)


def counted_viewers(payloads: Sequence[bytes]) -> dict[str, int]:
    audience = counted(payloads)
    return dict(zip(audience.names, audience.counts(), strict=True))


def test_runs_that_would_spoil_tables_are_refused(spark: SparkSession, broker: BrokerProcess, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    with pytest.raises(PipelineError, match="the log has no events yet"):
        run(broker.url, folder, "batch", spark=spark)
    end = publish(broker.url, [b"x"])
    with pytest.raises(PipelineError, match="a last position is for the engine 'batch'"):
        run(broker.url, folder, "streaming", to=1, spark=spark)
    with pytest.raises(PipelineError, match=r"the log ends at position [0-9]+, before 1,000"):
        run(broker.url, folder, "batch", to=1000, spark=spark)
    folder.mkdir()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(PipelineError, match="another run is at work"):
            run(broker.url, folder, "batch", spark=spark)
    write_facts(folder, Facts(log="another", engine="batch", last=end))
    with pytest.raises(PipelineError, match="the engine 'batch' makes these tables; give 'streaming' another folder"):
        run(broker.url, folder, "streaming", spark=spark)
    with pytest.raises(PipelineError, match="these are tables of log another, and the broker's log is"):
        run(broker.url, folder, "batch", spark=spark)


def test_position_that_was_reached_is_the_last_committed_one(tmp_path: Path) -> None:
    for name, number in [("offsets", 0), ("offsets", 1), ("offsets", 10), ("commits", 0), ("commits", 1)]:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / str(number)).write_text(f'v1\n{{"conf": 1}}\n{{"log": "x", "next": {100 + number}}}')
        (tmp_path / name / f".{number}.crc").touch()
    assert reached(tmp_path) == 100
    with pytest.raises(PipelineError, match="nothing was committed here"):
        reached(tmp_path / "commits")


class FakeQuery:
    """A query that is looked at three times, and then interrupted."""

    def __init__(self, tables: Tables) -> None:
        self.looks = 0
        self.was_stopped = False
        self._tables = tables

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802 - Spark's name
        self.looks += 1
        if self.looks == 4:
            raise KeyboardInterrupt
        if self.looks < 3:
            number = self.looks
            progress = Progress(batch=number, last=number, lines=10 * number, malformed=1, late=0, watermark=None)
            self._tables.write_progress(progress)
        return False

    @property
    def lastProgress(self) -> dict[str, Any]:  # noqa: N802
        source = {"latestOffset": {"log": "l", "next": 9}, "endOffset": {"log": "l", "next": self.looks + 1}}
        return {"sources": [source], "durationMs": {"triggerExecution": 1500}}

    def stop(self) -> None:
        self.was_stopped = True


def test_a_stream_that_goes_on_says_how_far_it_is_until_it_is_interrupted(tmp_path: Path) -> None:
    said: list[str] = []
    tables = Tables(tmp_path)
    query = FakeQuery(tables)
    running._follow_until_interrupted(cast(StreamingQuery, query), tables, said.append)
    assert said == [
        "position 1, 7 behind; 10 lines, 1 malformed, 0 late; 1.5 s",
        "position 2, 6 behind; 20 lines, 1 malformed, 0 late; 1.5 s",
        "interrupted: the other tables are made from what came so far",
    ]
    assert query.was_stopped


def test_only_a_stream_goes_on(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="to go on with what comes is for the engine 'streaming', not for 'batch'"):
        running.run("holdfast://127.0.0.1:1", tmp_path, running.BATCH, every_s=5)


def test_the_demo_says_which_table_spark_is_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def nothing(*_: object) -> int:
        return 0

    async def no_comparisons(*_: object) -> list[Comparison]:
        return []

    def told(url: str, folder: Path, engine: str, *, synthetic: bool, tell: running.Tell) -> Facts:
        tell("table 1 of 9: bronze")
        return Facts(lines=1, boxes=1, malformed=0, last=1)

    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    monkeypatch.setattr(in_spark, "scene", nothing)
    monkeypatch.setattr(in_spark, "compare", no_comparisons)
    monkeypatch.setattr(in_spark, "run", told)
    monkeypatch.setattr(in_spark, "write_report", lambda tables, page: None)
    assert asyncio.run(in_spark.scene_in_spark(cast(ReplicaGroup, SimpleNamespace(url="holdfast://127.0.0.1:1")))) == 0
    said = [line.partition(" s  ")[2].strip() for line in capsys.readouterr().out.splitlines()]
    assert said[1:3] == ["table 1 of 9: bronze", "1 lines of 1 boxes, 0 malformed, to position 1"]
