"""From a filter to what an index stores: conjunctions of boxes, finite sets, prefixes and tests.

A filter's canonical form is spread into conjunctions (at most CONJUNCTIONS_MAX, with at most WEIGHT_MAX values
together; what would need more is left to the filter itself). Each part of a conjunction becomes the cheapest thing
that says it exactly:

- a *box*: one slot of the event lies between two doubles. A range of numbers, a boolean, presence, absence;
- a *finite set*: the attribute equals one of these numbers or strings. One value is an equality;
- a *prefix* of a string, to find candidates by; the exact test comes along;
- a *test*: any other set of values of one attribute, or a LIKE without `_`;
- else the filter is asked: `ask_filter`.

Numbers need care: a box is of doubles, the language compares exactly. Below 2^53 every integer is a double, and
an open bound is closed by taking the next double. From 2^53 on a box is rounded outwards and marked *near*: at
its edge the filter has the last word.

To add a structure to the index: describe here which part it can take, and serve it in `_kernel/access.c`; the
portable engine may ignore it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite, nextafter
from typing import Any, NamedTuple, TypeAlias

from holdfast.model import domain as d
from holdfast.model.canonical import NEVER, Canonical, Every, Membership, Opaque, Pattern, Some, all_of
from holdfast.model.covering import needed_names
from holdfast.model.domain import Cut, Domain
from holdfast.model.filter import Filter

CONJUNCTIONS_MAX = 256
WEIGHT_MAX = 4096  # lists of values and ranges, in all conjunctions together
SETS_MAX = 64
EXACT_BELOW = 2.0**53

NUMBER, STRING, BOOLEAN, PRESENCE, KEY = range(5)
KEY_BYTES = 6
DOMAIN_TEST, LIKE_TEST = 0, 1

Box: TypeAlias = tuple[str, int, float, float]
Test: TypeAlias = tuple[Any, ...]


class Conjunction(NamedTuple):
    """What must all hold. The kernel reads it as a plain tuple, in this order."""

    boxes: tuple[Box, ...]
    sets: tuple[tuple[str, int, tuple[Any, ...], Test | None], ...]
    prefixes: tuple[tuple[str, bytes], ...]
    tests: tuple[Test, ...]
    near: tuple[tuple[str, float, float], ...]
    ask_filter: bool


def plan(filter: Filter) -> tuple[Conjunction, ...]:
    """The conjunctions of which at least one must hold; none for a contradiction."""
    return tuple([_conjunction(parts, is_complete) for parts, is_complete in alternatives(filter.passing_form)])


def alternatives(form: Canonical) -> list[tuple[tuple[Canonical, ...], bool]]:
    """The conjunctions of which at least one must hold, as their parts, and whether those say all that it says."""
    parts = form.parts if isinstance(form, Every) else (form,)
    for part in parts:
        if isinstance(part, Some):
            break
    else:
        return [(parts, True)]
    found = spread(form)
    if len(found) == 1:
        return [(tuple(found[0].parts), found[0].is_complete)]
    return [
        (merged.parts if isinstance(merged, Every) else (merged,), one.is_complete)
        for one in found
        if (merged := all_of(one.parts)) != NEVER
    ]


# ---- spreading Every and Some


class Alternative(NamedTuple):
    """Parts that must all hold, whether they say all that the filter says, and how much there is to store."""

    parts: list[Canonical]
    is_complete: bool
    weight: int


ASK_ALWAYS = Alternative([], False, 0)


def spread(form: Canonical) -> list[Alternative]:
    """What the form says as alternatives."""
    if isinstance(form, Some):
        found = [one for part in form.parts for one in spread(part)]
        if not _is_small(found):
            found = [_without_choices(part) for part in form.parts]
        return found if _is_small(found) and all(one.parts for one in found) else [ASK_ALWAYS]
    certain = _without_choices(form)
    result = [certain._replace(is_complete=True)]
    for part in form.parts if isinstance(form, Every) and not certain.is_complete else ():
        if isinstance(part, Some):
            result = _combined(result, spread(part))
    return result


def _without_choices(form: Canonical) -> Alternative:
    """What must hold whichever alternative is taken, and whether that is all."""
    parts = form.parts if isinstance(form, Every) else (form,)
    certain: list[Canonical] = [part for part in parts if not isinstance(part, Some)]
    return Alternative(certain, len(certain) == len(parts), sum(map(_weight, certain)))


def _weight(part: Canonical) -> int:
    return max(1, len(part.domain.numbers) + len(part.domain.strings)) if isinstance(part, Membership) else 1


def _is_small(found: list[Alternative]) -> bool:
    return len(found) <= CONJUNCTIONS_MAX and sum(one.weight for one in found) <= WEIGHT_MAX


def _combined(found: list[Alternative], choices: list[Alternative]) -> list[Alternative]:
    """Each alternative with each choice; where that would be too much, the choice is left to the filter."""
    if len(found) * len(choices) <= CONJUNCTIONS_MAX:
        joined = [
            Alternative([*one.parts, *chosen.parts], one.is_complete and chosen.is_complete, one.weight + chosen.weight)
            for one in found
            for chosen in choices
        ]
        if _is_small(joined):
            return joined
    return [one._replace(is_complete=False) if one.is_complete else one for one in found]


# ---- one conjunction


class _Parts:
    """The pieces of one conjunction while it is put together."""

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self.sets: list[tuple[str, int, tuple[Any, ...], Test | None]] = []
        self.prefixes: list[tuple[str, bytes]] = []
        self.tests: list[Test] = []
        self.near: list[tuple[str, float, float]] = []
        self.ask_filter = False


def _conjunction(parts: Iterable[Canonical], complete: bool) -> Conjunction:
    out = _Parts()
    out.ask_filter = not complete
    for part in parts:
        if isinstance(part, Membership):
            _take_domain(part.name, part.domain, out)
        elif isinstance(part, Pattern):
            _take_pattern(part, out)
        elif isinstance(part, Opaque):
            out.ask_filter = True
            out.boxes += [(name, PRESENCE, 1.0, 1.0) for name in needed_names(part.node)]
    return Conjunction(
        tuple(out.boxes), tuple(out.sets), tuple(out.prefixes), tuple(out.tests), tuple(out.near), out.ask_filter
    )


def _take_domain(name: str, domain: Domain, out: _Parts) -> None:
    kinds = bool(domain.numbers) + bool(domain.strings) + bool(domain.booleans) + domain.missing
    if kinds == 1:
        if domain.numbers:
            _take_numbers(name, domain, out)
        elif domain.strings:
            _take_strings(name, domain, out)
        elif domain.booleans:
            out.boxes.append(
                (name, BOOLEAN, float(domain.booleans == d.TRUE_BIT), float(domain.booleans > d.FALSE_BIT))
            )
        else:
            out.boxes.append((name, PRESENCE, 0.0, 0.0))
        return
    if not domain.missing:
        out.boxes.append((name, PRESENCE, 1.0, 1.0))
    if domain != d.PRESENT:
        _take_test(name, domain, out)


def _take_numbers(name: str, domain: Domain, out: _Parts) -> None:
    if len(domain.numbers) == 1:
        low, high, exact = number_box(*domain.numbers[0])
        if exact and low == high:
            out.sets.append((name, NUMBER, (low,), None))
            return
        out.boxes.append((name, NUMBER, low, high))
        if not exact:
            out.near.append((name, low, high))
        return
    points = d.number_points(domain.numbers)
    if points and len(out.sets) < SETS_MAX and all(abs(point) < EXACT_BELOW for point in points):
        out.sets.append((name, NUMBER, tuple(map(float, points)), _domain_test(name, domain)))
        return
    low, _, _ = number_box(*domain.numbers[0])
    _, high, _ = number_box(*domain.numbers[-1])
    out.boxes.append((name, NUMBER, low, high))
    _take_test(name, domain, out)


def number_box(low: Cut, high: Cut) -> tuple[float, float, bool]:
    """The smallest closed range of doubles that holds what lies between two cuts, and whether it is exact."""
    low_bound, low_is_open = low
    high_bound, high_is_open = high[0], not high[1]
    exact = True
    if not isfinite(low_bound):
        lowest = -inf
    elif -EXACT_BELOW < low_bound < EXACT_BELOW:
        lowest = nextafter(low_bound, inf) if low_is_open else float(low_bound)
    else:
        exact = False
        lowest = float(low_bound)
        if lowest > low_bound:
            lowest = nextafter(lowest, -inf)
    if not isfinite(high_bound):
        highest = inf
    elif -EXACT_BELOW < high_bound < EXACT_BELOW:
        highest = nextafter(high_bound, -inf) if high_is_open else float(high_bound)
    else:
        exact = False
        highest = float(high_bound)
        if highest < high_bound:
            highest = nextafter(highest, inf)
    return lowest, highest, exact


def _take_strings(name: str, domain: Domain, out: _Parts) -> None:
    points = d.string_points(domain.strings)
    if points is not None and (len(points) == 1 or len(out.sets) < SETS_MAX):
        test = _domain_test(name, domain) if len(points) > 1 else None
        out.sets.append((name, STRING, tuple(map(utf8, points)), test))
        return
    low, high = domain.strings[0][0], domain.strings[-1][1]
    start = utf8(low[1])
    end = None if high == d.STRING_TOP else utf8(high[1])
    out.boxes.append((name, KEY, key_of(start), inf if end is None else key_of(end)))
    prefix = common_prefix(low[1], high)
    if prefix:
        out.prefixes.append((name, utf8(prefix)))
    _take_test(name, domain, out)


def common_prefix(low: str, high: Cut) -> str:
    """The longest prefix that all strings between the cuts share."""
    size = 0
    while size < min(len(low), len(high[1])) and low[size] == high[1][size]:
        size += 1
    # One character more where the upper cut is just the end of that prefix, as it is for LIKE 'abc%'.
    longer = low[: size + 1]
    return longer if high <= d.prefix_end(longer) else low[:size]


def _take_pattern(part: Pattern, out: _Parts) -> None:
    if part.pattern.is_plain:
        segments = tuple(utf8(segment.text) for segment in part.pattern.segments)
        out.tests.append((LIKE_TEST, part.name, part.negated, segments))
    else:
        out.ask_filter = True


def _take_test(name: str, domain: Domain, out: _Parts) -> None:
    test = _domain_test(name, domain)
    if test is None:
        out.ask_filter = True
    else:
        out.tests.append(test)


def _domain_test(name: str, domain: Domain) -> Test | None:
    """The set as a test, or None where its numbers are not exact as doubles."""
    numbers: list[float] = []
    for interval in domain.numbers:
        low, high, exact = number_box(*interval)
        if not exact:
            return None
        numbers += (low, high)
    points: list[bytes] = []
    ranges: list[bytes | None] = []
    for (_, start), high_cut in domain.strings:
        if high_cut == (0, start + "\0"):
            points.append(utf8(start))
        else:
            ranges += (utf8(start), None if high_cut == d.STRING_TOP else utf8(high_cut[1]))
    return (DOMAIN_TEST, name, tuple(numbers), tuple(points), tuple(ranges), domain.booleans, domain.missing)


def utf8(text: str) -> bytes:
    """UTF-8 keeps the order of code points."""
    return text.encode()


def key_of(text: bytes) -> float:
    """The first bytes as a number: in the order of strings, ties possible."""
    return float(int.from_bytes(text[:KEY_BYTES].ljust(KEY_BYTES, b"\0"), "big"))
