"""The value-picking rule: what a new leader must propose, from what a majority of acceptors told it (D4-B2.1).

In each slot, the value of the highest ballot that any of them accepted: it may be chosen already, and then it is the
only one that may be proposed. Slots that none of them voted in, below one that some did, are filled with nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.protocols.paxos.messages import Value, Vote


def pick(promises: Iterable[Iterable[Vote]], first: int) -> dict[int, Value | None]:
    """For each slot from `first` to the last one with a vote: the value to propose, or None for nothing at all."""
    highest: dict[int, Vote] = {}
    for votes in promises:
        for vote in votes:
            known = highest.get(vote.slot)
            if vote.slot >= first and (known is None or vote.ballot > known.ballot):
                highest[vote.slot] = vote
    last = max(highest, default=first - 1)
    return {slot: highest[slot].value if slot in highest else None for slot in range(first, last + 1)}
