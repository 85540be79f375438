"""Which sets of acceptors meet, looked at one by one: the ground that fast rounds stand on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest

from holdfast.schemes.paxos.ballots import NO_ROUND, PLACES, fast_quorum, may_vote, quorum, round_of

Size = Callable[[int], int]


def sets(members: int, least: int) -> list[int]:
    """All sets of so many members or more, one bit for each."""
    sizes = range(least, members + 1)
    return [sum(1 << place for place in some) for size in sizes for some in combinations(range(members), size)]


def problem(members: int, classic: Size, fast: Size) -> str:
    """What two values could both be decided by, or a decision be overlooked by; or nothing."""
    majorities, fast_ones = sets(members, classic(members)), sets(members, fast(members))
    for one in majorities:
        for other in majorities:
            if not one & other:
                return f"{members} members: majorities {one:b} and {other:b} do not meet"
        for first in fast_ones:
            heard = one & first
            for second in fast_ones:
                if not heard & second:
                    return f"{members} members: majority {one:b} and fast ones {first:b}, {second:b} do not meet"
    return ""


@pytest.mark.parametrize("members", range(1, 10))
def test_any_majority_and_any_two_fast_quorums_meet(members: int) -> None:
    """D4-B4: so of two values at most one may be decided, as far as a majority can tell."""
    assert problem(members, quorum, fast_quorum) == ""


@pytest.mark.parametrize("members", range(1, 10))
def test_no_smaller_fast_quorum_would_do(members: int) -> None:
    assert "do not meet" in problem(members, quorum, lambda members: fast_quorum(members) - 1)


@pytest.mark.parametrize("members", range(3, 10))
def test_a_majority_is_no_fast_quorum_unless_both_are_the_same(members: int) -> None:
    # Of four, three are a majority and three quarters.
    assert bool(problem(members, quorum, quorum)) == (members != 4)


def test_two_halves_are_seen_not_to_meet() -> None:
    assert "majorities" in problem(4, lambda members: members // 2, lambda members: members)


def test_how_many_a_fast_decision_takes() -> None:
    sizes = {members: fast_quorum(members) for members in range(1, 10)}
    assert sizes == {1: 1, 2: 2, 3: 3, 4: 3, 5: 4, 6: 5, 7: 6, 8: 6, 9: 7}
    for members in range(1, PLACES + 1):
        assert fast_quorum(members) == -(-3 * members // 4), "three quarters, rounded up"
        assert quorum(members) <= fast_quorum(members) <= members


def test_how_many_may_fail_while_fast_rounds_go_on() -> None:
    """One of three that fails ends the fast path; one of four, five or seven does not."""
    spare = {members: members - fast_quorum(members) for members in range(1, 10)}
    assert spare == {1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 7: 1, 8: 2, 9: 2}


def test_an_acceptor_votes_once_in_each_round_and_never_downwards() -> None:
    rounds = [NO_ROUND] + [round_of(ballot, fast) for ballot in (1, 2, 3) for fast in (True, False)]
    assert rounds == sorted(rounds), "a ballot's fast round comes before its classic one"
    for promised in range(4):
        for place, last in enumerate(rounds):
            allowed = [asked for asked in rounds if may_vote(promised, last, asked)]
            assert allowed == [asked for asked in rounds[place + 1 :] if asked[0] >= promised]
