"""Predictions of networks with very many subscribers, in Spark: the values of `holdfast.qos.prediction` (D1-H4).

    publishers ─ rates by topic and home ─┐
                                          ├─ who gets what from where ─ distinct pairs ─ each evaluated once, in Python
    subscribers ─ distinct topic, home ───┘             │                                        │
         │                                              └───────── mean, weighted by rates ──────┘
         └──────────────────────────── left join ───────────────────────────┘

Only distinct pairs of brokers come to Python; all that grows with clients is Spark's own. Needs `holdfast[spark,qos]`,
on executors too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DoubleType, IntegerType, LongType, StringType, StructField, StructType

from holdfast.errors import PredictionError
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.graph import PartGraph
from holdfast.qos.interest import Publisher
from holdfast.qos.prediction import Model

PUBLISHERS: Final = StructType(
    [StructField("home", StringType()), StructField("topic", StringType()), StructField("rate", DoubleType())]
)
SUBSCRIBERS: Final = StructType(
    [
        StructField("home", StringType()),
        StructField("topic", StringType()),
        StructField("name", StringType()),
        StructField("count", LongType()),
    ]
)
PREDICTED: Final = StructType(
    [*SUBSCRIBERS.fields, StructField("level", StringType(), False), StructField("reliability", DoubleType())]
)

# Of the brokers whose pairs one task evaluates. What a task shares is worth a few; what it keeps grows with each.
BROKERS_A_TASK_MIN, BROKERS_A_TASK_MAX = 8, 100

_PLACES = StructType([StructField("home", StringType()), StructField("place", IntegerType())])
_PAIR = (StructField("source", IntegerType()), StructField("target", IntegerType()))

Evaluate = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def predict(model: Model, publishers: DataFrame, subscribers: DataFrame, levels: Sequence[Reliability]) -> DataFrame:
    """Of each subscriber, at each level: `PREDICTED`, in any order. NULL if no publisher publishes for it.

    The frames have the columns of `PUBLISHERS` and `SUBSCRIBERS`; others are left out. PredictionError if they lack
    one, or, after a look through both that ends at the first such row, if a home is no broker, a rate is not 0 or more,
    or there is none. The rest is lazy: each action on the result computes it again, so write it, or cache it.
    """
    publishers = _columns(publishers, PUBLISHERS, "publishers")
    subscribers = _columns(subscribers, SUBSCRIBERS, "subscribers")
    distinct = list(dict.fromkeys(levels))
    if not distinct:
        raise PredictionError("there is no level to predict for")
    names = list(model.graph.brokers)
    numbered = pa.table({"home": pa.array(names, pa.string()), "place": pa.array(range(len(names)), pa.int32())})
    places = F.broadcast(subscribers.sparkSession.createDataFrame(numbered, _PLACES))
    _check(model, publishers, subscribers, places)

    # Eq. 1: what is published where. Homes are places from here on: a pair is eight bytes.
    flows = publishers.where("rate > 0").join(places, "home").groupBy("topic", F.col("place").alias("source"))
    wanted = subscribers.select("topic", "home").distinct().join(places, "home")
    routes = flows.agg(F.sum("rate").alias("rate")).join(
        wanted.select("topic", F.col("place").alias("target")), "topic"
    )
    values = _evaluated(model, routes.select("source", "target").distinct(), distinct)
    # Eq. 2
    means = [
        (F.sum(F.col("rate") * F.col(column)) / F.sum("rate")).alias(column) for column in _level_columns(distinct)
    ]
    weighted = routes.join(values, ["source", "target"]).groupBy("topic", F.col("target").alias("place")).agg(*means)
    told = subscribers.join(weighted.join(places, "place").drop("place"), ["home", "topic"], "left")
    rows = [
        F.struct(F.lit(level.value).alias("level"), F.col(column).alias("reliability"))
        for level, column in zip(distinct, _level_columns(distinct), strict=True)
    ]
    return told.select(*SUBSCRIBERS.fieldNames(), F.inline(F.array(*rows)))


# ------------------------------------------------------------------------------------------------------- what is given
def _columns(frame: DataFrame, wanted: StructType, what: str) -> DataFrame:
    types = {field.name: field.dataType for field in frame.schema.fields}
    for field in wanted.fields:
        needed = f"{field.name!r}, which is {field.dataType.simpleString()}"
        if field.name not in types:
            raise PredictionError(f"the {what} lack the column {needed}")
        if types[field.name] != field.dataType:
            raise PredictionError(f"the {what} have the column {needed}, not {types[field.name].simpleString()}")
    return frame.select(*wanted.fieldNames())


def _check(model: Model, publishers: DataFrame, subscribers: DataFrame, places: DataFrame) -> None:
    """At most one row of each frame comes to the driver, and the model says what is wrong with it."""
    # NaN is above all numbers in Spark.
    rate_is_wrong = F.col("rate").isNull() | F.isnan("rate") | (F.col("rate") < 0)
    wrong = _misplaced(publishers, places, rate_is_wrong).select(
        F.lit("publisher").alias("what"), "home", "topic", "rate"
    )
    others = _misplaced(subscribers, places).select(F.lit("subscriber").alias("what"), "home", "topic", F.lit(0.0))
    found = {row.what: row for row in wrong.limit(1).union(others.limit(1)).collect()}
    for what in ("publisher", "subscriber"):
        if what in found:
            raise _problem(model, found[what])


def _misplaced(frame: DataFrame, places: DataFrame, *also: Column) -> DataFrame:
    conditions = (F.col("place").isNull(), F.col("topic").isNull(), *also)
    return frame.join(places, "home", "left").where(reduce(Column.__or__, conditions))


def _problem(model: Model, row: Row) -> PredictionError:
    for name in ("home", "topic", "rate"):
        if row[name] is None:
            return PredictionError(f"there is a {row.what} without a {name}")
    try:
        model.check(Publisher(row.home, row.topic, row.rate))
    except PredictionError as problem:
        return problem
    raise AssertionError(f"Spark and the model differ about {row}")


# ------------------------------------------------------------------------------------------------------------ of pairs
def _evaluated(model: Model, pairs: DataFrame, levels: Sequence[Reliability]) -> DataFrame:
    """`pairs` with a column for each level."""
    brokers = len(model.graph.brokers)
    tasks = int(pairs.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    tasks = max(min(tasks, brokers // BROKERS_A_TASK_MIN), brokers // BROKERS_A_TASK_MAX, 1)
    # Delays are shared by the pairs of a source. Ways between two brokers are the same there and back, and cost far
    # more: where they are asked for, both directions go to the same task.
    both_ways = any(level.detours for level in levels)
    owner = F.least("source", "target") if both_ways else F.col("source")
    schema = StructType([*_PAIR, *(StructField(column, DoubleType()) for column in _level_columns(levels))])
    # With a number of partitions that is given: Spark would put so few bytes into one, and one core would do it all.
    return pairs.repartitionById(tasks, owner).mapInArrow(_evaluator(model, levels), schema)


def _evaluator(model: Model, levels: Sequence[Reliability]) -> Evaluate:
    # What travels are the parts, not what the model has computed meanwhile. Spark broadcasts closures beyond 1 MB.
    brokers, links, lifetime = model.graph.brokers, model.graph.links, model.lifetime
    together = list(model.graph.together.values())

    def evaluate(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        here = Model(PartGraph(brokers, links, together), lifetime)
        names = list(brokers)
        for batch in batches:
            sources, targets = (batch.column(name) for name in ("source", "target"))
            pairs = [(names[s], names[t]) for s, t in zip(sources.to_pylist(), targets.to_pylist(), strict=True)]
            columns: dict[str, Any] = {"source": sources, "target": targets}
            for level, column in zip(levels, _level_columns(levels), strict=True):
                columns[column] = pa.array([here.pair(level, *pair) for pair in pairs], pa.float64())
            yield pa.RecordBatch.from_pydict(columns)

    return evaluate


def _level_columns(levels: Sequence[Reliability]) -> list[str]:
    return [f"level_{number}" for number in range(len(levels))]
