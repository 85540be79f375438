"""A broker that is slow is relieved: its work is shared, and it has it back when it is well."""

from __future__ import annotations

import pytest

from holdfast.sim.scenario import Operate, Pause
from tests.standin.cycle.star_on_demand import in_turn, is_whole, play_on_demand, said, stood_in
from tests.standin.star import F

SHARED = ["r shares the work of f", "f is well again, and gets its work back"]
FEW = {"queue_events": 10, "window_bytes": 300, "unreachable_ms": 5_000}


@pytest.mark.parametrize("level", ["none", "buffered"])
def test_one_for_which_each_message_takes_long_is_relieved_and_loses_nothing(level: str) -> None:
    """D0-A8, D0-B2: it is as slow when it has its work back, and is relieved again."""
    played = play_on_demand(slow_us=30_000, every_ms=20, level=level, settings={"unreachable_ms": 5_000})
    assert played.wrong == []
    assert stood_in(played)[:2] == SHARED
    assert played.missing("s2") == played.missing("s3") == []
    assert is_whole(played)


def test_one_that_stands_still_in_turn_is_relieved() -> None:
    slow = in_turn(F, 5_000, 12_000, 400, 30)
    played = play_on_demand(slow, every_ms=10, settings={**FEW, "window_bytes": 100}, until_ms=24_000)
    assert played.wrong == []
    assert stood_in(played)[:2] == SHARED
    assert stood_in(played)[-1] == SHARED[1]
    assert played.missing("s2") == []
    assert is_whole(played)


def test_a_spike_relieves_nobody() -> None:
    """It stands still for less than what counts, and again after a while."""
    spikes = in_turn(F, 5_000, 20_000, 700, 2_300)
    played = play_on_demand(spikes, every_ms=10, settings=FEW, until_ms=24_000)
    assert played.wrong == []
    assert stood_in(played) == []


def test_who_makes_another_one_slow_is_relieved_and_not_that_one() -> None:
    """n1–f–n2: n2 is slow, so that what waits for it waits in f, too, and n1 complains of f as f does of n2."""
    slow = in_turn("n2", 5_000, 15_000, 400, 30)
    played = play_on_demand(
        slow, every_ms=10, settings={**FEW, "window_bytes": 100, "queue_bytes": 1_048_576}, until_ms=24_000
    )
    assert played.wrong == []
    assert stood_in(played) == [
        text.replace("f", "n2", 1) if text.startswith("f") else "r shares the work of n2" for text in SHARED
    ]


def test_where_nothing_is_to_be_done_about_it_nothing_is() -> None:
    slow = in_turn(F, 5_000, 12_000, 400, 30)
    played = play_on_demand(
        slow, every_ms=10, settings={**FEW, "window_bytes": 100, "congestion": "none"}, until_ms=20_000
    )
    assert (played.wrong, said(played)) == ([], [])
    assert played.told("complaint") != []


def test_the_work_of_two_is_shared_at_once() -> None:
    """Each stand-in knows a tree of its own, in which the other one is not."""
    told = [{"id": name, "mode": "ms"} for name in ("n2", "n3")]
    asked = [Operate(at_ms=at, action="replace", told=each) for at, each in zip((5_000, 7_000), told, strict=True)]
    played = play_on_demand((), asked, spares=("r", "r2"), until_ms=16_000)
    assert played.wrong == []
    assert stood_in(played) == ["r shares the work of n2", "r2 shares the work of n3"]
    assert played.missing("s2") == played.missing("s3") == []
    assert is_whole(played)


def test_one_that_fails_while_its_work_is_shared_is_replaced() -> None:
    """D0-F6"""
    faults = [*in_turn(F, 5_000, 9_000, 400, 30), Pause(at_ms=9_500, for_ms=10_000, host=F)]
    settings = {**FEW, "window_bytes": 100, "unreachable_ms": 2_000, "calm_ms": 6_000}
    played = play_on_demand(faults, every_ms=10, settings=settings, spares=("r", "r2"), until_ms=36_000)
    assert played.wrong == []
    assert stood_in(played)[0] == SHARED[0]
    assert any(text.endswith("stands in for f") for text in stood_in(played))
    assert stood_in(played)[-1] == "f is well again, and gets its place back"
    assert is_whole(played)
