"""Gold: what is asked of viewership. Each lies in the module that explains it (D4-H2)."""

from holdfast.apps.zapviewers.pipeline.intervals import LONGEST_S, intervals
from holdfast.apps.zapviewers.pipeline.viewers import (
    open_viewers,
    ranked,
    top_at,
    totals,
    viewer_steps,
    viewers_by_minute,
    viewers_now,
)
from holdfast.apps.zapviewers.pipeline.windows import changes, windows

__all__ = [
    "LONGEST_S",
    "changes",
    "intervals",
    "open_viewers",
    "ranked",
    "top_at",
    "totals",
    "viewer_steps",
    "viewers_by_minute",
    "viewers_now",
    "windows",
]
