"""What must hold in fast rounds, judged from what is safe on the disks and from what leaves the machines."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable

from holdfast.schemes.paxos.messages import Proposal
from tests.paxos.violation import hold


class FastWatch:
    """One run's: every vote that was ever safe in a fast round, also of disks that were wiped later."""

    def __init__(self, voters: Callable[[int], int]) -> None:
        self.opened: dict[int, int] = {}  # ballot → the first slot whose fast round is open
        self.recovered: set[tuple[int, int]] = set()  # (slot, ballot) that went on to a classic round
        self.chosen = 0  # values, by a fast quorum
        self.split = 0  # fast rounds with votes for more than one value
        self._voters = voters  # how many there are in the epoch of a ballot
        self._votes: dict[tuple[int, int], dict[str, bytes]] = {}  # (slot, ballot) → who, what
        self._placed: dict[bytes, set[int]] = {}  # a leader's own value → its slots
        self.submitted: Counter[bytes] = Counter()  # command → how often a leader was asked for it

    def _quorum(self, ballot: int) -> int:
        return -(-3 * self._voters(ballot) // 4)

    def open(self, ballot: int, slot: int, proposed: list[int], free_from: int) -> None:
        """A leader says from where on its fast rounds are open: behind all that it proposed, or has to."""
        if ballot not in self.opened:
            hold(slot >= free_from, "a fast round is open where the leader is not free", ballot, slot)
            hold(all(slot > other for other in proposed), "a fast round is open where something is proposed", ballot)
        hold(self.opened.setdefault(ballot, slot) == slot, "an open fast round moves", ballot, slot)

    def is_open(self, slot: int, ballot: int) -> bool:
        return ballot in self.opened and slot >= self.opened[ballot]

    def vote(self, name: str, slot: int, ballot: int, value: bytes, entry: Proposal) -> bool:
        """A vote is safe. Whether the value is chosen by that."""
        votes = self._votes.setdefault((slot, ballot), {})
        hold(name not in votes, "someone votes twice in a fast round", name, slot, ballot)
        hold(
            self._voters(ballot) == 1 or self.is_open(slot, ballot),
            "a vote in a fast round that is not open",
            name,
            slot,
        )
        if entry.wall:  # else it is what a client says to all, or nothing
            slots = self._placed.setdefault(value, set())
            slots.add(slot)
            # Who asks twice in one turn gets two values that are the same.
            asked = min((self.submitted[bytes(command)] for command in entry.commands), default=1)
            hold(len(slots) <= max(asked, 1), "a leader's value is voted for in two slots", name, slots)
        before = len(set(votes.values()))
        votes[name] = value
        self.split += before == 1 and len(set(votes.values())) == 2
        chosen = list(votes.values()).count(value) == self._quorum(ballot)
        self.chosen += chosen
        return chosen

    def propose(self, slot: int, ballot: int, value: bytes) -> None:
        """A leader goes on to the classic round: nothing else may be chosen in the fast one, now or later."""
        votes = self._votes.get((slot, ballot), {})
        self.recovered.add((slot, ballot))
        missing = self._voters(ballot) - len(votes)
        hold(missing < self._quorum(ballot), "a fast round is recovered of which too little is known", slot, ballot)
        for other in set(votes.values()) - {value}:
            may = list(votes.values()).count(other) + missing
            hold(may < self._quorum(ballot), "another value may be chosen in the fast round", slot, ballot)
        if votes:
            hold(value in votes.values(), "a value is proposed that nobody voted for", slot, ballot)

    def told(self, name: str, slot: int, ballot: int, digest: bytes) -> None:
        """A vote is told to others."""
        value = self._votes.get((slot, ballot), {}).get(name)
        hold(value is not None, "a vote is told that is not on the disk", name, slot, ballot)
        same = value is not None and hashlib.blake2b(value, digest_size=16).digest() == digest
        hold(same, "another vote is told than was cast", name, slot, ballot)
