"""The value-picking rule against an independent oracle, and the arithmetic of quorums."""

from itertools import combinations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holdfast.schemes.paxos.ballots import next_ballot, place_of, quorum, tolerated
from holdfast.schemes.paxos.messages import Vote
from holdfast.schemes.paxos.picking import pick
from tests.paxos.oracle import oracle

votes = st.lists(
    st.builds(
        lambda slot, ballot: Vote(slot, ballot, msgspec.Raw(b"%c" % ballot)), st.integers(1, 6), st.integers(1, 9)
    ),
    max_size=8,
)


@given(promises=st.lists(votes, max_size=4), first=st.integers(1, 5))
def test_the_value_of_the_highest_ballot_is_picked_in_every_slot(promises: list[list[Vote]], first: int) -> None:
    picked = pick(promises, first, members=5)
    assert {slot: None if value is None else bytes(value) for slot, value in picked.items()} == oracle(promises, first)


def test_any_two_majorities_meet() -> None:
    """D4-D1: and f may fail."""
    for members in range(1, 10):
        everyone = range(members)
        for one in combinations(everyone, quorum(members)):
            for other in combinations(everyone, quorum(members)):
                assert set(one) & set(other)
    assert [(n, quorum(n), tolerated(n)) for n in (1, 3, 5, 7)] == [(1, 1, 0), (3, 2, 1), (5, 3, 2), (7, 4, 3)]


@given(above=st.integers(0, 10**9), place=st.integers(0, 6))
def test_ballots_rise_and_belong_to_one_replica(above: int, place: int) -> None:
    ballot = next_ballot(above, place)
    assert ballot > above
    assert place_of(ballot) == place
