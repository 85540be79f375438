"""The value-picking rule: what a leader must propose, from what a majority of acceptors told it (D4-B2.1, B4).

In each slot only the votes of the highest round that any of them voted in count: what may be chosen below is among
them. In a classic round there is one value. In a fast one there may be several, and a value may be chosen only if so
many voted for it that those who were not heard could make it a fast quorum: at most one can have that many. If none
has, nothing is chosen, and the leader is free. Slots without a vote, below one with some, are filled with nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from holdfast.kernel.node import require
from holdfast.schemes.paxos.ballots import fast_quorum, quorum
from holdfast.schemes.paxos.messages import Value, Vote

T = TypeVar("T", bound=Hashable)
HOLE_MAX: Final = 2**16  # slots without a vote, before one with some: far more than any window has


def pick(promises: Collection[Iterable[Vote]], first: int, members: int) -> dict[int, Value | None]:
    """For each slot from `first` to the last one with a vote: the value to propose, or None for nothing at all. Each of
    the promises is of another acceptor."""
    told: dict[int, list[Vote]] = {}
    for votes in promises:
        last: dict[int, Vote] = {}  # an acceptor counts once in a slot, whatever it says
        for vote in votes:
            if vote.slot >= first and (vote.slot not in last or vote.round > last[vote.slot].round):
                last[vote.slot] = vote
        for slot, vote in last.items():
            told.setdefault(slot, []).append(vote)
    end = first - 1
    for slot in sorted(told):
        if slot - end > HOLE_MAX:
            break  # no leader goes so far beyond what is decided, and in that a majority has voted
        end = slot
    return {
        slot: _pick_in_slot(told[slot], len(promises), members) if slot in told else None
        for slot in range(first, end + 1)
    }


def pick_in_round(votes: Mapping[str, T], members: int) -> T | None:
    """The value (or its digest) that the leader of a fast round must propose in the classic one above, from the votes,
    by acceptor, that a majority cast in the fast one; None: none is chosen there. Who has voted does not vote there
    again, so a vote is as good as a promise. Who is not known to have voted may still vote, and does not count."""
    return _forced(Counter(votes.values()), len(votes), members)


def _pick_in_slot(votes: list[Vote], heard: int, members: int) -> Value:
    highest = max(vote.round for vote in votes)
    leading = [vote for vote in votes if vote.round == highest]
    if not leading[0].fast:
        return leading[0].value
    counts = Counter(bytes(vote.value) for vote in leading)
    value = _forced(counts, heard, members)
    if value is None:  # Any will do; what most voted for disappoints the fewest, and all pick the same.
        value = min(counts, key=lambda value: (-counts[value], value))
    return msgspec.Raw(value)


def _forced(counts: Mapping[T, int], heard: int, members: int) -> T | None:
    """The value that may have a fast quorum, given that `heard` acceptors won't vote in the round any more."""
    require(heard >= quorum(members), "a value is picked from what a majority says", heard=heard, members=members)
    enough = heard + fast_quorum(members) - members
    return next((value for value, count in counts.items() if count >= enough), None)
