"""Events as record batches: every event is one row, whatever is in it. No Spark session is needed here."""

import datetime
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from holdfast.errors import EventError
from holdfast.model.event import EventBytes, encode_batch, encode_fields, slices_of
from holdfast.model.values import Value
from holdfast.protocols.cursors.requests import EncodedEvents
from holdfast.spark.columns import EventColumns
from holdfast.spark.errors import OptionError
from holdfast.spark.fitting import fit
from holdfast.spark.schema import DEFAULT_SCHEMA, layout_of

AT = 1_763_200_000_123_456_789


def event(attributes: Mapping[str, Value], number: int = 1, topic: str = "stock", at: int = AT) -> EventBytes:
    return encode_fields("p", 7, number, topic, dict(attributes), b"\x00payload", at, 0)


def chunk(*events: EventBytes, first: int = 11) -> EncodedEvents:
    positions = list(range(first, first + len(events)))
    return EncodedEvents(positions[-1], "log", positions, encode_batch(events), len(events))


TYPES: dict[str, DataType] = {
    "bigint": LongType(),
    "int": IntegerType(),
    "tinyint": ByteType(),
    "double": DoubleType(),
    "float": FloatType(),
    "string": StringType(),
    "boolean": BooleanType(),
    "timestamp": TimestampType(),
    "map": MapType(StringType(), StringType()),
}


def parse(text: str) -> StructType:
    """A schema from "price double, volume int"; Spark's own parser needs a session."""
    fields = [field.rsplit(" ", 1) for field in text.split(", ")]
    return StructType([StructField(name, TYPES[kind.rstrip("!")], not kind.endswith("!")) for name, kind in fields])


def rows(schema: StructType | str, read: EncodedEvents) -> list[dict[str, Any]]:
    parsed = parse(schema) if isinstance(schema, str) else schema
    batch = EventColumns(layout_of(parsed)).batch(read)
    assert batch.schema.equals(to_arrow_schema(parsed, timezone="UTC"))
    made: list[dict[str, Any]] = batch.to_pylist()
    return made


def test_the_default_schema_holds_all_of_an_event() -> None:
    read = chunk(event({"s": "x", "i": -(2**63), "f": 0.5, "b": True}), event({}, 2, topic=""))
    first, second = rows(DEFAULT_SCHEMA, read)
    assert first.pop("published_at") == datetime.datetime.fromtimestamp(AT // 10**9, datetime.UTC).replace(
        microsecond=123_456
    )
    nothing = {"i": None, "f": None, "s": None, "b": None}
    assert first == {
        "position": 11,
        "id": "p/7/1",
        "publisher": "p",
        "sequence": 1,
        "topic": "stock",
        "payload": b"\x00payload",
        "attributes": [
            ("s", {**nothing, "s": "x"}),
            ("i", {**nothing, "i": -(2**63)}),
            ("f", {**nothing, "f": 0.5}),
            ("b", {**nothing, "b": True}),
        ],
    }
    # A filter can't see an empty topic either: it is one that is missing.
    assert second["topic"] is None
    assert second["attributes"] == []


def test_typed_columns_hold_what_fits_and_null_where_nothing_is() -> None:
    schema = "position bigint, price double, volume int, symbol string, hot boolean, a b tinyint, _rejected string"
    read = chunk(event({"price": 3, "volume": 2**31 - 1, "symbol": "ä", "hot": False, "a b": -128, "z": 1}), event({}))
    assert rows(schema, read) == [
        {
            "position": 11,
            "price": 3.0,
            "volume": 2**31 - 1,
            "symbol": "ä",
            "hot": False,
            "a b": -128,
            "_rejected": None,
        },
        dict.fromkeys(("position", "price", "volume", "symbol", "hot", "a b", "_rejected")) | {"position": 12},
    ]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"price": "3"}, "attribute 'price' is a string, which is no double: '3'"),
        ({"price": True}, "attribute 'price' is a boolean, which is no double: True"),
        ({"price": 2**53 + 1}, "attribute 'price' is a whole number, which is no double: 9007199254740993"),
        ({"volume": 2**31}, "attribute 'volume' is a whole number, which is no int: 2147483648"),
        ({"volume": 1.0}, "attribute 'volume' is a float, which is no int: 1.0"),
        ({"symbol": 1}, "attribute 'symbol' is a whole number, which is no string: 1"),
        ({"hot": 1}, "attribute 'hot' is a whole number, which is no boolean: 1"),
    ],
)
def test_an_event_that_does_not_fit_is_kept_with_the_reason(attributes: dict[str, Value], reason: str) -> None:
    schema = "position bigint, id string, price double, volume int, symbol string, hot boolean, _rejected string"
    good: dict[str, Value] = {"price": 1.5, "volume": 1, "symbol": "IBM", "hot": True}
    before, bad, after = rows(schema, chunk(event(good), event(good | attributes, 2), event(good, 3)))
    assert before == {"position": 11, "id": "p/7/1", **good, "_rejected": None}
    assert bad == {"position": 12, "id": "p/7/2", **dict.fromkeys(good), "_rejected": reason}
    assert after == {"position": 13, "id": "p/7/3", **good, "_rejected": None}


def test_without_a_column_for_it_an_event_that_does_not_fit_is_an_error_that_says_where() -> None:
    with pytest.raises(EventError, match=r"position 12 does not fit: attribute 'price'.*_rejected STRING"):
        rows("price double", chunk(event({"price": 1}), event({"price": "x"})))


def test_a_whole_number_that_is_exactly_a_double_fits_however_large_it_is() -> None:
    assert rows("price double", chunk(event({"price": 2**60}))) == [{"price": 2.0**60}]


def test_single_attributes_and_all_of_them_can_be_had_at_once() -> None:
    value = {"i": 3, "f": None, "s": None, "b": None}
    read = chunk(event({"price": 3}))
    schema = StructType([*parse("price double").fields, DEFAULT_SCHEMA["attributes"]])
    assert rows(schema, read) == [{"price": 3.0, "attributes": [("price", value)]}]


def test_numbers_that_no_column_holds_are_null_and_not_a_crash() -> None:
    raw = encode_fields("p", 2**64 - 1, 2**64 - 1, "t", {}, b"", 2**63, 0)
    (row,) = rows(DEFAULT_SCHEMA, chunk(raw))
    assert (row["sequence"], row["published_at"], row["id"]) == (None, None, f"p/{2**64 - 1}/{2**64 - 1}")


def test_bytes_that_are_no_event_are_a_row_that_says_so() -> None:
    schema = "position bigint, topic string, price double, _rejected string"
    good, bad = rows(schema, chunk(event({"price": 1.0}), msgspec.Raw(b"\xc0")))
    assert (good["price"], bad["position"], bad["topic"]) == (1.0, 12, None)
    assert "no event" in bad["_rejected"]


VALUES = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, 127, 128, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=3),
    st.booleans(),
)


@given(st.lists(st.dictionaries(st.sampled_from("abcde"), VALUES, max_size=5), min_size=1, max_size=6))
def test_the_fast_way_and_the_careful_way_give_the_same_rows(events: list[dict[str, Value]]) -> None:
    fields = parse("position bigint, id string, a bigint, b double, c string, d boolean, e tinyint")
    schema = StructType([*fields, DEFAULT_SCHEMA["attributes"], *parse("_rejected string")])
    layout, read = layout_of(schema), chunk(*(event(attributes) for attributes in events))
    arrow = to_arrow_schema(schema, timezone="UTC")
    careful: pa.RecordBatch = fit(layout, arrow, read)
    assert EventColumns(layout).batch(read).to_pylist() == careful.to_pylist()
    # And one event for itself is what it is among others.
    alone = [
        EventColumns(layout).batch(chunk(e, first=p))
        for p, e in zip(read.positions, slices_of(read.events), strict=True)
    ]
    assert [batch.to_pylist()[0] for batch in alone] == careful.to_pylist()


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("position int", r"column 'position' is bigint, not int"),
        ("attributes map", r"column 'attributes' is map<string,struct<i:bigint"),
        ("_rejected boolean", r"column '_rejected' is string"),
        ("price float", r"column 'price' is float: attributes are .*; take double"),
        ("at timestamp", r"column 'at' is timestamp: attributes are"),
        ("price double!", r"column 'price' must be nullable"),
    ],
)
def test_a_schema_that_no_event_has_is_refused(schema: str, problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        layout_of(parse(schema))
