"""The fields of an event that a subscriber's program got, in Python: for where `_events` can't be compiled. There they
are read from the event's bytes when they are asked for; here they are read at once, and look the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from holdfast.model.event import Event
from holdfast.model.portable_events import Encoded, Offsets, events_of


def _field(name: str) -> Any:
    return property(lambda self: getattr(self._event, name))


class EventFields:
    """`log` and `number` are those of the event's position; None and 0 if it has none."""

    __slots__ = ("_attempt", "_event", "_log", "_number")

    _event: Event
    _log: str | None
    _number: int
    _attempt: int

    publisher = _field("publisher")
    incarnation = _field("incarnation")
    sequence = _field("sequence")
    topic = _field("topic")
    attributes = _field("attributes")
    payload = _field("payload")
    published_at = _field("published_at")
    lifetime = _field("lifetime")

    @property
    def log(self) -> str | None:
        return self._log

    @property
    def number(self) -> int:
        return self._number

    @property
    def attempt(self) -> int:
        return self._attempt


_T = TypeVar("_T", bound=EventFields)


def received(
    type: type[_T], encoded: Encoded, offsets: Offsets, log: str, positions: Sequence[int], attempts: Sequence[int], /
) -> list[_T]:
    """The events of a batch that was scanned, as objects of a kind of fields. Positions and attempts: of each event, or
    none."""
    count = len(offsets) - 1
    if len(positions) not in (0, count) or len(attempts) not in (0, count):
        raise ValueError("positions and attempts are as many as the events, or none")
    made: list[_T] = []
    for row, event in enumerate(events_of(encoded, offsets)):
        one = object.__new__(type)
        one._event = event
        one._log = log if positions else None
        one._number = positions[row] if positions else 0
        one._attempt = attempts[row] if attempts else 1
        made.append(one)
    return made
