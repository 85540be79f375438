"""The sink's options, and what becomes of a frame's columns: both are checked before the first row is written.

A column becomes the attribute of its name. Three are something else: the topic, the payload, and `attributes`, the map
that the source gives, which is spread. What brokers say of an event (its position, id, …) can't be written, and is
refused rather than published as attributes or left out in silence.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec
from pyspark.sql import types

from holdfast.model.event import NAME_BYTES_MAX, STRING_BYTES_MAX
from holdfast.model.values import TOPIC
from holdfast.spark.errors import OptionError
from holdfast.spark.options import ALLOWED as OF_READERS
from holdfast.spark.options import WAIT_S, check_values, refuse_unknown, url_of, wait_of
from holdfast.spark.schema import ATTRIBUTES, ATTRIBUTES_TYPE, ENVELOPE, REJECTED

QUERY_BYTES_MAX = 128
ALLOWED = ("url", "topic", "topic_column", "payload_column", "query", "epoch", "wait_s")
ONLY_FOR_BATCHES = ("query", "epoch")
# What Spark itself is told in the same way.
_SPARKS_OWN = ("checkpointlocation", "queryname", "asyncprogresstracking")

PAYLOAD = "payload"
GIVEN_BY_BROKERS = tuple(name for name in ENVELOPE if name not in (TOPIC, PAYLOAD))


class Kind(enum.Enum):
    """What a column's values are to an event."""

    INTEGER = "int"
    FLOAT = "float"
    STRING = "str"
    BOOLEAN = "bool"


_KINDS: Mapping[type[types.DataType], Kind] = {
    types.LongType: Kind.INTEGER,
    types.IntegerType: Kind.INTEGER,
    types.ShortType: Kind.INTEGER,
    types.ByteType: Kind.INTEGER,
    types.DoubleType: Kind.FLOAT,
    types.FloatType: Kind.FLOAT,
    types.StringType: Kind.STRING,
    types.BooleanType: Kind.BOOLEAN,
}
_REMEDIES: Mapping[type[types.DataType], str] = {
    types.TimestampType: "cast it, to bigint (seconds) or with date_format to a string",
    types.TimestampNTZType: "cast it to a string",
    types.DateType: "cast it to a string",
    types.DecimalType: "cast it to double, bigint or string",
    types.BinaryType: "name it as payload_column, or encode it as a string with base64",
    types.StructType: "select its fields as columns of their own, or make a payload of it with to_json",
    types.ArrayType: "explode it, or make a payload of it with to_json",
    types.MapType: "select its entries as columns, or make a payload of it with to_json",
}


class SinkOptions(msgspec.Struct, frozen=True):
    """`query` is empty if it was not given."""

    url: str
    topic: str = ""
    topic_column: str | None = None
    payload_column: str | None = None
    query: str = ""
    epoch: int = 0
    wait_s: float = WAIT_S


class SinkColumns(msgspec.Struct, frozen=True):
    """Which columns of a frame become what. `spread`: there is a map of attributes."""

    attributes: dict[str, Kind]
    topic: str | None = None
    payload: str | None = None
    spread: bool = False


def check_early(given: Mapping[str, str]) -> None:
    """OptionError for what is wrong for readers and writers alike: Spark asks before it knows which it will be."""
    texts = _ours(given)
    refuse_unknown(texts, tuple(dict.fromkeys((*OF_READERS, *ALLOWED))))
    check_values(texts)


def _ours(given: Mapping[str, str]) -> dict[str, str]:
    texts = {key.lower(): value for key, value in given.items()}
    return {key: value for key, value in texts.items() if not key.startswith(_SPARKS_OWN)}


def sink_options(given: Mapping[str, str], *, stream: bool) -> SinkOptions:
    """The options of a writer, or OptionError."""
    texts = _ours(given)
    refuse_unknown(texts, ALLOWED)
    for option in ONLY_FOR_BATCHES if stream else ():
        if option in texts:
            problem = f"option {option!r} is for df.write; a stream's checkpoint knows what was written"
            raise OptionError(problem, option)
    if "topic" in texts and "topic_column" in texts:
        raise OptionError("options 'topic' and 'topic_column' are both given; give one of them", "topic")
    if len(texts.get("topic", "").encode()) > STRING_BYTES_MAX:
        raise OptionError(f"option 'topic' has more than {STRING_BYTES_MAX} bytes", "topic")
    if "query" in texts and not 0 < len(texts["query"].encode()) <= QUERY_BYTES_MAX:
        raise OptionError(f"option 'query' has 1 to {QUERY_BYTES_MAX} bytes", "query")
    return SinkOptions(
        url=url_of(texts),
        topic=texts.get("topic", ""),
        topic_column=texts.get("topic_column"),
        payload_column=texts.get("payload_column"),
        query=texts.get("query", ""),
        epoch=_epoch(texts),
        wait_s=wait_of(texts),
    )


def _epoch(texts: Mapping[str, str]) -> int:
    if "epoch" not in texts:
        return 0
    if "query" not in texts:
        raise OptionError("option 'epoch' counts the writes of a query; give 'query' too", "epoch")
    text = texts["epoch"]
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise OptionError(f"option 'epoch': a whole number from 0 on, not {text!r}", "epoch")
    return int(text)


def refuse_overwrite(overwrite: bool) -> None:
    """For the source's `writer` and `streamWriter`."""
    if overwrite:
        raise OptionError(
            "what was published can't be overwritten: write with .mode('append') or .outputMode('append'); results that"
            " change are published from foreachBatch"
        )


def sink_columns(schema: types.StructType, options: SinkOptions) -> SinkColumns:
    """What becomes of the columns, or OptionError, which names one and says what to do about it."""
    found = {field.name: field.dataType for field in schema.fields}
    if len(found) < len(schema.fields):
        names = [field.name for field in schema.fields]
        twice = next(name for name in names if names.count(name) > 1)
        raise OptionError(f"column {twice!r} is there more than once; rename or drop one", twice)
    topic = _topic_column(found, options)
    payload = _payload_column(found, options)
    left = {name: type for name, type in found.items() if name not in (topic, payload)}
    spread = ATTRIBUTES in left
    if spread and not _same(left.pop(ATTRIBUTES), ATTRIBUTES_TYPE):
        raise OptionError(
            f"column {ATTRIBUTES!r} is not of the type that the source gives it, {ATTRIBUTES_TYPE.simpleString()}; "
            "rename or drop it",
            ATTRIBUTES,
        )
    return SinkColumns({name: _kind(name, type) for name, type in left.items()}, topic, payload, spread)


def _topic_column(found: Mapping[str, types.DataType], options: SinkOptions) -> str | None:
    named = options.topic_column
    if named is None and TOPIC in found and not options.topic:
        named = TOPIC  # an event can't have it as an attribute, so that nothing else can be meant
    if named is not None:
        _require(found, named, "topic_column", (types.StringType,))
    return named


def _payload_column(found: Mapping[str, types.DataType], options: SinkOptions) -> str | None:
    named = options.payload_column
    if named is None and isinstance(found.get(PAYLOAD), types.BinaryType):
        named = PAYLOAD  # as the source gives it
    if named is not None:
        _require(found, named, "payload_column", (types.BinaryType, types.StringType))
    return named


def _require(
    found: Mapping[str, types.DataType], name: str, option: str, allowed: tuple[type[types.DataType], ...]
) -> None:
    if name not in found:
        raise OptionError(f"option {option!r}: there is no column {name!r}; there are {', '.join(found)}", option)
    if not isinstance(found[name], allowed):
        wanted = " or ".join(type().simpleString() for type in allowed)
        problem = f"option {option!r}: column {name!r} is of type {found[name].simpleString()}, not {wanted}; cast it"
        raise OptionError(problem, option)


def _kind(name: str, type: types.DataType) -> Kind:
    if name in GIVEN_BY_BROKERS:
        raise OptionError(
            f"column {name!r} has the name of something that the broker gives an event; "
            f"leave it out with .drop({name!r}), or rename it",
            name,
        )
    if name == REJECTED:
        raise OptionError(
            f"column {REJECTED!r} says which events lost their attributes when they were read; keep those out with "
            f".filter('{REJECTED} IS NULL'), and leave the column out with .drop({REJECTED!r})",
            name,
        )
    if name == TOPIC:
        raise OptionError(
            "column 'topic' can't be an attribute, and option 'topic' is given: leave out one of the two", name
        )
    if len(name.encode()) > NAME_BYTES_MAX:
        raise OptionError(f"column {name[:20]!r}… has a name of more than {NAME_BYTES_MAX} bytes; rename it", name)
    for spark, kind in _KINDS.items():
        if isinstance(type, spark):
            return kind
    remedy = next((remedy for spark, remedy in _REMEDIES.items() if isinstance(type, spark)), "cast or drop it")
    allowed = "bigint, int, smallint, tinyint, double, float, string and boolean"
    raise OptionError(f"column {name!r} is of type {type.simpleString()}; attributes are {allowed}: {remedy}", name)


def _same(one: types.DataType, other: types.DataType) -> bool:
    """Whether two types are equal but for what may be NULL."""
    return one.simpleString() == other.simpleString()
