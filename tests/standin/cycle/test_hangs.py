"""A broker that hangs is one that fails, though its links are up."""

from __future__ import annotations

import pytest

from holdfast.kernel.time import MILLISECOND
from holdfast.sim.scenario import Pause
from tests.standin.star import F, R, play

SETTINGS = {"sla": True, "unreachable_ms": 1_500, "calm_ms": 2_000, "suspect_ms_min": 1_500, "suspect_ms_max": 30_000}


@pytest.mark.parametrize("level", ["none", "buffered"])
def test_a_broker_that_hangs_is_replaced_before_its_links_are_closed(level: str) -> None:
    """D0-A8: who sees to it asks the broker whether it is there, and does not take its link for an answer."""
    played = play((), [Pause(at_ms=4_000, for_ms=20_000, host=F)], until_ms=50_000, level=level, settings=SETTINGS)
    assert played.wrong == []
    made = [row for row in played.told("map-adopted") if R in row.detail["members"]]
    assert made
    assert made[0].t < 15_000 * MILLISECOND
    assert played.told("standin")[-1].detail["what"] == "f is well again, and gets its place back"
