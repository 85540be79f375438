"""Whether a neighbour keeps what is expected of it: a spike is no violation, and a gap in one is no end of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.routing.settings import ServiceLevels
from holdfast.schemes.tree.standin.cycle.levels import Cause, Judge
from holdfast.schemes.tree.standin.cycle.measuring import Measured

LEVELS = ServiceLevels(enabled=True, unreachable=2 * SECOND, oldest=SECOND, sustained=SECOND, queue_events=100)
STEP = 250 * MILLISECOND
FULL, FINE = Measured(waiting=101), Measured(waiting=100)


def judged(sights: Sequence[Measured | str | None], levels: ServiceLevels = LEVELS, grace: int = 0) -> list[str]:
    """What is said at each look, one each quarter of a second; "away" is a neighbour that can't be reached."""
    judge, said = Judge(levels), []
    for place, sight in enumerate(sights):
        is_away = sight == "away"
        measured = sight if isinstance(sight, Measured) else None
        complaint = judge.judge(is_away, grace if is_away else 0, measured, place * STEP)
        said.append("" if complaint is None else f"{complaint.cause.value}: {complaint.text}")
    return said


def causes(sights: Sequence[Measured | str | None], levels: ServiceLevels = LEVELS) -> list[str]:
    return [text.partition(":")[0] for text in judged(sights, levels)]


# ------------------------------------------------------------------------------------------------------------- crashes
def test_a_neighbour_that_is_away_for_long_has_failed() -> None:
    """D0-A8"""
    said = judged(["away"] * 10)
    assert said[:8] == [""] * 8
    assert said[8:] == [f"crash: unreachable for {time} s (2.0 s allowed)" for time in ("2.0", "2.2")]


def test_one_that_flaps_has_not_failed() -> None:
    assert causes((["away"] * 7 + [FINE]) * 5) == [""] * 40


def test_one_that_is_back_is_not_complained_of() -> None:
    assert causes(["away"] * 9 + [FINE])[-2:] == ["crash", ""]


def test_who_was_never_there_is_given_longer() -> None:
    said = judged(["away"] * 14, grace=SECOND)
    assert [bool(text) for text in said] == [False] * 12 + [True] * 2


def test_nobody_fails_where_that_is_not_looked_at() -> None:
    assert causes(["away"] * 100, replace(LEVELS, unreachable=0)) == [""] * 100


# ---------------------------------------------------------------------------------------------------------- congestion
def test_a_spike_is_no_violation() -> None:
    """D0-A8: four looks are less than a second, that is how long it would have to last; and the gaps are as long."""
    assert causes(([FULL] * 4 + [FINE] * 4) * 10) == [""] * 80


def test_what_comes_again_and_again_is_one() -> None:
    """More often than not."""
    assert causes(([FULL] * 3 + [FINE]) * 10)[-3:] == ["congestion"] * 3


def test_the_time_for_which_one_was_away_is_no_time_of_congestion() -> None:
    """What waited for it goes now."""
    assert causes([FULL] * 2 + ["away"] * 7 + [FULL] * 2)[-2:] == ["", ""]


def test_what_lasts_is_one() -> None:
    said = judged([FULL] * 6)
    assert said[:4] == [""] * 4
    assert said[4] == "congestion: 101 events wait for it (100 allowed) for 1.0 s"
    assert said[5] == "congestion: 101 events wait for it (100 allowed) for 1.2 s"


def test_of_who_was_complained_of_a_gap_is_not_the_end() -> None:
    """It is at an end when the levels were kept for as long as they had been violated."""
    assert causes([FULL] * 5 + [FINE] * 3 + [FULL, FINE])[4:] == ["congestion"] * 6
    assert causes([FULL] * 5 + [FINE] * 6)[4:] == ["congestion"] * 4 + ["", "", ""]


def test_after_the_end_it_takes_as_long_again() -> None:
    assert causes([FULL] * 5 + [FINE] * 5 + [FULL] * 5)[9:] == [""] * 5 + ["congestion"]


def test_who_can_t_be_reached_is_not_congested() -> None:
    """What waits for it says nothing then."""
    assert causes([FULL] * 5 + ["away"] * 2)[4:] == ["congestion", "", ""]


def test_each_level_is_looked_at() -> None:
    only = ServiceLevels(enabled=True, oldest=0, sustained=SECOND)
    slow, old = Measured(5, 0, 49.0), Measured(1, SECOND + 1)
    assert judged([slow] * 5, replace(only, rate=50))[-1] == (
        "congestion: it takes 49 events/s of those that wait (50 expected) for 1.0 s"
    )
    assert judged([old] * 5, replace(only, oldest=SECOND))[-1] == (
        "congestion: an event waits for it 1.0 s (1.0 s allowed) for 1.0 s"
    )
    assert judged([Measured(10**6, 10**12, 0.0)] * 9, only)[-1] == ""


def test_a_rate_that_nobody_knows_is_no_slow_one() -> None:
    only = ServiceLevels(enabled=True, oldest=0, rate=50)
    assert causes([Measured(0, 0, -1.0)] * 20, only) == [""] * 20


def test_short_times_are_told_in_milliseconds() -> None:
    short = replace(LEVELS, unreachable=500 * MILLISECOND)
    assert judged(["away"] * 3, short)[-1] == "crash: unreachable for 500 ms (500 ms allowed)"


def test_a_complaint_says_since_when() -> None:
    judge = Judge(LEVELS)
    for time in range(0, 3 * SECOND, STEP):
        judge.judge(True, 0, None, SECOND + time)
    assert judge.complaint is not None
    assert (judge.complaint.cause, judge.complaint.since) == (Cause.CRASH, SECOND)
