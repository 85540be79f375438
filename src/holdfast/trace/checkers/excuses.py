"""Which events a subscription may lack, since its owner was told so.

Events are numbered in the order of their publication in the run. Two things excuse a lack:

- *Nothing is known* before a number: before the first `Confirmed` of a subscription whose owner relies on it, or after
  a `Missed` without a count, until the next `Confirmed`. All events with smaller numbers are excused.
- A `Missed` with a count excuses that many events published before it, whichever they are: the trace does not name
  them.
"""

from __future__ import annotations

from holdfast.trace.schema import Missed

# Larger than any event's number: nothing is known so far.
NOTHING_KNOWN = 2**63


class Excuses:
    """The excuses of one subscription."""

    __slots__ = ("known_from", "told")

    def __init__(self, known_from: int) -> None:
        self.known_from = known_from
        self.told: list[tuple[int, int]] = []  # (number of events published by then, how many were said to be missed)

    def on_missed(self, row: Missed, published: int) -> None:
        """The owner was told of a gap, when so many events had been published."""
        if row.count is None:
            self.known_from = NOTHING_KNOWN
        else:
            self.told.append((published, row.count))

    def on_confirmed(self, published: int) -> None:
        """The owner was told that the subscription is in place, when so many events had been published."""
        if self.known_from == NOTHING_KNOWN:
            self.known_from = published

    def unexcused(self, lacking: list[int]) -> list[int]:
        """Those of the lacking events, by ascending numbers, for which there is no excuse."""
        left = [number for number in lacking if number >= self.known_from]
        # A later notice may excuse all that an earlier one may, and more: using up the earlier ones first, on the
        # oldest events, excuses as many as can be.
        excused = 0
        for published, count in self.told:
            allowed = excused + count
            while excused < allowed and excused < len(left) and left[excused] < published:
                excused += 1
        return left[excused:]

    @property
    def key(self) -> tuple[int, tuple[tuple[int, int], ...]]:
        """Equal for two subscriptions that have the same excuses."""
        return self.known_from, tuple(self.told)
