"""The values that attributes have: integers of 64 bits, finite floats, strings and booleans.

Everything that reads an event reads it through here, so that a NaN, an integer of 70 bits or a lone
surrogate is refused in one way everywhere, and never compared. Booleans are a kind of their own: they are
not the numbers 0 and 1, whatever Python says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from holdfast.errors import EventError

Value: TypeAlias = int | float | str | bool

INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1
TOPIC = "topic"


def read(attributes: Mapping[str, Any], name: str) -> Value | None:
    """The value of one attribute, or None if the event does not have it. Refuses what is no value."""
    value = attributes.get(name)
    kind = value.__class__
    if kind is int:
        if -9223372036854775808 <= value <= 9223372036854775807:  # type: ignore[operator]
            return value
    elif kind is float:
        if value - value == 0.0:  # type: ignore[operator]  # NaN and the infinities fail this
            return value
    elif kind is str:
        if value.isascii():  # type: ignore[union-attr]
            return value
    elif kind is bool:
        return value
    elif value is None and name not in attributes:
        return None
    return check_value(name, value)


def check_value(name: str, value: object) -> Value:
    """`value` as one of the four plain types (an enumeration's member as its integer, say), or EventError."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if INTEGER_MIN <= value <= INTEGER_MAX:
            return int(value)
        raise EventError(f"attribute {name!r} is an integer outside the range of 64 bits", name)
    if isinstance(value, float):
        if value - value == 0.0:
            return float(value)
        raise EventError(f"attribute {name!r} is {float(value)!r}; only finite numbers can be compared", name)
    if isinstance(value, str):
        if is_unicode_text(value):
            return str.__str__(value)  # str() of an enumeration's member is its name
        raise EventError(f"attribute {name!r} holds a lone surrogate, which is no Unicode text", name)
    hint = "; leave an attribute out instead of giving None" if value is None else ""
    raise EventError(f"attribute {name!r} is of type {type(value).__name__}, not int, float, str or bool{hint}", name)


def check_attributes(attributes: Mapping[str, object]) -> None:
    """Refuses attributes that no event can carry: names and values both."""
    for name, value in attributes.items():
        if not isinstance(name, str):
            raise EventError(f"attribute names are strings, not {type(name).__name__}: {name!r}")
        if name == TOPIC:
            raise topic_in_attributes()
        if not name:
            raise EventError("an attribute's name is empty, and no filter could read it; give it a character")
        if not is_unicode_text(name):
            raise EventError(f"attribute name {name!r} holds a lone surrogate, which is no Unicode text", name)
        check_value(name, value)


def topic_in_attributes() -> EventError:
    return EventError("'topic' is not an attribute that an event sets itself; pass topic=… instead", TOPIC)


def check_mapping(attributes: object) -> None:
    if not isinstance(attributes, Mapping):
        raise EventError(f"attributes are a mapping of names to values, not {type(attributes).__name__}")


def with_topic(attributes: Mapping[str, object], topic: str) -> Mapping[str, object]:
    """What a filter sees: the attributes, and the topic as one more of them unless it is empty."""
    check_mapping(attributes)
    if TOPIC in attributes:
        raise topic_in_attributes()
    if not topic:
        return attributes
    if not isinstance(topic, str):
        raise EventError(f"topic is of type {type(topic).__name__}, not str", TOPIC)
    return {**attributes, TOPIC: topic}


def is_unicode_text(text: str) -> bool:
    """Whether `text` has a UTF-8 form: Python strings may hold lone surrogates, which have none."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
