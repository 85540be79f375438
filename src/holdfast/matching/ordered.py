"""A sorted list that stays cheap to change: where the ends of ranges are kept, for `Line`.

Items are pairs (cut, row), all different. They lie in blocks of at most BLOCK_MAX, so that no addition moves much.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sized
from itertools import chain, islice
from typing import Any, Final, TypeAlias

Item: TypeAlias = tuple[Any, int]  # a cut of `model.domain`, and the number of a row
Bound: TypeAlias = tuple[Any, ...]  # (cut,) lies below all items at the cut, (cut, inf) above them

BLOCK_MAX: Final = 512


class Found:
    """Rows that were found, and how many: not copied, since often only their number is asked for."""

    __slots__ = ("_pieces", "_rows", "size")

    def __init__(self) -> None:
        self._pieces: list[tuple[list[Item], int, int]] = []
        self._rows: list[Any] = []
        self.size = 0

    def add_items(self, block: list[Item], start: int, stop: int) -> None:
        if start < stop:
            self._pieces.append((block, start, stop))
            self.size += stop - start

    def add_rows(self, rows: Sized) -> None:
        """A list of rows, or a dict by them."""
        if rows:
            self._rows.append(rows)
            self.size += len(rows)

    def __iter__(self) -> Iterator[int]:
        """The rows; one may come twice."""
        for block, start, stop in self._pieces:
            for item in islice(block, start, stop):
                yield item[1]
        yield from chain.from_iterable(self._rows)


class Ordered:
    """Pairs in ascending order."""

    __slots__ = ("_blocks", "_firsts")

    def __init__(self) -> None:
        self._blocks: list[list[Item]] = []
        self._firsts: list[Item] = []  # of each block

    def add(self, item: Item) -> None:
        if not self._blocks:
            self._blocks.append([item])
            self._firsts.append(item)
            return
        place = max(bisect_right(self._firsts, item) - 1, 0)
        block = self._blocks[place]
        block.insert(bisect_left(block, item), item)
        self._firsts[place] = block[0]
        if len(block) > BLOCK_MAX:
            upper = block[BLOCK_MAX // 2 :]
            del block[BLOCK_MAX // 2 :]
            self._blocks.insert(place + 1, upper)
            self._firsts.insert(place + 1, upper[0])

    def remove(self, item: Item) -> None:
        """The item is there."""
        place = bisect_right(self._firsts, item) - 1
        block = self._blocks[place]
        del block[bisect_left(block, item)]
        if block:
            self._firsts[place] = block[0]
        else:
            del self._blocks[place], self._firsts[place]

    def find(self, low: Bound | None, high: Bound | None, found: Found) -> None:
        """The items from one bound to the other; None: to the end."""
        blocks = self._blocks
        if not blocks:
            return
        first, start = (0, 0) if low is None else self._place(low)
        last, stop = (len(blocks) - 1, len(blocks[-1])) if high is None else self._place(high)
        for place in range(first, last + 1):
            block = blocks[place]
            found.add_items(block, start if place == first else 0, stop if place == last else len(block))

    def _place(self, bound: Any) -> tuple[int, int]:
        """The block that a bound falls into, and the number of items in it that lie below."""
        place = max(bisect_right(self._firsts, bound) - 1, 0)
        return place, bisect_left(self._blocks[place], bound)
