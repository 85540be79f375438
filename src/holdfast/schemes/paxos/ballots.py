"""Ballots, rounds and quorums: the arithmetic that everything else stands on (D4-B4, D1).

A ballot is a number that no two replicas share: (epoch, count, place of the replica), in one integer, so that ballots
compare as numbers. 0 is no ballot. The epoch says which voters the group had: each change of them begins a new one, so
no quorum of other voters can use its ballots, and a place may be given to another replica in a later one.

In a slot, a ballot has two rounds: a fast one, where acceptors vote for what they get from anyone, and above it a
classic one, where they vote for what the leader says.
"""

from __future__ import annotations

from typing import Final

PLACES: Final = 64  # of replicas that are members at the same time
EPOCH: Final = 2**40  # ballots in an epoch …
EPOCHS: Final = 2**22  # … and so many epochs are below the largest ballot that can be written

Round = tuple[int, bool]  # (ballot, whether it is classic): rounds compare as they follow each other
NO_ROUND: Final[Round] = (0, False)


def next_ballot(above: int, place: int, epoch: int = 0) -> int:
    """The smallest ballot of the replica at a place, in an epoch, that is larger than another ballot."""
    above = max(above, epoch * EPOCH)
    return (above // PLACES + 1) * PLACES + place


def place_of(ballot: int) -> int:
    """Whose ballot it is."""
    return ballot % PLACES


def epoch_of(ballot: int) -> int:
    """Of which voters it is."""
    return ballot // EPOCH


def readable(ballot: int) -> str:
    """For people: the epoch, the count and the place."""
    return f"{epoch_of(ballot)}.{ballot % EPOCH // PLACES}.{place_of(ballot)}"


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
