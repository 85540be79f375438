"""How a synthetic day goes: how many boxes are on, and how eagerly their viewers zap.

Both are made up, after what everybody knows: few watch at night, most after dinner; and where programmes end, on the
hour and half past, people look what else there is. Nothing here was measured.
"""

from __future__ import annotations

from collections.abc import Sequence

DAY_S = 86_400

# The share of the boxes that are on at 00:00, 01:00, …; between, it goes in straight lines.
SHARES_ON: Sequence[float] = (
    0.22, 0.14, 0.09, 0.06, 0.05, 0.06, 0.10, 0.16, 0.18, 0.17, 0.16, 0.17,
    0.20, 0.21, 0.20, 0.21, 0.25, 0.33, 0.42, 0.52, 0.60, 0.62, 0.50, 0.35,
)  # fmt: skip
SHARE_ON_MEAN = sum(SHARES_ON) / len(SHARES_ON)

# How eagerly viewers zap in each minute of a half hour, before it is scaled to a mean of 1.
_EAGERNESS = (2.5, 1.8, 1.4, 1.15, *(1.0,) * 24, 1.1, 1.4)
_EAGERNESS_MEAN = sum(_EAGERNESS) / len(_EAGERNESS)
EAGERNESS: Sequence[float] = tuple(value / _EAGERNESS_MEAN for value in _EAGERNESS)
EAGERNESS_MAX = max(EAGERNESS)


def share_on(second: int) -> float:
    """The share of boxes that are on, at a second of the day."""
    hour, rest = divmod(second % DAY_S, 3600)
    here, there = SHARES_ON[hour], SHARES_ON[(hour + 1) % 24]
    return here + (there - here) * rest / 3600


def pace(second: int) -> float:
    """How many lines come in this second of the day, beside the mean of the day: more while more are on, and most when
    a programme ends."""
    return share_on(second) / SHARE_ON_MEAN * EAGERNESS[second // 60 % 30]
