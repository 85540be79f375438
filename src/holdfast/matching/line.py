"""Ranges on one ordered line, numbers or strings: which of them meet a range, lie in it, or hold it.

A range lies between two cuts (`model.domain`). By which of its ends are open it is *bounded*, *rising* (`x > 5`),
*falling* (`x < 5`) or *whole*; a point is bounded. What meets a range begins in it, or holds the place where it begins.
The first is a stretch of the sorted ends. For the second a bounded range is kept where an event's value would look for
it (ADR 2): one of numbers in buckets over the ordered bits of doubles, whose widths are powers of four, one of strings
by the prefix that all of it share.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from struct import pack, unpack
from typing import Any, Final, Protocol, TypeAlias

from holdfast.matching.ordered import Found, Item, Ordered
from holdfast.matching.plan import common_prefix
from holdfast.model import domain as d
from holdfast.model.domain import Cut

LEVEL_BITS: Final = 2  # the widths of buckets are powers of 4
Key: TypeAlias = Any


class Spans(Protocol):
    """Where a range is looked up by a place in it."""

    def keys(self, low: Cut, high: Cut) -> tuple[Key, ...]:
        """Where a bounded range is kept; nowhere, if no cut lies inside."""

    def looked_up(self, cut: Cut) -> list[Key]:
        """The keys in use that a range with this cut inside has one of."""

    def note(self, key: Key, change: int) -> None:
        """A key came into use, or went out of it."""


class NumberSpans:
    """Buckets: a range lies in one, or in two that touch, of the finest level where that is so."""

    __slots__ = ("_shifts",)

    def __init__(self) -> None:
        self._shifts: Counter[int] = Counter()  # of levels → keys in use

    def keys(self, low: Cut, high: Cut) -> tuple[Key, ...]:
        if low[0] == high[0]:
            return ()
        first, last = ordered_bits(low[0]), ordered_bits(high[0])
        shift = max(0, (last - first).bit_length() - 1)
        shift += shift % LEVEL_BITS
        if (last >> shift) - (first >> shift) > 1:
            shift += LEVEL_BITS
        return tuple((shift, bucket) for bucket in range(first >> shift, (last >> shift) + 1))

    def looked_up(self, cut: Cut) -> list[Key]:
        bits = ordered_bits(cut[0])
        return [(shift, bits >> shift) for shift in self._shifts]

    def note(self, key: Key, change: int) -> None:
        _count(self._shifts, key[0], change)


class StringSpans:
    """The prefix that all strings of a range share."""

    __slots__ = ("_lengths",)

    def __init__(self) -> None:
        self._lengths: Counter[int] = Counter()  # of prefixes → keys in use

    def keys(self, low: Cut, high: Cut) -> tuple[Key, ...]:
        return () if high[1] == low[1] + "\0" else (common_prefix(low[1], high),)

    def looked_up(self, cut: Cut) -> list[Key]:
        text = cut[1]
        return [text[:length] for length in self._lengths if length <= len(text)]

    def note(self, key: Key, change: int) -> None:
        _count(self._lengths, len(key), change)


def _count(counts: Counter[int], what: int, change: int) -> None:
    counts[what] += change
    if not counts[what]:
        del counts[what]


def ordered_bits(number: float) -> int:
    """Doubles as integers in the same order."""
    bits: int = unpack(">Q", pack(">d", number + 0.0))[0]
    return bits ^ 0xFFFF_FFFF_FFFF_FFFF if bits >> 63 else bits | 1 << 63


class Line:
    """Ranges, each of a row, which may have several."""

    __slots__ = ("_bottom", "_falling", "_inside", "_rising", "_spans", "_starts", "_top", "_whole")

    def __init__(self, bottom: Cut, top: Cut, spans: Spans) -> None:
        self._bottom = bottom
        self._top = top
        self._spans = spans
        self._starts = Ordered()  # of bounded ranges
        self._inside: dict[Key, dict[Item, Cut]] = {}  # bounded ranges by their spans' keys: start → high end
        self._rising = Ordered()  # by their low ends
        self._falling = Ordered()  # by their high ends
        self._whole: dict[int, None] = {}

    def add(self, low: Cut, high: Cut, row: int) -> None:
        if low == self._bottom:
            if high == self._top:
                self._whole[row] = None
            else:
                self._falling.add((high, row))
        elif high == self._top:
            self._rising.add((low, row))
        else:
            item = (low, row)
            self._starts.add(item)
            for key in self._spans.keys(low, high):
                if key not in self._inside:
                    self._inside[key] = {}
                    self._spans.note(key, 1)
                self._inside[key][item] = high

    def remove(self, low: Cut, high: Cut, row: int) -> None:
        if low == self._bottom:
            if high == self._top:
                del self._whole[row]
            else:
                self._falling.remove((high, row))
        elif high == self._top:
            self._rising.remove((low, row))
        else:
            item = (low, row)
            self._starts.remove(item)
            for key in self._spans.keys(low, high):
                kept = self._inside[key]
                del kept[item]
                if not kept:
                    del self._inside[key]
                    self._spans.note(key, -1)

    def find_meeting(self, low: Cut, high: Cut, found: Found) -> None:
        """The ranges that share a value with this one."""
        found.add_rows(self._whole)
        self._falling.find((low, inf), None, found)
        self._rising.find(None, (high,), found)
        self._starts.find((low,), (high,), found)
        if low != self._bottom:
            found.add_rows(self._around(low))

    def find_within(self, low: Cut, high: Cut, found: Found) -> None:
        """The ranges that this one holds; of bounded ones, all that begin in it."""
        self._starts.find((low,), (high,), found)
        if low == self._bottom:
            self._falling.find(None, (high, inf), found)
        if high == self._top:
            self._rising.find((low,), None, found)
            if low == self._bottom:
                found.add_rows(self._whole)

    def find_holding(self, low: Cut, high: Cut, found: Found) -> None:
        """The ranges that hold this one; of bounded ones, all that hold where it begins."""
        found.add_rows(self._whole)
        if high != self._top:
            self._falling.find((high,), None, found)
        if low != self._bottom:
            self._rising.find(None, (low, inf), found)
            if high != self._top:
                self._starts.find((low,), (low, inf), found)
                found.add_rows(self._around(low))

    def _around(self, cut: Cut) -> list[int]:
        """The bounded ranges with a cut inside."""
        return [
            item[1]
            for key in self._spans.looked_up(cut)
            for item, high in self._inside.get(key, {}).items()
            if item[0] < cut < high
        ]


def number_line() -> Line:
    return Line(d.NUMBER_BOTTOM, d.NUMBER_TOP, NumberSpans())


def string_line() -> Line:
    return Line(d.STRING_BOTTOM, d.STRING_TOP, StringSpans())
