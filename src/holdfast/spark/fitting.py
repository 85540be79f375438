"""Events looked at one by one: which attributes fit the columns, exactly, and what is said of events that do not."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import BooleanType, DataType, DoubleType, StringType

from holdfast.errors import EventError
from holdfast.model.event import Event, decode_event, slices_of
from holdfast.model.values import INTEGER_MAX, INTEGER_MIN, Value
from holdfast.protocols.cursors.requests import EncodedEvents
from holdfast.spark.schema import ATTRIBUTES, INTEGER_BITS, REJECTED, Layout

_KINDS: Final = {int: "a whole number", float: "a float", str: "a string", bool: "a boolean"}


def fit(layout: Layout, schema: pa.Schema, read: EncodedEvents) -> pa.RecordBatch:
    """One row for each event. One that does not fit has NULL in all attributes' columns and says why in `_rejected`."""
    rows: list[dict[str, Any]] = []
    for position, data in zip(read.positions, slices_of(read.events), strict=True):
        try:
            event = decode_event(data)
        except EventError as error:
            rows.append(_rejected(layout, position, str(error), {"position": position}))
            continue
        row = _envelope(position, event)
        if layout.has_attributes:
            row[ATTRIBUTES] = {name: _any_value(value) for name, value in event.attributes.items()}
        problem, values = _typed(layout, event)
        rows.append(_rejected(layout, position, problem, row) if problem else row | values)
    return pa.RecordBatch.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)


def _rejected(layout: Layout, position: int, problem: str, row: dict[str, Any]) -> dict[str, Any]:
    if not layout.has_rejected:
        raise EventError(
            f"the event at position {position} does not fit: {problem}. A column `{REJECTED} STRING` in the schema "
            "keeps such events, with the reason."
        )
    return {**row, REJECTED: problem}


def _envelope(position: int, event: Event) -> dict[str, Any]:
    return {
        "position": position,
        "id": event.id,
        "publisher": event.publisher,
        # A publisher may have counted from anywhere; what no column holds is NULL.
        "sequence": event.sequence if event.sequence <= INTEGER_MAX else None,
        "topic": event.topic or None,
        "published_at": event.published_at // 1000 if abs(event.published_at) <= INTEGER_MAX else None,
        "payload": event.payload,
    }


def _any_value(value: Value) -> dict[str, Value | None]:
    kind = value.__class__
    return {
        "i": value if kind is int else None,
        "f": value if kind is float else None,
        "s": value if kind is str else None,
        "b": value if kind is bool else None,
    }


def _typed(layout: Layout, event: Event) -> tuple[str, dict[str, Value]]:
    """Why the event does not fit, or else its values."""
    values = {}
    for name in layout.typed:
        value = event.attributes.get(name)
        if value is None:
            continue
        kind = layout.schema[name].dataType
        if not _fits(value, kind):
            return (
                f"attribute {name!r} is {_KINDS[value.__class__]}, which is no {kind.simpleString()}: {value!r:.80}",
                {},
            )
        values[name] = float(value) if isinstance(kind, DoubleType) else value
    return "", values


def _fits(value: Value, kind: DataType) -> bool:
    """Whether a column of this type holds exactly this value."""
    if isinstance(kind, StringType):
        return isinstance(value, str)
    if isinstance(kind, BooleanType):
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if isinstance(kind, DoubleType):
        return isinstance(value, float) or (isinstance(value, int) and int(float(value)) == value)
    bits = INTEGER_BITS[type(kind)]
    return isinstance(value, int) and INTEGER_MIN >> (64 - bits) <= value <= INTEGER_MAX >> (64 - bits)
