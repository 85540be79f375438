"""Moments without a zone, counted in seconds. Nothing here depends on the session's time zone."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

MINUTE_S = 60
_EPOCH = datetime(1970, 1, 1)


def at_moment(moment: datetime) -> Column:
    """A moment without a zone as a column; `lit` would make it one with the session's zone."""
    return F.lit(moment.replace(tzinfo=None).isoformat(" ")).cast("timestamp_ntz")


def seconds_of(at: Column) -> Column:
    """A TIMESTAMP_NTZ as seconds since 1970, a BIGINT."""
    return seconds_between(at_moment(_EPOCH), at)


def seconds_between(began: Column, ended: Column) -> Column:
    """How many seconds lie between two TIMESTAMP_NTZ, a BIGINT."""
    return (ended - began).cast("interval second").cast("bigint")


def moment_of(seconds: Column) -> Column:
    """The reverse of `seconds_of`."""
    return at_moment(_EPOCH) + F.make_dt_interval(secs=seconds)
