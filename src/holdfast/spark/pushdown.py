"""Frames of the events that are wanted, of which the broker sends little else.

Spark's own push-down is not used: it keeps what it pushed on an object that all queries of a frame share, so that one
query gets the answer to another, and on streams it pushes nothing. Here every frame is loaded afresh with a filter that
the condition implies, and Spark applies the condition itself to what arrives. So a frame's rows are the same whatever
was pushed, and however often it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from holdfast.model import Filter
from holdfast.spark.conditions import implied_filter
from holdfast.spark.errors import OptionError
from holdfast.spark.schema import DEFAULT_SCHEMA

FORMAT = "holdfast"


def subscribe(
    spark: SparkSession, url: str, wanted: str | Column, *, schema: StructType | str | None = None, **options: object
) -> DataFrame:
    """A stream of the events that match a filter, or that meet a condition on the source's columns.

    Options are the source's; `from`, which is a word of Python, may be written `from_`. OptionError, FilterError.
    """
    return _wanted(spark.readStream, spark, url, wanted, schema, options)


def read(
    spark: SparkSession, url: str, wanted: str | Column, *, schema: StructType | str | None = None, **options: object
) -> DataFrame:
    """The same of what is in the log now, as a batch."""
    return _wanted(spark.read, spark, url, wanted, schema, options)


def pushed(spark: SparkSession, wanted: str | Column, *, schema: StructType | str | None = None) -> str:
    """The filter that the broker is given; empty if it is to send everything."""
    if isinstance(wanted, Column):
        return implied_filter(spark.createDataFrame([], DEFAULT_SCHEMA if schema is None else schema), wanted)
    return str(Filter(wanted))


def spared(query: StreamingQuery) -> int:
    """How many events the broker did not have to send, in the batches of a query that Spark remembers (100, unless
    `spark.sql.streaming.numRecentProgressUpdates` says otherwise). A frame that a query uses twice is read twice, and
    what comes of it is counted twice: then fewer are said to be spared."""
    return sum(max(0, covered - sent) for covered, sent in _progress(query))


def _wanted(
    reader: DataStreamReader | DataFrameReader,
    spark: SparkSession,
    url: str,
    wanted: str | Column,
    schema: StructType | str | None,
    options: dict[str, object],
) -> DataFrame:
    texts = {"from" if name == "from_" else name: str(value) for name, value in options.items()}
    for name in ("filter", "url"):
        if name in map(str.lower, texts):
            raise OptionError(f"option {name!r} is given already: as an argument", name)
    reader = reader.format(FORMAT).options(**texts).option("url", url)
    text = pushed(spark, wanted, schema=schema)
    if text:
        reader = reader.option("filter", text)
    if schema is not None:
        reader = reader.schema(schema)
    frame = reader.load()
    return frame.filter(wanted) if isinstance(wanted, Column) else frame


def _progress(query: StreamingQuery) -> Iterator[tuple[int, int]]:
    """For each batch and each of our sources, how many positions it covered, and how many events came of them."""
    for progress in query.recentProgress:
        for source in progress.sources:
            end = _offset(source.endOffset)
            # Before the first batch Spark knows no offset, and the source tells where it began.
            start = _offset(source.startOffset).get("next", _offset(source.latestOffset).get("began"))
            if start is not None and "next" in end:
                yield int(end["next"]) - int(start), source.numInputRows


def _offset(told: Any) -> dict[str, Any]:
    """An offset of our source; nothing, if it is another's."""
    found = json.loads(told) if isinstance(told, str) else told
    return found if isinstance(found, dict) and "log" in found else {}
