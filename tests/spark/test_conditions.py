"""Conditions on columns as filters: never stronger, and not needlessly weak."""

from collections.abc import Sequence
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit, udf

from holdfast.model import Filter
from holdfast.spark.conditions import implied_filter
from tests.spark.conditions import SCHEMA, TRAPS, Case, Condition, condition, events, fits, row

EVENTS = 220


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], SCHEMA)


def truths(spark: SparkSession, cases: Sequence[Case], conditions: Sequence[Condition]) -> list[list[bool]]:
    """For every event, which conditions Spark finds TRUE for its row: one job for all of them."""
    rows = spark.createDataFrame([row(place, case) for place, case in enumerate(cases)], SCHEMA).coalesce(1)
    found = rows.selectExpr(*(each.sql for each in conditions)).collect()
    return [[value is True for value in values] for values in found]


def check(spark: SparkSession, frame: DataFrame, cases: Sequence[Case], conditions: Sequence[Condition]) -> None:
    filters = [Filter(implied_filter(frame, expr(each.sql))) for each in conditions]
    for case, selected in zip(cases, truths(spark, cases, conditions), strict=True):
        fit = all(fits(name, value) for name, value in case.attributes.items())
        for wanted, of_spark, of_broker in zip(conditions, selected, filters, strict=True):
            matches = of_broker.matches(case.attributes, case.topic)
            assert matches or not of_spark, (wanted.sql, str(of_broker), case)
            assert matches == of_spark or not wanted.exact or not fit, (wanted.sql, str(of_broker), case)
    assert [each.sql for each, text in zip(conditions, filters, strict=True) if each.pushable and not str(text)] == []


def random_conditions(random: Random, count: int) -> list[Condition]:
    return [condition(random, 3, opaque=place % 2 == 0) for place in range(count)]


def test_an_event_whose_row_meets_a_condition_matches_its_filter(spark: SparkSession, frame: DataFrame) -> None:
    random = Random(1)
    traps = [Condition(sql, pushable=False, exact=False) for trap in TRAPS for sql in (trap, f"NOT ({trap})")]
    check(spark, frame, events(random, EVENTS), [*traps, *random_conditions(random, 40)])


@pytest.mark.long
def test_no_filter_is_stronger_than_its_condition_in_a_campaign(spark: SparkSession, frame: DataFrame) -> None:
    for seed in range(100):
        random = Random(seed)
        check(spark, frame, events(random, EVENTS), random_conditions(random, 200))


# What is pushed for a condition: the sharpest filter that follows from it.
FILTERS = {
    "x > 5": "x > 5",
    "X > 5L AND 7 >= n": "x > 5 AND n <= 7",
    "x > 5.5": "x > 5",  # Spark's own, for whole numbers
    "x > 5.5D": "x > 5.5",
    "x = 9007199254740992D": "x IS NOT NULL",
    "x < d": "x IS NOT NULL AND d IS NOT NULL",
    "n < d": "n < d",
    "d = 0.1": "d = 0.1",
    "d > 5": "d > 5.0",
    "n IN (1, 2, NULL)": "n IN (1, 2)",
    "x IN (1, 2.5)": "x IN (1, 2.5)",
    "NOT x IN (1, 2)": "x NOT IN (1, 2)",
    "x = 1 OR s = 'a' OR x = 2 OR x IN (3, 1)": "x IN (1, 2, 3) OR s = 'a'",
    "x BETWEEN 1 AND 5": "x >= 1 AND x <= 5",
    "x NOT BETWEEN 1 AND 5": "x < 1 OR x > 5",
    "NOT (x > 5 AND (s = 'a' OR b))": "x <= 5 OR s <> 'a' AND NOT b",
    "s LIKE 'a\\\\%b_'": "s LIKE 'a!%b_' ESCAPE '!'",
    "s LIKE 'a!%!!' ESCAPE '!'": "s LIKE 'a!%!!' ESCAPE '!'",
    "startswith(s, 'it\\'s_')": "s LIKE 'it''s!_%' ESCAPE '!'",
    "contains(s, '')": "s LIKE '%'",
    "NOT endswith(s, 'a')": "s NOT LIKE '%a'",
    "length(s) > 3": "s IS NOT NULL",
    "s COLLATE UTF8_LCASE = 'a'": "",
    "`or` = 5 AND `a \"b\".c` = 'x' AND `Ü` > 0": """"or" = 5 AND "a ""b"".c" = 'x' AND Ü > 0.0""",
    "topic = 'stock'": "topic = 'stock'",
    "b": "b",
    "b = false": "NOT b",
    "b < true": "b IS NOT NULL",
    "(s > 'a') IS TRUE": "s > 'a'",
    "x <=> 5": "x = 5",
    "x IS NULL": "",
    "x IS NULL AND s = 'a'": "s = 'a'",
    "x IS NULL OR s = 'a'": "",
    "NOT (x IS NULL OR s = 'a')": "x IS NOT NULL AND s <> 'a'",
    "position > 5 AND coalesce(d, 1) = n AND x = 1": "n IS NOT NULL AND x = 1",
    "x = 1 AND s = NULL": "FALSE",
    "attributes['price'].f > 5": "price > 5.0",
    "attributes.`a b`.s LIKE 'x%'": "\"a b\" LIKE 'x%'",
    "attributes['p'].i = 1 OR attributes['p'].f = 1": "p = 1",
    "coalesce(attributes.p.i, attributes.p.f) >= 2": "p >= 2.0",
    "attributes['p'] IS NOT NULL": "p IS NOT NULL",
    "map_contains_key(attributes, 'p')": "p IS NOT NULL",
    "attributes[''].i > 1": "",
    "try_cast(x AS INT) > 5": "x IS NOT NULL",
    "x > (SELECT 1)": "x IS NOT NULL",
}


def test_filters_are_as_sharp_as_they_can_be(frame: DataFrame) -> None:
    assert {sql: implied_filter(frame, expr(sql)) for sql in FILTERS} == FILTERS
    assert implied_filter(frame, col("x").isin([])) == "FALSE"
    assert implied_filter(frame, ~col("x").isin([])) == ""
    assert implied_filter(frame, udf(lambda x: True, "boolean")(col("x")) & (col("d") == lit(-0.0))) == "d = -0.0"


def test_a_condition_beyond_the_limits_of_filters_is_pushed_in_part(frame: DataFrame) -> None:
    long_list = expr(f"x IN ({', '.join(map(str, range(-5, 2000)))})")
    assert implied_filter(frame, long_list) == "x BETWEEN -5 AND 1999"
    assert implied_filter(frame, ~long_list & col("b")) == "x IS NOT NULL AND b"
    chain = " OR ".join(f"x = {number}" for number in range(300))
    assert implied_filter(frame, expr(chain)).startswith("x IN (0, 1, 2, ")
    text = "x" * 3000
    assert implied_filter(frame, (col("s") > text) & (col("topic") > text) & col("b")) == f"s > '{text}' AND b"
    assert implied_filter(frame, (col("s") > text) | (col("topic") > text)) == ""
    assert implied_filter(frame, col("s").like("_" * 17) & col("b")) == "s IS NOT NULL AND b"
    deep = "b"
    for number in range(80):
        deep = f"({deep} {'AND' if number % 2 else 'OR'} x = {number})"
    pushed = implied_filter(frame, expr(f"{deep} AND d > 1"))
    assert pushed.endswith(" AND x = 79 AND d > 1.0")
    assert "b" not in Filter(pushed).attributes


def test_with_a_plan_out_of_reach_nothing_is_pushed() -> None:
    class OfConnect:
        @property
        def _jdf(self) -> None:
            raise AttributeError("[JVM_ATTRIBUTE_NOT_SUPPORTED]")

    assert implied_filter(OfConnect(), None) == ""  # type: ignore[arg-type]
