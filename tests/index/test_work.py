"""How much the compiled engine looks at: work counters, since clocks lie on a busy machine."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from benchmarks import workloads
from holdfast import Filter, FilterIndex
from holdfast.matching.index import ENGINES
from holdfast.matching.plan import plan

pytestmark = pytest.mark.skipif("compiled" not in ENGINES, reason="the compiled kernel is not built")


def built(texts: Iterable[str]) -> FilterIndex[int]:
    index: FilterIndex[int] = FilterIndex(engine="compiled")
    for id, text in enumerate(texts):
        index.add(id, Filter(text))
    return index


def work(index: FilterIndex[int], events: list[dict[str, Any]]) -> tuple[float, float]:
    """Rows scanned and matches, for an event on average."""
    before = index.counters()["rows_scanned"]
    matches = sum(map(len, index.match_batch(events)))
    return (index.counters()["rows_scanned"] - before) / len(events), matches / len(events)


@pytest.mark.parametrize(
    ("make", "rows_a_match"),
    [
        (lambda count: workloads.standard(count, 0.003, "uniform", events=40), 4),
        (lambda count: workloads.standard(count, 0.003, "zipf", events=40), 25),
        (lambda count: workloads.numbers_alone(count, 0.003, events=40), 120),
        (lambda count: workloads.strings_alone(count, events=40), 6),
        (lambda count: workloads.prefixes_alone(count, events=40), 3),
        (lambda count: workloads.lists_alone(count, events=40), 3),
        (lambda count: workloads.keys(count, events=40), 8),
    ],
    ids=["standard", "zipf", "numbers", "strings", "prefixes", "lists", "keys"],
)
def test_rows_scanned_follow_the_matches_and_not_the_filters(
    make: Callable[[int], workloads.Workload], rows_a_match: float
) -> None:
    workload = make(8000)
    index = built(workload.filters)
    rows, matches = work(index, workload.events)
    assert rows <= rows_a_match * max(matches, 1)


def test_a_value_that_all_filters_share_is_not_what_they_are_found_by() -> None:
    index = built(f"class = 'STOCK' AND symbol = 'S{n % 1000}' AND price > {n % 50}" for n in range(8000))
    rows, matches = work(index, [{"class": "STOCK", "symbol": "S7", "price": 100}])
    assert matches == 8
    assert rows <= 60


def test_narrow_ranges_are_found_by_the_range_when_the_equality_says_nothing() -> None:
    index = built(f"class = 'STOCK' AND price BETWEEN {n} AND {n + 0.5}" for n in range(8000))
    rows, matches = work(index, [{"class": "STOCK", "price": n + 0.25} for n in range(100, 8000, 500)])
    assert matches == 1
    assert rows <= 20


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e15, 1e200])
def test_ranges_are_found_at_any_scale(scale: float) -> None:
    index = built(f"x BETWEEN {(1 + n / 1000) * scale!r} AND {(1 + (n + 1) / 1000) * scale!r}" for n in range(4000))
    rows, matches = work(index, [{"x": (1 + (n + 0.5) / 1000) * scale} for n in range(0, 4000, 200)])
    assert 1 <= matches <= 2
    assert rows <= 16


def test_thresholds_are_scanned_only_up_to_the_value() -> None:
    draw = random.Random(3)
    levels = [draw.uniform(0, 1000) for _ in range(8000)]
    above = built(f"x > {level!r}" for level in levels)
    below = built(f"x <= {level!r}" for level in levels)
    for value in (1.0, 10.0, 100.0):
        rows, matches = work(above, [{"x": value}])
        assert rows <= matches + 1100
        rows, matches = work(below, [{"x": 1000 - value}])
        assert rows <= matches + 1100


@pytest.mark.parametrize("others", [range(-700, 0), range(6, 706), [*range(-700, 0), *range(6, 706)]])
def test_a_threshold_that_most_filters_share_does_not_hide_the_others(others: Iterable[int]) -> None:
    bounds = [5] * 5000 + list(others)
    at_least = built(f"x >= {bound}" for bound in bounds)
    rows, matches = work(at_least, [{"x": -650}, {"x": 4}])
    assert rows <= matches + 1100
    at_most = built(f"x <= {bound}" for bound in bounds)
    rows, matches = work(at_most, [{"x": 690}, {"x": 6}])
    assert rows <= matches + 1100


@pytest.mark.parametrize(
    "outlier",
    ["price < 1e300", "price > -1e300", "price < -1e300", "price > 1e15", "price BETWEEN -1.7e308 AND 1.7e308"],
)
@pytest.mark.parametrize("condition", ["price > {}", "price < 9{}", "price BETWEEN {} AND 900"])
@pytest.mark.parametrize("key", ["key = 'k{}-'", "key IN ('k{}-', 'j{}')", "key LIKE 'k{}-%'"])
def test_one_filter_with_a_far_bound_does_not_mislead_the_others(outlier: str, condition: str, key: str) -> None:
    texts = [f"{key.format(n, n)} AND {condition.format(n % 100)}" for n in range(800)]
    index = built([outlier, *texts])
    rows, matches = work(index, [{"key": f"k{n}-", "price": 500} for n in range(0, 800, 97)])
    assert rows <= matches + 200


def test_a_filter_is_not_stored_many_times_over() -> None:
    """Eight choices of two are 256 conjunctions; a thousand values in each of them would be a hostile filter's."""
    choices = " AND ".join(f"(p{n} = 1 OR q{n} = 1)" for n in range(8))
    values = ", ".join(map(str, range(700)))
    assert len(plan(Filter(choices))) == 256
    for text in (f"{choices} AND x IN ({values})", f"{choices} AND NOT x IN ({values})"):
        assert len(plan(Filter(text))) <= 8
    wide = " AND ".join(f"a{n} = 1" for n in range(200))
    conjunctions = plan(Filter(f"{wide} AND {choices}"))
    assert 2 <= len(conjunctions) <= 32


def test_alternatives_that_are_too_many_keep_what_each_of_them_needs() -> None:
    choices = " AND ".join(f"(p{n} = 1 OR q{n} = 1)" for n in range(8))
    index = built([f"(x = {n} AND {choices}) OR (x = {n + 1} AND {choices}) OR (x = -1 AND y = 1)" for n in range(9)])
    assert index.match({"x": 100, **{f"p{n}": 1 for n in range(8)}}) == []
    assert index.counters()["filters_asked"] == 0
    assert index.match({"x": 5, **{f"p{n}": 1 for n in range(8)}}) == [4, 5]
    assert index.match({"x": -1, "y": 1}) == list(range(9))


def test_what_must_be_asked_is_asked_only_of_candidates() -> None:
    index = built(f"key = 'k{n}' AND price * volume > {n}" for n in range(3000))
    index.match({"key": "k5", "price": 10, "volume": 10})
    assert index.counters()["filters_asked"] == 1


def test_a_filter_is_not_asked_when_one_alternative_is_certain() -> None:
    index = built(["x = 5 OR x + y > 3", "x > 9007199254740993 OR y = 5"])
    assert index.match({"x": 5, "y": 5}) == [0, 1]
    assert index.match({"x": 2**53, "y": 5}) == [0, 1]
    assert index.counters()["filters_asked"] == 1  # x + y > 3, of the second event


def test_a_boundless_pattern_costs_a_hostile_event_one_pass() -> None:
    """50 inner wildcards over 64 KiB: the kernel's search is linear, so this ends at once."""
    index = built(["s LIKE '" + "%a" * 50 + "%b'", "s LIKE '" + "%ab" * 30 + "'"])
    assert index.match({"s": "a" * 65_536}) == []
    assert index.match({"s": "ab" * 32_768}) == [0, 1]


def test_counters_are_given_by_both_engines() -> None:
    for engine in sorted(ENGINES):
        index: FilterIndex[int] = FilterIndex(engine=engine)  # type: ignore[arg-type]
        index.add(1, Filter("x = 1"))
        index.match({"x": 1})
        counters = index.counters()
        assert (counters["events"], counters["rows"], counters["rows_scanned"]) == (1, 1, 1)
