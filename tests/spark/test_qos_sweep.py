"""Runs of the simulator as tasks of Spark: the same points as in plain Python, and how far they agree (D1-H2)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from experiments.d1.world import Setup
from experiments.qos.comparison import Compared, compare
from experiments.qos.on_spark import POINTS, agreement, compare_on_spark, read_points
from holdfast.protocols.routing.settings import Reliability

# Parts fail every half an hour, so that something does in a run so short.
TREE = Setup(
    level=Reliability.BUFFERED, days=0.1, every_s=300, lifetime_s=300, period_days=0.02, subscribers=20, brokers=5
)
GRAPH = msgspec.structs.replace(TREE, level=Reliability.BYPASS_BUFFERED, graph=True, seed=2)


@cache
def plain(setup: Setup) -> Compared:
    return _timeless(compare(setup))


def _timeless(compared: Compared) -> Compared:
    return msgspec.structs.replace(compared, seconds=0.0)


def test_a_run_in_a_task_gives_every_digit_of_a_run_at_home(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "points"
    found = list(compare_on_spark(spark, [GRAPH, TREE], str(folder)))
    assert [_timeless(one) for one in found] == [plain(GRAPH), plain(TREE)]
    assert len({point.measured for one in found for point in one.points}) > 3, "nothing failed in these runs"
    assert all(one.seconds > 0 for one in found)
    assert [path.name for path in folder.iterdir() if path.is_dir()] == ["run=0"]
    assert read_points(spark, str(folder)).schema.simpleString() == POINTS.simpleString()


def test_agreement_is_that_of_all_subscribers(spark: SparkSession) -> None:
    rows = [
        # place, level, number, count, measured, replayed
        (0, "periodic", 0, 3, 0.9, 0.8),
        (1, "periodic", 0, 1, 0.5, 0.5),
        (2, "buffered", 0, 2, 0.7, 0.8),
        (3, "buffered", None, None, None, None),  # a run without points
    ]
    columns = "place LONG, level STRING, number LONG, count LONG, measured DOUBLE, replayed DOUBLE"
    frame = spark.createDataFrame(rows, columns).selectExpr("*", "false graph", "'low' quality")
    found = {row.level: row for row in agreement(frame).collect()}
    assert found.keys() == {"periodic", "buffered"}
    for level, row in found.items():
        its = [one for one in rows if one[1] == level and one[3]]
        y, x = (np.repeat([one[place] for one in its], [one[3] or 0 for one in its]) for place in (4, 5))
        assert (row.runs, row.subscribers) == (len(its), len(y))
        told = (row.measured, row.replayed, row.rmse, row.largest, row.bias)
        expected = (y.mean(), x.mean(), np.sqrt(((x - y) ** 2).mean()), abs(x - y).max(), (y - x).mean())
        assert told == pytest.approx(expected, abs=1e-12)


def test_without_a_folder_and_without_setups(spark: SparkSession) -> None:
    assert list(compare_on_spark(spark, [])) == []
    (found,) = compare_on_spark(spark, [TREE])
    assert _timeless(found) == plain(TREE)


def test_a_run_that_fails_names_its_setup(spark: SparkSession) -> None:
    wrong = msgspec.structs.replace(TREE, brokers=0, seed=77)
    with pytest.raises(PythonException, match='"seed":77'):
        list(compare_on_spark(spark, [wrong]))
