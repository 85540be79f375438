"""Operators ask for a stand-in, and leave open who that is; and what they asked for, they give back."""

from __future__ import annotations

import pytest

from holdfast.sim.scenario import Kill, Operate
from tests.standin.cycle.star_on_demand import is_whole, play_on_demand, said, stood_in
from tests.standin.star import F, R, hand_back
from tests.tiers import one_always

DOWN = Kill(at_ms=4_000, for_ms=4_000, host=F)
BY_OPERATORS = {"unreachable_ms": 0}


def ask(at_ms: int, action: str, faulty: str = F, **told: str) -> Operate:
    return Operate(at_ms=at_ms, action=action, told={"id": faulty, **told})


@pytest.mark.parametrize("level", ["none", "buffered"])
def test_who_stands_in_need_not_be_said(level: str) -> None:
    """D0-B2; and the broker that is back waits for the operator."""
    played = play_on_demand([DOWN], [ask(5_000, "replace"), hand_back(20_000)], BY_OPERATORS, level=level)
    assert played.wrong == []
    assert stood_in(played) == ["r stands in for f"]
    assert len(played.missing("s2")) <= (0 if level == "buffered" else 1)
    assert [row.node for row in played.told("change-begun")] == ["operator:1", "operator:2"]
    assert played.carried(F) > 300
    assert is_whole(played)


def test_what_an_operator_asked_for_is_given_back_by_nobody_else() -> None:
    played = play_on_demand([DOWN], [ask(5_000, "replace")], BY_OPERATORS)
    assert played.wrong == []
    assert "well again" not in " ".join(said(played))
    assert [row.detail["members"] for row in played.told("map-adopted")][-1] == ["n1", R, "n2", "n3"]


def test_the_keeper_is_replaced_by_who_comes_after_it() -> None:
    down = Kill(at_ms=4_000, for_ms=4_000, host="n1")
    played = play_on_demand([down], [ask(5_000, "replace", "n1")], BY_OPERATORS)
    assert played.wrong == []
    assert stood_in(played) == ["r stands in for n1"]


def test_a_broker_that_answers_is_not_replaced_for_an_operator() -> None:
    played = play_on_demand((), [ask(5_000, "replace")], BY_OPERATORS)
    assert played.wrong == []
    assert stood_in(played) == []
    assert said(played)[-1].startswith("f gets no stand-in: f answers n1: ")


def test_its_work_is_shared_for_as_long_as_the_operator_wants() -> None:
    played = play_on_demand((), [ask(5_000, "replace", mode="ms"), hand_back(20_000)], BY_OPERATORS)
    assert played.wrong == []
    assert stood_in(played) == ["r shares the work of f"]
    assert played.missing("s2") == []
    assert is_whole(played)


def test_of_two_that_ask_one_after_the_other_both_are_served() -> None:
    """The second one waits for its turn."""
    asked = [ask(5_000, "replace", F), ask(5_050, "relieve", "n3"), hand_back(20_000)]
    played = play_on_demand([DOWN], asked, BY_OPERATORS, spares=(R, "r2"))
    assert played.wrong == []
    assert stood_in(played) == ["r stands in for f", "r2 takes the place of n3 over"]


# ----------------------------------------------------------------------------------------------------------- hand-over
@pytest.mark.parametrize("level", one_always(["buffered", "none", "periodic"]))
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("faulty", [F, "n1"])
def test_a_hand_over_loses_doubles_and_disorders_nothing(level: str, named: bool, faulty: str) -> None:
    """D0-A8: for maintenance, there and back, at every level; also of the keeper."""
    by = {"by": R, "address": R, "peer_address": R} if named else {}
    operations = [ask(6_000, "relieve", faulty, **by), hand_back(14_000, faulty)]
    played = play_on_demand((), operations, level=level, every_ms=20, until_ms=28_000)
    assert played.wrong == []
    assert [row.node for row in played.told("change-begun")] == ["operator:1", "operator:2"]
    for subscriber in ("s2", "s3"):
        assert played.missing(subscriber) == []
        assert len(played.got(subscriber)) == len(set(played.got(subscriber)))
        assert played.is_ordered(subscriber)
    assert is_whole(played)
