"""The benchmark of the pipeline on Spark works on the log that it says it does; what it measures is in tests/spark."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_the_log_is_a_day_in_files_and_made_once(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    from pyarrow.dataset import dataset

    from benchmarks.zap_pipeline import SUMMARY, make_log

    told = make_log(tmp_path, zaps=3_000, boxes=1_000)
    (tmp_path / SUMMARY).rename(tmp_path.with_suffix(".json"))
    log = dataset(sorted(map(str, tmp_path.glob("*.parquet")))).to_table()
    lines = [line for payload in log["payload"].to_pylist() for line in payload.split(b"\n")]
    assert log["position"].to_pylist() == list(range(1, told.events + 1))
    assert len(lines) == told.lines
    assert sum(line.count(b",") == 4 for line in lines) == told.zaps
    assert told.boxes <= 1_000
    assert told.zaps > 3_000  # more, since boxes are also switched on and off with the time of day, and few are there
    tmp_path.with_suffix(".json").rename(tmp_path / SUMMARY)
    first = next(tmp_path.glob("*.parquet"))
    made = first.stat().st_mtime_ns
    assert make_log(tmp_path, zaps=3_000, boxes=1_000) == told
    assert first.stat().st_mtime_ns == made
