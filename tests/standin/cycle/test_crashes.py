"""A broker fails, gets a stand-in, comes back and has its place again; and what is in the way of that."""

from __future__ import annotations

import pytest

from holdfast.sim.scenario import Fault, Kill, Pause
from tests.standin.cycle.star_on_demand import cut, is_whole, play_on_demand, said, stood_in
from tests.standin.star import F, R

DOWN = Kill(at_ms=4_000, for_ms=6_000, host=F)
CYCLE = ["r stands in for f", "f is well again, and gets its place back"]


@pytest.mark.parametrize("level", ["none", "periodic", "buffered"])
@pytest.mark.parametrize("protocol", ["basic", "synch", "increm"])
def test_a_broker_that_fails_is_replaced_and_has_its_place_back(level: str, protocol: str) -> None:
    """D0-A8, D0-A9, D0-A10, D0-A35, D0-B2, D0-F6: what was on its way to it is lost, where nothing is stored."""
    if level == "buffered" and protocol == "increm":
        return  # is refused there
    played = play_on_demand([DOWN], level=level, settings={"protocol": protocol})
    assert played.wrong == []
    assert stood_in(played) == CYCLE
    assert is_whole(played)
    if protocol != "basic" or level == "buffered":
        for subscriber in ("s2", "s3"):
            assert len(played.missing(subscriber)) <= (0 if level == "buffered" else 1)
    if protocol != "increm":
        assert played.is_ordered("s2")


def test_a_short_pause_provides_nobody() -> None:
    played = play_on_demand([Pause(at_ms=4_000, for_ms=1_200, host=F)])
    assert (played.wrong, said(played)) == ([], [])
    assert played.missing("s2") == []


def test_one_that_flaps_is_not_replaced_before_it_is_away_for_long() -> None:
    flaps = [Kill(at_ms=at, for_ms=900, host=F) for at in range(4_000, 12_000, 1_500)]
    played = play_on_demand(flaps, settings={"unreachable_ms": 2_000})
    assert (played.wrong, said(played)) == ([], [])


def test_one_that_fails_again_soon_is_waited_for_longer() -> None:
    """D0-F6: a broker that is up for a moment only is not handed its place again and again."""
    again: list[Fault] = [Kill(at_ms=at, for_ms=6_000, host=F) for at in (4_000, 16_000, 32_000)]
    played = play_on_demand(again, every_ms=500, until_ms=60_000)
    assert played.wrong == []
    assert stood_in(played) == CYCLE * 3
    back = [row.t // 1_000_000 for row in played.told("standin") if row.detail["what"] == CYCLE[1]]
    up = (10_000, 22_000, 38_000)
    waits = [at - begun for at, begun in zip(back, up, strict=True)]
    assert [round(wait / 3_000) for wait in waits] == [1, 2, 4]


# ------------------------------------------------------------------------------------------------------- cut links
@pytest.mark.parametrize("leaf", ["n1", "n2", "n3"])
def test_a_link_that_is_cut_replaces_nobody(leaf: str) -> None:
    """Its neighbour is the only one that complains, and can't reach it; but others do."""
    played = play_on_demand([cut(leaf, F, 4_000, 8_000)])
    assert played.wrong == []
    assert stood_in(played) == []
    assert said(played)[-1].startswith(f"{leaf} gets no stand-in: ")


def test_two_links_that_are_cut_replace_nobody() -> None:
    played = play_on_demand([cut("n1", F, 4_000, 8_000), cut("n2", F, 4_000, 8_000)])
    assert played.wrong == []
    assert stood_in(played) == []


def test_one_that_is_cut_off_from_all_is_replaced_and_keeps_no_spare_from_them() -> None:
    """It reaches the spare, too, and thinks that all others have failed."""
    alone = [cut(name, F, 4_000, 20_000) for name in ("n1", "n2", "n3")]
    played = play_on_demand(alone)
    assert played.wrong == []
    assert stood_in(played) == CYCLE
    assert is_whole(played)


# ---------------------------------------------------------------------------------------------------- who sees to it
@pytest.mark.parametrize("killed_ms", [5_000, 5_800, 6_050, 6_200, 6_300, 6_400, 6_460, 6_500, 7_000])
@pytest.mark.parametrize("level", ["none", "buffered"])
def test_when_who_sees_to_it_fails_it_is_done_once(killed_ms: int, level: str) -> None:
    """D0-F6: before there is a case, while the broker is called, while the spare is kept, while all are asked, and
    when the map is made. Two are down then: it goes on when one of them is back."""
    faults = [Kill(at_ms=4_000, for_ms=20_000, host=F), Kill(at_ms=killed_ms, for_ms=2_500, host="n1")]
    played = play_on_demand(faults, level=level)
    assert played.wrong == []
    assert stood_in(played) == CYCLE
    assert is_whole(played)


def test_the_keeper_itself_is_replaced() -> None:
    """The next member sees to it, and the stand-in keeps the map then, and gives the place back."""
    played = play_on_demand([Kill(at_ms=4_000, for_ms=8_000, host="n1")])
    assert played.wrong == []
    assert stood_in(played) == ["r stands in for n1", "n1 is well again, and gets its place back"]
    assert [row.node for row in played.told("standin") if "place back" in row.detail["what"]] == [R]


def test_when_two_fail_at_once_it_is_said_why_nothing_is_done_and_done_when_one_is_back() -> None:
    """D0-F6"""
    two = [Kill(at_ms=4_000, for_ms=8_000, host="n2"), Kill(at_ms=4_000, for_ms=20_000, host="n3")]
    played = play_on_demand(two)
    assert played.wrong == []
    problem = "n2 gets no stand-in: n3 can't be asked: more than one broker is down, or the network is split"
    assert problem in said(played)
    begun = {row.detail["what"]: row.t // 1_000_000 for row in played.told("standin")}
    assert begun["r stands in for n3"] > 12_000
    assert is_whole(played)


# -------------------------------------------------------------------------------------------------------------- spares
def test_without_a_spare_it_is_said_once() -> None:
    played = play_on_demand([DOWN], spares=())
    assert played.wrong == []
    assert said(played)[1:] == [
        "f gets no stand-in: nobody is to spare; start one, or list one with spare = true",
    ]


def test_a_spare_that_does_not_answer_is_named() -> None:
    played = play_on_demand([DOWN, Kill(at_ms=3_000, for_ms=0, host=R, for_ever=True)])
    assert played.wrong == []
    assert said(played)[1].startswith("f gets no stand-in: nobody is to spare: r does not answer at r; ")


def test_another_spare_is_taken_instead_of_one_that_does_not_answer() -> None:
    played = play_on_demand([DOWN, Kill(at_ms=3_000, for_ms=0, host=R, for_ever=True)], spares=(R, "r2"))
    assert played.wrong == []
    assert stood_in(played) == ["r2 stands in for f", CYCLE[1]]


@pytest.mark.parametrize("level", ["none", "buffered"])
def test_a_spare_that_fails_while_it_learns_is_replaced_by_the_next(level: str) -> None:
    """D0-F6: n3 can't be reached from it, so that it never knows everything; and who is back has its place again."""
    faults = [
        Kill(at_ms=4_000, for_ms=12_000, host=F),
        cut(R, "n3", 4_000, 20_000),
        Kill(at_ms=6_600, for_ms=0, host=R, for_ever=True),
    ]
    played = play_on_demand(faults, spares=(R, "r2"), level=level)
    assert played.wrong == []
    assert stood_in(played) == ["r stands in for f", "r2 stands in for r", CYCLE[1]]
    assert is_whole(played)
