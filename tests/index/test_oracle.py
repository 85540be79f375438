"""The index against `Filter.matches`, over random filters, events, additions and removals."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Filter, FilterIndex
from holdfast.matching.index import ENGINES
from tests.filters.strategies import Choices, conjunction, event, filter_text
from tests.tiers import one_always

SIMPLE_NAMES = ("a", "b", "größe", "topic")


def random_filter(choices: Choices) -> Filter:
    """Half of them of the kind that the index stores as boxes, half of any kind."""
    return Filter(conjunction(choices, SIMPLE_NAMES) if choices.below(2) else filter_text(choices))


def run_against_oracle(source: bytes, engine: str) -> None:
    """Plays additions, removals and matches, and compares each answer, order included."""
    choices = Choices(source)
    index: FilterIndex[int] = FilterIndex(engine=engine)  # type: ignore[arg-type]
    filters: dict[int, Filter] = {}
    for step in range(6 + choices.below(20)):
        match choices.below(8):
            case 0 | 1 | 2 | 3:
                filters[step] = random_filter(choices)
                index.add(step, filters[step])
            case 4 if filters:
                gone = choices.of(list(filters))
                del filters[gone]
                index.remove(gone)
            case 5 if filters:  # removed and added again: now the youngest
                moved = choices.of(list(filters))
                filters[moved] = filters.pop(moved)
                index.remove(moved)
                index.add(moved, filters[moved])
            case _:
                attributes, topic = event(choices)
                expected = [id for id, filter in filters.items() if filter.matches(attributes, topic)]
                assert index.match(attributes, topic) == expected
    batch = [event(choices) for _ in range(4)]
    assert index.match_batch(batch) == [
        [id for id, filter in filters.items() if filter.matches(*pair)] for pair in batch
    ]
    assert len(index) == len(filters)
    assert index.items() == list(filters.items())
    for id in filters:
        index.remove(id)
    held = index.counters()
    assert [held.get(what, 0) for what in ("rows", "clusters", "attributes", "strings")] == [0, 0, 0, 0]


SOURCES = st.binary(min_size=200, max_size=1500)


@pytest.mark.parametrize("examples", one_always([1_000, 5_000]))
@pytest.mark.skipif("compiled" not in ENGINES, reason="the compiled kernel is not built")
def test_the_compiled_engine_finds_what_the_oracle_finds(examples: int) -> None:
    @settings(max_examples=examples)
    @given(SOURCES)
    def compare(source: bytes) -> None:
        run_against_oracle(source, "compiled")

    compare()


@settings(max_examples=1000)
@given(SOURCES)
def test_the_portable_engine_finds_what_the_oracle_finds(source: bytes) -> None:
    run_against_oracle(source, "portable")


@pytest.mark.long
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_no_difference_over_a_hundred_thousand_runs(engine: str) -> None:
    draw = random.Random(engine)
    for _ in range(100_000):
        run_against_oracle(draw.randbytes(draw.randrange(200, 1500)), engine)


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_not_of_a_comparison_holds_for_another_kind(engine: str) -> None:
    index: FilterIndex[str] = FilterIndex(engine=engine)  # type: ignore[arg-type]
    index.add("not less", Filter("NOT (x < 5)"))
    index.add("at least", Filter("x >= 5"))
    assert index.match({"x": "a"}) == ["not less"]
    assert index.match({"x": 5}) == ["not less", "at least"]
    assert index.match({"x": True}) == ["not less"]
    assert index.match({"x": 4}) == []
    assert index.match({}) == []


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_many_filters_share_structures_without_mixing_them_up(engine: str) -> None:
    """Tables of several blocks, ladders of many rungs and buckets of every level, emptied in random order."""
    draw = random.Random(5)
    shapes = (
        lambda: f"x > {draw.uniform(-50, 50)}",
        lambda: f"x <= {draw.randrange(-50, 50)}",
        lambda: f"x BETWEEN {(low := draw.uniform(-50, 50))} AND {low + draw.choice([0.001, 1, 30, 1e6])}",
        lambda: f"k = {draw.randrange(4)} AND x > {draw.randrange(50)}",
        lambda: f"s LIKE '{draw.choice(['', 'a', 'ab', 'abc'])}%' AND x < {draw.randrange(50)}",
        lambda: f"s IN ('a', 'ab', 'x{draw.randrange(9)}')",
        lambda: f"s > '{draw.choice('abcd')}' AND k <> {draw.randrange(4)}",
        lambda: "k = 1",
    )
    count = 12_000 if engine == "compiled" else 1_500
    index: FilterIndex[int] = FilterIndex(engine=engine)  # type: ignore[arg-type]
    filters = {id: Filter(draw.choice(shapes)()) for id in range(count)}
    for id, filter in filters.items():
        index.add(id, filter)
    while filters:
        for id in draw.sample(list(filters), min(len(filters), count // 4)):
            del filters[id]
            index.remove(id)
        for _ in range(3):
            attributes: dict[str, Any] = {
                "x": draw.choice([draw.uniform(-60, 60), draw.randrange(-60, 60)]),
                "k": draw.randrange(4),
            }
            attributes["s"] = draw.choice(["", "a", "ab", "abc", "abcd", "b", "x3"])
            assert index.match(attributes) == [id for id, filter in filters.items() if filter.matches(attributes)]
    assert index.counters()["rows"] == 0
