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
    return intervals_of(stretches(zap_events.where(F.col("kind") != SOUND)))


def stretches(zap_events: DataFrame) -> DataFrame:
    """The lines that change where a box is (`moved`), and the last line of every box (`is_last`).

    With `channel`, on which the box is from then on (NULL: on none), and when that ends (`ended`, if it does); `known`
    and `watching`, the state as `viewers.box_states` gives it; and `began`, `position` and `line` of the line that
    brought the box to where it is.

    By `select`, and not by `withColumn`: that would look `zap_events` up at once, and no declared pipeline could see
    any more that these are made from another of its tables.
    """
    own = Window.partitionBy("box").orderBy("position", "line")
    switched = F.when(F.col("kind") != SOUND, F.col("kind") != POWER_OFF)
    known = zap_events.select(
        "position",
        "line",
        "at",
        "box",
        F.last("to_channel", ignorenulls=True).over(own).alias("known"),
        F.coalesce(F.last(switched, ignorenulls=True).over(own), F.lit(True)).alias("watching"),
    )
    states = known.select("*", F.when(F.col("watching"), F.col("known")).alias("channel"))
    # NULL is "on none"; so is a box before its first line.
    moved = ~F.col("channel").eqNullSafe(F.lag("channel").over(own))
    is_last = F.lead("position").over(own).isNull()
    turns = states.select("*", moved.alias("moved"), is_last.alias("is_last")).where("moved OR is_last")
    # The row before one that did not move is one that did: nothing but the last line of a box is kept beside those.
    following = F.lead(F.when(F.col("moved"), F.col("at"))).over(own)
    return turns.select(
        "box",
        "channel",
        "known",
        "watching",
        "moved",
        "is_last",
        F.when(following.isNotNull(), F.greatest("at", following)).alias("ended"),
        *(
            F.when(F.col("moved"), F.col(own_name)).otherwise(F.lag(own_name).over(own)).alias(name)
            for own_name, name in (("at", "began"), ("position", "position"), ("line", "line"))
        ),
    )


def intervals_of(stretches: DataFrame) -> DataFrame:
    """The intervals among them."""
    return closed(stretches.where(F.col("moved") & F.col("channel").isNotNull()))


def boxes_of(stretches: DataFrame) -> DataFrame:
    """(box, channel, watching, began, position, line): every box at the end; the last three of the interval that goes
    on, if there is one."""
    in_one = F.col("channel").isNotNull()
    return stretches.where("is_last").select(
        "box",
        F.col("known").alias("channel"),
        "watching",
        *(F.when(in_one, F.col(name)).alias(name) for name in ("began", "position", "line")),
    )


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
