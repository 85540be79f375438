"""Events as they are in the log, turned into Arrow record batches.

A chunk of events is decoded at once into the columns' types. If that fails, since an attribute is not what its
column holds, the chunk is looked at event by event (`fitting`), and those that do not fit say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, DataType, DoubleType, StringType

from holdfast.codec import UNREADABLE
from holdfast.model.values import Value
from holdfast.protocols.cursors.requests import EncodedEvents
from holdfast.spark.fitting import fit
from holdfast.spark.schema import ATTRIBUTES, ENVELOPE, REJECTED, VALUE_TYPE, Layout

NANOSECONDS_PER_MICROSECOND: Final = 1000

_encode = msgspec.msgpack.Encoder().encode


class EventColumns:
    """Makes record batches of one layout."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._schema = to_arrow_schema(layout.schema, timezone="UTC")
        attributes = _attributes_type(layout) if layout.typed else dict[str, Value]
        self._decode = _decoder(attributes)
        # For who wants both single attributes and all of them.
        self._decode_maps = _decoder(dict[str, Value]) if layout.typed and layout.has_attributes else None
        self._fields = {name: f"a{place}" for place, name in enumerate(layout.typed)}

    def batch(self, read: EncodedEvents) -> pa.RecordBatch:
        """One row for each event. EventError if one does not fit, and there is no column to say so."""
        try:
            rows = self._decode(read.events)
            maps = self._decode_maps(read.events) if self._decode_maps is not None else rows
            columns = [self._column(name, maps if name == ATTRIBUTES else rows, read) for name in self._schema.names]
        except (*UNREADABLE, pa.ArrowInvalid, OverflowError):
            return fit(self._layout, self._schema, read)
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(self, name: str, rows: Sequence[Any], read: EncodedEvents) -> pa.Array:
        kind = self._schema.field(name).type
        if name == "position":
            return pa.array(read.positions, kind)
        if name == "id":
            return pa.array([f"{row.publisher}/{row.incarnation}/{row.sequence}" for row in rows], kind)
        if name == "topic":
            return pa.array([row.topic or None for row in rows], kind)
        if name == "published_at":
            nanoseconds = pa.array([row.published_at for row in rows], pa.int64())
            return pc.divide(nanoseconds, NANOSECONDS_PER_MICROSECOND).cast(kind)
        if name in ENVELOPE:
            return pa.array([getattr(row, name) for row in rows], kind)
        if name == ATTRIBUTES:
            return map_column([row.attributes for row in rows])
        if name == REJECTED:
            return pa.nulls(len(rows), kind)
        field = self._fields[name]
        return pa.array([getattr(row.attributes, field) for row in rows], kind)


def map_column(events: Sequence[dict[str, Value]]) -> pa.Array:
    """The attributes of some events, as maps of values that may be of any kind."""
    offsets = [0]
    total = 0
    for attributes in events:
        total += len(attributes)
        offsets.append(total)
    names = list(chain.from_iterable(events))
    values = list(chain.from_iterable(attributes.values() for attributes in events))
    kinds = [value.__class__ for value in values]
    columns = [
        pa.array([value if kind is wanted else None for value, kind in zip(values, kinds, strict=True)], arrow)
        for wanted, arrow in ((int, pa.int64()), (float, pa.float64()), (str, pa.string()), (bool, pa.bool_()))
    ]
    structs = pa.StructArray.from_arrays(columns, fields=list(_VALUE))
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(names, pa.string()), structs)


_VALUE: Final = pa.struct(list(to_arrow_schema(VALUE_TYPE, timezone="UTC")))


def _attributes_type(layout: Layout) -> Any:
    """A type with a field for each attribute that has a column; others are passed over when events are decoded."""
    return msgspec.defstruct(
        "Attributes",
        [(f"a{place}", _python_type(layout.schema[name].dataType), None) for place, name in enumerate(layout.typed)],
        rename={f"a{place}": name for place, name in enumerate(layout.typed)},
        gc=False,
    )


def _decoder(attributes: Any) -> Callable[[bytes], list[Any]]:
    """Decodes chunks of events, whose fields stand in the order of `holdfast.model.event.Event`."""
    fields: Iterable[Any] = [
        ("publisher", str),
        ("incarnation", int),
        ("sequence", int),
        ("topic", str),
        ("attributes", attributes),
        ("payload", bytes, b""),
        ("published_at", int, 0),
    ]
    row: Any = msgspec.defstruct("Row", fields, array_like=True, gc=False)
    return msgspec.msgpack.Decoder(list[row]).decode


def _python_type(kind: DataType) -> Any:
    if isinstance(kind, DoubleType):
        # Not float alone: that would take whole numbers too, and round large ones.
        return int | float | None
    return {StringType: str, BooleanType: bool}.get(type(kind), int) | None
