"""LIKE: against dynamic programming, within its limits, and in time linear in the text by construction."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import DEFAULT_LIMITS, Filter, FilterError
from holdfast.model.like import LikePattern, Segment, parse_like
from tests.filters import reference
from tests.filters.conftest import Matches
from tests.filters.strategies import quoted

LIMITS = (DEFAULT_LIMITS.like_percents, DEFAULT_LIMITS.like_underscores)
VALUE_SIZE = 64 * 1024


def like(pattern: str, value: str, escape: str = "") -> bool:
    clause = f" ESCAPE {quoted(escape)}" if escape else ""
    return Filter(f"x LIKE {quoted(pattern)}{clause}").matches({"x": value})


def expected(pattern: str, value: str, escape: str = "") -> bool:
    return reference.is_like(reference.wildcards_of(pattern, escape), value)


@pytest.mark.parametrize(
    ("pattern", "value", "escape", "holds"),
    [
        ("", "", "", True),
        ("", "a", "", False),
        ("%", "", "", True),
        ("_", "", "", False),
        ("_", "\U0001f600", "", True),
        ("_", "ab", "", False),
        ("a%", "a", "", True),
        ("%a", "ba", "", True),
        ("%a%", "bab", "", True),
        ("a%a", "a", "", False),
        ("a%a", "aa", "", True),
        ("ab%ba", "aba", "", False),
        ("%ab%ab%", "abab", "", True),
        ("%ab%ab%", "aab", "", False),
        ("%aa%aa%", "aaa", "", False),
        ("%aa%aa%", "aaaa", "", True),
        ("%a_%", "ba", "", False),
        ("_%_", "a", "", False),
        ("_%_", "ab", "", True),
        ("12%3", "123", "", True),
        ("12%3", "12993", "", True),
        ("12%3", "1234", "", False),
        ("l_se", "lose", "", True),
        ("l_se", "loose", "", False),
        ("\\_%", "_foo", "\\", True),
        ("\\_%", "bar", "\\", False),
        ("a!%b", "a%b", "!", True),
        ("a!%b", "axb", "!", False),
        ("a!!b", "a!b", "!", True),
        ("%%a", "%a", "%", True),
        ("%%a", "xa", "%", False),
        ("_%", "%", "_", True),
        ("''", "''", "", True),
        ("'__", "'_", "_", True),
        ("a.b", "axb", "", False),
        ("a*", "aaa", "", False),
        ("[ab]", "a", "", False),
        ("A", "a", "", False),
        ("a%", "b\na", "", False),
        ("a%c", "a\n\0c", "", True),
    ],
)
def test_like_by_example(matches: Matches, pattern: str, value: str, escape: str, holds: bool) -> None:
    clause = f" ESCAPE {quoted(escape)}" if escape else ""
    assert expected(pattern, value, escape) is holds
    assert matches(f"x LIKE {quoted(pattern)}{clause}", {"x": value}) is holds
    assert matches(f"x NOT LIKE {quoted(pattern)}{clause}", {"x": value}) is not holds


def test_every_short_pattern_against_every_short_value() -> None:
    values = ["".join(v) for size in range(5) for v in itertools.product("ab", repeat=size)]
    for size in range(6):
        for pattern in map("".join, itertools.product("a%_", repeat=size)):
            parsed = parse_like(pattern, "", *LIMITS)
            elements = reference.wildcards_of(pattern)
            assert [parsed.matches(v) for v in values] == [reference.is_like(elements, v) for v in values], pattern


@given(
    st.lists(st.sampled_from(["a", "b", "%", "_", "!%", "!_", "!!", "ab", "_a"]), max_size=12).map("".join),
    st.lists(st.sampled_from(["a", "b", "%", "_", "!", "ab", "\U0001f600"]), max_size=16).map("".join),
)
@settings(max_examples=700)
def test_like_says_what_dynamic_programming_says(pattern: str, value: str) -> None:
    assert like(pattern, value, "!") is expected(pattern, value, "!")


@given(st.data())
@settings(max_examples=300)
def test_a_value_made_from_the_pattern_matches(data: st.DataObject) -> None:
    pattern = data.draw(st.text("ab%_", max_size=14))
    fillers = {"%": st.text("ab", max_size=3), "_": st.sampled_from("ab")}
    value = "".join(data.draw(fillers[c]) if c in fillers else c for c in pattern)
    assert like(pattern, value)


@pytest.mark.parametrize("pattern", ["a!b", "!", "a!", "!!!", "!\U0001f600"])
def test_an_escape_before_another_character_is_refused(pattern: str) -> None:
    with pytest.raises(FilterError, match="escapes only") as caught:
        Filter(f"x LIKE '{pattern}' ESCAPE '!'")
    assert caught.value.offset == 7


# ---- limits


@pytest.mark.parametrize(("wildcard", "limit"), [("%", "like_percents = 64"), ("_", "like_underscores = 16")])
@pytest.mark.parametrize("between", ["", "a"])
def test_wildcards_are_limited(wildcard: str, limit: str, between: str) -> None:
    most = int(limit.split()[-1])
    assert like((wildcard + between) * most, ("x" + between) * most)
    with pytest.raises(FilterError, match=limit) as caught:
        Filter("x LIKE '" + (wildcard + between) * (most + 1) + "'")
    assert caught.value.offset == 7


def test_an_escaped_wildcard_does_not_count() -> None:
    assert like("!%!_" * 100, "%_" * 100, "!")


# ---- linear by construction


HOSTILE = [
    ("%a" * 50 + "%", "a" * VALUE_SIZE),
    ("%a" * 50 + "b", "a" * VALUE_SIZE),
    ("%a" * 50 + "%b%", "a" * VALUE_SIZE),
    ("%ab" * 60 + "%c%", "ab" * (VALUE_SIZE // 2)),
    ("%" + "a" * 200 + "b%", "a" * VALUE_SIZE),
    ("%a_" * 16 + "%b%", "a" * VALUE_SIZE),
    ("%a_______________b%", "a" * VALUE_SIZE),
    ("%_a_a_a_a_a_a_a_b%", "a" * VALUE_SIZE),
]


@pytest.mark.parametrize(("pattern", "value"), HOSTILE)
def test_no_character_is_searched_twice(pattern: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each segment is searched for once, from where the last was found to the end at most."""
    find = Segment.find
    searched: list[tuple[int, int]] = []

    def counting(segment: Segment, text: str, start: int, end: int) -> int:
        place = find(segment, text, start, end)
        searched.append((start, end if place < 0 else place + len(segment.text)))
        return place

    monkeypatch.setattr(Segment, "find", counting)
    parsed = parse_like(pattern, "", *LIMITS)
    parsed.matches(value)
    assert len(searched) <= len(parsed.segments)
    assert all(stop == start for (_, stop), (start, _) in itertools.pairwise(searched))
    assert sum(stop - start for start, stop in searched) <= len(value)


class CountingText(str):
    """A text that counts how often one of its characters is looked at."""

    looks: int

    def __getitem__(self, key: object) -> str:
        self.looks += 1
        return super().__getitem__(key)  # type: ignore[index]


@pytest.mark.parametrize("segment", ["a_b", "a_______________b", "_a_a_a_a_a_a_a_b", "____b", "_"])
def test_a_segment_with_underscores_looks_at_each_character_once(segment: str) -> None:
    text = CountingText("a" * 5000)
    text.looks = 0
    holes = tuple(i for i, c in enumerate(segment) if c == "_")
    Segment(segment, holes).find(text, 0, len(text))
    assert text.looks <= len(text)


@pytest.mark.parametrize(("pattern", "value"), HOSTILE)
def test_hostile_patterns_have_the_right_answer(matches: Matches, pattern: str, value: str) -> None:
    shorter = value[:2000]
    assert matches(f"x LIKE '{pattern}'", {"x": shorter}) is expected(pattern, shorter)
    assert matches(f"x LIKE '{pattern}'", {"x": value}) is pattern.endswith("a%")


@pytest.mark.parametrize(
    ("pattern", "is_exact", "is_prefix", "prefix"),
    [
        ("abc", True, False, "abc"),
        ("", True, False, ""),
        ("abc%", False, True, "abc"),
        ("abc%%", False, True, "abc"),
        ("%", False, True, ""),
        ("ab_", False, False, "ab"),
        ("a_c%", False, False, "a"),
        ("a%c", False, False, "a"),
        ("%c", False, False, ""),
        ("a!%%", False, True, "a%"),
        ("a!%", True, False, "a%"),
        ("a!_%", False, True, "a_"),
    ],
)
def test_a_pattern_knows_its_shape(pattern: str, is_exact: bool, is_prefix: bool, prefix: str) -> None:
    parsed: LikePattern = parse_like(pattern, "!", *LIMITS)
    assert (parsed.is_exact, parsed.is_prefix, parsed.prefix) == (is_exact, is_prefix, prefix)
