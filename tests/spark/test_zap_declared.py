"""The declared pipeline: it goes on from run to run, and no table is made before what it is made from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from holdfast.apps.zapviewers.pipeline.declared import in_order, tell_tables
from holdfast.apps.zapviewers.pipeline.report.figures import read_figures
from holdfast.cli.main import main
from holdfast.spark.connected import connected
from holdfast.spark.errors import PipelineError
from tests.spark import zap_reference as reference
from tests.spark.zap_runs import assert_counts, counted, counting_broker, halves, known, logged, publish

RUN_WITHIN_S = 900  # a busy machine is no mistake


@pytest.mark.full
def test_declared_tables_go_on_run_after_run(tmp_path: Path) -> None:
    """In processes of their own: a session by way of Connect can't stand beside another one."""
    first, second = halves()
    folder = tmp_path / "tables"
    with counting_broker(tmp_path) as broker:
        command = [sys.executable, "-m", "holdfast.cli", "pipeline", "run", "zapviewers", broker.url]
        command += ["--tables", str(folder), "--engine", "declared"]
        for new, payloads in [(first, first), (second, [*first, *second])]:
            publish(broker.url, new)
            done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=RUN_WITHIN_S)
            assert done.returncode == 0, done.stderr
            told = [line for line in done.stderr.splitlines() if line.startswith("table ")]
            assert [line.partition(":")[0] for line in told] == [f"table {place} of 9" for place in range(1, 10)]
            assert told[0] == "table 1 of 9: bronze"
            assert_counts(folder, known(folder), counted(payloads))
            assert main(["pipeline", "compare", broker.url, "--tables", str(folder)]) == 0
            # A view that was made before the table below it would lack the end of the log.
            expected = reference.intervals(reference.lines_of(logged(broker.url)))
            assert sorted(rows_of(folder / "intervals"), key=repr) == sorted(map(tuple, expected), key=repr)
    facts = known(folder)
    # The second run took what was new, and nothing twice.
    keys = [row[:2] for row in rows_of(folder / "silver")]
    assert len(keys) == len(set(keys)) == (facts.lines or 0) - (facts.malformed or 0)
    figures = read_figures(folder)
    assert (figures.refused, figures.missing) == (facts.malformed, [])
    assert figures.viewing is not None
    assert not (tmp_path / "derby.log").exists()


def rows_of(table: Path) -> list[tuple[object, ...]]:
    found = pa.concat_tables(pq.read_table(path) for path in table.glob("*.parquet"))
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def test_session_by_way_of_connect_is_refused_beside_another(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match="this process has a Spark session already"), connected():
        pass


SOURCES: dict[str, set[str]] = {"bronze": set(), "silver": {"bronze"}, "intervals": {"silver"}}
GOOD = [
    f"Flow spark_catalog.default.{table} {state}."
    for table in SOURCES
    for state in ("is QUEUED", "is STARTING", "is RUNNING", "has COMPLETED")
] + ["Run is COMPLETED."]


def test_table_that_is_made_before_its_source_stops_the_run() -> None:
    assert list(in_order(GOOD, SOURCES)) == GOOD
    # As Spark told it, of a view that had looked up its source too early.
    early = [GOOD[8], GOOD[9], *GOOD[:8], *GOOD[10:]]
    with pytest.raises(PipelineError, match="Spark makes intervals before silver, which it is made from"):
        list(in_order(early, SOURCES))


def test_a_run_tells_which_table_it_is_at() -> None:
    told: list[str] = []
    tell_tables([*GOOD, *GOOD], SOURCES, told.append)  # Spark begins a table again if it has failed
    assert told == ["table 1 of 3: bronze", "table 2 of 3: silver", "table 3 of 3: intervals"]
    with pytest.raises(RuntimeError, match="broken off"):
        tell_tables(broken_off(), SOURCES, told.append)
    assert told[3:] == ["table 1 of 3: bronze", "Flow spark_catalog.default.bronze has FAILED."]


def broken_off() -> Iterator[str]:
    yield from [GOOD[0], GOOD[1], "Flow spark_catalog.default.bronze has FAILED."]
    raise RuntimeError("broken off")


def test_completion_that_is_told_late_does_no_harm() -> None:
    done = next(place for place, message in enumerate(GOOD) if "silver" in message and "COMPLETED" in message)
    late = [*GOOD[:done], GOOD[done + 1], GOOD[done], *GOOD[done + 2 :]]
    assert list(in_order(late, SOURCES)) == late


def test_run_that_ends_without_a_table_is_no_run() -> None:
    with pytest.raises(PipelineError, match="the run ended without intervals"):
        list(in_order([message for message in GOOD if "intervals" not in message], SOURCES))
