"""What a new leader must propose, said as plainly as possible and without a look at how the package does it."""

from __future__ import annotations

from holdfast.protocols.paxos.messages import Vote


def oracle(promises: list[list[Vote]], first: int) -> dict[int, bytes | None]:
    """In each slot the value of the highest ballot; None where nobody voted, below a slot where somebody did."""
    slots = [vote.slot for votes in promises for vote in votes if vote.slot >= first]
    answer: dict[int, bytes | None] = {}
    for slot in range(first, max(slots, default=first - 1) + 1):
        here = [vote for votes in promises for vote in votes if vote.slot == slot]
        best = max((vote.ballot for vote in here), default=None)
        answer[slot] = None if best is None else next(bytes(vote.value) for vote in here if vote.ballot == best)
    return answer
