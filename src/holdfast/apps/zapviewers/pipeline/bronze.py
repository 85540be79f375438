"""Bronze: the lines of every event, untouched, each under its position and number (D4-H1)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

# Every byte is one character of it: what is decoded by it and encoded again is what it was.
BYTES_AS_CHARACTERS = "ISO-8859-1"


def raw_lines(events: DataFrame) -> DataFrame:
    """(position, line, published_at, text): one row for a line, `text` being its bytes without the `\\n`.

    Lines are cut as `Audience.take` cuts them: at every `\\n`, and what follows the last one is a line unless it is
    empty. An event without a payload has none.
    """
    payloads = events.select(
        F.col("position").cast("bigint"),
        F.col("published_at").cast("timestamp"),
        F.col("payload").cast("binary"),
    ).where(F.octet_length("payload") > 0)
    return (
        payloads.select("position", "published_at", F.posexplode(_pieces(_without_last_end(F.col("payload")))))
        .withColumnsRenamed({"pos": "line", "col": "text"})
        .select("position", "line", "published_at", "text")
    )


def once(events: DataFrame) -> DataFrame:
    """Each position once, for sources that may say one again.

    Lines need no such care of their own: a line is found by its event and its number, and a box that says the same
    twice has said it twice. A stream keeps its positions for ever, unless it has a watermark.
    """
    return events.dropDuplicates(["position"])


def _without_last_end(payload: Column) -> Column:
    length = F.octet_length(payload)
    return F.when(
        F.substring(payload, length, F.lit(1)) == F.lit(b"\n"), F.substring(payload, F.lit(1), length - 1)
    ).otherwise(payload)


def _pieces(payload: Column) -> Column:
    """A payload, cut into an array of binary.

    Spark cuts texts by way of Java's strings, in which bytes that are no UTF-8 are lost: such payloads, which no honest
    box sends, are decoded and encoded byte by byte.
    """
    text = payload.cast("string")
    plain = F.split(text, "\n")
    by_bytes = F.split(F.decode(payload, BYTES_AS_CHARACTERS), "\n")
    return F.when(F.is_valid_utf8(text), F.transform(plain, lambda piece: piece.cast("binary"))).otherwise(
        F.transform(by_bytes, lambda piece: F.encode(piece, BYTES_AS_CHARACTERS))
    )
