"""Numbers are compared exactly where doubles can't tell them apart: around 2^53 and at the ends of 64 bits."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Filter, FilterIndex

AROUND = [
    number
    for centre in (2**53, 2**54, 2**60, 2**63 - 3)
    for sign in (1, -1)
    for offset in range(-3, 4)
    if -(2**63) <= (number := sign * (centre + offset)) < 2**63
] + [-(2**63)]
FLOATS = [float(number) for number in AROUND[::3]] + [0.0, -0.0, 5e-324, -5e-324, 1.7e308, 2.0**53 + 2]


def test_bounds_and_values_that_share_a_double_are_told_apart(index: FilterIndex[Any]) -> None:
    filters: dict[tuple[Any, ...], Filter] = {}
    for constant in (*AROUND, *FLOATS):
        for operator in ("=", "<", "<=", ">", ">=", "<>"):
            filters[operator, repr(constant)] = Filter(f"x {operator} {constant!r}")
    for low, high in itertools.pairwise(AROUND):
        filters["between", low, high] = Filter(f"x BETWEEN {min(low, high)} AND {max(low, high)}")
        filters["in", low, high] = Filter(f"x IN ({low}, {high}, 'a')")
        filters["outside", low, high] = Filter(f"NOT (x > {min(low, high)} AND x < {max(low, high)})")
    for id, filter in filters.items():
        index.add(id, filter)
    for value in (*AROUND, *FLOATS):
        expected = [id for id, filter in filters.items() if filter.matches({"x": value})]
        assert index.match({"x": value}) == expected, value


def test_a_large_integer_is_not_the_double_next_to_it(new_index: Callable[[], FilterIndex[Any]]) -> None:
    index = new_index()
    index.add("integer", Filter("x = 9007199254740993"))
    index.add("double", Filter("x = 9007199254740992.0"))
    assert index.match({"x": 2**53 + 1}) == ["integer"]
    assert index.match({"x": 2**53}) == ["double"]
    assert index.match({"x": float(2**53)}) == ["double"]


def test_negative_zero_equals_zero(index: FilterIndex[Any]) -> None:
    index.add("zero", Filter("x = 0"))
    index.add("negative zero", Filter("x = -0.0"))
    index.add("range", Filter("x BETWEEN 0 AND 1"))
    for zero in (0, 0.0, -0.0):
        assert index.match({"x": zero}) == ["zero", "negative zero", "range"]


@pytest.mark.parametrize(
    "text",
    ["x BETWEEN -5 AND -0.0", "x BETWEEN -0.0 AND 5", "x >= -1e-300 AND x <= -0.0", "x > -5e-324 AND x < 1"],
)
def test_minus_zero_as_a_bound_is_zero(index: FilterIndex[Any], text: str) -> None:
    filter = Filter(text)
    index.add(1, filter)
    for value in (0, 0.0, -0.0, 5e-324, -5e-324, -1, 1):
        assert index.match({"x": value}) == ([1] if filter.matches({"x": value}) else [])
