"""Events that travel together: as bytes, to pass on, and decoded, to look at."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model.event import Event, EventBytes, any_expires, decode_batch, encode_batch


class EventBatch:
    """Some events in their order; `slices` are their bytes. Nobody changes either list."""

    __slots__ = ("_encoded", "events", "slices")

    def __init__(self, events: list[Event], slices: list[EventBytes], encoded: EventBytes | None = None) -> None:
        self.events = events
        self.slices = slices
        self._encoded = encoded

    @classmethod
    def decoded(cls, encoded: EventBytes) -> EventBatch:
        """From the bytes of a msgpack array of events; EventError if they are none."""
        events, slices = decode_batch(encoded)
        return cls(events, slices, encoded)

    def __len__(self) -> int:
        return len(self.slices)

    @property
    def encoded(self) -> EventBytes:
        """The bytes of all of them, as `decoded` takes them: those that it was made of, where it was."""
        if self._encoded is None:
            self._encoded = encode_batch(self.slices)
        return self._encoded

    def take(self, rows: Sequence[int]) -> EventBatch:
        """Those of rising rows; the batch itself if these are all."""
        if len(rows) == len(self.slices):
            return self
        return EventBatch([self.events[row] for row in rows], [self.slices[row] for row in rows])

    def behind(self, count: int) -> EventBatch:
        """All but the first so many; the batch itself if that is none."""
        return EventBatch(self.events[count:], self.slices[count:]) if count else self

    @property
    def deadlines(self) -> list[int] | None:
        """When each is over, 0 for one that never is; None if that is all of them."""
        return [event.deadline for event in self.events] if any_expires(self.events) else None
