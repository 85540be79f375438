"""Viewers of channels: over time, at a moment, and now (D4-H2).

Over time, `at` counts, and intervals that are retained. `viewers_now` and `totals` take lines in the order of brokers,
whatever their times, and give what `Audience` gives after the same lines (D4-G4, D4-H3).
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from holdfast.apps.zapviewers.pipeline.intervals import LONGEST_S
from holdfast.apps.zapviewers.pipeline.moments import MINUTE_S, at_moment, moment_of, seconds_of
from holdfast.apps.zapviewers.pipeline.silver import POWER_OFF, SOUND


def viewer_steps(intervals: DataFrame, every_s: int = 1) -> DataFrame:
    """(channel, at, viewers): a row wherever the number of viewers of a channel changes, valid from `at` on.

    With `every_s`, steps lie at multiples of so many seconds, and say what is right there, not what was in between.

    Every interval adds one where it begins and takes one where it ends; the sum of that so far is the number. So the
    work grows with the intervals, and not with boxes times channels or moments (D4-H2).
    """
    ends = F.array(
        F.struct(F.col("began").alias("at"), F.lit(1).alias("change")),
        F.struct(F.col("ended").alias("at"), F.lit(-1).alias("change")),
    )
    changes = (
        intervals.where("retained")
        .select("channel", F.inline(ends))
        .where(F.col("at").isNotNull())
        .select("channel", F.ceil(seconds_of(F.col("at")) / every_s).alias("at"), "change")
        .groupBy("channel", "at")
        .agg(F.sum("change").alias("change"))
        .where(F.col("change") != 0)
    )
    viewers = F.sum("change").over(Window.partitionBy("channel").orderBy("at"))
    return changes.select("channel", moment_of(F.col("at") * every_s).alias("at"), viewers.alias("viewers"))


def viewers_by_minute(steps: DataFrame) -> DataFrame:
    """(minute, channel, viewers): how many watched when the minute began; no row where nobody did.

    Steps of MINUTE_S do, and are far fewer. The last minute is the one that begins after the last step of all. Where
    nothing happens for LONGEST_S, the numbers stop: some clock leapt.
    """
    last = steps.agg((F.ceil(F.max(seconds_of(F.col("at"))) / MINUTE_S) * MINUTE_S).alias("last"))
    following = F.lead(seconds_of(F.col("at"))).over(Window.partitionBy("channel").orderBy("at"))
    first_minute = F.ceil(seconds_of(F.col("at")) / MINUTE_S)
    spans = (
        steps.select("channel", "viewers", first_minute.alias("first"), following.alias("following"))
        .join(F.broadcast(last))
        .select(
            "channel",
            "viewers",
            "first",
            F.least(
                F.floor((F.coalesce("following", F.col("last") + 1) - 1) / MINUTE_S),
                F.col("first") + LONGEST_S // MINUTE_S - 1,
            ).alias("final"),
        )
        .where((F.col("viewers") > 0) & (F.col("first") <= F.col("final")))
    )
    return spans.select("channel", "viewers", F.explode(F.sequence("first", "final")).alias("minute")).select(
        moment_of(F.col("minute") * MINUTE_S).alias("minute"), "channel", "viewers"
    )


def top_at(steps: DataFrame, instant: datetime, n: int) -> DataFrame:
    """(rank, channel, viewers): the n channels that most watched at an instant, equals by name."""
    then = (
        steps.where(F.col("at") <= at_moment(instant))
        .groupBy("channel")
        .agg(F.max_by("viewers", "at").alias("viewers"))
    )
    return ranked(then, n)


def ranked(viewers: DataFrame, n: int) -> DataFrame:
    """(rank, channel, viewers) of the first n of (channel, viewers), equals by name; none that nobody watches."""
    first = (
        viewers.where(F.col("viewers") > 0)
        .select("channel", F.col("viewers").cast("bigint"))
        .orderBy(F.col("viewers").desc(), "channel")
        .limit(n)
    )
    # Few rows by now: that all of them come to one task does no harm.
    place = F.row_number().over(Window.partitionBy(F.lit(0)).orderBy(F.col("viewers").desc(), "channel"))
    return first.select(place.alias("rank"), "channel", "viewers").orderBy("rank")


def box_states(zap_events: DataFrame) -> DataFrame:
    """(box, channel, watching): where every box is after the last line. `channel` is NULL if it is not known.

    An aggregation, so that it also runs as a stream; and what is greatest by (position, line) does not care for the
    order in which lines come, nor for lines that come again.
    """
    order = F.struct("position", "line")
    power = F.when(F.col("kind") != SOUND, order)
    channel = F.max_by("to_channel", F.when(F.col("to_channel").isNotNull(), order))
    watching = F.coalesce(F.max_by(F.col("kind") != POWER_OFF, power), F.lit(True))
    return zap_events.groupBy("box").agg(channel.alias("channel"), watching.alias("watching"))


def viewers_now(zap_events: DataFrame) -> DataFrame:
    """(channel, viewers) after the last line, as `Audience.num_viewers` says; nobody watches any other channel."""
    return count_viewers(box_states(zap_events))


def count_viewers(boxes: DataFrame) -> DataFrame:
    """(channel, viewers) of boxes as `box_states` gives them."""
    return (
        boxes.where(F.col("watching") & F.col("channel").isNotNull())
        .groupBy("channel")
        .agg(F.count("*").alias("viewers"))
        .select("channel", "viewers")
    )


def open_viewers(intervals: DataFrame) -> DataFrame:
    """The same as `viewers_now`, where there are intervals already: who watches is who is in one that goes on."""
    return (
        intervals.where(F.col("ended").isNull())
        .groupBy("channel")
        .agg(F.count("*").alias("viewers"))
        .select("channel", "viewers")
    )


def totals(lines: DataFrame, quarantine: DataFrame, zap_events: DataFrame) -> DataFrame:
    """(lines, malformed, boxes, watching), one row: as a broker counts them, from the three tables."""
    counted = lines.agg(F.count("*").alias("lines"))
    malformed = quarantine.agg(F.count("*").alias("malformed"))
    boxes = box_states(zap_events).agg(F.count("*").alias("boxes"), F.count_if("watching").alias("watching"))
    return counted.join(malformed).join(boxes).select("lines", "malformed", "boxes", "watching")
