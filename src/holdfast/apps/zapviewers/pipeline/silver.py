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
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = rf"(?:{_OCTET}\.){{3}}{_OCTET}"
_DATE = r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CHANNEL = r'(?! )[^\x00-\x1f\x7f-\x9f,"]+(?<! )'

# Lines that are plainly well-formed, which are nearly all: looked at once. Whatever else is well-formed is found by the
# rules one by one: February 29, and U+FFFD, which Java also makes of bytes that are no UTF-8.
_PLAIN_DAY = (
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"  # of any year
)
_PLAIN_CHANNEL = r'(?! )[^\x00-\x1f\x7f-\x9f,"\ufffd]+(?<! )'
_PLAIN_STATUS = "volume (?:100|[1-9]?[0-9])|mute|unmute|power on|power off"
_PLAIN_LINE = (
    rf"\A(?!0000)[0-9]{{4}}-{_PLAIN_DAY},{_TIME},{_ADDRESS},(?:{_PLAIN_CHANNEL},{_PLAIN_CHANNEL}|{_PLAIN_STATUS})\z"
)


def parsed(lines: DataFrame) -> DataFrame:
    """Every line with all that can be said of it: `reason` is NULL or why it is malformed, and then all else is NULL.

    From (position, line, published_at, text), as `bronze.raw_lines` gives them.
    """
    checked = lines.select(
        F.col("position").cast("bigint"),
        F.col("line").cast("int"),
        F.col("published_at").cast("timestamp"),
        F.col("text").cast("binary"),
        _reason(F.col("text").cast("binary")).alias("reason"),
    )
    good = F.col("reason").isNull()
    fields = F.split(F.col("text").cast("string"), ",")
    cut = checked.select("*", F.when(good, fields).alias("fields"))
    is_zap = F.size("fields") == 5
    status = F.get("fields", F.lit(3))
    kind = F.when(is_zap, ZAP).when(status.isin(POWER_ON, POWER_OFF), status).otherwise(SOUND)
    moment = F.concat(F.get("fields", F.lit(0)), F.lit(" "), F.get("fields", F.lit(1)))
    return cut.select(
        "position",
        "line",
        moment.try_cast("timestamp_ntz").alias("at"),
        F.get("fields", F.lit(2)).alias("box"),
        F.when(good, kind).alias("kind"),
        F.when(is_zap, status).alias("to_channel"),
        F.when(is_zap, F.get("fields", F.lit(4))).alias("from_channel"),
        F.when(~is_zap, status).alias("status"),
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


def _reason(text: Column) -> Column:
    """Why a line is malformed, or NULL. The rules are asked one by one only where a line is not plainly well-formed."""
    plain = (F.octet_length(text) <= LINE_BYTES_MAX) & text.cast("string").rlike(_PLAIN_LINE)
    return F.when(~plain, _rules(text))


def _rules(text: Column) -> Column:
    fields = F.split(text.cast("string"), ",")
    count = F.size(fields)
    date, time, box, fourth, fifth = (F.get(fields, F.lit(number)) for number in range(5))
    # What is no UTF-8 can, behind a good date, time and address, only stand in what follows them.
    channels = F.is_valid_utf8(text.cast("string")) & _is(fourth, _CHANNEL) & _is(fifth, _CHANNEL)
    return (
        F.when(F.octet_length(text) == 0, "empty")
        .when(F.octet_length(text) > LINE_BYTES_MAX, "too long")
        .when(~count.isin(4, 5), "not 4 or 5 fields")
        .when(~_is(date, _DATE) | date.try_cast("date").isNull(), "no date")
        .when(~_is(time, _TIME), "no time")
        .when(~_is(box, _ADDRESS), "no address")
        .when((count == 4) & ~fourth.isin([status.decode() for status in STATUSES]), "no status")
        .when((count == 5) & ~channels, "no channel")
    )


def _is(field: Column, pattern: str) -> Column:
    return field.rlike(rf"\A{pattern}\z")
