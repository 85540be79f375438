"""Who was on which channel from when to when (D4-H2).

The state of a box after a line is that of `audience`: its channel is the TOCH of its last change, and it is on unless
it was switched off since; nothing is taken from FROMCH. An interval is the longest stretch in which that state is the
same: a line that is said twice, or a change to the channel that the box is on, does not cut it. Where a box is off, or
on a channel that is not known, there is none.

Lines come in the order (position, line), which is that of the brokers; `at` is what the box's clock said. If that goes
back, an interval ends where it began, at the earliest: it is never negative. If it leaps ahead, the interval is longer
than anyone watches, and is not retained either.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from holdfast.apps.zapviewers.generator import RETENTION_S
from holdfast.apps.zapviewers.pipeline.moments import seconds_between
from holdfast.apps.zapviewers.pipeline.silver import POWER_OFF, SOUND

LONGEST_S = 7 * 86_400  # on one channel; a clock that leapt is likelier


def intervals(zap_events: DataFrame) -> DataFrame:
    """(box, channel, began, ended, seconds, retained, position, line), the last two of the line that began it.

    `ended` and `seconds` are NULL while it goes on. One of RETENTION_S or less is zapping, and not retained.
    """
    own = Window.partitionBy("box").orderBy("position", "line")
    changes = zap_events.where(F.col("kind") != SOUND).select("position", "line", "at", "box", "kind", "to_channel")
    states = changes.select(
        "position",
        "line",
        "at",
        "box",
        F.when(F.col("kind") != POWER_OFF, F.last("to_channel", ignorenulls=True).over(own)).alias("channel"),
    )
    # NULL is "on none"; so is a box before its first line.
    # By `select`, and not by `withColumn`: that would look `zap_events` up at once, and no declared pipeline could see
    # any more that these are made from another of its tables.
    moved = states.select("*", F.lag("channel").over(own).alias("before")).where(
        ~F.col("channel").eqNullSafe(F.col("before"))
    )
    following = F.lead("at").over(own)
    ended = F.when(following.isNotNull(), F.greatest("at", following))
    stretches = moved.select("box", "channel", F.col("at").alias("began"), ended.alias("ended"), "position", "line")
    return closed(stretches.where(F.col("channel").isNotNull()))


def closed(stretches: DataFrame) -> DataFrame:
    """Intervals from (box, channel, began, ended, position, line): how long they are, and whether that counts."""
    seconds = seconds_between(F.col("began"), F.col("ended"))
    return stretches.select(
        F.col("box"),
        F.col("channel"),
        F.col("began"),
        F.col("ended"),
        seconds.alias("seconds"),
        _retained(seconds).alias("retained"),
        F.col("position").cast("bigint"),
        F.col("line").cast("int"),
    )


def _retained(seconds: Column) -> Column:
    return F.coalesce((seconds > RETENTION_S) & (seconds <= LONGEST_S), F.lit(True))
