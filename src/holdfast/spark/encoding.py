"""Arrow record batches to the bytes of events, column by column.

Whether the values may be in an event is looked at for whole columns; rows are looked at only to name the one that is
wrong, or if the frame holds attributes as a map. The broker checks all of it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.errors import EventError
from holdfast.model.event import (
    ATTRIBUTES_MAX,
    EVENT_BYTES_MAX,
    PAYLOAD_BYTES_MAX,
    STRING_BYTES_MAX,
    Event,
    EventBytes,
    check_event,
)
from holdfast.spark.schema import ATTRIBUTES
from holdfast.spark.sink_options import Kind, SinkColumns

PART_EVENTS = 2_048  # that are staged with one message
PART_BYTES = 256 * 1024  # about, unless a single event has more

# What msgpack needs at most: of a number, in front of a string or of bytes, of an event's other fields.
_NUMBER_BYTES = 9
_HEAD_BYTES = 5
_FIELDS_BYTES = 64

_encode = msgspec.msgpack.Encoder().encode


class EventEncoder:
    """The events of one stage: numbered from 1, all of one publisher. `where` names the stage in errors."""

    def __init__(self, columns: SinkColumns, topic: str, publisher: str, incarnation: int, where: str) -> None:
        self._columns = columns
        self._topic = topic
        self._publisher = publisher
        self._incarnation = incarnation
        self._where = where
        self._encoded = 0
        names = [len(name.encode()) + _HEAD_BYTES + _NUMBER_BYTES for name in columns.attributes]
        self._bytes_min = _FIELDS_BYTES + len(publisher.encode()) + len(topic.encode()) + sum(names)

    def parts(self, batch: Any) -> Iterator[tuple[EventBytes, int]]:
        """The rows of a record batch as arrays of events that fit into a message each, with their numbers of events.

        EventError if one of the rows can't be an event; those before it may have been given already.
        """
        # A part at a time: the lists of a large batch would take up much.
        for start in range(0, batch.num_rows, PART_EVENTS):
            yield from self._parts(batch.slice(start, PART_EVENTS))

    def _parts(self, batch: Any) -> Iterator[tuple[EventBytes, int]]:
        count, weights = batch.num_rows, np.full(batch.num_rows, self._bytes_min, np.int64)
        topics: Any = repeat(self._topic)
        payloads: Any = repeat(b"")
        if self._columns.topic is not None:
            topics = self._texts(batch, self._columns.topic, weights, absent="")
        if self._columns.payload is not None:
            payloads = self._payloads(batch, self._columns.payload, weights)
        attributes = self._attributes(batch, weights)
        wall = time.time_ns()
        first = self._encoded + 1
        self._encoded += count
        events = list(
            zip(
                repeat(self._publisher),
                repeat(self._incarnation),
                range(first, first + count),
                topics,
                attributes,
                payloads,
                repeat(wall),
                repeat(0),
                strict=False,
            )
        )
        if weights.max() > EVENT_BYTES_MAX:
            self._check_sizes(events, weights)
        for start, end in _cuts(weights):
            yield msgspec.Raw(_encode(events[start:end])), end - start

    # ------------------------------------------------------------------------------------------------------- columns
    def _attributes(self, batch: Any, weights: np.ndarray[Any, Any]) -> Sequence[dict[str, Any]]:
        columns = self._columns
        names = tuple(columns.attributes)
        lists = [self._values(batch, name, kind, weights) for name, kind in columns.attributes.items()]
        found: list[dict[str, Any]] = [{} for _ in range(batch.num_rows)]
        if names:
            found = [dict(zip(names, row)) for row in zip(*lists)]  # noqa: B905 - as long as each other, and many
        for row in _rows_with_null([batch.column(name) for name in names]):
            found[row] = {name: value for name, value in found[row].items() if value is not None}
        if columns.spread:
            self._spread(batch.column(ATTRIBUTES).to_pylist(), found, weights)
        elif len(names) > ATTRIBUTES_MAX:
            self._check_counts(found)
        return found

    def _values(self, batch: Any, name: str, kind: Kind, weights: np.ndarray[Any, Any]) -> list[Any]:
        column = batch.column(name)
        match kind:
            case Kind.STRING:
                return self._texts(batch, name, weights)
            case Kind.FLOAT:
                column = column.cast(pa.float64())
                if not pc.all(pc.is_finite(column), min_count=0).as_py():
                    self._refuse_row(column, name, lambda value: value - value != 0.0, "is {}; only finite numbers can")
                return _plain(column, 0.0)
            case Kind.INTEGER:
                return _plain(column, 0)
            case Kind.BOOLEAN:
                values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
                return values

    def _texts(self, batch: Any, name: str, weights: np.ndarray[Any, Any], absent: str | None = None) -> list[Any]:
        column = batch.column(name)
        self._weigh(column, name, weights, "string_bytes_max", STRING_BYTES_MAX)
        try:
            values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        except (UnicodeDecodeError, pa.ArrowException):
            values = []
            for row, value in enumerate(column.cast(pa.large_binary()).to_pylist()):
                try:
                    values.append(None if value is None else value.decode())
                except UnicodeDecodeError:
                    raise self._refused(row, name, "is no Unicode text: its bytes are no UTF-8") from None
        if absent is not None and column.null_count:
            return [absent if value is None else value for value in values]
        return values

    def _payloads(self, batch: Any, name: str, weights: np.ndarray[Any, Any]) -> list[bytes]:
        column = batch.column(name)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = column.cast(pa.large_binary())
        self._weigh(column, name, weights, "payload_bytes_max", PAYLOAD_BYTES_MAX)
        values: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
        return [b"" if value is None else value for value in values] if column.null_count else values

    def _weigh(self, column: Any, name: str, weights: np.ndarray[Any, Any], limit: str, allowed: int) -> None:
        sizes = pc.fill_null(pc.binary_length(column), 0).to_numpy()
        if sizes.max(initial=0) > allowed:
            row = int(np.argmax(sizes > allowed))
            raise self._refused(row, name, f"has {sizes[row]} bytes, beyond {limit}, {allowed}", limit, allowed)
        weights += sizes

    def _spread(self, maps: list[Any], found: list[dict[str, Any]], weights: np.ndarray[Any, Any]) -> None:
        """Adds the entries of maps, each of which holds one value of four kinds."""
        for row, (entries, attributes) in enumerate(zip(maps, found, strict=True)):
            for name, value in entries or ():
                values = [] if value is None else [one for one in value.values() if one is not None]
                if name in attributes:
                    raise self._refused(row, name, "is in the map 'attributes' and in a column, or twice in the map")
                if value is not None and len(values) != 1:
                    raise self._refused(row, name, f"has {len(values)} values in the map 'attributes', not one")
                if values:
                    attributes[name] = values[0]
                    weights[row] += len(_encode(name)) + len(_encode(values[0]))
            event = Event(self._publisher, 0, 0, "", attributes)
            try:
                check_event(event, EVENT_BYTES_MAX)
            except EventError as error:
                raise self._wrapped(row, error) from None

    # -------------------------------------------------------------------------------------------------------- errors
    def _check_counts(self, found: list[dict[str, Any]]) -> None:
        for row, attributes in enumerate(found):
            if len(attributes) > ATTRIBUTES_MAX:
                problem = f"has {len(attributes)} attributes, beyond attributes_max, {ATTRIBUTES_MAX}"
                raise self._refused(row, "", problem, "attributes_max", ATTRIBUTES_MAX)

    def _check_sizes(self, events: list[Any], weights: np.ndarray[Any, Any]) -> None:
        for row in np.flatnonzero(weights > EVENT_BYTES_MAX).tolist():
            size = len(_encode(events[row]))
            if size > EVENT_BYTES_MAX:
                problem = f"has {size} bytes as an event, beyond event_bytes_max, {EVENT_BYTES_MAX}"
                self._encoded -= len(events)
                raise self._refused(row, "", problem, "event_bytes_max", EVENT_BYTES_MAX)

    def _refuse_row(self, column: Any, name: str, wrong: Callable[[Any], bool], problem: str) -> None:
        for row, value in enumerate(column.to_pylist()):
            if value is not None and wrong(value):
                raise self._refused(row, name, problem.format(value) + " be compared")

    def _refused(self, row: int, name: str, problem: str, limit: str = "", allowed: int = 0) -> EventError:
        column = f", column {name!r}" if name else ""
        text = f"{self._where}, row {self._encoded + row}{column}: {problem}; nothing was published"
        return EventError(text, name, limit=limit, allowed=allowed)

    def _wrapped(self, row: int, error: EventError) -> EventError:
        return self._refused(row, error.attribute, error.problem, error.limit, error.allowed)


def _plain(column: Any, absent: float) -> list[Any]:
    """The numbers of a column as Python's own, None where there is none. Arrow alone would make floats of integers."""
    if not column.null_count:
        values: list[Any] = column.to_numpy().tolist()
        return values
    filled = pc.fill_null(column, absent).to_numpy().astype(object)
    filled[pc.is_null(column).to_numpy(zero_copy_only=False)] = None
    values = filled.tolist()
    return values


def _rows_with_null(columns: list[Any]) -> list[int]:
    some = [pc.is_null(column).to_numpy(zero_copy_only=False) for column in columns if column.null_count]
    rows: list[int] = np.flatnonzero(np.logical_or.reduce(some)).tolist() if some else []
    return rows


def _cuts(weights: np.ndarray[Any, Any]) -> Iterator[tuple[int, int]]:
    """Ranges of rows that weigh about PART_BYTES at most; a row is never cut."""
    sums = np.cumsum(weights)
    start, before = 0, 0
    while start < len(weights):
        end = max(start + 1, int(np.searchsorted(sums, before + PART_BYTES, side="right")))
        yield start, end
        start, before = end, int(sums[end - 1])
