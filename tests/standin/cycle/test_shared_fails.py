"""A broker whose work is shared fails: who shares it takes its place."""

from __future__ import annotations

from holdfast.sim.scenario import Kill
from tests.standin.star import F, R, play

SETTINGS = {"sla": True, "unreachable_ms": 1_500, "oldest_ms": 300, "sustained_ms": 500, "calm_ms": 60_000}


def test_a_stand_in_that_shares_a_brokers_work_takes_its_place_when_that_fails() -> None:
    """D0-B2, with the only spare there is."""
    failure = Kill(at_ms=15_000, for_ms=0, host=F, for_ever=True)
    played = play((), [failure], every_ms=5, slow_us=7_000, until_ms=30_000, settings=SETTINGS, only=("s2",))
    assert played.wrong == []
    told = [row.detail["what"] for row in played.told("standin")]
    assert [text for text in told if "share" in text or "stands" in text] == [
        f"{R} shares the work of {F}", f"{R} stands in for {F}",
    ]  # fmt: skip
    assert played.got("s2")[-1] == (26_000 - 1_000) // 5
