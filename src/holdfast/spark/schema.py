"""What the columns of the source hold: an event's envelope, all its attributes as a map, or single ones, typed."""

from __future__ import annotations

from typing import Final

import msgspec
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from holdfast.spark.errors import OptionError

ENVELOPE: Final[dict[str, DataType]] = {
    "position": LongType(),
    "id": StringType(),
    "publisher": StringType(),
    "sequence": LongType(),
    "topic": StringType(),
    "published_at": TimestampType(),
    "payload": BinaryType(),
}
ATTRIBUTES: Final = "attributes"
REJECTED: Final = "_rejected"

# One value of any kind: exactly one field is not NULL.
VALUE_TYPE: Final = StructType(
    [
        StructField("i", LongType()),
        StructField("f", DoubleType()),
        StructField("s", StringType()),
        StructField("b", BooleanType()),
    ]
)
ATTRIBUTES_TYPE: Final = MapType(StringType(), VALUE_TYPE)
DEFAULT_SCHEMA: Final = StructType(
    [*(StructField(name, kind) for name, kind in ENVELOPE.items()), StructField(ATTRIBUTES, ATTRIBUTES_TYPE)]
)

# Bits of the whole numbers that a column of a type holds.
INTEGER_BITS: Final[dict[type[DataType], int]] = {LongType: 64, IntegerType: 32, ShortType: 16, ByteType: 8}
_TYPED: Final[tuple[type[DataType], ...]] = (*INTEGER_BITS, DoubleType, StringType, BooleanType)


class Layout(msgspec.Struct, frozen=True):
    """A schema that was checked: what each of its columns is."""

    schema: StructType
    envelope: tuple[str, ...]
    typed: tuple[str, ...]  # attributes with a column of their own
    has_attributes: bool
    has_rejected: bool


def layout_of(schema: StructType) -> Layout:
    """What a schema asks for, or OptionError."""
    typed = []
    for field in schema.fields:
        if field.name in ENVELOPE:
            _check(field, ENVELOPE[field.name])
        elif field.name == ATTRIBUTES:
            _check(field, ATTRIBUTES_TYPE)
        elif field.name == REJECTED:
            _check(field, StringType())
        else:
            _check_typed(field)
            typed.append(field.name)
    names = schema.fieldNames()
    return Layout(
        schema, tuple(n for n in names if n in ENVELOPE), tuple(typed), ATTRIBUTES in names, REJECTED in names
    )


def _check(field: StructField, wanted: DataType) -> None:
    if field.dataType.simpleString() != wanted.simpleString():
        problem = f"column {field.name!r} is {wanted.simpleString()}, not {field.dataType.simpleString()}"
        raise OptionError(problem, field.name)


def _check_typed(field: StructField) -> None:
    if not isinstance(field.dataType, _TYPED):
        hint = "; take double" if field.dataType.typeName() in {"float", "decimal"} else ""
        problem = (
            f"column {field.name!r} is {field.dataType.simpleString()}: attributes are bigint, int, smallint, tinyint, "
            f"double, string or boolean{hint}"
        )
        raise OptionError(problem, field.name)
    if not field.nullable:
        raise OptionError(f"column {field.name!r} must be nullable: an event may lack the attribute", field.name)
