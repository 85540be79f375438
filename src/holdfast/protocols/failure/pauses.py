"""The pauses of one neighbour: how long they usually are, and from when on one is suspicious.

The estimator is the one that TCP has for round trips: a moving mean and a moving deviation, in integers. What is
averaged is the longest pause of each heartbeat's time, so that what was learned lasts equally long whether much or
little is said; and a pause counts as a heartbeat at least, since nobody has to speak more often.
"""

from __future__ import annotations

from typing import Final

from holdfast.protocols.failure.settings import DetectorSettings

MEAN_SHARE: Final = 8  # of what is new, one in so many counts for the mean …
DEVIATION_SHARE: Final = 4  # … and for the deviation
DEVIATIONS: Final = 4  # beyond the mean are nothing to worry about


class Pauses:
    """Times without a word of one neighbour."""

    __slots__ = ("_deviation", "_longest", "_mean", "_sampled_at", "_settings", "heard_at")

    def __init__(self, settings: DetectorSettings) -> None:
        self.heard_at = 0
        self._settings = settings
        self._mean = settings.heartbeat
        self._deviation = settings.heartbeat // 2
        self._longest = 0  # pause since the last sample
        self._sampled_at = 0

    def begin(self, now: int) -> None:
        """A new link: the time without one was no pause."""
        self.heard_at = self._sampled_at = now
        self._longest = 0

    def hear(self, now: int) -> None:
        self._longest = max(self._longest, now - self.heard_at)
        self.heard_at = now
        if now - self._sampled_at >= self._settings.heartbeat:
            self._sample(max(self._longest, self._settings.heartbeat))
            self._longest, self._sampled_at = 0, now

    def _sample(self, pause: int) -> None:
        error = pause - self._mean
        self._mean += error // MEAN_SHARE
        self._deviation += (abs(error) - self._deviation) // DEVIATION_SHARE

    def excuse(self, time: int, now: int) -> None:
        """For so long until now nothing could be heard, whatever was said."""
        self.heard_at = min(self.heard_at + time, now)
        self._sampled_at = min(self._sampled_at + time, now)

    @property
    def patience(self) -> int:
        """The silence that is too long."""
        usual = self._mean + DEVIATIONS * self._deviation
        return min(max(usual, self._settings.suspect_after_min), self._settings.suspect_after_max)
