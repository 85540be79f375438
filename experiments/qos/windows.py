"""Outages of real machines as those of a network's brokers: pieces of their records, each from a common start.

The machines are those of one system that failed most often. The time in which all of them are known, from when the last
of them was first repaired to when the first of them failed for the last time, is cut into windows of equal length, one
after the other; what is left at the end is not used. Later on a machine may be gone (`lanl.intervals`). In a window all
brokers have the same days of the calendar, so that machines that failed together fail together here. Real time is
simulated time: nothing is compressed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from experiments.d1.outages import Outage
from experiments.qos.lanl import Down


class Records(NamedTuple):
    """The times off of the chosen machines, by the brokers whose part they play; the windows' beginnings, and their
    length; and until when all machines are known."""

    brokers: dict[str, list[Down]]
    windows: list[datetime]
    days: float
    until: datetime


def records_of(machines: Mapping[str, list[Down]], brokers: int, days: float, since: float = 0.0) -> Records:
    """`since` leaves out so much of the time in which all machines are known, as a share."""
    by_outages = sorted(machines.values(), key=len, reverse=True)[:brokers]
    if len(by_outages) < brokers:
        raise ValueError(f"{brokers} brokers are asked for, and the records have {len(by_outages)} machines")
    known = max(found[0].ended for found in by_outages)
    until = min(found[-1].began for found in by_outages)
    first, length = known + (until - known) * since, timedelta(days=days)
    windows = [first + length * number for number in range((until - first) // length)]
    if not windows:
        raise ValueError(f"the machines are known for less than {days:g} days together")
    return Records({f"b{number}": found for number, found in enumerate(by_outages)}, windows, days, until)


def spread(count: int, windows: int) -> list[int]:
    """So many of the windows, by their numbers, evenly over all."""
    count = min(count, windows)
    return [(2 * number + 1) * windows // (2 * count) for number in range(count)]


def outages_of(found: Sequence[Down], begin: datetime, days: float) -> list[Outage]:
    """A machine's in one window. One that goes on when the window begins, or ends, is cut there."""
    length = timedelta(days=days)
    cut = [
        (max(down.began - begin, timedelta()), min(down.ended - begin, length))
        for down in found
        if down.ended > begin and down.began < begin + length
    ]
    return [Outage(*(edge // timedelta(milliseconds=1) for edge in edges)) for edges in cut]


def together(records: Records, number: int) -> dict[str, list[Outage]]:
    """Of all brokers in one window."""
    return {
        broker: outages_of(found, records.windows[number], records.days) for broker, found in records.brokers.items()
    }


def whole(records: Records) -> dict[str, list[Outage]]:
    """Of all brokers in all windows, in a row."""
    length = records.days * len(records.windows)
    return {broker: outages_of(found, records.windows[0], length) for broker, found in records.brokers.items()}


def apart(records: Records, number: int) -> dict[str, list[Outage]]:
    """Of all brokers, each in another window. Over all numbers every broker has each of its windows once, and no two
    have the same at a time, if there are as many windows as brokers: what is left is how machines fail by themselves.
    """
    count = len(records.windows)
    return {
        broker: outages_of(found, records.windows[(number + place) % count], records.days)
        for place, (broker, found) in enumerate(records.brokers.items())
    }
