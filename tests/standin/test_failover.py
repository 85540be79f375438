"""A stand-in takes the place of a broker that failed: what becomes of events, by protocol and level."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.sim.scenario import Cut, Fault, Kill, Pause, PowerCut, Reset, Subscribe, Unsubscribe
from tests.standin.star import F, R, hand_back, play, replace

DEAD = [Kill(at_ms=4_000, for_ms=0, host=F, for_ever=True)]
PROTOCOLS = ("basic", "synch", "increm")


@pytest.mark.parametrize("level", ["none", "periodic"])
@pytest.mark.parametrize("protocol", ["synch", "increm"])
def test_what_waited_for_the_broker_goes_to_the_stand_in(level: str, protocol: str) -> None:
    """D0-B8, D0-B11, D0-A34: two seconds of events waited at the neighbour; what was on the link is lost (D0-F5)."""
    run = play([replace(6_000, protocol)], DEAD, level=level)
    assert run.wrong == []
    for subscriber in ("s2", "s3"):
        assert len(run.missing(subscriber)) <= 1
        assert run.is_ordered(subscriber)


@pytest.mark.parametrize("level", ["none", "periodic"])
def test_basic_loses_what_comes_before_those_who_want_it(level: str) -> None:
    """D0-C6, D0-C15"""
    run = play([replace(6_000, "basic")], DEAD, level=level)
    assert run.wrong == []
    assert len(run.missing("s2")) > 30


@pytest.mark.parametrize("protocol", ["basic", "synch"])
def test_nothing_is_lost_where_events_are_stored(protocol: str) -> None:
    """D1-B4.1: the stand-in keeps events for sides that have not answered, so that basic loses nothing there."""
    run = play([replace(6_000, protocol)], DEAD, level="buffered")
    assert run.wrong == []
    assert run.missing("s2") == run.missing("s3") == []
    assert run.is_ordered("s2")


def test_who_is_hidden_behind_others_gets_what_waited_too() -> None:
    """With covering, nobody told the publisher's broker of n3's subscription: a broader one of n2 says all."""
    narrow = [Subscribe(at_ms=2_000, client="s4", name="s4", filter="topic = 't' AND n > 0")]
    slow = Pause(at_ms=5_990, for_ms=600, host="n3")
    covering = {"covering": True}
    run = play([replace(6_000, "increm")], [*DEAD, slow], more=narrow, settings=covering, only=("s2",))
    assert run.wrong == []
    assert len(run.missing("s2")) <= 1
    assert len([number for number in run.missing("s4") if number > 25]) <= 1


@pytest.mark.parametrize("level", ["none", "buffered"])
def test_what_was_taken_back_while_the_link_was_down_is_forgotten(level: str) -> None:
    """The stand-in has heard of it, and not of its end."""
    away: list[Fault] = [
        Cut(at_ms=6_300, for_ms=1_500, source=R, target="n2"),
        Reset(at_ms=6_310, for_ms=0, source=R, target="n2"),
        Cut(at_ms=5_900, for_ms=4_000, source=R, target="n3"),
    ]
    gone = [Unsubscribe(at_ms=6_800, client="s2", name="s2")]
    run = play([replace(6_000)], [*DEAD, *away], more=gone, level=level)
    assert run.wrong == []
    assert run.routes(R, "subscriptions", "n2") == []


def test_stored_events_are_put_into_no_other_order() -> None:
    """The incremental protocol would."""
    run = play([replace(6_000, "increm")], DEAD, level="buffered", until_ms=12_000)
    assert run.told("stand-in-learns") == []


@pytest.mark.parametrize("level", ["none", "buffered"])
def test_a_broker_that_is_back_gets_its_place_back_without_loss(level: str) -> None:
    """D0-F6"""
    back = [Kill(at_ms=4_000, for_ms=3_000, host=F)]
    run = play([replace(5_000), hand_back(10_000)], back, level=level)
    assert run.wrong == []
    assert run.steps()[-1] == []
    assert run.carried(F) > 200
    assert len(run.missing("s2")) <= (1 if level == "none" else 0)
    assert run.is_ordered("s2")


STORED: Sequence[Fault] = [
    Cut(at_ms=3_000, for_ms=2_500, source=F, target="n2"),
    PowerCut(at_ms=5_000, for_ms=3_000, host=F),
]


def test_what_the_broker_had_answered_for_is_lost_with_it() -> None:
    """D0-F5: two seconds of events that it had stored, and acknowledged, and could not send."""
    run = play([replace(6_000)], STORED, level="buffered")
    assert run.wrong == []
    assert run.missing("s2") == list(range(41, 81))
    assert run.missing("s3") == []


@pytest.mark.parametrize("again", [False, True])
def test_what_the_broker_had_answered_for_comes_late_when_it_is_back(again: bool) -> None:
    """Also if it is restarted before its place is handed back."""
    again_down: list[Fault] = [Kill(at_ms=9_000, for_ms=1_000, host=F)] if again else []
    faults = [*STORED, *again_down]
    run = play([replace(6_000), hand_back(12_000)], faults, level="buffered")
    assert run.wrong == []
    assert run.missing("s2") == []
    assert not run.is_ordered("s2")


@pytest.mark.parametrize("level", ["none", "buffered"])
def test_a_stand_in_that_fails_while_it_learns_is_replaced_itself(level: str) -> None:
    """D0-F6: n3 is cut off, so that the first one never knows everything."""
    alone = Cut(at_ms=5_900, for_ms=2_500, source=R, target="n3")
    dead = Kill(at_ms=7_000, for_ms=0, host=R, for_ever=True)
    operations = [replace(6_000), replace(7_500, by="r2", faulty=R)]
    run = play(operations, [*DEAD, alone, dead], level=level, spares=(R, "r2"))
    assert run.wrong == []
    assert len(run.told("stand-in-done")) == 1
    assert len(run.missing("s2")) <= (2 if level == "none" else 0)
    assert len(run.missing("s3")) <= (2 if level == "none" else 0)


@pytest.mark.parametrize("level", ["none", "buffered"])
def test_a_neighbour_that_says_nothing_is_left_out_and_told_everything_when_it_is_back(level: str) -> None:
    """D0-B7.4"""
    away = Kill(at_ms=5_000, for_ms=8_000, host="n3")
    run = play([replace(6_000)], [*DEAD, away], level=level, settings={"patience_ms": 2_000}, until_ms=24_000)
    assert run.wrong == []
    assert [row.detail["neighbour"] for row in run.told("stand-in-without")] == ["n3"]
    assert len(run.missing("s2")) <= (1 if level == "none" else 0)
    if level == "buffered":
        assert run.missing("s3") == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_link_that_breaks_meanwhile_is_asked_again(protocol: str) -> None:
    """D0-B4.3"""
    for_a_while = Cut(at_ms=5_990, for_ms=300, source=R, target="n3")
    for_longer = Cut(at_ms=6_000, for_ms=3_500, source=R, target="n1")
    run = play([replace(6_000, protocol)], [*DEAD, for_a_while, for_longer])
    assert run.wrong == []
    assert len(run.told("stand-in-done")) == 1
    if protocol != "basic":
        assert len(run.missing("s2")) <= 1


def test_a_restarted_stand_in_goes_on_learning() -> None:
    away = Cut(at_ms=5_900, for_ms=2_500, source=R, target="n3")
    run = play([replace(6_000)], [*DEAD, away, Kill(at_ms=7_000, for_ms=500, host=R)], level="buffered")
    assert run.wrong == []
    assert len(run.told("stand-in-done")) == 1
    assert run.missing("s2") == run.missing("s3") == []
