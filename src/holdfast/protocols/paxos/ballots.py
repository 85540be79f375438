"""Ballots, rounds and quorums: the arithmetic that everything else stands on (D4-B4, D1).

A ballot is a number that no two replicas share: (count, place of the replica), in one integer, so that ballots compare
as numbers. 0 is no ballot. In a slot, a ballot has two rounds: a fast one, where acceptors vote for what they get from
anyone, and above it a classic one, where they vote for what the leader says.
"""

from __future__ import annotations

from typing import Final

MEMBERS_MAX: Final = 64

Round = tuple[int, bool]  # (ballot, whether it is classic): rounds compare as they follow each other
NO_ROUND: Final[Round] = (0, False)


def next_ballot(above: int, place: int) -> int:
    """The smallest ballot of the replica at a place that is larger than another ballot."""
    return (above // MEMBERS_MAX + 1) * MEMBERS_MAX + place


def place_of(ballot: int) -> int:
    """Whose ballot it is."""
    return ballot % MEMBERS_MAX


def round_of(ballot: int, fast: bool) -> Round:
    return ballot, not fast


def may_vote(promised: int, last: Round, asked: Round) -> bool:
    """Whether an acceptor may vote in a round of a slot, where it voted last in another one: once in each, upwards."""
    return asked[0] >= promised and asked > last


def quorum(members: int) -> int:
    """How many make a majority."""
    return members // 2 + 1


def fast_quorum(members: int) -> int:
    """How many make a decision in a fast round: so many that any two such sets and any majority have a member in
    common. Then a majority that holds votes for two values shows which of them may be decided."""
    return (2 * members - quorum(members)) // 2 + 1


def tolerated(members: int) -> int:
    """How many may fail: f of 2f+1."""
    return members - quorum(members)
