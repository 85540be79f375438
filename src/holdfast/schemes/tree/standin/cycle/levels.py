"""Whether a neighbour keeps what is expected of it, and since when it does not: D0-A8.

A neighbour that can't be reached is complained of when that has lasted for as long as the site says. One that is
congested, when levels have been violated for as long as counts as more than a spike: for so long, or more often than
not for longer. It is complained of until they were kept for as long again.
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

    __slots__ = ("_away_since", "_judged_at", "_levels", "_score", "_violated_since", "_violation", "complaint")

    def __init__(self, levels: ServiceLevels) -> None:
        self._levels = levels
        self._away_since: int | None = None
        self._violated_since = 0
        self._score = 0  # for how long levels were violated, less the time for which they were kept since then
        self._judged_at = 0
        self._violation = ""
        self.complaint: Complaint | None = None

    def excuse(self, late: int) -> None:
        """It is this broker that stood still for so long: that time is not the neighbour's."""
        if self._away_since is not None:
            self._away_since += late
        self._violated_since += late
        self._judged_at += late

    def judge(self, is_away: bool, grace: int, measured: Measured | None, now: int) -> Complaint | None:
        """`grace` is given besides what the site allows to one that can't be reached. Without `measured`, what waits
        for it says nothing now."""
        crash = self._crash(is_away, grace, now)
        congestion = None if crash is not None or is_away else self._congestion(measured, now)
        self._judged_at = now  # what waits for one that is away is no sign of its being slow
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
        passed, sustained = now - self._judged_at, self._levels.sustained
        if violation:
            if not self._violation:  # for how long it was before this look, nobody knows
                self._violated_since, passed = now, 0
            self._score = min(self._score + passed, sustained)
        else:
            self._score = max(0, self._score - passed)
        self._violation = violation or (self._violation if self._score else "")
        was_complained = self.complaint is not None and self.complaint.cause is Cause.CONGESTION
        if not self._score or (self._score < sustained and not was_complained):
            return None
        text = f"{self._violation} for {_seconds(now - self._violated_since)}"
        return Complaint(Cause.CONGESTION, text, self._violated_since)

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
