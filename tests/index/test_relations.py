"""`covering`, `covered_by` and `intersecting` answer as the filters do, one by one."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Filter, FilterIndex
from holdfast.matching.witness import witness
from tests.filters.strategies import conjunction_texts, filter_texts

TEXTS = st.one_of(conjunction_texts, filter_texts)


def test_covering_and_covered_by_are_each_other_s_inverse(index: FilterIndex[Any]) -> None:
    index.add("wide", Filter("price > 10"))
    index.add("narrow", Filter("price > 20 AND symbol = 'IBM'"))
    index.add("other", Filter("volume > 5"))
    index.add("never", Filter("price > 5 AND price < 3"))
    index.add("all", Filter(""))
    assert index.covering(Filter("price > 20")) == ["wide", "all"]
    assert index.covered_by(Filter("price > 10")) == ["wide", "narrow", "never"]
    assert index.intersecting(Filter("price < 15")) == ["wide", "other", "all"]
    assert index.covering(Filter("FALSE")) == ["wide", "narrow", "other", "never", "all"]


@settings(max_examples=300)
@given(st.lists(TEXTS, max_size=12), TEXTS)
def test_the_index_answers_as_the_filters_do(texts: list[str], text: str) -> None:
    index: FilterIndex[int] = FilterIndex()
    filters = dict(enumerate(map(Filter, texts)))
    for id, filter in filters.items():
        index.add(id, filter)
    asked = Filter(text)
    assert index.covering(asked) == [id for id, filter in filters.items() if filter.covers(asked)]
    assert index.covered_by(asked) == [id for id, filter in filters.items() if asked.covers(filter)]
    assert index.intersecting(asked) == [id for id, filter in filters.items() if asked.intersects(filter)]


def test_covering_compares_only_with_filters_that_match_a_witness() -> None:
    index: FilterIndex[int] = FilterIndex()
    for number in range(2000):
        index.add(number, Filter(f"key = 'k{number}' AND price > {number % 50}"))
    before = index.counters()["rows_scanned"]
    assert index.covering(Filter("key = 'k7' AND price > 60")) == [7]
    assert index.counters()["rows_scanned"] - before < 50


@given(conjunction_texts)
def test_a_witness_matches_its_filter(text: str) -> None:
    event = witness(Filter(text))
    assert event is None or Filter(text).matches(*event)


def test_usual_filters_have_a_witness() -> None:
    usual = ("price > 10", "price >= 10 AND price < 10.5", "s LIKE 'a%'", "a = TRUE AND b IS NULL", "x IN (3, 4)", "")
    for text in (*usual, "x < -5", "x > 0.1 AND x < 0.2", "topic = 'a' AND NOT (x < 5)", "x = 1 OR y = 2", "x <> 0"):
        assert witness(Filter(text)) is not None, text
