"""`Filter`: what users hold. Text in, immutable value out (D0-A5: a filter is what a subscription says).

A filter keeps its text and its syntax tree; the canonical form is made when it is first asked for. Pickling
and msgpack carry the text: one grammar, one set of limits, nothing else to attack.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

from holdfast.errors import FilterError
from holdfast.model import covering, padres
from holdfast.model.canonical import Canonical, canonical_key, canonical_of
from holdfast.model.canonical_text import canonical_node
from holdfast.model.hints import hints_of
from holdfast.model.limits import DEFAULT_LIMITS, DEPTH_MAX, FilterLimits
from holdfast.model.parser import check_text, parse
from holdfast.model.rendering import render
from holdfast.model.syntax import Node, names_read
from holdfast.model.values import TOPIC, topic_in_attributes, with_topic


class Filter:
    """A predicate over the attributes of an event, written like a JMS selector.

    >>> f = Filter("topic = 'stock' AND price BETWEEN 10 AND 20 AND NOT symbol LIKE 'X%'")
    >>> f.matches({"symbol": "IBM", "price": 12.5}, topic="stock")
    True

    Two filters are equal if their canonical forms are: `price > 1 AND price > 2` equals `2 < price`.
    """

    __slots__ = ("_canonical", "_limits", "_root", "_text")

    _text: str
    _root: Node
    _limits: FilterLimits
    _canonical: Canonical | None

    def __init__(self, text: str = "", *, limits: FilterLimits = DEFAULT_LIMITS) -> None:
        set_slot = object.__setattr__
        set_slot(self, "_root", parse(text, limits))
        set_slot(self, "_text", str.__str__(text))  # plain, even if `text` is of a subclass
        set_slot(self, "_limits", limits)
        set_slot(self, "_canonical", None)

    @classmethod
    def from_padres(cls, text: str, *, limits: FilterLimits = DEFAULT_LIMITS) -> Filter:
        """A filter in PADRES' notation: `[class,eq,'STOCK'],[price,>,100]`."""
        check_text(text, limits)
        translated = padres.filter_text(text)
        try:
            return cls(translated, limits=limits)
        except FilterError as problem:  # a limit, met in a text that the caller never saw
            raise FilterError(problem.problem, text, 0, problem.expected) from None

    @classmethod
    def from_msgpack(cls, data: bytes, *, limits: FilterLimits = DEFAULT_LIMITS) -> Filter:
        """The filter that `to_msgpack` encoded. Bytes that are no filter raise FilterError."""
        try:
            text = msgspec.msgpack.decode(data, type=str)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise FilterError(f"these bytes are no filter: {problem}", "", 0, "one msgpack string") from None
        return cls(text, limits=limits)

    def to_msgpack(self) -> bytes:
        """The text as one msgpack string; the limits do not travel with it."""
        return msgspec.msgpack.encode(self._text)

    def matches(self, attributes: Mapping[str, Any], topic: str = "") -> bool:
        """Whether an event with these attributes and this topic is selected.

        Refuses with EventError what it reads and can't compare: NaN, an integer beyond 64 bits, a list.
        """
        if attributes.__class__ is not dict or topic.__class__ is not str:
            attributes = with_topic(attributes, topic)
        elif TOPIC in attributes:
            raise topic_in_attributes()
        elif topic:
            attributes = {**attributes, TOPIC: topic}
        return self._root.evaluate(attributes) is True

    def covers(self, other: Filter) -> bool:
        """True only if every event that matches `other` matches this filter too."""
        check_filter(other)
        return covering.covers(self.canonical_form, other.canonical_form)

    def intersects(self, other: Filter) -> bool:
        """False only if no event matches both filters."""
        check_filter(other)
        return covering.intersects(self.canonical_form, other.canonical_form)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the filter reads, in the order of their first use."""
        return names_read(self._root)

    @property
    def hints(self) -> tuple[str, ...]:
        """What the text says and hardly means: `country = "UK"` compares two attributes; a string is `'UK'`."""
        return hints_of(self._text, self._limits)

    @property
    def root(self) -> Node:
        """The syntax tree."""
        return self._root

    @property
    def canonical_form(self) -> Canonical:
        """The filter as sets of values: ranges merged, contradictions recognised. Kept once made."""
        form = self._canonical
        if form is None:
            form = canonical_of(self._root)
            object.__setattr__(self, "_canonical", form)
        return form

    @property
    def passing_form(self) -> Canonical:
        """The canonical form, which is not kept unless it was before: a million filters are to stay small."""
        return canonical_of(self._root) if self._canonical is None else self._canonical

    @property
    def canonical(self) -> Filter:
        """An equal filter written in canonical form: `x > 1 AND x > 2` as `x > 2`."""
        # Merging may write longer lists than the text had, and `LIKE 'a%'` for a range: the limits were for the text.
        limits = msgspec.structs.replace(
            self._limits,
            text_bytes=2**30,
            depth=DEPTH_MAX,
            predicates=2**30,
            in_values=2**30,
            like_percents=self._limits.like_percents + 1,
        )
        return Filter(render(canonical_node(self.canonical_form)), limits=limits)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter):
            return NotImplemented
        return self._text == other._text or canonical_key(self.canonical_form) == canonical_key(other.canonical_form)

    def __hash__(self) -> int:
        return hash(canonical_key(self.canonical_form))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Filter({self._text!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._text, self._limits)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a Filter is immutable; can't set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Filter is immutable; can't delete {name!r}")


def check_filter(value: object) -> None:
    """A text in place of a filter is the likeliest mistake: it says so before anything is asked of it."""
    if not isinstance(value, Filter):
        raise TypeError(f"a Filter is needed here, not {type(value).__name__}")


def _unpickle(text: str, limits: FilterLimits) -> Filter:
    return Filter(text, limits=limits)
