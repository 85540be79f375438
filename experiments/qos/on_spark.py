"""The comparison of many setups as tasks of Spark: one run of the simulator each (D1-H2).

    spark = session(jobs=2)
    for compared in compare_on_spark(spark, setups, folder="sweep"): …
    agreement(read_points(spark, "sweep")).show()

The points are written as Parquet, partitioned by run, and only read from there: to use a frame of runs twice is to run
them twice. A run that fails ends the sweep, with its setup in the message.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, DoubleType, LongType, StringType, StructField, StructType

from experiments.d1.world import Setup
from experiments.qos.comparison import Compared, Point, compare
from holdfast.spark import make_session

ROOT = Path(__file__).parent.parent.parent
KIND = ("graph", "quality", "level")

SETUPS: Final = StructType([StructField("place", LongType(), False), StructField("setup", StringType(), False)])
POINTS: Final = StructType(
    [
        StructField("place", LongType()),  # of the setup in the sweep
        StructField("run", LongType()),
        StructField("seed", LongType()),
        StructField("graph", BooleanType()),
        StructField("quality", StringType()),
        StructField("level", StringType()),
        StructField("setup", StringType()),  # all of it, as JSON
        StructField("number", LongType()),  # of the point in its run; NULL if the run has none
        StructField("count", LongType()),  # how many subscribers it stands for
        StructField("measured", DoubleType()),
        StructField("replayed", DoubleType()),
        StructField("point", StringType()),  # all of it, as JSON
        StructField("compared", StringType()),  # the run without its points, as JSON, in its first row
    ]
)


def session(jobs: int) -> SparkSession:
    """A session whose workers import this package, wherever it was started."""
    known = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([str(ROOT), *([known] if known else [])])
    return make_session("holdfast-sweep", master=f"local[{jobs}]", settings={"spark.executorEnv.PYTHONPATH": path})


def compare_on_spark(spark: SparkSession, setups: Sequence[Setup], folder: str | None = None) -> Iterator[Compared]:
    """What `compare` gives of each setup, in their order, when all have been run.

    Of `folder`, which must not exist, every executor needs to reach the same; without one, the points are kept on this
    machine until they have been read.
    """
    if folder is None:
        with TemporaryDirectory(prefix="holdfast-sweep-") as temporary:
            yield from compare_on_spark(spark, setups, f"{temporary}/points")
        return
    write_points(spark, setups, folder)
    rows = read_points(spark, folder).orderBy("place", "number").select("place", "point", "compared")
    for _, its in groupby(rows.toLocalIterator(), key=lambda row: row.place):
        first, *others = its
        compared = msgspec.json.decode(first.compared, type=Compared)
        texts = [row.point for row in (first, *others) if row.point is not None]
        points = [msgspec.json.decode(text, type=Point) for text in texts]
        yield msgspec.structs.replace(compared, points=points)


def write_points(spark: SparkSession, setups: Sequence[Setup], folder: str) -> None:
    """Runs all, and writes a row for each subscriber of each."""
    if not setups:
        spark.createDataFrame([], POINTS).write.partitionBy("run").parquet(folder)
        return
    rows = [(place, msgspec.json.encode(setup).decode()) for place, setup in enumerate(setups)]
    # A task for each: a run takes seconds to minutes, and who is done early takes the next.
    frame = spark.createDataFrame(rows, SETUPS).repartitionById(len(rows), F.col("place").cast("int"))
    frame.mapInArrow(_compared, POINTS).write.partitionBy("run").parquet(folder)


def read_points(spark: SparkSession, folder: str) -> DataFrame:
    # Spark puts what it finds in the names of folders last.
    return spark.read.schema(POINTS).parquet(folder).select(*POINTS.fieldNames())


def _compared(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = to_arrow_schema(POINTS)
    for batch in batches:
        for row in batch.to_pylist():
            try:
                compared = compare(msgspec.json.decode(row["setup"], type=Setup))
            except Exception as problem:
                problem.add_note(f"in the run of {row['setup']}")
                raise
            yield pa.RecordBatch.from_pylist(_rows(row, compared), schema)


def _rows(row: dict[str, Any], compared: Compared) -> list[dict[str, Any]]:
    setup = compared.setup
    head = {
        **row,
        "run": setup.run,
        "seed": setup.seed,
        "graph": setup.graph,
        "quality": setup.quality,
        "level": setup.level.value,
    }
    rows = []
    for number, point in enumerate(compared.points):
        typed = {"count": point.count, "measured": point.measured, "replayed": point.replayed}
        rows.append({**head, **typed, "number": number, "point": msgspec.json.encode(point).decode()})
    rows = rows or [head]
    rows[0]["compared"] = msgspec.json.encode(msgspec.structs.replace(compared, points=[])).decode()
    return rows


def agreement(points: DataFrame) -> DataFrame:
    """For each kind of network, over all subscribers of all runs, how far what was measured is from the ideal replay:
    the root of the mean square of the differences, the largest, and their mean; and both means."""
    count, difference = F.col("count"), F.col("measured") - F.col("replayed")
    total = F.sum("count")
    return (
        points.where("number IS NOT NULL")
        .groupBy(*KIND)
        .agg(
            F.countDistinct("place").alias("runs"),
            total.alias("subscribers"),
            (F.sum(F.col("measured") * count) / total).alias("measured"),
            (F.sum(F.col("replayed") * count) / total).alias("replayed"),
            F.sqrt(F.sum(difference * difference * count) / total).alias("rmse"),
            F.max(F.abs(difference)).alias("largest"),
            (F.sum(difference * count) / total).alias("bias"),
        )
        .orderBy(*KIND)
    )
