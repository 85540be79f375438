"""Viewership in windows of time, and the matrix of channel changes (D4-H2)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from holdfast.apps.zapviewers.pipeline.intervals import LONGEST_S
from holdfast.apps.zapviewers.pipeline.moments import MINUTE_S, moment_of, seconds_of
from holdfast.apps.zapviewers.pipeline.silver import ZAP

MINUTES = 15


def windows(intervals: DataFrame, minutes: int = MINUTES) -> DataFrame:
    """(window_start, window_end, channel, seconds, average_viewers, reach, share, rank), for every window and channel
    that somebody watched in it.

    `seconds` is what all viewers watched together, `average_viewers` that by the window's length; `reach` is how many
    boxes watched at all, `share` the part of all that was watched in the window, `rank` by seconds, equals by name.
    Intervals that are retained count. One that goes on counts up to the last moment that any of them tells of, for
    LONGEST_S at most. If the log ends within a window, its average is over the whole window all the same.
    """
    length = minutes * MINUTE_S
    retained = intervals.where("retained").select(
        "box", "channel", seconds_of(F.col("began")).alias("began"), seconds_of(F.col("ended")).alias("ended")
    )
    last = retained.agg(F.max(F.coalesce("ended", "began")).alias("last"))
    ended = F.coalesce("ended", F.least("last", F.col("began") + LONGEST_S))
    spans = retained.join(F.broadcast(last)).select("box", "channel", "began", ended.alias("ended"))
    pieces = (
        spans.where(F.col("began") < F.col("ended"))
        .select(
            "*",
            F.explode(F.sequence(_floor("began", length), _floor(F.col("ended") - 1, length))).alias("window"),
        )
        .select(
            "box",
            "channel",
            "window",
            (F.least("ended", (F.col("window") + 1) * length) - F.greatest("began", F.col("window") * length)).alias(
                "seconds"
            ),
        )
    )
    by_box = pieces.groupBy("window", "channel", "box").agg(F.sum("seconds").alias("seconds"))
    by_channel = by_box.groupBy("window", "channel").agg(F.sum("seconds").alias("seconds"), F.count("*").alias("reach"))
    one = Window.partitionBy("window")
    return by_channel.select(
        moment_of(F.col("window") * length).alias("window_start"),
        moment_of((F.col("window") + 1) * length).alias("window_end"),
        "channel",
        "seconds",
        (F.col("seconds") / length).alias("average_viewers"),
        "reach",
        (F.col("seconds") / F.sum("seconds").over(one)).alias("share"),
        F.row_number().over(one.orderBy(F.col("seconds").desc(), "channel")).alias("rank"),
    )


def changes(zap_events: DataFrame) -> DataFrame:
    """(from_channel, to_channel, zaps): how often boxes said that they went from one channel to another."""
    return (
        zap_events.where(F.col("kind") == ZAP)
        .groupBy("from_channel", "to_channel")
        .agg(F.count("*").alias("zaps"))
        .select("from_channel", "to_channel", "zaps")
    )


def _floor(seconds: str | Column, length: int) -> Column:
    return F.floor((F.col(seconds) if isinstance(seconds, str) else seconds) / length)
