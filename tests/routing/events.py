"""Batches of events for tests of what carries them, and what is in such batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.model.batch import EventBatch
from holdfast.model.event import Event, encode_event


def batch_of(events: Iterable[Event]) -> EventBatch:
    return EventBatch.of([encode_event(event) for event in events])


def numbered_events(*numbers: int, deadlines: Sequence[int] = (), size: int = 0) -> EventBatch:
    """Events that tell their numbers; when each is over (0: never); how large their payloads are."""
    return batch_of(
        Event("p", 1, number, "", {}, bytes(size), 0, deadlines[row] if deadlines else 0)
        for row, number in enumerate(numbers)
    )


def numbers_of(batch: EventBatch) -> list[int]:
    return [event.sequence for event in batch.events]
