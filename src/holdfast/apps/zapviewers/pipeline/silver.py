"""Silver: lines as typed events, and those that are none, with the reason (D4-A11, D4-H1).

The rules are those of `lines.problem_of`, in its order, so that Spark and the brokers agree on every line. The limits
of a broker's memory (BOXES_MAX, CHANNELS_MAX in `audience`) are not rules about lines, and do not hold here.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from holdfast.apps.zapviewers.lines import LINE_BYTES_MAX, STATUSES

ZAP, SOUND, POWER_ON, POWER_OFF = "zap", "sound", "power on", "power off"

# For Java. `\z` is the end of the text; `$` would also be the place before a line end, of which Java knows several.
_DATE = r"\A(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_TIME = r"\A(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\z"
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = rf"\A(?:{_OCTET}\.){{3}}{_OCTET}\z"
_CHANNEL = r'\A(?! )[^\x00-\x1f\x7f-\x9f,"]+(?<! )\z'


def parsed(lines: DataFrame) -> DataFrame:
    """Every line with all that can be said of it: `reason` is NULL or why it is malformed, and then all else is NULL.

    From (position, line, published_at, text), as `bronze.raw_lines` gives them.
    """
    text = F.col("text").cast("string")
    cut = lines.select(
        F.col("position").cast("bigint"),
        F.col("line").cast("int"),
        F.col("published_at").cast("timestamp"),
        F.col("text").cast("binary"),
        F.split(text, ",").alias("fields"),
    )
    checked = cut.select("position", "line", "published_at", "text", "fields", _reason().alias("reason"))
    good = F.col("reason").isNull()
    is_zap = F.size("fields") == 5
    status = F.get("fields", F.lit(3))
    kind = F.when(is_zap, ZAP).when(status.isin(POWER_ON, POWER_OFF), status).otherwise(SOUND)
    return checked.select(
        "position",
        "line",
        F.when(good, _moment()).alias("at"),
        F.when(good, _field(2)).alias("box"),
        F.when(good, kind).alias("kind"),
        F.when(good & is_zap, _field(3)).alias("to_channel"),
        F.when(good & is_zap, _field(4)).alias("from_channel"),
        F.when(good & ~is_zap, status).alias("status"),
        "published_at",
        "text",
        "reason",
    )


def zap_events(lines: DataFrame) -> DataFrame:
    """What boxes reported, typed. `at` is the box's own time, without a zone; `published_at` is the publisher's."""
    return (
        parsed(lines)
        .where(F.col("reason").isNull())
        .select("position", "line", "at", "box", "kind", "to_channel", "from_channel", "status", "published_at")
    )


def quarantine(lines: DataFrame) -> DataFrame:
    """Lines that are malformed: their bytes, and why."""
    return parsed(lines).where(F.col("reason").isNotNull()).select("position", "line", "text", "reason", "published_at")


def _reason() -> Column:
    bytes_ = F.octet_length("text")
    fields = F.size("fields")
    # What is no UTF-8 can, behind a good date, time and address, only stand in what follows them.
    channels = F.is_valid_utf8(F.col("text").cast("string")) & _field(3).rlike(_CHANNEL) & _field(4).rlike(_CHANNEL)
    statuses = [status.decode() for status in STATUSES]
    return (
        F.when(bytes_ == 0, "empty")
        .when(bytes_ > LINE_BYTES_MAX, "too long")
        .when(~fields.isin(4, 5), "not 4 or 5 fields")
        .when(~_field(0).rlike(_DATE) | _field(0).try_cast("date").isNull(), "no date")
        .when(~_field(1).rlike(_TIME), "no time")
        .when(~_field(2).rlike(_ADDRESS), "no address")
        .when((fields == 4) & ~_field(3).isin(statuses), "no status")
        .when((fields == 5) & ~channels, "no channel")
    )


def _field(number: int) -> Column:
    return F.get("fields", F.lit(number))


def _moment() -> Column:
    return F.concat(_field(0), F.lit(" "), _field(1)).try_cast("timestamp_ntz")
