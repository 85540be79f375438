"""What other sites ask of one that lends: requests become errands, once, and answers are found by their tickets
(D0-A9)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.protocols.routing.network_map import NetworkMember
from holdfast.schemes.tree.standin.cycle.errands import Failed, Lend, Lent, Outcome, Released, TakeBack
from holdfast.schemes.tree.standin.cycle.lending import (
    GIVE_BACK,
    LEND,
    LENDING,
    REMEMBERED_MAX,
    UNDER_WAY_MAX,
    WISH_BYTES_MAX,
    Lending,
    outcome_of,
)

ASKED = {"to": "east", "ticket": "t1", "wish": "packed"}
ERRAND = Lend("east", "t1", "packed", ("b1", "s4"))
LENT = Lent(NetworkMember("west.s3", "a:1", "a:2"), 17)


def begin(lending: Lending, action: str = LEND, **told: Any) -> Any:
    usual = ASKED if action == LEND else {"to": "east", "id": "west.s3"}
    return lending.begin(action, {**usual, **told}, ("b1", "s4"))


def found(lending: Lending, ticket: str = "t1") -> Outcome | None:
    return outcome_of(lending.facts().get(LENDING, ""), ticket)


def test_a_request_is_one_errand_however_often_it_is_made_and_its_outcome_stays() -> None:
    lending = Lending()
    assert begin(lending) == ERRAND
    assert begin(lending) == "", "it is under way"
    assert found(lending) is None
    lending.ended(ERRAND, LENT)
    assert found(lending) == LENT
    assert begin(lending) == "", "it is done, and its outcome is told"
    assert begin(lending, ticket="t2") == Lend("east", "t2", "packed", ("b1", "s4"))


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Failed("nobody to spare"), Failed("nobody to spare")),
        (Failed("x" * 10_000), Failed("x" * 500)),
        (Released(), Failed("the program beside the broker did something else")),
    ],
)
def test_what_came_of_it_is_told_also_if_nothing_did(outcome: Outcome, told: Failed) -> None:
    lending = Lending()
    begin(lending)
    lending.ended(ERRAND, outcome)
    assert found(lending) == told


def test_a_broker_that_comes_back_is_an_errand_again_and_again_and_tells_nothing() -> None:
    lending = Lending()
    errand = TakeBack("east", "west.s3")
    assert begin(lending, GIVE_BACK) == errand
    assert begin(lending, GIVE_BACK) == ""
    lending.ended(errand, Released())
    assert begin(lending, GIVE_BACK) == errand
    assert lending.facts() == {}


@pytest.mark.parametrize(
    ("action", "told", "problem"),
    [
        ("steal", {}, "there is no change 'steal'; there is lend, give-back"),
        (LEND, {"more": "x"}, "nothing is known of 'more' in a change 'lend'"),
        (LEND, {"ticket": ""}, "a change 'lend' has to say 'ticket', in 128 bytes, and not ''"),
        (LEND, {"to": "a\nb"}, "has to say 'to'"),
        (LEND, {"ticket": "t" * 129}, "has to say 'ticket'"),
        (LEND, {"wish": "w" * (WISH_BYTES_MAX + 1)}, "has to say 'wish'"),
        (GIVE_BACK, {"id": ""}, "has to say 'id'"),
    ],
)
def test_what_is_no_request_is_refused_in_a_short_answer(action: str, told: dict[str, str], problem: str) -> None:
    answer = begin(Lending(), action, **told)
    assert problem in answer
    assert len(answer) < 300


def test_it_is_bounded() -> None:
    lending = Lending()
    for number in range(UNDER_WAY_MAX):
        assert isinstance(begin(lending, ticket=f"u{number}"), Lend)
    assert begin(lending) == f"{UNDER_WAY_MAX} requests of other sites are under way: ask again"
    for number in range(UNDER_WAY_MAX):
        lending.ended(Lend("east", f"u{number}", "packed", ("b1", "s4")), LENT)
    for number in range(REMEMBERED_MAX):
        errand = begin(lending, ticket=f"r{number}")
        lending.ended(errand, LENT)
    assert found(lending, "u3") is None
    assert found(lending, "r0") == LENT


def test_a_fact_of_another_build_is_no_outcome() -> None:
    assert outcome_of("[1]", "t1") == Failed("the broker that was asked tells something else of what it lends")
