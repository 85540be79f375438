"""What a filter's error says, and the limits of the language, each at its edge and one beyond."""

import pickle
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from holdfast import (
    DEFAULT_LIMITS,
    EventError,
    Filter,
    FilterError,
    FilterLimits,
    HoldfastError,
    attributes_from_padres,
)
from holdfast.errors import CARET_CONTEXT_CHARACTERS


def error_of(text: str, limits: FilterLimits = DEFAULT_LIMITS) -> FilterError:
    with pytest.raises(FilterError) as caught:
        Filter(text, limits=limits)
    return caught.value


# ---- limits


def test_the_defaults_are_those_that_were_promised() -> None:
    assert FilterLimits() == FilterLimits(
        text_bytes=4096, depth=64, predicates=256, in_values=1024, like_percents=64, like_underscores=16, name_bytes=128
    )


def filled(size: int) -> str:
    return "x = '" + "a" * (size - 6) + "'"


def parentheses(depth: int) -> str:
    return "(" * depth + "x" + ")" * depth


def in_list(size: int) -> str:
    return f"x IN ({','.join(str(n % 10) for n in range(size))})"


MAKERS: list[tuple[str, Callable[[int], str]]] = [
    ("text_bytes", filled),
    ("text_bytes", lambda n: filled(n - 3) + "   "),
    ("text_bytes", lambda n: "x = '" + "ä" * ((n - 6) // 2) + "a" * (n % 2) + "'"),
    ("depth", parentheses),
    ("depth", lambda n: "NOT " * (n - 1) + "x"),
    ("depth", lambda n: "-" * (n - 2) + "x = 1"),
    ("predicates", lambda n: " OR ".join(["x=1"] * n)),
    ("predicates", lambda n: " AND ".join(["x"] * n)),
    ("predicates", lambda n: " AND ".join(["NOT x"] * n)),
    ("predicates", lambda n: " OR ".join(["a IN(1,2)"] * n)),
    ("predicates", lambda n: " AND ".join(["(x)"] * n)),
    ("in_values", in_list),
    ("in_values", lambda n: f"y AND x NOT IN ({','.join(['1'] * n)})"),
    ("like_percents", lambda n: f"x LIKE '{'%a' * n}'"),
    ("like_underscores", lambda n: f"x LIKE '{'_a' * n}'"),
    ("name_bytes", lambda n: "a" * n),
    ("name_bytes", lambda n: '"' + "ä" * (n // 2) + "a" * (n % 2) + '" = 1'),
]


@pytest.mark.parametrize(("limit", "make"), MAKERS)
def test_a_filter_at_a_limit_is_accepted_and_one_beyond_is_refused(limit: str, make: Callable[[int], str]) -> None:
    most: int = getattr(DEFAULT_LIMITS, limit)
    Filter(make(most))
    error = error_of(make(most + 1))
    assert f"limit {limit} = {most}" in str(error)
    assert error.expected or limit.startswith("like_")


@pytest.mark.parametrize(
    "limits",
    [
        FilterLimits(text_bytes=20),
        FilterLimits(depth=5),
        FilterLimits(predicates=3),
        FilterLimits(in_values=3),
        FilterLimits(like_percents=3),
        FilterLimits(like_underscores=3),
        FilterLimits(name_bytes=3),
    ],
)
def test_a_limit_can_be_chosen(limits: FilterLimits) -> None:
    limit = next(
        name for name in FilterLimits.__struct_fields__ if getattr(limits, name) != getattr(FilterLimits(), name)
    )
    most: int = getattr(limits, limit)
    makers = [make for name, make in MAKERS if name == limit]
    Filter(makers[0](most), limits=limits)
    assert f"limit {limit} = {most}" in str(error_of(makers[0](most + 1), limits))


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "(a OR b AND " * n + "c" + ")" * n,
        lambda n: "x = " + "(a + b * " * n + "c" + ")" * n,
        lambda n: "(a = 1 + " * n + "c" + ")" * n,
    ],
)
def test_depth_counts_every_level_of_the_tree(make: Callable[[int], str]) -> None:
    """Each parenthesis here makes two levels: 31 of them fit, long before there are 64."""
    Filter(make(31))
    assert "limit depth = 64" in str(error_of(make(32)))


def test_a_chain_has_no_depth() -> None:
    Filter("x = " + "a + " * 500 + "a")
    Filter("x = " + "a * " * 500 + "a")
    Filter("a AND " * 255 + "a")
    Filter("a OR " * 255 + "a")


def test_a_number_of_too_many_digits_is_refused_whatever_the_limits() -> None:
    for number in ["9" * 5000, "0" * 5000 + ".5", "1e" + "9" * 5000]:
        error = error_of(f"x = {number}", FilterLimits(text_bytes=10_000))
        assert "number" in error.problem
        assert error.offset == 4
        error_of(f"x IN ({number})", FilterLimits(text_bytes=10_000))


def test_an_in_list_counts_as_one_predicate() -> None:
    Filter(in_list(1000), limits=FilterLimits(predicates=1))


def test_between_counts_as_one_predicate() -> None:
    Filter("x BETWEEN 1 AND 2", limits=FilterLimits(predicates=1))


def test_the_limit_of_bytes_is_passed_at_a_character_of_the_text() -> None:
    text = "x = '" + "\U0001f600" * 1200 + "'"
    error = error_of(text)
    place = 5 + 4091 // 4
    assert (error.offset, error.line, error.column) == (place, 1, place + 1)
    excerpt, caret = str(error).splitlines()[-2:]
    assert excerpt[caret.index("^")] == "\U0001f600"


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_the_place_of_the_first_character_beyond_the_limit_of_bytes(width: int) -> None:
    character = {1: "a", 2: "ä", 3: "価", 4: "\U0001f600"}[width]
    for limit in range(8, 20):
        error = error_of(character * 20, FilterLimits(text_bytes=limit))
        assert error.offset == limit // width


# ---- hostile texts


HOSTILE = {
    "parentheses": "(" * 100_000 + "x" + ")" * 100_000,
    "open parentheses": "(" * 100_000,
    "closed parentheses": ")" * 100_000,
    "NOTs": "NOT " * 100_000 + "x",
    "signs": "-" * 100_000 + "x = 1",
    "a sum": "x = " + "a+" * 100_000 + "a",
    "a conjunction": "a AND " * 100_000 + "a",
    "a disjunction": "a=1 OR " * 50_000 + "a",
    "mixed": "a OR b AND c = 1 + 2 * (" * 20_000 + "1" + ")" * 20_000,
    "nested NOT": "NOT (" * 50_000 + "x" + ")" * 50_000,
    "BETWEENs": "a BETWEEN (" * 50_000,
    "an IN list": in_list(100_000),
    "1 MB of spaces": " " * 1_000_000,
    "1 MB of quotes": "'" * 1_000_001,
    "1 MB of name": "x" * 1_000_000,
    "1 MB of digits": "9" * 1_000_000,
    "1 MB of string": filled(1_000_000),
    "1 MB of emoji": "\U0001f600" * 250_000,
}


def in_a_deep_caller(frames_left: int, act: Callable[[], None]) -> None:
    """Runs `act` where only so many Python frames are left."""
    depth = 0
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        depth += 1
        frame = frame.f_back
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + frames_left)
    try:
        act()
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_text_is_a_clean_error_at_once(what: str) -> None:
    caught: list[FilterError] = []

    def act() -> None:
        try:
            Filter(HOSTILE[what])
        except FilterError as error:
            caught.append(error)

    in_a_deep_caller(20, act)
    assert "text_bytes = 4096" in str(caught[0])
    assert len(str(caught[0])) < 500


ROOMY = FilterLimits(text_bytes=2_000_000)


@pytest.mark.parametrize(
    ("what", "limit"),
    [
        ("parentheses", "depth"),
        ("open parentheses", "depth"),
        ("NOTs", "depth"),
        ("signs", "depth"),
        ("a conjunction", "predicates"),
        ("a disjunction", "predicates"),
        ("mixed", "depth"),
        ("nested NOT", "depth"),
        ("BETWEENs", "depth"),
        ("an IN list", "in_values"),
        ("1 MB of name", "name_bytes"),
    ],
)
def test_the_other_limits_hold_a_hostile_text_too(what: str, limit: str) -> None:
    caught: list[FilterError] = []

    def act() -> None:
        try:
            Filter(HOSTILE[what], limits=ROOMY)
        except FilterError as error:
            caught.append(error)

    in_a_deep_caller(20, act)
    assert f"limit {limit} =" in str(caught[0])
    assert len(str(caught[0])) < 500


@pytest.mark.parametrize(
    "text",
    [
        parentheses(64),
        "NOT " * 63 + "x",
        "-" * 62 + "x = 1",
        "x = " + "a+" * 2000 + "a",
        " AND ".join(["x"] * 256),
        "NOT (" * 31 + "x" + ")" * 31,
        "(x=1 AND " * 30 + "x" + " OR y)" * 30,
        "(" * 30 + "a" + " + 1) * 2" * 30 + " = b",
    ],
)
def test_parsing_at_the_limit_of_depth_takes_no_deep_stack(text: str) -> None:
    in_a_deep_caller(25, lambda: [Filter(text)].clear())


@pytest.mark.parametrize("text", ["NOT " * 63 + "x", "-" * 62 + "x = 1", "(x=1 AND " * 30 + "x" + " OR y)" * 30])
def test_a_filter_at_the_limit_of_depth_can_be_used(text: str) -> None:
    filter = Filter(text)

    def act() -> None:
        filter.matches({"x": 1, "y": True})
        assert filter.canonical == filter
        assert hash(filter.canonical) == hash(filter)
        assert filter.covers(filter)

    in_a_deep_caller(500, act)


# ---- what an error says


@pytest.mark.parametrize(
    ("text", "offset", "problem", "expected"),
    [
        ("price >", 7, "ends too early", "an attribute, a literal"),
        ("price 5", 6, "unexpected number '5'", "an operator"),
        ("price = ", 8, "ends too early", "an attribute, a literal"),
        ("a = 1 AND", 9, "ends too early", "an attribute, a literal"),
        ("a = 1 )", 6, "closed that was not opened", "an operator"),
        ("((a = 1)", 0, "not closed", "')'"),
        ("a = 'b", 4, "string is not closed", "closing '"),
        ('"a = 1', 0, "quoted name is not closed", 'closing "'),
        ("a IN 5", 5, "unexpected number", "'('"),
        ("a IN (5", 7, "ends too early", "',' or ')'"),
        ("a IN (b)", 6, "unexpected name", "a string or a number"),
        ("a LIKE b", 7, "unexpected name", "a pattern in quotes"),
        ("a LIKE 'b' ESCAPE 'cd'", 18, "unexpected string", "one character"),
        ("a = NULL", 4, "unexpected keyword 'NULL'", "IS NULL or IS NOT NULL"),
        ("a IS 5", 5, "unexpected number", "NULL or NOT NULL"),
        ("a IS NOT 5", 9, "unexpected number", "NULL"),
        ("a NOT 5", 6, "unexpected number", "BETWEEN, IN or LIKE"),
        ("a BETWEEN 1 OR 2", 2, "no upper bound", "BETWEEN low AND high"),
        ("a = b = c", 6, "can't follow another comparison", "AND, OR, or parentheses"),
        ("a = NOT b", 4, "NOT can't follow", "parentheses around NOT"),
        ("a # b", 2, "unexpected character '#'", "a name, a literal or an operator"),
        ("a = 9223372036854775808", 4, "outside the range of 64 bits", "9223372036854775807"),
        ("a = 1e999", 4, "too large for a double", "1.8e308"),
        ("a = 1e", 5, "exponent has no digits", "digits"),
        ("a = '\ud800'", 5, "lone surrogate", ""),
    ],
)
def test_an_error_says_what_where_and_what_was_expected(text: str, offset: int, problem: str, expected: str) -> None:
    error = error_of(text)
    assert (error.offset, error.line, error.column, error.text) == (offset, 1, offset + 1, text)
    assert problem in error.problem
    assert expected in error.expected
    assert f"(line 1, column {offset + 1})" in str(error)
    lines = str(error).splitlines()
    assert error.problem in lines[0]
    assert not error.expected or f"  expected: {error.expected}" in lines
    assert lines[-1] == "  " + " " * offset + "^"


def test_line_and_column_count_from_the_line_of_the_mistake() -> None:
    error = error_of("a = 1 AND\n  b = 2 AND\n  größe ? 3\nAND c = 4")
    assert (error.line, error.column) == (3, 9)
    assert str(error).splitlines()[-2:] == ["    größe ? 3", "          ^"]


def test_the_end_of_a_text_behind_a_line_break_is_on_the_next_line() -> None:
    error = error_of("a = \n")
    assert (error.line, error.column) == (2, 1)
    assert str(error).splitlines()[-1] == "  ^"


def test_what_is_not_printable_is_not_printed() -> None:
    error = error_of("a\t= '\x1b[31m\u202e' ? 5")
    excerpt, caret = str(error).splitlines()[-2:]
    assert str(error).isprintable() or str(error).replace("\n", "").isprintable()
    assert excerpt == "  a\ufffd= '\ufffd[31m\ufffd' ? 5"
    assert excerpt[caret.index("^")] == "?"


def test_a_long_line_is_shown_around_the_mistake() -> None:
    error = error_of("a = 1 AND " * 100 + "? AND " + "b = 2 AND " * 100)
    excerpt, caret = str(error).splitlines()[-2:]
    assert excerpt[caret.index("^")] == "?"
    assert excerpt.startswith("  …")
    assert excerpt.endswith("…")
    assert len(excerpt) <= 2 * CARET_CONTEXT_CHARACTERS + 4


@pytest.mark.parametrize("nothing", [None, 5, b"a = 1", ["a = 1"]])
def test_what_is_no_text_is_a_type_error(nothing: Any) -> None:
    for read in (Filter, Filter.from_padres, attributes_from_padres):
        with pytest.raises(TypeError, match=f"written as a str, not {type(nothing).__name__}"):
            read(nothing)


@pytest.mark.parametrize("limits", [None, 64, {"depth": 3}])
def test_limits_are_limits(limits: Any) -> None:
    for read in (Filter, Filter.from_padres):
        with pytest.raises(TypeError, match="limits are a FilterLimits"):
            read("", limits=limits)


def test_an_error_is_a_value_error_and_a_holdfast_error() -> None:
    error = error_of("a =")
    assert isinstance(error, HoldfastError)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_errors_survive_pickling(protocol: int) -> None:
    error = error_of("a = 1\nAND ? = 2")
    copy = pickle.loads(pickle.dumps(error, protocol))
    assert type(copy) is FilterError
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    event_error = EventError("attribute 'a' is nan", "a", 7)
    event_copy = pickle.loads(pickle.dumps(event_error, protocol))
    assert (type(event_copy), str(event_copy), vars(event_copy)) == (EventError, str(event_error), vars(event_error))


@pytest.mark.parametrize("name", FilterLimits.__struct_fields__)
@pytest.mark.parametrize("value", [-1, "4096", 2.5, None, True])
def test_a_limit_that_is_no_count_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        FilterLimits(**{name: value})  # type: ignore[arg-type]


def test_depth_can_not_be_raised_beyond_what_the_stack_bears() -> None:
    with pytest.raises(ValueError, match="at most 256"):
        FilterLimits(depth=257)


def test_a_deep_question_from_a_deep_caller_gets_the_safe_answer() -> None:
    limits = FilterLimits(depth=256, text_bytes=10**6, predicates=10**4)
    text = "x = 1"
    for level in range(120):
        text = f"(y{level} = 1 {'AND' if level % 2 else 'OR'} {text})"
    deep, other = Filter(text, limits=limits), Filter(text.replace("x = 1", "x = 2"), limits=limits)

    def called_deeply(levels: int) -> tuple[bool, bool]:
        if levels:
            return called_deeply(levels - 1)
        return deep.covers(other), deep.intersects(other)

    assert deep.canonical_form != other.canonical_form  # made here, where there is room
    assert called_deeply(sys.getrecursionlimit() - 250) == (False, True)
