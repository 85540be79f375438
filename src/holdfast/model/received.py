"""Events as their subscribers see them: with their position in the log, and how often they were tried.

They come as batches of bytes, and are made when a program takes them; their fields, when it looks at them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from holdfast.model.batch import EventBatch
from holdfast.model.event import deadline_of, encode_fields
from holdfast.model.position import Position
from holdfast.model.values import Value

try:
    from holdfast.model._events import EventFields, received
except ImportError:
    from holdfast.model.portable_fields import EventFields, received  # type: ignore[assignment]

FEW: Final = 16  # parts of a batch: less than such a one is copied

_FIELDS: Final = (
    "publisher", "incarnation", "sequence", "topic", "attributes", "payload", "published_at", "lifetime", "position",
    "attempt",
)  # fmt: skip


class ReceivedEvent(EventFields):
    """`position` is None if the broker keeps no log. An `attempt` above 1 may have been handed out before."""

    __slots__ = ()
    __match_args__ = _FIELDS

    def __new__(
        cls,
        publisher: str,
        incarnation: int,
        sequence: int,
        topic: str,
        attributes: dict[str, Value],
        payload: bytes = b"",
        published_at: int = 0,
        lifetime: int = 0,
        position: Position | None = None,
        attempt: int = 1,
    ) -> ReceivedEvent:
        data = encode_fields(publisher, incarnation, sequence, topic, attributes, payload, published_at, lifetime)
        log, positions = ("", ()) if position is None else (position.log, (position.number,))
        return received(cls, data, (0, len(data)), log, positions, (attempt,))[0]

    @property
    def position(self) -> Position | None:
        log = self.log
        return None if log is None else Position(log, self.number)

    @property
    def id(self) -> str:
        """The id as text, as traces show it."""
        return f"{self.publisher}/{self.incarnation}/{self.sequence}"

    @property
    def deadline(self) -> int:
        """From then on, by the wall clock, it is expired; 0: never."""
        return deadline_of(self.published_at, self.lifetime)

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in _FIELDS])

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, ReceivedEvent) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())  # which its attributes have none of

    def __repr__(self) -> str:
        return f"ReceivedEvent({', '.join([f'{name}={getattr(self, name)!r}' for name in _FIELDS])})"

    def __reduce__(self) -> tuple[type[ReceivedEvent], tuple[Any, ...]]:
        return ReceivedEvent, self._values()


class ReceivedEvents(msgspec.Struct, eq=False, gc=False):
    """A collection of events that came together for one subscription, not yet made. `positions` and `attempts`: of
    each, or none."""

    batch: EventBatch
    _log: str = ""
    positions: Sequence[int] = ()
    _attempts: Sequence[int] = ()
    count: int = 0

    def __post_init__(self) -> None:
        self.count = self.batch.count

    def make(self) -> list[ReceivedEvent]:
        """All of them, for a program that takes them."""
        batch = self.batch
        return received(ReceivedEvent, batch.data, batch.offsets, self._log, self.positions, self._attempts)

    def take(self, rows: Sequence[int]) -> ReceivedEvents:
        """Those of rising rows; the value itself if these are all."""
        if len(rows) == self.count:
            return self
        positions, attempts = ([said[row] for row in rows] if said else () for said in (self.positions, self._attempts))
        return ReceivedEvents(self.batch.take(rows), self._log, positions, attempts)

    def part(self, start: int, end: int) -> ReceivedEvents:
        """Those of a range of rows; the value itself if these are all. They may wait for long: few of them are a copy,
        which keeps nothing of the others in memory."""
        if start <= 0 and end >= self.count:
            return self
        batch = self.batch
        few = FEW * batch.bytes_of(start, end) < batch.bytes
        part = batch.take(range(start, end)) if few else batch.part(start, end)
        return ReceivedEvents(part, self._log, self.positions[start:end], self._attempts[start:end])

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[ReceivedEvent]:
        return iter(self.make())

    def __contains__(self, event: object) -> bool:
        return event in self.make()

    def __eq__(self, other: object) -> bool:
        return self.make() == other.make() if isinstance(other, ReceivedEvents) else NotImplemented

    def __repr__(self) -> str:
        return f"ReceivedEvents({self.make()!r})"
