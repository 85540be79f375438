"""The canonical form: equal filters are equal, ranges are merged, contradictions are recognised."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Filter, FilterLimits
from tests.filters import strategies
from tests.filters.reference import Value

Event = tuple[dict[str, Value], str]
ROOMY = FilterLimits(text_bytes=2**20, depth=256, predicates=2**20, in_values=2**20)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", "TRUE"),
        ("TRUE", "TRUE"),
        ("1 < 2", "TRUE"),
        ("x > 1 AND x > 2", "x > 2"),
        ("2 < x", "x > 2"),
        ("x >= 1 AND x <= 5", "x BETWEEN 1 AND 5"),
        ("x >= 1 AND x < 5", "x >= 1 AND x < 5"),
        ("x BETWEEN 1 AND 5 AND x BETWEEN 3 AND 9", "x BETWEEN 3 AND 5"),
        ("x BETWEEN 1 AND 5 OR x BETWEEN 3 AND 9", "x BETWEEN 1 AND 9"),
        ("x < 3 OR x = 3", "x <= 3"),
        ("x < 3 OR x > 3", "x <> 3"),
        ("x = 3 OR x = 1 OR x = 2 OR x = 1", "x IN (1, 2, 3)"),
        ("x IN (1, 2, 3) AND x > 1", "x IN (2, 3)"),
        ("x IN (1, 2) AND x <> 1", "x = 2"),
        ("x IN (1, 2, 'a') AND x >= ''", "x = 'a'"),
        ("x = 5.0", "x = 5"),
        ("x = -0.0", "x = 0"),
        ("x >= 'a' AND x < 'b'", "x LIKE 'a%'"),
        ("x LIKE 'abc'", "x = 'abc'"),
        ("x LIKE 'a%' AND x LIKE 'ab%'", "x LIKE 'ab%'"),
        ("x LIKE 'a%' AND x = 'ab'", "x = 'ab'"),
        ("x LIKE 'a_c' AND x IN ('abc', 'abd')", "x = 'abc'"),
        ("x LIKE '%'", "x >= ''"),
        ("x LIKE 'a%%b'", "x LIKE 'a%b'"),
        ("x LIKE 'a!_%' ESCAPE '!'", "x LIKE 'a!_%' ESCAPE '!'"),
        ("x NOT LIKE 'a%b'", "x NOT LIKE 'a%b'"),
        ("NOT (x < 5)", "NOT x < 5"),
        ("NOT NOT x < 5", "x < 5"),
        ("NOT x IS NULL", "x IS NOT NULL"),
        ("x", "x = TRUE"),
        ("NOT x", "x = FALSE"),
        ("x <> TRUE", "x = FALSE"),
        ("x = 1 OR x IS NULL", "x IS NULL OR x = 1"),
        ("x IS NULL OR x IS NOT NULL", "TRUE"),
        ("b > 1 AND a > 1", "a > 1 AND b > 1"),
        ("b = a", "a = b"),
        ("b < a", "a > b"),
        ("(a = 1 OR b = 1) AND TRUE", "a = 1 OR b = 1"),
        ("a = 1 OR FALSE", "a = 1"),
        ("a + (1 + 2) = b", "a + 3 = b"),
    ],
)
def test_the_canonical_text(text: str, canonical: str) -> None:
    assert str(Filter(text).canonical) == canonical
    assert Filter(text) == Filter(canonical)
    assert hash(Filter(text)) == hash(Filter(canonical))


@pytest.mark.parametrize(
    "text",
    [
        "FALSE",
        "NOT TRUE",
        "1 > 2",
        "1 / 0 = 1",
        "'a' + 1 = 2 OR FALSE",
        "x > 5 AND x < 5",
        "x >= 5 AND x < 5",
        "x > 5 AND x <= 5",
        "x = 1 AND x = 2",
        "x = 1 AND x = 'a'",
        "x = TRUE AND x = FALSE",
        "x AND NOT x",
        "x < TRUE",
        "x = 1 AND x IS NULL",
        "NOT x = 1 AND x = 1",
        "x < ''",
        "x BETWEEN 5 AND 1",
        "x BETWEEN 1 AND 'a'",
        "x IN (1, 2) AND x IN (3, 4)",
        "x IN (1, 2) AND x NOT IN (1, 2)",
        "x LIKE 'a%' AND x LIKE 'b%'",
        "x LIKE 'a%' AND x < 'a'",
        "x LIKE 'a%' AND x > 5",
        "x LIKE 'a_' AND x = 'abc'",
        "x LIKE 'a_' AND x NOT LIKE 'a_'",
        "x LIKE 'a_' AND NOT x >= ''",
        "x NOT LIKE 'a_' AND x IS NULL",
        "a = b AND NOT b = a",
        "y = 1 AND (x > 1 AND x < 0)",
        "(x > 1 AND x < 0) OR (y = 1 AND y = 2)",
        f"x > {2**53} AND x < {2**53}.0",
    ],
)
def test_a_contradiction_is_recognised(text: str) -> None:
    assert str(Filter(text).canonical) == "FALSE"
    assert Filter(text) == Filter("FALSE")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("x < 5", "NOT x >= 5"),
        ("x = 1", "x = '1'"),
        ("x = 1", "x = TRUE"),
        ("x <> 1", "NOT x = 1"),
        ("x = 1", "y = 1"),
        ("x = 1", "X = 1"),
        (f"x = {2**53 + 1}", f"x = {2**53}.0"),
        (f"x > {2**53 + 1}", f"x > {2**53}.0"),
        ("x > 1", "x >= 1"),
        ("x > 'a'", "x >= 'a'"),
        ("x LIKE 'a_'", "x LIKE 'a!_' ESCAPE '!'"),
        ("x LIKE '%a_'", "x LIKE '%a!_' ESCAPE '!'"),
        ("x LIKE '%a_' AND NOT x LIKE '%a!_' ESCAPE '!'", "FALSE"),
        ("x IS NULL", "NOT x = 1"),
        ("a = 1 AND b = 1", "a = 1 OR b = 1"),
        ("a - b = 1", "b - a = 1"),
        ("x >= 0 OR x <= 0", "x IS NOT NULL"),
        ("x LIKE '%'", "x IS NOT NULL"),
        ("", "x IS NOT NULL"),
    ],
)
def test_filters_that_differ_are_not_equal(a: str, b: str) -> None:
    assert Filter(a) != Filter(b)


def test_a_filter_equals_no_other_kind_of_object() -> None:
    assert Filter("x = 1") != "x = 1"
    assert Filter("x = 1") != None  # noqa: E711


def test_equal_filters_are_one_key() -> None:
    assert len({Filter("x > 1 AND x > 2"), Filter("2 < x"), Filter("x > 2.0"), Filter("NOT NOT x > 2")}) == 1


def test_the_canonical_form_is_not_held_to_the_limits_of_the_text() -> None:
    merged = Filter("x IN (1, 2) OR x IN (3, 4)", limits=FilterLimits(in_values=2))
    assert str(merged.canonical) == "x IN (1, 2, 3, 4)"
    prefix = Filter("x >= 'a' AND x < 'b'", limits=FilterLimits(like_percents=0))
    assert str(prefix.canonical) == "x LIKE 'a%'"


def test_in_lists_of_a_text_within_all_default_limits_merge() -> None:
    numbers = [*range(100), *range(-9, 0), *(f".{n}" for n in range(1, 10)), *range(100, 1000)]
    numbers += [f"{m}e{e}" for m in range(1, 10) for e in range(3, 5)]
    halves = [",".join(map(str, numbers[i::2])) for i in range(2)]
    filter = Filter(f"x IN({halves[0]})OR x IN({halves[1]})")
    assert len(set(map(float, numbers))) > 1024
    assert filter.canonical == filter


@given(strategies.filter_texts, st.lists(strategies.events, min_size=1, max_size=3))
@settings(max_examples=1000)
def test_the_canonical_form_matches_what_the_filter_matches(text: str, events: list[Event]) -> None:
    filter = Filter(text)
    canonical = filter.canonical
    for event in events:
        assert canonical.matches(*event) is filter.matches(*event)


@given(strategies.filter_texts)
@settings(max_examples=800)
def test_the_canonical_form_is_an_equal_filter_and_its_own_canonical_form(text: str) -> None:
    filter = Filter(text)
    canonical = filter.canonical
    assert Filter(str(filter)) == filter
    assert canonical == filter
    assert hash(canonical) == hash(filter)
    assert str(canonical.canonical) == str(canonical)
    read_back = Filter(str(canonical), limits=ROOMY)
    assert read_back == filter
    assert hash(read_back) == hash(filter)


@given(strategies.conjunction_texts, strategies.conjunction_texts, strategies.conjunction_texts)
@settings(max_examples=300)
def test_the_laws_of_logic_keep_filters_equal(a: str, b: str, c: str) -> None:
    assert Filter(f"({a}) AND ({b})") == Filter(f"({b}) AND ({a})")
    assert Filter(f"({a}) OR ({b})") == Filter(f"({b}) OR ({a})")
    assert Filter(f"(({a}) AND ({b})) AND ({c})") == Filter(f"({a}) AND (({b}) AND ({c}))")
    assert Filter(f"NOT (({a}) AND ({b}))") == Filter(f"NOT ({a}) OR NOT ({b})")
    assert Filter(f"NOT (({a}) OR ({b}))") == Filter(f"NOT ({a}) AND NOT ({b})")
    assert Filter(f"NOT NOT ({a})") == Filter(a)
    assert Filter(f"({a}) AND ({a})") == Filter(a)


@pytest.mark.long
@given(strategies.deep_filter_texts, st.lists(strategies.events, min_size=1, max_size=4))
def test_the_canonical_form_of_a_deep_filter_matches_what_it_matches(text: str, events: list[Event]) -> None:
    filter = Filter(text, limits=ROOMY)
    canonical = filter.canonical
    assert canonical == filter
    assert str(canonical.canonical) == str(canonical)
    for event in events:
        assert canonical.matches(*event) is filter.matches(*event)
