"""Predictions in Spark are those of plain Python, subscriber by subscriber (D1-H4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from holdfast.errors import PredictionError
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.graph import PartGraph
from holdfast.qos.interest import Publisher, Subscriber
from holdfast.qos.parts import NEVER_FAILS, part_of_availability
from holdfast.qos.prediction import Model
from holdfast.spark.predictions import PREDICTED, PUBLISHERS, SUBSCRIBERS, predict
from holdfast.topology.generators import Kind, links_of

DAY, LIFETIME = 86_400, 3_600
LEVELS = list(Reliability)
Rows = list[tuple[object, ...]]
STORED = [Reliability.PERIODIC, Reliability.BUFFERED]


def drawn(count: int, rng: Random, degree: float) -> PartGraph:
    names = [f"b{number}" for number in range(count)]
    return PartGraph(
        {name: part_of_availability(rng.uniform(0.9, 0.999), 7 * DAY) for name in names},
        {ends: part_of_availability(0.99, 60_000) for ends in links_of(Kind.RANDOM_GRAPH, names, rng, degree)},
    )


def clients(
    graph: PartGraph, rng: Random, publishers: int, subscribers: int
) -> tuple[list[Publisher], list[Subscriber]]:
    """Of twelve topics nobody publishes two, and of a third one nothing."""
    names, topics = list(graph.brokers), [f"t{number}" for number in range(12)]
    speaking = [
        Publisher(
            rng.choice(names), topic := rng.choice(topics[:10]), 0.0 if topic == "t9" else rng.choice([0.0, 1.0, 2.5])
        )
        for _ in range(publishers)
    ]
    listening = [
        Subscriber(rng.choice(names), rng.choice(topics), f"s{number}", rng.randint(1, 9))
        for number in range(subscribers)
    ]
    return speaking, listening


def frames(
    spark: SparkSession, publishers: Iterable[Publisher], subscribers: Iterable[Subscriber]
) -> tuple[DataFrame, DataFrame]:
    return (
        spark.createDataFrame([(one.home, one.topic, one.rate) for one in publishers], PUBLISHERS),
        spark.createDataFrame([(one.home, one.topic, one.name, one.count) for one in subscribers], SUBSCRIBERS),
    )


def assert_the_same(
    spark: SparkSession,
    model: Model,
    publishers: Sequence[Publisher],
    subscribers: Sequence[Subscriber],
    levels: Sequence[Reliability],
) -> None:
    result = predict(model, *frames(spark, publishers, subscribers), levels)
    assert result.schema.simpleString() == PREDICTED.simpleString()
    rows = result.collect()
    found = {(row.home, row.topic, row.name, row["count"], row.level): row.reliability for row in rows}
    expected = {
        (its.home, its.topic, its.name, its.count, level.value): value
        for one in model.predict(publishers, subscribers, levels)
        for its, (level, value) in ((one.subscriber, told) for told in one.reliability.items())
    }
    assert len(rows) == len(subscribers) * len(levels)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert found[key] == (None if value is None else pytest.approx(value, rel=0, abs=1e-12)), key


@pytest.mark.parametrize(("brokers", "degree"), [(30, 2.1), (40, 3.0)], ids=["exact ways", "Eq. 12"])
def test_every_subscriber_is_told_what_plain_python_tells(spark: SparkSession, brokers: int, degree: float) -> None:
    rng = Random(brokers)
    graph = drawn(brokers, rng, degree)
    publishers, subscribers = clients(graph, rng, 200, 2_000)
    model = Model(graph, LIFETIME)
    assert {None} < {one.reliability[Reliability.BUFFERED] for one in model.predict(publishers, subscribers, LEVELS)}
    assert_the_same(spark, model, publishers, subscribers, LEVELS)


def test_of_one_publisher_a_topic_every_digit_is_the_same(spark: SparkSession) -> None:
    rng = Random(5)
    graph = drawn(30, rng, 2.2)
    publishers = [Publisher(rng.choice(list(graph.brokers)), f"t{number}", 0.3) for number in range(12)]
    _, subscribers = clients(graph, rng, 0, 500)
    rows = predict(Model(graph, LIFETIME), *frames(spark, publishers, subscribers), STORED).collect()
    expected = {one.subscriber.name: one for one in Model(graph, LIFETIME).predict(publishers, subscribers, STORED)}
    assert [row.reliability for row in rows] == [expected[row.name].reliability[Reliability(row.level)] for row in rows]


def test_work_is_spread_and_every_pair_is_evaluated_once(spark: SparkSession) -> None:
    """The pairs are few bytes, which Spark would like to give to one task."""
    graph = drawn(40, Random(1), 3.0)
    publishers = [Publisher(home, topic) for home in graph.brokers for topic in ("t", "u")]
    subscribers = [Subscriber(home, topic) for home in graph.brokers for topic in ("t", "u")]
    result = predict(Model(graph, LIFETIME), *frames(spark, publishers, subscribers), [Reliability.BYPASS])
    result.collect()
    plan = result._jdf.queryExecution().executedPlan().toString().partition("== Initial Plan ==")[0]
    assert plan.count("MapInArrow") == 1
    evaluated = plan.partition("MapInArrow")[2]
    tasks, read = evaluated.partition("Exchange ")[2].splitlines()[0], evaluated.partition("Exchange ")[0]
    assert "least" in tasks
    assert "2), REPARTITION_BY_NUM" in tasks
    assert "AQEShuffleRead" not in read


def test_a_lifetime_of_nothing_and_a_network_of_one_broker(spark: SparkSession) -> None:
    assert_the_same(spark, Model(drawn(12, Random(2), 2.2), 0), [Publisher("b3")], [Subscriber("b1")], LEVELS)
    alone = Model(PartGraph({"b1": part_of_availability(0.9, DAY)}, {}), LIFETIME)
    assert_the_same(spark, alone, [Publisher("b1")], [Subscriber("b1", name="a"), Subscriber("b1", "t")], LEVELS)


def test_without_publishers_or_subscribers(spark: SparkSession) -> None:
    model = Model(drawn(12, Random(2), 2.2), LIFETIME)
    assert_the_same(spark, model, [], [Subscriber("b1"), Subscriber("b2", "t")], STORED)
    assert_the_same(spark, model, [Publisher("b1")], [], STORED)


def test_what_can_not_be_predicted_is_said_before_anything_is(spark: SparkSession) -> None:
    model = Model(PartGraph({"b1": NEVER_FAILS, "b2": NEVER_FAILS}, {("b1", "b2"): NEVER_FAILS}), LIFETIME)
    good: tuple[Rows, Rows] = ([("b1", "t", 1.0)], [("b2", "t", "", 1)])

    def told(publishers: Rows, subscribers: Rows) -> str:
        made = spark.createDataFrame(publishers, PUBLISHERS), spark.createDataFrame(subscribers, SUBSCRIBERS)
        with pytest.raises(PredictionError) as caught:
            predict(model, *made, STORED)
        return str(caught.value)

    assert told([*good[0], ("b7", "t", 1.0)], good[1]) == "there is no broker 'b7'"
    assert told(good[0], [*good[1], ("b8", "t", "", 1)]) == "there is no broker 'b8'"
    assert told([("b7", "t", 1.0)], [("b8", "t", "", 1)]) == "there is no broker 'b7'"
    assert told([*good[0], ("b2", "t", -1.0)], good[1]) == "a publisher at 'b2' has the rate -1, and it is 0 or more"
    assert told([("b2", "t", float("nan"))], good[1]) == "a publisher at 'b2' has the rate nan, and it is 0 or more"
    assert told([("b1", "t", None)], good[1]) == "there is a publisher without a rate"
    assert told([("b1", None, 1.0)], good[1]) == "there is a publisher without a topic"
    assert told(good[0], [(None, "t", "", 1)]) == "there is a subscriber without a home"


def test_columns_and_levels_are_checked(spark: SparkSession) -> None:
    model = Model(PartGraph({"b1": NEVER_FAILS}, {}), LIFETIME)
    publishers, subscribers = frames(spark, [Publisher("b1", "t")], [Subscriber("b1", "t", "a", 2)])
    with pytest.raises(PredictionError, match="publishers lack the column 'rate', which is double"):
        predict(model, publishers.drop("rate"), subscribers, STORED)
    with pytest.raises(PredictionError, match="subscribers have the column 'count', which is bigint, not string"):
        predict(model, publishers, subscribers.selectExpr("home", "topic", "name", "'2' AS count"), STORED)
    with pytest.raises(PredictionError, match="no level"):
        predict(model, publishers, subscribers, [])
    more = subscribers.selectExpr("1 AS other", "*")
    twice = predict(model, publishers, more, [Reliability.PERIODIC, Reliability.PERIODIC])
    assert [tuple(row) for row in twice.collect()] == [("b1", "t", "a", 2, "periodic", 1.0)]
