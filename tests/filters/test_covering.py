"""`covers` and `intersects`: safe always, exact for conjunctions over one attribute each.

The truth is found by brute force. For exactness the domain must hit every set that constants can cut out: all
constants, what lies between and beyond them (numbers are a dense line, so fractions stand between neighbouring
doubles), the successor of every string and the first string behind every prefix, booleans, and "missing".
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import pytest
from hypothesis import example, given, settings

from holdfast import Filter
from holdfast.model import covering
from holdfast.model.canonical import Canonical, all_of
from holdfast.model.syntax import In, Like, Literal, Node, children
from tests.filters import reference, strategies
from tests.filters.reference import TRUE, Value
from tests.filters.strategies import COMPARISONS, Choices, made_by

# ---- exactness, for conjunctions over one attribute each

Conjunction = dict[str, list[str]]
NUMBERS = ("1", "2", "3", "2.5", "2.0", "9007199254740992.0", "9007199254740993")
STRINGS = ("'a'", "'ab'", "'b'", "''", "'a\0'", "'\ud7ff'", "'\ue000'")
NEAR_CONSTANTS = (NUMBERS, STRINGS, NUMBERS[:3] + STRINGS[:3])


def conjunction(choices: Choices, near: dict[str, tuple[str, ...]]) -> Conjunction:
    """Predicates over x and over y."""
    return {
        name: [strategies.simple_predicate(choices, name, near[name]) for _ in range(choices.below(3))] for name in "xy"
    }


def pair(choices: Choices) -> tuple[Conjunction, Conjunction]:
    """Two conjunctions over mostly the same constants; the second is often the first with more said."""
    near = {name: choices.of(NEAR_CONSTANTS) for name in "xy"}
    a, b = conjunction(choices, near), conjunction(choices, near)
    if choices.below(2):
        b = {name: a[name] + b[name] for name in "xy"}
    return a, b


def text_of(parts: Conjunction) -> str:
    return " AND ".join([*parts["x"], *parts["y"]])


def constants(node: Node) -> Iterable[Value]:
    if isinstance(node, Literal):
        yield node.value
    elif isinstance(node, In):
        yield from node.values
    elif isinstance(node, Like):
        prefix = node.pattern.segments[0].text
        yield from (prefix, behind(prefix))
    for child in children(node):
        yield from constants(child)


def behind(prefix: str) -> str:
    """The first string behind all those with this prefix, or the prefix itself if there is none."""
    for end in range(len(prefix), 0, -1):
        code_point = ord(prefix[end - 1])
        if code_point < 0x10FFFF:
            return prefix[: end - 1] + chr(0xE000 if code_point == 0xD7FF else code_point + 1)
    return prefix


def domain(roots: list[Node]) -> Sequence[Value | Fraction | None]:
    """One value at least of every set that these predicates can tell from the others."""
    found = {value for root in roots for value in constants(root) if not isinstance(value, bool)}
    numbers = sorted({Fraction(value) for value in found if not isinstance(value, str)} | {Fraction(0)})
    between = [(low + high) / 2 for low, high in itertools.pairwise(numbers)]
    strings = {value for value in found if isinstance(value, str)}
    return [None, True, False, *numbers, *between, numbers[0] - 1, numbers[-1] + 1, "", "\0", *strings] + [
        string + "\0" for string in strings
    ]


def selected(predicates: list[str], name: str, values: Sequence[Value | Fraction | None]) -> set[int]:
    """The places of the values that make every predicate TRUE."""
    roots = [Filter(predicate).root for predicate in predicates]
    events = [{} if value is None else {name: value} for value in values]
    return {i for i, event in enumerate(events) if all(reference.truth(r, event) is TRUE for r in roots)}  # type: ignore[arg-type]


def truth_about(a: Conjunction, b: Conjunction) -> tuple[bool, bool]:
    """Whether a covers b, and whether they intersect. The attributes are independent of each other."""
    is_within, is_empty, meets = True, False, True
    for name in "xy":
        values = domain([Filter(predicate).root for predicate in a[name] + b[name]])
        of_a, of_b = selected(a[name], name, values), selected(b[name], name, values)
        is_within &= of_b <= of_a
        is_empty |= not of_b
        meets &= bool(of_a & of_b)
    return is_within or is_empty, meets


@given(made_by(pair, 120))
@settings(max_examples=1000)
def test_covers_and_intersects_are_exact_for_conjunctions_over_one_attribute_each(
    conjunctions: tuple[Conjunction, Conjunction],
) -> None:
    a, b = conjunctions
    covers, intersects = truth_about(a, b)
    first, second = Filter(text_of(a)), Filter(text_of(b))
    assert first.covers(second) is covers
    assert first.intersects(second) is intersects
    assert second.intersects(first) is intersects


@given(made_by(lambda choices: (pair(choices), pair(choices)), 200))
@settings(max_examples=300)
def test_covers_is_transitive_for_conjunctions(pairs: tuple[tuple[Conjunction, ...], ...]) -> None:
    filters = [Filter(text_of(parts)) for both in pairs for parts in both]
    for a, b, c in itertools.product(filters, repeat=3):
        if a.covers(b) and b.covers(c):
            assert a.covers(c)


def test_the_random_conjunctions_reach_both_answers_often() -> None:
    counts: Counter[tuple[bool, bool]] = Counter()

    @given(made_by(pair, 120))
    @settings(max_examples=300)
    def count(conjunctions: tuple[Conjunction, Conjunction]) -> None:
        counts[truth_about(*conjunctions)] += 1

    count()
    assert min(counts[answer] for answer in [(True, True), (True, False), (False, True), (False, False)]) >= 20, counts


# ---- safety, for any filters


SMALL_VALUES: list[Value | None] = [None, 0, 1, 2, 2.5, "", "a", "ab", "b", "ba", "aab", True, False]
SMALL_EVENTS: list[dict[str, Value]] = [
    {name: value for name, value in (("a", a), ("b", b)) if value is not None}
    for a, b in itertools.product(SMALL_VALUES, repeat=2)
]
SMALL_CONSTANTS = ("1", "2", "0", "2.5", "'a'", "'ab'", "'b'", "''", "TRUE", "FALSE")
SMALL_PATTERNS = ("a%", "a_", "%b", "a%b", "_", "%a%", "%")
SMALL_LISTS = ("1, 2", "'a', 1", "'ab', 'b'", "0")
SMALL_RANGES = ("0 AND 1", "1 AND b", "a AND 2", "'a' AND 'b'", "1 AND 2.5")


def small_predicate(choices: Choices) -> str:
    name, other = choices.of("ab"), choices.of("ab")
    comparison, negation = choices.of(COMPARISONS), choices.of(("", "NOT "))
    match choices.below(10):
        case 0:
            return f"{name} {comparison} {other}"
        case 7:
            return f"({small_predicate(choices)} {choices.of(('AND', 'OR'))} {small_predicate(choices)}) = {other}"
        case 1:
            return f"{name} + {choices.of('12')} {comparison} {other} * {choices.of('12')}"
        case 2:
            return f"{name} {negation}LIKE '{choices.of(SMALL_PATTERNS)}'"
        case 3:
            return f"{name} {negation}IN ({choices.of(SMALL_LISTS)})"
        case 4:
            return f"{name} {negation}BETWEEN {choices.of(SMALL_RANGES)}"
        case 5:
            return f"{name} IS {negation}NULL"
        case 6:
            return name
        case _:
            return f"{name} {comparison} {choices.of(SMALL_CONSTANTS)}"


def small_filter(choices: Choices, depth: int = 2) -> str:
    if depth == 0 or choices.below(3) == 0:
        return small_predicate(choices)
    if choices.below(4) == 0:
        return f"NOT ({small_filter(choices, depth - 1)})"
    joint = choices.of((" AND ", " OR "))
    return joint.join(f"({small_filter(choices, depth - 1)})" for _ in range(2 + choices.below(2)))


def small_pair(choices: Choices) -> tuple[str, str]:
    """Two filters that often have to do with each other."""
    f, g, h = (small_filter(choices) for _ in range(3))
    match choices.below(5):
        case 0:
            return f, g
        case 1:
            return f, f"({f}) AND ({h})"
        case 2:
            return f"({g}) OR ({h})", g
        case 3:
            return f"({f}) OR ({g})", f"({g}) AND ({h})"
        case _:
            return f, f"NOT ({f}) AND ({h})"


@given(made_by(small_pair, 90))
@settings(max_examples=1500)
@example(("a = b", "a = b AND a IS NOT NULL"))
@example(("a IS NOT NULL", "a + 1 = b"))
@example(("a IS NOT NULL", "(a IS NULL) = TRUE"))
@example(("a IS NOT NULL", "(a BETWEEN 1 AND 0) = b"))
@example(("a NOT LIKE 'a_'", "a IS NULL"))
@example(("a IS NOT NULL", "(a = 1 OR b) = b"))
@example(("a IS NOT NULL", "(a = 1 AND FALSE) = b"))
@example(("a IS NOT NULL", "(1 BETWEEN a AND 0) = b"))
@example(("a LIKE '%a_'", "NOT a LIKE '%a!_' ESCAPE '!'"))
def test_covers_and_intersects_are_never_wrong_in_the_unsafe_direction(pair: tuple[str, str]) -> None:
    wide, narrow = map(Filter, pair)
    of_wide, of_narrow = ([filter.matches(event) for event in SMALL_EVENTS] for filter in (wide, narrow))
    if wide.covers(narrow):
        assert all(w for w, n in zip(of_wide, of_narrow, strict=True) if n)
    if any(w and n for w, n in zip(of_wide, of_narrow, strict=True)):
        assert wide.intersects(narrow)
        assert narrow.intersects(wide)


@given(made_by(small_filter, 60))
@settings(max_examples=500)
def test_every_filter_covers_itself(text: str) -> None:
    filter = Filter(text)
    assert filter.covers(Filter(text))
    assert filter.covers(filter.canonical)
    assert filter.canonical.covers(filter)
    assert Filter().covers(filter)
    assert filter.covers(Filter("FALSE"))
    assert not filter.intersects(Filter("FALSE"))


@given(made_by(small_pair, 90))
@settings(max_examples=300)
def test_equal_filters_give_equal_answers(pair: tuple[str, str]) -> None:
    a, b = map(Filter, pair)
    assert a.covers(b) is a.canonical.covers(b.canonical)
    if a == b:
        assert [a.matches(event) for event in SMALL_EVENTS] == [b.matches(event) for event in SMALL_EVENTS]


# ---- by example


@pytest.mark.parametrize(
    ("wide", "narrow", "covers"),
    [
        ("", "x = 1", True),
        ("x = 1", "", False),
        ("x > 1", "x > 2", True),
        ("x > 1", "x > 1", True),
        ("x > 1", "x >= 1", False),
        ("x >= 1", "x = 1.0", True),
        ("x > 1", "x > 2 AND y = 1", True),
        ("x > 1 AND y = 1", "x > 2", False),
        ("x IN (1, 2, 3)", "x IN (2, 3)", True),
        ("x BETWEEN 1 AND 5", "x IN (1, 5)", True),
        ("x BETWEEN 1 AND 5", "x IN (1, 5, 6)", False),
        ("x <> 3", "x > 3", True),
        ("x <> 3", "NOT x = 3", False),
        ("NOT x = 3", "x <> 3", True),
        ("NOT x < 5", "x >= 5", True),
        ("x >= 5", "NOT x < 5", False),
        ("NOT x < 5", "x = 'a'", True),
        ("x IS NOT NULL", "x = 1", True),
        ("x IS NOT NULL", "NOT x = 1", True),
        ("x IS NULL", "x = 1", False),
        ("x LIKE 'a%'", "x LIKE 'ab%'", True),
        ("x LIKE 'ab%'", "x LIKE 'a%'", False),
        ("x LIKE 'a%'", "x = 'abc'", True),
        ("x LIKE 'a%'", "x BETWEEN 'a' AND 'azz'", True),
        ("x LIKE 'a%'", "x BETWEEN 'a' AND 'b'", False),
        ("x LIKE '%'", "x >= ''", True),
        ("x LIKE 'a%'", "x LIKE 'a_c'", True),
        ("x LIKE 'a_c'", "x = 'abc'", True),
        ("x LIKE 'a_c'", "x = 'abd'", False),
        ("x NOT LIKE 'a_c'", "x = 5", True),
        ("x NOT LIKE 'a_c'", "x LIKE 'b%'", True),
        ("x > 1 OR y > 1", "x > 2", True),
        ("x > 1", "x > 2 OR x > 3", True),
        ("x > 1", "x > 2 OR y > 3", False),
        ("a < b", "b > a AND c = 1", True),
        ("a IS NOT NULL", "a < b", True),
        (f"x > {2**53}", f"x >= {2**53 + 1}", True),
        (f"x > {2**53 + 1}", f"x > {2**53}.0", False),
        ("x = 1", "x > 1 AND x < 1", True),
    ],
)
def test_covers_by_example(wide: str, narrow: str, covers: bool) -> None:
    assert Filter(wide).covers(Filter(narrow)) is covers


@pytest.mark.parametrize(
    ("a", "b", "intersects"),
    [
        ("x > 1", "x < 2", True),
        ("x > 1", "x < 1", False),
        ("x >= 1", "x <= 1", True),
        ("x > 1", "y < 1", True),
        ("x = 1", "x = 1.0", True),
        ("x = 1", "x = TRUE", False),
        ("x = 1", "x IS NULL", False),
        ("NOT x = 1", "x = 'a'", True),
        ("x > 0", "x < 5e-324", True),
        ("x LIKE 'a%'", "x LIKE 'ab%'", True),
        ("x LIKE 'a%'", "x LIKE 'b%'", False),
        ("x LIKE 'a%'", "x > 'b'", False),
        ("x LIKE 'a_'", "x = 'abc'", False),
        ("x = 1 OR x = 2", "x = 3 OR x = 4", False),
        ("(x = 1 AND y = 1) OR (x = 2 AND y = 2)", "x = 1 AND y = 2", False),
        ("(x = 1 AND y = 1) OR (x = 2 AND y = 2)", "x = 2 AND y = 2", True),
        ("a < b", "NOT a < b", False),
        ("x = 'a' AND x = 'b'", "", False),
    ],
)
def test_intersects_by_example(a: str, b: str, intersects: bool) -> None:
    assert Filter(a).intersects(Filter(b)) is intersects
    assert Filter(b).intersects(Filter(a)) is intersects


def test_no_string_lies_between_the_last_character_before_the_surrogates_and_the_first_behind_them() -> None:
    prefix, interval = Filter("x LIKE '\ud7ff%'"), Filter("x >= '\ud7ff' AND x < '\ue000'")
    assert prefix == interval
    assert prefix.covers(interval)
    assert interval.covers(prefix)
    assert not Filter("x > '\ud7ff' AND NOT x LIKE '\ud7ff%'").intersects(Filter("x < '\ue000'"))


def test_a_question_about_many_alternatives_is_answered_safely_and_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing matches both, but to know it takes 2**20 cases: the work is bounded, and its answer safe."""
    calls = Counter[str]()

    def counting(parts: list[Canonical]) -> Canonical:
        calls["parts"] += len(parts)
        return all_of(parts)

    monkeypatch.setattr(covering, "all_of", counting)
    free = Filter(" AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(20)))
    nothing = Filter("(x = 1 OR y = 1) AND (x = 2 OR y = 2) AND (x = 3 OR y = 3)")
    assert not nothing.intersects(Filter())
    assert free.intersects(nothing)
    assert calls["parts"] <= 2 * covering.PARTS_MAX
    assert free.covers(free)


@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(f"s LIKE '%{i}%'" for i in range(200)),
        " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(110)),
        " AND ".join(f"a{i} > {i}" for i in range(250)),
        " OR ".join(f"a{i} + 1 > {i}" for i in range(200)),
    ],
    ids=["patterns", "choices", "conjunction", "expressions"],
)
def test_covering_compares_a_bounded_number_of_pairs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters that differ in one place; each has hundreds of parts, and pairs of parts would be tens of thousands."""
    compared = Counter[str]()
    decide = covering._Comparison._decide

    def counting(self: covering._Comparison, wide: Canonical, narrow: Canonical) -> bool:
        compared["pairs"] += 1
        return decide(self, wide, narrow)

    monkeypatch.setattr(covering._Comparison, "_decide", counting)
    filter, other = Filter(text), Filter(text.replace("7", "8", 1))
    assert filter.covers(Filter(f"({text}) AND TRUE"))
    filter.covers(other)
    other.covers(filter)
    assert compared["pairs"] <= 3 * covering.PAIRS_MAX


def test_a_topic_is_a_string_that_is_not_empty_or_missing() -> None:
    assert str(Filter("topic = ''").canonical) == "FALSE"
    assert str(Filter("topic > 5 OR topic").canonical) == "FALSE"
    assert Filter("topic IS NULL OR topic > ''") == Filter("")
    assert Filter("topic > ''").covers(Filter("topic IS NOT NULL"))
    assert Filter("topic > ''").covers(Filter("topic NOT LIKE '%x%y'"))
    assert not Filter("NOT topic < 'a'").intersects(Filter("topic < 'a' OR topic = 5"))
