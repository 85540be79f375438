"""What a new leader must propose, said as plainly as possible and without a look at how the package does it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import combinations

from holdfast.schemes.paxos.messages import Vote


def oracle(promises: list[list[Vote]], first: int) -> dict[int, bytes | None]:
    """In each slot the value of the highest ballot; None where nobody voted, below a slot where somebody did."""
    slots = [vote.slot for votes in promises for vote in votes if vote.slot >= first]
    answer: dict[int, bytes | None] = {}
    for slot in range(first, max(slots, default=first - 1) + 1):
        here = [vote for votes in promises for vote in votes if vote.slot == slot]
        best = max((vote.ballot for vote in here), default=None)
        answer[slot] = None if best is None else next(bytes(vote.value) for vote in here if vote.ballot == best)
    return answer


def may_be_chosen(heard: Mapping[int, list[Vote]], slot: int, members: int) -> set[bytes]:
    """The values that a leader who heard these acceptors, by place, can't rule out: those of the highest round, and of
    a fast one those that a fast quorum may have voted for."""
    last = {who: max((v for v in told if v.slot == slot), key=_round, default=None) for who, told in heard.items()}
    highest = max(_round(vote) for vote in last.values() if vote)
    voted = {who: bytes(vote.value) if vote and _round(vote) == highest else None for who, vote in last.items()}
    if highest[1] == 1:
        return {value for value in voted.values() if value is not None}
    return may_have_a_fast_quorum(voted, members)


def may_have_a_fast_quorum(voted: Mapping[int, bytes | None], members: int) -> set[bytes]:
    """By the definition: there is a fast quorum, and all of it that was heard voted for the value. None: no vote there,
    and never one."""
    found = set()
    for value in {value for value in voted.values() if value is not None}:
        others = sum(1 << who for who, other in voted.items() if other != value)
        if any(not some & others for some in _fast_quorums(members)):
            found.add(value)
    return found


@cache
def _fast_quorums(members: int) -> list[int]:
    """All sets of three quarters of the members, one bit for each member."""
    return [sum(1 << who for who in some) for some in combinations(range(members), (3 * members + 3) // 4)]


def _round(vote: Vote) -> tuple[int, int]:
    return vote.ballot, 0 if vote.fast else 1
