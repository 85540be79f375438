"""How many filters are compared to find those that intersect, cover or are covered: counted, since clocks lie."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest

from holdfast import Filter
from holdfast.matching.relations import Relations

Ask = Callable[[Relations[int], Filter], list[int]]
INTERSECTING: Ask = Relations.intersecting
COVERED_BY: Ask = Relations.covered_by
COVERING: Ask = Relations.covering


def built(texts: Iterable[str]) -> Relations[int]:
    relations: Relations[int] = Relations()
    for id, text in enumerate(texts):
        relations.add(id, Filter(text))
    return relations


def work(relations: Relations[int], ask: Ask, text: str) -> tuple[int, int]:
    """Filters that were compared, and found."""
    before = relations.counters()["filters_compared"]
    found = len(ask(relations, Filter(text)))
    return relations.counters()["filters_compared"] - before, found


@pytest.mark.parametrize("count", [2_000, 20_000])
@pytest.mark.parametrize("asked", ["topic = 't17' AND price > 100", "topic = 't17'", "topic IN ('t17') AND x = 'a'"])
def test_of_advertised_topics_those_that_intersect_are_compared_however_many_there_are(count: int, asked: str) -> None:
    relations = built(f"topic = 't{n % (count // 10)}'" for n in range(count))
    assert work(relations, INTERSECTING, asked) == (10, 10)


def test_what_binds_no_attribute_of_the_question_intersects_and_is_found() -> None:
    relations = built([*(f"topic = 't{n}'" for n in range(500)), "price < 5"])
    assert work(relations, INTERSECTING, "price > 100") == (501, 500)  # one alone is compared rather than looked up


@pytest.mark.parametrize(
    ("texts", "asked", "found", "compared_max"),
    [
        ((f"x BETWEEN {n} AND {n + 1.5}" for n in range(8000)), "x BETWEEN 70.6 AND 72.2", 3, 3),
        ((f"x BETWEEN {n}e-300 AND {n + 1.5}e-300" for n in range(1, 8000)), "x = 70.75e-300", 1, 1),
        ((f"x BETWEEN {-n - 1} AND {-n}" for n in range(8000)), "x BETWEEN -70.5 AND -70.25", 1, 1),
        ((f"x > {n}" for n in range(8000)), "x < 3.5", 4, 4),
        ((f"x <= {n}" for n in range(8000)), "x > 7996.5", 3, 3),
        ((f"x = {n}" for n in range(8000)), "x BETWEEN 70 AND 72", 3, 3),
        ((f"x <> {n}" for n in range(300)), "x = 70", 299, 299),
        ((f"s LIKE '/site/{n:04}/%'" for n in range(8000)), "s LIKE '/site/001%'", 10, 10),
        ((f"s LIKE '/site/{n:04}/%'" for n in range(8000)), "s = '/site/0017/door'", 1, 1),
        ((f"s = '/site/{n:04}'" for n in range(8000)), "s LIKE '/site/001%'", 10, 10),
        ((f"s IN ('a{n}', 'b{n}', 'c{n}')" for n in range(4000)), "s IN ('b7', 'c7', 'a9')", 2, 2),
        ((f"k = {n % 90} AND b = {n % 2 == 0}" for n in range(9000)), "b = TRUE AND k = 8", 100, 100),
        ((f"(k = {n} AND x > 1) OR (j = {n} AND x > 5)" for n in range(4000)), "k = 8 AND j = 9 AND x = 3", 1, 2),
        ((f"k = {n} AND p * q > {n}" for n in range(4000)), "k = 8 AND p > 3", 1, 1),
    ],
)
def test_as_many_are_compared_as_intersect(texts: Iterable[str], asked: str, found: int, compared_max: int) -> None:
    relations = built(texts)
    compared, intersecting = work(relations, INTERSECTING, asked)
    assert intersecting == found
    assert compared <= compared_max


def test_each_attribute_that_both_bind_can_be_what_is_found_by() -> None:
    """An event reaches a row by one attribute of the row's; a filter may leave just that open."""
    relations = built(f"topic = 't{n % 100}' AND symbol = 's{n}'" for n in range(5000))
    assert work(relations, INTERSECTING, "topic = 't200'") == (0, 0)
    assert work(relations, INTERSECTING, "symbol = 's7'") == (1, 1)
    assert work(relations, INTERSECTING, "topic = 't7' AND symbol = 's7'") == (1, 1)
    assert work(relations, INTERSECTING, "topic = 't7'") == (50, 50)


def test_what_is_covered_is_found_among_what_lies_within() -> None:
    relations = built(f"topic = 't{n % 10}' AND price > {n}" for n in range(5000))
    assert work(relations, COVERED_BY, "topic = 't3' AND price > 4970") == (30, 3)
    assert work(relations, COVERED_BY, "topic = 't77'") == (0, 0)
    assert work(relations, COVERED_BY, "symbol = 's3'") == (0, 0)  # nothing says anything of symbols


def test_what_covers_is_found_among_what_holds_one_of_its_conjunctions() -> None:
    relations = built([*(f"topic = 't{n}' AND price > {n % 50}" for n in range(5000)), "", "size > 3"])
    assert work(relations, COVERING, "topic = 't7' AND price > 60") == (2, 2)
    assert work(relations, COVERING, "topic = 't7' AND a * b > 3") == (1, 1)


def test_whether_anything_intersects_is_known_at_the_first() -> None:
    relations = built(f"topic = 't{n}'" for n in range(5000))
    assert relations.intersects(Filter("price > 100"))
    assert relations.counters()["filters_compared"] == 1


def test_what_comes_and_goes_in_any_order_is_found_while_it_is_there() -> None:
    """Blocks of ends that split and empty, buckets and prefixes that come into use and go out of it."""
    draw = random.Random(7)
    shapes = (
        lambda: f"x > {draw.randrange(400)}",
        lambda: f"x <= {draw.uniform(-50, 50)}",
        lambda: f"x BETWEEN {(low := draw.uniform(-50, 50))} AND {low + draw.choice([0.001, 1, 30, 1e6])}",
        lambda: f"s LIKE '{draw.choice(['', 'a', 'ab', 'abc', 'x'])}%'",
        lambda: f"s BETWEEN 'a{draw.randrange(9)}' AND 'b'",
        lambda: f"x <> {draw.randrange(5)} AND s = 'ab'",
    )
    relations: Relations[int] = Relations()
    filters = {id: Filter(draw.choice(shapes)()) for id in range(6_000)}
    for id, filter in filters.items():
        relations.add(id, filter)
    while filters:
        for id in draw.sample(list(filters), min(len(filters), 1_500)):
            del filters[id]
            relations.remove(id)
        for text in (f"x BETWEEN {draw.randrange(40)} AND 41", "x = 3", "s LIKE 'ab%'", "s = 'abcd' AND x < -20"):
            asked = Filter(text)
            assert relations.intersecting(asked) == [id for id, one in filters.items() if asked.intersects(one)]
    assert relations.counters()["groups"] == 0
