"""Whether a neighbour keeps what is expected of it, and since when it does not: D0-A8.

A neighbour that can't be reached is complained of when that has lasted for as long as the site says. One that is
congested, when a level has been violated for as long as counts as more than a spike; and until the levels were kept for
as long again.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.routing.settings import ServiceLevels
from holdfast.schemes.tree.standin.cycle.measuring import Measured


class Cause(enum.Enum):
    """Why a broker is in need of a stand-in (D0-A8)."""

    CRASH = "crash"
    CONGESTION = "congestion"
    MAINTENANCE = "maintenance"


class Complaint(NamedTuple):
    """About a neighbour, in words that go into an answer."""

    cause: Cause
    text: str
    since: int


class Judge:
    """Of one neighbour."""

    __slots__ = ("_away_since", "_kept_since", "_levels", "_violated_since", "_violation", "complaint")

    def __init__(self, levels: ServiceLevels) -> None:
        self._levels = levels
        self._away_since: int | None = None
        self._violated_since: int | None = None
        self._kept_since: int | None = None
        self._violation = ""
        self.complaint: Complaint | None = None

    def judge(self, is_away: bool, grace: int, measured: Measured | None, now: int) -> Complaint | None:
        """`grace` is given besides what the site allows to one that can't be reached. Without `measured`, what waits
        for it says nothing now."""
        crash = self._crash(is_away, grace, now)
        congestion = None if crash is not None or is_away else self._congestion(measured, now)
        self.complaint = crash or congestion
        return self.complaint

    def _crash(self, is_away: bool, grace: int, now: int) -> Complaint | None:
        if not is_away:
            self._away_since = None
            return None
        if self._away_since is None:
            self._away_since = now
        away, allowed = now - self._away_since, self._levels.unreachable
        if not allowed or away < allowed + grace:
            return None
        text = f"unreachable for {_seconds(away)} ({_seconds(allowed)} allowed)"
        return Complaint(Cause.CRASH, text, self._away_since)

    def _congestion(self, measured: Measured | None, now: int) -> Complaint | None:
        violation = "" if measured is None else self._violated(measured)
        if violation:
            self._kept_since, self._violation = None, violation
            if self._violated_since is None:
                self._violated_since = now
        elif self._violated_since is not None:
            if self._kept_since is None:
                self._kept_since = now
            # A spike is over at once; of who was complained of, a gap is not the end.
            was_complained = self.complaint is not None and self.complaint.cause is Cause.CONGESTION
            if not was_complained or now - self._kept_since >= self._levels.sustained:
                self._violated_since = self._kept_since = None
        since = self._violated_since
        if since is None or now - since < self._levels.sustained:
            return None
        return Complaint(Cause.CONGESTION, f"{self._violation} for {_seconds(now - since)}", since)

    def _violated(self, measured: Measured) -> str:
        """Which level is not kept now; empty if all are."""
        levels = self._levels
        if levels.queue_events and measured.waiting > levels.queue_events:
            return f"{measured.waiting:,} events wait for it ({levels.queue_events:,} allowed)"
        if levels.oldest and measured.oldest > levels.oldest:
            return f"an event waits for it {_seconds(measured.oldest)} ({_seconds(levels.oldest)} allowed)"
        if levels.rate and 0 <= measured.rate < levels.rate:
            return f"it takes {measured.rate:,.0f} events/s of those that wait ({levels.rate:,} expected)"
        return ""


def _seconds(time: int) -> str:
    return f"{time / SECOND:.1f} s" if time >= SECOND else f"{time // MILLISECOND} ms"
