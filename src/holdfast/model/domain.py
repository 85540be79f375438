"""Sets of values that one attribute may have: the alphabet of the canonical form.

A domain says which numbers, strings and booleans belong to it, and whether "missing" does. Numbers are a
dense line; strings are ordered by code point. Both are kept as sorted, disjoint, half-open intervals between
*cuts*, so that one small algebra serves both:

- numbers: the cut (v, 0) lies just below v, (v, 1) just above it; 5 and 5.0 are one number.
- strings: the cut (0, s) lies just below s. Every string s has a successor s + NUL, so the cut just above s is
  (0, s + NUL), and no two cuts mean the same. (1, "") lies above all strings.
"""

from __future__ import annotations

from math import inf
from typing import Any, TypeAlias

import msgspec

from holdfast.model.values import TOPIC, Value

Cut: TypeAlias = tuple[Any, Any]
Intervals: TypeAlias = tuple[tuple[Cut, Cut], ...]

NUMBER_BOTTOM: Cut = (-inf, 0)
NUMBER_TOP: Cut = (inf, 1)
STRING_BOTTOM: Cut = (0, "")
STRING_TOP: Cut = (1, "")
ALL_NUMBERS: Intervals = ((NUMBER_BOTTOM, NUMBER_TOP),)
ALL_STRINGS: Intervals = ((STRING_BOTTOM, STRING_TOP),)
FALSE_BIT, TRUE_BIT = 1, 2
BOTH_BOOLEANS = FALSE_BIT | TRUE_BIT
LAST_CHARACTER = "\U0010ffff"


class Domain(msgspec.Struct, frozen=True, gc=False):
    """A set of values of one attribute."""

    numbers: Intervals = ()
    strings: Intervals = ()
    booleans: int = 0
    missing: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.numbers or self.strings or self.booleans or self.missing)

    def meet(self, other: Domain) -> Domain:
        return Domain(
            intersection(self.numbers, other.numbers),
            intersection(self.strings, other.strings),
            self.booleans & other.booleans,
            self.missing and other.missing,
        )

    def join(self, other: Domain) -> Domain:
        return Domain(
            union(self.numbers, other.numbers),
            union(self.strings, other.strings),
            self.booleans | other.booleans,
            self.missing or other.missing,
        )

    def complement(self) -> Domain:
        """The values that are present and do not belong: what NOT makes of a comparison."""
        return Domain(
            gaps(self.numbers, NUMBER_BOTTOM, NUMBER_TOP),
            gaps(self.strings, STRING_BOTTOM, STRING_TOP),
            BOTH_BOOLEANS & ~self.booleans,
            False,
        )

    def is_within(self, other: Domain) -> bool:
        return (
            is_subset(self.numbers, other.numbers)
            and is_subset(self.strings, other.strings)
            and not self.booleans & ~other.booleans
            and (other.missing or not self.missing)
        )

    def key(self) -> tuple[Any, ...]:
        return (self.numbers, self.strings, self.booleans, self.missing)


NOTHING = Domain()
PRESENT = Domain(ALL_NUMBERS, ALL_STRINGS, BOTH_BOOLEANS, False)
ANYTHING = Domain(ALL_NUMBERS, ALL_STRINGS, BOTH_BOOLEANS, True)
MISSING = Domain(missing=True)
TRUE_ONLY = Domain(booleans=TRUE_BIT)
FALSE_ONLY = Domain(booleans=FALSE_BIT)

# The topic of an event is a string that is not empty, or missing.
ANY_TOPIC = Domain(strings=(((0, "\0"), STRING_TOP),), missing=True)


def universe(name: str) -> Domain:
    """All that an attribute of this name can be."""
    return ANY_TOPIC if name == TOPIC else ANYTHING


def compared_with(comparison: str, constant: Value) -> Domain:
    """The values x for which `x comparison constant` is TRUE; all others that are present make it FALSE."""
    if isinstance(constant, bool):
        if comparison not in ("=", "<>"):
            return NOTHING
        return TRUE_ONLY if constant is (comparison == "=") else FALSE_ONLY
    bottom, below, above, top = _cuts(constant)
    if comparison == "=":
        intervals: Intervals = ((below, above),)
    elif comparison == "<":
        intervals = ((bottom, below),)
    elif comparison == "<=":
        intervals = ((bottom, above),)
    elif comparison == ">":
        intervals = ((above, top),)
    elif comparison == ">=":
        intervals = ((below, top),)
    else:
        intervals = ((bottom, below), (above, top))
    if isinstance(constant, str):
        return Domain(strings=tuple(i for i in intervals if i[0] < i[1]))  # nothing lies below ''
    return Domain(numbers=intervals)


def between(low: Value, high: Value) -> Domain:
    """The values x for which `x >= low AND x <= high` is TRUE."""
    return compared_with(">=", low).meet(compared_with("<=", high))


def _cuts(constant: int | float | str) -> tuple[Cut, Cut, Cut, Cut]:
    if isinstance(constant, str):
        return STRING_BOTTOM, (0, constant), (0, constant + "\0"), STRING_TOP
    return NUMBER_BOTTOM, (constant, 0), (constant, 1), NUMBER_TOP


def one_of(values: tuple[int | float | str, ...]) -> Domain:
    numbers = sorted({v for v in values if not isinstance(v, str)})
    strings = sorted({v for v in values if isinstance(v, str)})
    return Domain(
        tuple(((v, 0), (v, 1)) for v in numbers),
        merged([((0, v), (0, v + "\0")) for v in strings]),
    )


def starting_with(prefix: str) -> Domain:
    """The strings that begin with `prefix`."""
    return Domain(strings=(((0, prefix), prefix_end(prefix)),))


def prefix_end(prefix: str) -> Cut:
    """The cut just above all strings that begin with `prefix`."""
    kept = prefix.rstrip(LAST_CHARACTER)
    if not kept:
        return STRING_TOP
    # Surrogates are no characters: U+E000 follows U+D7FF, so that a cut is always text and no two mean the same.
    following = "\ue000" if kept[-1] == "\ud7ff" else chr(ord(kept[-1]) + 1)
    return (0, kept[:-1] + following)


# ---- the algebra of sorted, disjoint, half-open intervals


def intersection(a: Intervals, b: Intervals) -> Intervals:
    if not a or not b:
        return ()
    result = []
    i = j = 0
    while i < len(a) and j < len(b):
        low = max(a[i][0], b[j][0])
        high = min(a[i][1], b[j][1])
        if low < high:
            result.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(result)


def union(a: Intervals, b: Intervals) -> Intervals:
    if not a or not b:
        return a or b
    return merged(sorted((*a, *b)))


def merged(intervals: list[tuple[Cut, Cut]]) -> Intervals:
    """Sorted intervals with those that touch or overlap made one."""
    result: list[tuple[Cut, Cut]] = []
    for low, high in intervals:
        if result and low <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], high))
        else:
            result.append((low, high))
    return tuple(result)


def gaps(a: Intervals, bottom: Cut, top: Cut) -> Intervals:
    """What lies between `bottom` and `top` and in none of the intervals."""
    result = []
    for low, high in a:
        if bottom < low:
            result.append((bottom, low))
        bottom = high
    if bottom < top:
        result.append((bottom, top))
    return tuple(result)


def is_subset(a: Intervals, b: Intervals) -> bool:
    j = 0
    for low, high in a:
        while j < len(b) and b[j][1] < high:
            j += 1
        if j == len(b) or low < b[j][0]:
            return False
    return True


def string_points(strings: Intervals) -> list[str] | None:
    """The strings of a finite set, or None if there are infinitely many (or ones that run together)."""
    points = []
    for (_, low), high in strings:
        if high != (0, low + "\0"):
            return None
        points.append(low)
    return points


def number_points(numbers: Intervals) -> list[int | float] | None:
    """The numbers of a finite set, or None if there are infinitely many."""
    points = []
    for low, high in numbers:
        if low[0] != high[0]:
            return None
        points.append(low[0])
    return points
