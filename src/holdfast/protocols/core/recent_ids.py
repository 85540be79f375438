"""The newest so many ids of events, as runs of the numbers of their publishers: asked of, added and forgotten by runs.

Which numbers of a publisher are known is kept as bits, some at a time: so it costs the same whatever numbers come, in
whatever order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias

Publisher: TypeAlias = tuple[str, int]  # its name and its life
IdRun: TypeAlias = tuple[str, int, int, int]  # a publisher's, the first number, and how many follow without a gap

BITS: Final = 256


def _bits(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The numbers of a range: which block, and which bits of it."""
    for block in range(first // BITS, last // BITS + 1):
        low, high = max(first - block * BITS, 0), min(last - block * BITS, BITS - 1)
        yield block, ((2 << high - low) - 1) << low


class RecentIds:
    """Each once. Those that came first are forgotten first."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._known: dict[Publisher, dict[int, int]] = {}  # → block → bits
        self._runs: deque[tuple[Publisher, int, int]] = deque()  # first and last number of each, in order
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def has(self, publisher: Publisher, first: int, last: int) -> bool:
        """Whether any of these numbers is known."""
        known = self._known.get(publisher)
        return known is not None and any(known.get(block, 0) & bits for block, bits in _bits(first, last))

    def add(self, publisher: Publisher, first: int, last: int) -> None:
        """Numbers of which none is known."""
        known = self._known.setdefault(publisher, {})
        for block, bits in _bits(first, last):
            known[block] = known.get(block, 0) | bits
        self._count += last - first + 1
        if self._runs and self._runs[-1][0] == publisher and self._runs[-1][2] + 1 == first:
            first = self._runs.pop()[1]
        self._runs.append((publisher, first, last))
        while self._count > self._count_max:
            self._forget(self._count - self._count_max)

    def _forget(self, count: int) -> None:
        """Up to so many of the oldest run."""
        publisher, first, last = self._runs.popleft()
        end = min(last, first + count - 1)
        if end < last:
            self._runs.appendleft((publisher, end + 1, last))
        self._count -= end - first + 1
        known = self._known[publisher]
        for block, bits in _bits(first, end):
            known[block] &= ~bits
            if not known[block]:
                del known[block]
        if not known:
            del self._known[publisher]

    def get_state(self) -> list[IdRun]:
        return [(*publisher, first, last - first + 1) for publisher, first, last in self._runs]

    def set_state(self, runs: list[IdRun]) -> None:
        self._known, self._count = {}, 0
        self._runs.clear()
        for name, life, first, count in runs:
            self.add((name, life), first, first + count - 1)
