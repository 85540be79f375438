"""The index against `Filter.matches` where its structures have their edges: blocks, buckets, prefixes, patterns."""

from __future__ import annotations

import itertools
import math
import random
import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from holdfast import Filter, FilterIndex

LARGEST = sys.float_info.max


def check(index: FilterIndex[Any], filters: dict[Any, Filter], events: Iterable[tuple[dict[str, Any], str]]) -> None:
    for attributes, topic in events:
        expected = [id for id, filter in filters.items() if filter.matches(attributes, topic)]
        assert index.match(attributes, topic) == expected, (attributes, topic)


def filled(index: FilterIndex[Any], texts: Iterable[str]) -> dict[Any, Filter]:
    filters = dict(enumerate(map(Filter, texts)))
    for id, filter in filters.items():
        index.add(id, filter)
    return filters


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.mark.parametrize("order", ["first to last", "last to first", "random"])
@pytest.mark.parametrize("condition", ["", "k = 1", "k = 1 AND x >= {}", "x >= {}", "k = 1 AND x >= {} AND y < {}"])
def test_rows_of_several_blocks_are_removed_in_any_order(
    new_index: Callable[[], FilterIndex[Any]], condition: str, order: str
) -> None:
    """A block holds 4096 rows; a row that goes is replaced by the last row of the newest block."""
    index = new_index()
    count = 9000 if index.counters().get("attributes") is not None else 600
    variants = [Filter(condition.format(bound, bound + 5)) for bound in range(7)]
    filters = {id: variants[id % 7] for id in range(count)}
    for id, filter in filters.items():
        index.add(id, filter)
    ids = list(filters)
    if order == "last to first":
        ids.reverse()
    elif order == "random":
        random.Random(order).shuffle(ids)
    for start in range(0, count, count // 4):
        for id in ids[start : start + count // 4]:
            index.remove(id)
            del filters[id]
        check(index, filters, [({"k": 1, "x": 3, "y": 7}, ""), ({"k": 2, "x": 9}, "")])
    assert len(index) == 0
    assert index.counters()["rows"] == 0


EDGES = [
    0.0,
    *(sign * math.ldexp(1.0, power) for sign in (1, -1) for power in (-1074, -1022, -1, 0, 1, 52, 53, 62, 63, 1023)),
    LARGEST,
    -LARGEST,
]
NUMBERS = sorted(
    {near for edge in EDGES for near in (edge, math.nextafter(edge, math.inf), math.nextafter(edge, -math.inf))}
    - {math.inf, -math.inf}
)


def test_ranges_end_where_buckets_do(index: FilterIndex[Any]) -> None:
    draw = random.Random(2)
    pairs = [(low, high) for low, high in itertools.product(NUMBERS, NUMBERS) if low <= high]
    texts = [f"x BETWEEN {low!r} AND {high!r}" for low, high in draw.sample(pairs, 400)]
    texts += [f"x > {low!r} AND x < {high!r}" for low, high in draw.sample(pairs, 200)]
    texts += [f"x {operator} {bound!r}" for bound in NUMBERS for operator in ("<=", ">", "=")]
    check(index, filled(index, texts), (({"x": number}, "") for number in NUMBERS))


def test_thresholds_of_many_rungs_are_found_at_their_keys(index: FilterIndex[Any]) -> None:
    draw = random.Random(4)
    bounds = [draw.choice([7, 7.0, draw.randrange(300), draw.uniform(0, 300)]) for _ in range(2500)]
    texts = [f"x {('>=', '<=', '>', '<')[n % 4]} {bound!r}" + " AND k = 1" * (n % 3) for n, bound in enumerate(bounds)]
    filters = filled(index, texts)
    events = [({"x": bound, "k": n % 2}, "") for n, bound in enumerate(bounds[::125])]
    check(index, filters, events)
    for id in draw.sample(list(filters), 2000):
        index.remove(id)
        del filters[id]
    check(index, filters, events)


TEXTS = ["", "a", "ab", "aba", "abab", "ba", "b", "a\0", "a\0b", "aaaaaa", "aaaaaaa", "aaaaaab", "aaaaaaaa", "é", "éa"]
TEXTS += ["\ud7ff", "\ud7ffa", "\ue000", "\uffff", "\U0010ffff", "\U0010ffffa", "\U0010ffff\U0010ffff", "a\U0010ffff"]


def test_patterns_prefixes_and_orders_of_strings_are_exact(index: FilterIndex[Any]) -> None:
    patterns = [left + "%" + right for left in TEXTS for right in ("", "a", "ba", "%")]
    patterns += ["%a%a%", "%a%a", "a%a", "%ab%ab%", "%ab%b", "ab%ba", "%aba%ba%", "%", "%%", "a%b%a"]
    texts = [f"s {negation}LIKE {quoted(pattern)}" for pattern in patterns for negation in ("", "NOT ")]
    texts += [f"s {operator} {quoted(text)}" for text in TEXTS for operator in ("=", "<>", "<", "<=", ">", ">=")]
    texts += [f"s BETWEEN {quoted(low)} AND {quoted(high)}" for low, high in itertools.product(TEXTS[::2], TEXTS[1::2])]
    texts += [f"topic LIKE {quoted(text)} OR s = {quoted(text)}" for text in TEXTS]
    events: list[tuple[dict[str, Any], str]] = [({"s": text}, text) for text in TEXTS]
    check(index, filled(index, texts), [*events, ({}, ""), ({"s": 5}, "a"), ({"s": True}, "ab")])


def test_an_attribute_that_is_missing_or_of_another_kind_fails_what_is_tested_last(index: FilterIndex[Any]) -> None:
    texts = [
        "NOT s LIKE '%a%' AND k = 1",
        "(s LIKE '%a%' OR s LIKE '%b') AND k = 1",
        "k = 1 AND (s IS NULL OR s = 'x')",
        "k = 1 AND (s IS NULL OR s > 5 OR s = TRUE)",
        "k = 1 AND (s = TRUE OR s = 'x')",
        "k = 1 AND (s = FALSE OR s IN (1, 2, 'y'))",
        "k = 1 AND s IN ('x', 'y', 'z') AND t IN ('x', 'w', 'y', 'q') AND u IN (5, 3, 4)",
        "k = 1 AND NOT s IN ('x', 'y', 'q') AND t IN ('x', 'a')",
    ]
    values: list[Any] = [None, "x", "y", "cab", "b", "", 1, 2, 6, 2.5, True, False]
    events = []
    for s, t, u in itertools.product(values, ("x", "y", "w", None), (3, 5, 6, None)):
        attributes = {"k": 1, "s": s, "t": t, "u": u}
        events.append(({name: value for name, value in attributes.items() if value is not None}, ""))
    check(index, filled(index, texts), events)


def test_a_conjunction_of_seventy_boxes_needs_every_one(index: FilterIndex[Any]) -> None:
    text = " AND ".join(f"a{n} >= {n}" for n in range(70))
    filters = filled(index, [text, f"{text} AND k = 1", text.replace(">=", "=")])
    event = {f"a{n}": n for n in range(70)}
    events = [({**event, f"a{n}": n - 1, "k": 1}, "") for n in range(70)]
    check(index, filters, [(event, ""), ({**event, "k": 1}, ""), *events])


def test_numbers_of_attributes_and_strings_are_used_again(index: FilterIndex[Any]) -> None:
    draw = random.Random(6)
    filters: dict[Any, Filter] = {}
    for step in range(600):
        a, b = draw.sample(range(12), 2)
        text = draw.choice(
            ["n{a} = 's{b}'", "n{a} IN ('s{a}', 's{b}', 't')", "n{a} <> 's{b}' AND n{b} > 1", "n{a} > {b}"]
        )
        filters[step] = Filter(text.format(a=a, b=b))
        index.add(step, filters[step])
        if len(filters) > 8:
            gone = draw.choice(list(filters))
            index.remove(gone)
            del filters[gone]
        kinds = (f"s{draw.randrange(12)}", "t", draw.randrange(12))
        check(index, filters, [({f"n{n}": draw.choice(kinds) for n in range(12) if draw.randrange(3)}, "")])


def test_nothing_of_an_event_is_left_for_the_next(index: FilterIndex[Any]) -> None:
    values: list[Any] = [5, 5.5, "x", "xyz", True, False, None]
    tests = ["= 5", "> 1", "= 'x'", "LIKE 'x%'", "> 'a'", "= TRUE", "= FALSE", "IS NULL", "IS NOT NULL", "<> 5"]
    filters = filled(index, [f"x {test} AND k = 1" for test in tests])
    for first, second in itertools.product(values, values):
        events = [({"k": 1, "x": value} if value is not None else {"k": 1}, "") for value in (first, second)]
        check(index, filters, events)


def test_thousands_of_values_are_found_after_as_many_were_removed(index: FilterIndex[Any]) -> None:
    draw = random.Random(8)
    texts = [f"s = 'v{n}'" if n % 2 else f"a{n % 40} = {n}" for n in range(6000)]
    filters = filled(index, texts)
    for id in draw.sample(list(filters), 3000):
        index.remove(id)
        del filters[id]
    found = [index.match({"s": f"v{id}"} if id % 2 else {f"a{id % 40}": id}) for id in filters]
    assert found == [[id] for id in filters]
