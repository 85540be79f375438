"""Ballots and quorums: the arithmetic that everything else stands on (D4-D1).

A ballot is a number that no two replicas share: (round, place of the replica), in one integer, so that ballots compare
as numbers. 0 is no ballot.
"""

from __future__ import annotations

from typing import Final

MEMBERS_MAX: Final = 64


def next_ballot(above: int, place: int) -> int:
    """The smallest ballot of the replica at a place that is larger than another ballot."""
    return (above // MEMBERS_MAX + 1) * MEMBERS_MAX + place


def place_of(ballot: int) -> int:
    """Whose ballot it is."""
    return ballot % MEMBERS_MAX


def quorum(members: int) -> int:
    """How many make a majority."""
    return members // 2 + 1


def tolerated(members: int) -> int:
    """How many may fail: f of 2f+1."""
    return members - quorum(members)
