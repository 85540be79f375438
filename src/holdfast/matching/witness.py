"""An event that a filter matches, found without searching.

`FilterIndex.covering` stands on it: whatever covers a filter matches every event that the filter matches, so one
such event narrows a million filters down to a few, and only those are compared exactly.
"""

from __future__ import annotations

from math import nextafter
from typing import Any

from holdfast.model import domain as d
from holdfast.model.canonical import Canonical, Every, Membership, Some
from holdfast.model.domain import Cut, Domain
from holdfast.model.filter import Filter
from holdfast.model.values import INTEGER_MAX, INTEGER_MIN, TOPIC, Value, is_unicode_text


def witness(filter: Filter) -> tuple[dict[str, Any], str] | None:
    """Attributes and topic of an event that matches, or None if none was found at first sight."""
    attributes: dict[str, Any] = {}
    _choose(filter.canonical_form, attributes)
    topic = attributes.pop(TOPIC, "")
    if not isinstance(topic, str) or not filter.matches(attributes, topic):
        return None
    return attributes, topic


def _choose(form: Canonical, attributes: dict[str, Any]) -> None:
    """Adds values that satisfy the form, as far as sets of single attributes tell."""
    if isinstance(form, Every):
        for part in form.parts:
            _choose(part, attributes)
    elif isinstance(form, Some):
        if form.parts:
            _choose(form.parts[0], attributes)
    elif isinstance(form, Membership) and not form.domain.missing:
        value = _member(form.domain)
        if value is not None:
            attributes.setdefault(form.name, value)


def _member(domain: Domain) -> Value | None:
    """Some value of the domain."""
    if domain.strings:
        text: str = domain.strings[0][0][1]
        return text if is_unicode_text(text) else None
    if domain.booleans:
        return domain.booleans == d.TRUE_BIT
    return _number_between(*domain.numbers[0]) if domain.numbers else None


def _number_between(low: Cut, high: Cut) -> int | float | None:
    """A number between two cuts that an event can carry, tried where one is to be expected."""
    (lowest, above), (highest, _) = low, high
    candidates: list[int | float] = [0, lowest, highest]
    if low != d.NUMBER_BOTTOM:
        candidates += [nextafter(lowest, float("inf"))] if above else []
        candidates += [int(lowest) + 1] if INTEGER_MIN <= lowest < INTEGER_MAX else []
    if high != d.NUMBER_TOP:
        candidates += [nextafter(highest, float("-inf"))]
        candidates += [int(highest) - 1] if INTEGER_MIN < highest <= INTEGER_MAX else []
    for candidate in candidates:
        if low < (candidate, 1) <= high and abs(candidate) != float("inf"):
            return candidate
    return None
