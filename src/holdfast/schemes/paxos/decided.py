"""The log of decided values: counts votes, knows what is chosen, and gives it out in the order of slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from holdfast.kernel.node import broken, require
from holdfast.schemes.paxos.messages import Proposal, Value
from holdfast.schemes.paxos.roster import Roster

AHEAD_MAX: Final = 100_000  # slots; votes of others that are further ahead are not counted: we have to catch up anyway


class DecidedLog:
    """Decided values. `executed` is the last slot that was given out; `ready` is the value of the next, if decided."""

    def __init__(self, roster: Roster, executed: int = 0) -> None:
        self.executed = executed
        self.ready: Value | None = None
        self._roster = roster
        self._values: dict[int, Value] = {}  # decided, also those executed lately
        self._proposed: dict[int, dict[int, Value]] = {}  # slot → ballot → the value that its leader proposed
        self._votes: dict[int, dict[int, set[str]]] = {}  # slot → ballot → who voted
        self._read: dict[int, tuple[Value, Proposal]] = {}  # slot → a value, and what it says

    def propose(self, ballot: int, first: int, values: Sequence[Value]) -> None:
        """A leader has said what its ballot's values are, for slots from `first` on. A ballot has one leader, and a
        leader one value for a slot."""
        for slot, value in enumerate(values, first):
            if slot > self.executed and slot not in self._values:
                known = self._proposed.setdefault(slot, {}).setdefault(ballot, value)
                if known != value:
                    broken("a ballot has one value in a slot", slot=slot, ballot=ballot)
                self._look(slot, ballot)

    def vote(self, ballot: int, slots: Sequence[int], voter: str) -> None:
        """Someone has accepted the ballot's values, safely."""
        for slot in slots:
            if slot > self.executed and slot not in self._values:
                self._votes.setdefault(slot, {}).setdefault(ballot, set()).add(voter)
                self._look(slot, ballot)

    def learn(self, ballot: int, slots: Sequence[int], voter: str) -> None:
        """Another replica says so: what is far ahead is left out."""
        self.vote(ballot, [slot for slot in slots if self.is_near(slot)], voter)

    def is_near(self, slot: int) -> bool:
        """Whether it is of use to know who votes there; else there would be no end to what others can make us keep."""
        return self.executed < slot <= self.executed + AHEAD_MAX

    def _look(self, slot: int, ballot: int) -> None:
        voters = self._votes.get(slot, {}).get(ballot, ())
        value = self._proposed.get(slot, {}).get(ballot)
        if value is not None and len(voters) >= self._roster.quorum:
            self.decide(slot, value)

    def forget_votes(self) -> None:
        """The voters are others now: what the ones before voted for and did not decide counts no more."""
        self._votes.clear()
        self._proposed.clear()

    def decide(self, slot: int, value: Value) -> None:
        """The slot's value is known: by votes, or from someone who knew."""
        if slot <= self.executed:
            return
        known = self._values.setdefault(slot, value.copy())
        if known != value:
            broken("one value is chosen in a slot, for ever", slot=slot)
        self._votes.pop(slot, None)
        self._proposed.pop(slot, None)
        self._look_ahead()

    def _look_ahead(self) -> None:
        self.ready = self._values.get(self.executed + 1)

    @property
    def is_behind(self) -> bool:
        """Whether something is decided that can't be executed, since something before it is not known."""
        return bool(self._values) and self.executed + 1 not in self._values and max(self._values) > self.executed

    def has_read(self, slot: int, value: Value, proposal: Proposal) -> None:
        """This is what a value says that may be decided in the slot: it was looked at when it came."""
        if slot > self.executed:
            self._read[slot] = value, proposal

    def take_next(self) -> tuple[int, Value, Proposal | None]:
        """The slot that is ready, with its value and, if that has been read, what it says: it counts as executed."""
        value = self.ready
        if value is None:
            broken("what is taken is decided", slot=self.executed + 1)
        self.executed += 1
        self._look_ahead()
        known, proposal = self._read.pop(self.executed, (None, None))
        return self.executed, value, proposal if known is value else None

    def put_back(self) -> None:
        """What was taken last is not to be executed now."""
        self.executed -= 1
        self._look_ahead()

    def knows(self, slot: int) -> bool:
        """Whether the slot's value is decided, and not forgotten."""
        return slot in self._values

    def read(self, first: int, bytes_max: int) -> list[Value]:
        """Decided values from a slot on, as far as they are known without a gap; none if the first is forgotten."""
        values: list[Value] = []
        slot = first
        while slot in self._values and (not values or bytes_max > 0):
            values.append(self._values[slot])
            bytes_max -= len(self._values[slot])
            slot += 1
        return values

    def skip_to(self, slot: int) -> None:
        """A snapshot has everything up to the slot."""
        self.executed = max(self.executed, slot)
        self.trim(slot + 1)
        self._look_ahead()

    def trim(self, before: int) -> None:
        """Forgets what is executed and not needed any more."""
        for table in (self._values, self._votes, self._proposed, self._read):
            for slot in [slot for slot in table if slot < before and slot <= self.executed]:
                del table[slot]

    def check_invariants(self) -> None:
        lowest = min(self._votes, default=self.executed + 1)
        require(lowest > self.executed, "votes are counted for what is not decided")
