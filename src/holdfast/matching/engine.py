"""What an engine of the index does. The compiled kernel and the portable engine both do it.

Neither engine decides what a filter means: it gets the filter's conjunctions from `plan` and must report
exactly the filters whose `matches` is True, each once, in the order of their addition.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from holdfast.errors import EventError
from holdfast.matching.plan import Conjunction
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event as SentEvent
from holdfast.model.event import encode_fields
from holdfast.model.filter import Filter
from holdfast.model.values import TOPIC, check_attributes, check_mapping, check_value

Id = TypeVar("Id", bound=Hashable)
Attributes: TypeAlias = Mapping[str, Any]
Event: TypeAlias = Attributes | tuple[Attributes, str]


class Engine(Protocol[Id]):
    """Stores filters by id and finds those that match."""

    def add(self, id: Id, filter: Filter, conjunctions: tuple[Conjunction, ...], /) -> None: ...
    def remove(self, id: Id, /) -> None: ...
    def match(self, attributes: Attributes, topic: str = "", /) -> list[Id]: ...
    def match_batch(self, events: Iterable[Event], /) -> list[list[Id]]: ...
    def match_encoded(self, batch: EventBatch, /) -> dict[Id, Sequence[int]]: ...
    def rows_matching(self, batch: EventBatch, /) -> Sequence[int]: ...
    def match_columns(self, batch: Any, /) -> tuple[array[int], list[Id]]: ...
    def filter(self, id: Id, /) -> Filter: ...
    def items(self) -> list[tuple[Id, Filter]]: ...
    def counters(self) -> dict[str, int]: ...
    def __len__(self) -> int: ...


def plain_event(attributes: Attributes, topic: str, row: int | None = None) -> dict[str, Any]:
    """The attributes as a plain dict of plain types; raises EventError where that can't be."""
    try:
        check_mapping(attributes)
        check_attributes(attributes)
        if topic:
            if not isinstance(topic, str):
                raise EventError(f"topic is of type {type(topic).__name__}, not str", TOPIC)
            check_value(TOPIC, topic)
    except EventError as problem:
        raise EventError(problem.problem, problem.attribute, row) from None
    return {str.__str__(name): check_value(name, value) for name, value in attributes.items()}


def readable_event(batch: EventBatch, row: int) -> SentEvent:
    """One event of a batch, or EventError, which says the row."""
    try:
        return batch.event(row)
    except EventError as problem:
        raise EventError(problem.problem, problem.attribute, row) from None


def plain_batch(batch: EventBatch, row: int) -> EventBatch:
    """The batch with this event written anew, of plain types; raises EventError, with the row, where that can't be."""
    event = readable_event(batch, row)
    attributes = plain_event(event.attributes, event.topic, row)
    fields = (event.publisher, event.incarnation, event.sequence, event.topic, attributes)
    fresh = EventBatch.of([encode_fields(*fields, event.payload, event.published_at, event.lifetime)])
    return EventBatch.joined([batch.part(0, row), fresh, batch.part(row + 1, len(batch))])
