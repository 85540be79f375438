"""What of many seeds or many parameters is in every run, and what only in full ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

BLOCK = 50
SHARE = 8  # one block of so many is in every run


def blocks(count: int, size: int = BLOCK, first: int = 1) -> list[Any]:
    """Parameters for tests: ranges of `size` seeds that make up `count` together, from `first` on. Workers share them
    out; an eighth is in every run."""
    ranges = [range(start, min(start + size, first + count)) for start in range(first, first + count, size)]
    always = -(-len(ranges) // SHARE)
    return [
        pytest.param(seeds, id=f"{seeds[0]}-{seeds[-1]}", marks=[] if place < always else [pytest.mark.full])
        for place, seeds in enumerate(ranges)
    ]


def one_always(values: Iterable[Any]) -> list[Any]:
    """Parameters for tests: the first value in every run, all of them with --full."""
    first, *others = values
    return [first, *(pytest.param(value, marks=pytest.mark.full) for value in others)]


def scarce(happened: Counter[str], wanted: Mapping[str, float], runs: int) -> dict[str, int]:
    """What happened less than is `wanted` of one run, on average: runs in which nothing happens prove nothing."""
    return {what: happened[what] for what, least in wanted.items() if happened[what] < least * runs}
