"""How long nothing was acknowledged, around a failure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from holdfast.kernel.time import MILLISECOND
from holdfast.trace.summary import percentile


def largest_gap(answered_at: Sequence[int], start: int, end: int) -> int:
    """The longest time between two answers in a row, of those that touch the time from `start` to `end`."""
    first = max(0, bisect_right(answered_at, start) - 1)
    last = min(len(answered_at), bisect_left(answered_at, end) + 1)
    near = answered_at[first:last]
    return max((later - earlier for earlier, later in pairwise(near)), default=0)


def apart(moments: Sequence[tuple[int, int]], answered_at: Sequence[int]) -> list[tuple[int, int]]:
    """The same (start, end), none with a gap that is under way when the next one starts: it counts there."""
    ends = []
    for (_, end), (next_start, _) in pairwise(moments):
        last = bisect_right(answered_at, next_start) - 1
        ends.append(end if end < next_start or last < 0 else answered_at[last])
    ends += [end for _, end in moments[-1:]]
    return [(start, end) for (start, _), end in zip(moments, ends, strict=True)]


class Gaps(NamedTuple):
    """Of several failures, in milliseconds."""

    failures: int
    p50: float
    p99: float
    max: float

    def __str__(self) -> str:
        if not self.failures:
            return "none"
        return f"p50 {self.p50:,.0f} ms, p99 {self.p99:,.0f} ms, max {self.max:,.0f} ms, of {self.failures}"


def gaps_of(answered_at: Sequence[int], moments: Sequence[tuple[int, int]]) -> Gaps:
    """The largest gap of each (start, end)."""
    found = sorted(largest_gap(answered_at, start, end) for start, end in moments)
    if not found:
        return Gaps(0, 0.0, 0.0, 0.0)
    p50, p99 = (percentile(found, share) / MILLISECOND for share in (0.5, 0.99))
    return Gaps(len(found), p50, p99, found[-1] / MILLISECOND)
