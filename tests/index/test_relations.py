"""`covering`, `covered_by` and `intersecting` answer as the filters do, one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Filter, FilterIndex
from holdfast.errors import DuplicateId, UnknownId
from holdfast.matching.relations import Relations
from holdfast.matching.witness import witness
from tests.filters.strategies import Choices, conjunction, conjunction_texts, filter_text
from tests.tiers import one_always


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


NAMES = ("a", "b", "größe", "topic")


def random_filter(choices: Choices) -> Filter:
    """Conjunctions over few attributes, which often meet; two of them; or anything."""
    match choices.below(6):
        case 0 | 1 | 2:
            return Filter(conjunction(choices, NAMES))
        case 3:
            return Filter(f"({conjunction(choices, NAMES)}) OR {conjunction(choices, NAMES)}")
        case _:
            return Filter(filter_text(choices))


def run_against_oracle(source: bytes) -> None:
    """Plays additions and removals, and compares each answer with those of the filters, order included."""
    choices = Choices(source)
    index: FilterIndex[int] = FilterIndex()
    relations: Relations[int] = Relations()
    filters: dict[int, Filter] = {}
    for step in range(5 + choices.below(30)):
        match choices.below(5):
            case 0 | 1 | 2:
                filters[step] = random_filter(choices)
                index.add(step, filters[step])
                relations.add(step, filters[step])
            case 3 if filters:
                gone = choices.of(list(filters))
                del filters[gone]
                index.remove(gone)
                relations.remove(gone)
            case _:
                asked = choices.of(list(filters.values())) if filters and choices.below(2) else random_filter(choices)
                covering = [id for id, filter in filters.items() if filter.covers(asked)]
                covered = [id for id, filter in filters.items() if asked.covers(filter)]
                intersecting = [id for id, filter in filters.items() if asked.intersects(filter)]
                assert index.covering(asked) == relations.covering(asked) == covering
                assert index.first_covering(asked) == next(iter(covering), None)
                assert relations.covers(asked) is bool(covering)
                assert index.covered_by(asked) == relations.covered_by(asked) == covered
                assert index.intersecting(asked) == relations.intersecting(asked) == intersecting
                assert relations.intersects(asked) is bool(intersecting)
    for id in filters:
        relations.remove(id)
    assert relations.counters()["rows"] == relations.counters()["groups"] == 0


@pytest.mark.parametrize("examples", one_always([500, 1_500]))
def test_the_index_answers_as_the_filters_do(examples: int) -> None:
    @settings(max_examples=examples)
    @given(st.binary(min_size=200, max_size=2_500))
    def compare(source: bytes) -> None:
        run_against_oracle(source)

    compare()


@pytest.mark.long
def test_no_difference_over_twenty_thousand_runs() -> None:
    draw = random.Random("relations")
    for _ in range(20_000):
        run_against_oracle(draw.randbytes(draw.randrange(200, 2_500)))


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        # An inconsistent filter whose inconsistency the canonical form does not see: it has no rows, and is covered.
        ("(x < 5 OR y < 5) AND x > 5 AND y > 5", "x > 3"),
        ("a IS NULL AND a + 1 > 3", "a IS NOT NULL"),
        # A comparison of expressions binds the attributes that it needs.
        ("a + b > 3", "a IS NOT NULL"),
        ("(a IS NULL OR a > 5) AND a + 1 > 3", "a IS NOT NULL"),
        ("a + 1 > 3", "NOT (a + 1 > 3)"),
        # More alternatives than are looked up.
        (" AND ".join(f"(p{n} = 1 OR q{n} = 1)" for n in range(9)), "p0 = 2 AND q0 = 2"),
        (" AND ".join(f"(p{n} = 1 OR q{n} = 1)" for n in range(9)), "p0 = 1 OR q0 = 1"),
        # Large integers, which doubles don't tell apart; strings by code point; kinds beside each other.
        ("x BETWEEN 9007199254740992 AND 9007199254740994", "x = 9007199254740993"),
        ("x > 9007199254740992", "x < 9007199254740993"),
        ("x > 1 AND x < 1.0000000000000002", "x > 1"),
        ("x BETWEEN -0.0 AND 5e-324", "x = 0"),
        ("s LIKE 'a\U0010ffff%'", "s LIKE 'a%'"),
        ("s IN ('a', 'a\0', 'b')", "s BETWEEN 'a' AND 'aa'"),
        ("NOT (x < 5)", "x = 'text'"),
        ("topic IS NULL", "topic <> 'a'"),
        ("s LIKE 'a%b' AND s IN ('axb', 'axc')", "s = 'axc'"),
    ],
)
def test_what_is_seldom_drawn_is_answered_as_the_filters_do(held: str, asked: str) -> None:
    relations: Relations[str] = Relations()
    filters = {text: Filter(text) for text in (held, asked, "", "FALSE", "x = 1 OR s = 'q'")}
    for text, filter in filters.items():
        relations.add(text, filter)
    for one in filters.values():
        assert relations.intersecting(one) == [text for text, filter in filters.items() if one.intersects(filter)]
        assert relations.covered_by(one) == [text for text, filter in filters.items() if one.covers(filter)]
        assert relations.covering(one) == [text for text, filter in filters.items() if filter.covers(one)]


def test_ids_are_unique_and_known_and_a_refusal_changes_nothing() -> None:
    relations: Relations[str] = Relations()
    relations.add("one", Filter("x = 1"))
    with pytest.raises(DuplicateId):
        relations.add("one", Filter("x = 2"))
    with pytest.raises(UnknownId):
        relations.remove("other")
    assert (len(relations), relations.intersecting(Filter("x = 2"))) == (1, [])
    assert relations.counters()["rows"] == 1


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
