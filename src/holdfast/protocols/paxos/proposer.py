"""The proposer: prepares a ballot for all slots at once, then proposes values in a window of slots (D4-B1–B3)."""

from __future__ import annotations

import enum
from collections import deque

import msgspec

from holdfast.kernel.node import require
from holdfast.protocols.paxos.ballots import quorum
from holdfast.protocols.paxos.messages import Entry, Promise, Value, Vote
from holdfast.protocols.paxos.picking import pick
from holdfast.protocols.paxos.settings import Protocol

_encode = msgspec.msgpack.Encoder().encode


class Phase(enum.Enum):
    FOLLOWING = "following"
    PREPARING = "preparing"  # asked everyone, and not enough have promised
    LEADING = "leading"
    RENEWING = "renewing"  # leads, and prepares a higher ballot of its own


# From where to where. What is not here is a mistake of ours.
TRANSITIONS: dict[Phase, frozenset[Phase]] = {
    Phase.FOLLOWING: frozenset({Phase.PREPARING}),
    Phase.PREPARING: frozenset({Phase.LEADING, Phase.FOLLOWING, Phase.PREPARING}),
    Phase.LEADING: frozenset({Phase.FOLLOWING, Phase.RENEWING}),
    Phase.RENEWING: frozenset({Phase.LEADING, Phase.FOLLOWING, Phase.RENEWING}),
}

NOTHING: Value = msgspec.Raw(_encode(Entry(0, [])))


class Proposer:
    """Never writes to the disk: what it must not forget, its own acceptor keeps."""

    def __init__(self, members: int, pipeline: int, protocol: Protocol) -> None:
        self.phase = Phase.FOLLOWING
        self.ballot = 0
        self.undecided: dict[int, Value] = {}  # what it proposed
        self.next_slot = 1
        self.caught_up_at = 0  # the slot up to which others have executed when they promised
        self._members = members
        self._quorum = quorum(members)
        self._pipeline = pipeline
        self._protocol = protocol
        self._promises: dict[str, Promise] = {}
        self.first = 1  # slot that the ballot was prepared for
        self._pending: deque[msgspec.Raw] = deque()

    def enter(self, phase: Phase) -> None:
        require(phase in TRANSITIONS[self.phase], "a proposer changes its phase by the table", at=self.phase, to=phase)
        self.phase = phase

    @property
    def is_leading(self) -> bool:
        """Whether commands are taken here; while a ballot is renewed they wait."""
        return self.phase in (Phase.LEADING, Phase.RENEWING)

    def prepare(self, ballot: int, first: int) -> None:
        """Whoever leads already keeps what waits. What it has proposed, its own acceptor has voted for: its own promise
        brings it back."""
        require(ballot > self.ballot, "a ballot is never used twice", ballot=ballot, last=self.ballot)
        self.enter(Phase.RENEWING if self.is_leading else Phase.PREPARING)
        self.ballot, self.first = ballot, first
        self._promises = {}
        self.undecided = {}

    def step_down(self) -> None:
        """Someone else leads, or wants to. What waited is given up: who asked for it will ask the next leader."""
        if self.phase is not Phase.FOLLOWING:
            self.enter(Phase.FOLLOWING)
        self._promises, self.undecided = {}, {}
        self._pending.clear()

    def promise(self, peer: str, promise: Promise) -> bool:
        """Whether the ballot is ours now."""
        preparing = self.phase in (Phase.PREPARING, Phase.RENEWING)
        if not preparing or promise.ballot != self.ballot or promise.first != self.first:
            return False
        self._promises[peer] = promise
        if len(self._promises) < self._quorum:
            return False
        # What someone has executed is decided, and its votes may be forgotten: nothing is proposed there.
        self.caught_up_at = max(self.first - 1, *(promise.executed for promise in self._promises.values()))
        votes: list[list[Vote]] = [promise.votes for promise in self._promises.values()]
        picked = pick(votes, self.caught_up_at + 1, self._members)
        self.undecided = {slot: NOTHING if value is None else value.copy() for slot, value in picked.items()}
        self.next_slot = self.caught_up_at + 1 + len(picked)
        self._promises = {}
        self.enter(Phase.LEADING)
        return True

    # ----------------------------------------------------------------------------------------------------- proposing
    def submit(self, command: msgspec.Raw) -> None:
        self._pending.append(command)

    @property
    def waiting(self) -> int:
        return len(self._pending)

    def propose(
        self, executed: int, wall: int, commands_max: int, bytes_max: int, trim_before: int = 0
    ) -> list[tuple[int, Value]]:
        """New values, as far as the window of `pipeline` slots behind what is executed has room."""
        made: list[tuple[int, Value]] = []
        if self.phase is not Phase.LEADING:
            return made
        while (self._pending or trim_before) and self.next_slot <= executed + self._pipeline:
            commands = self._take(commands_max, bytes_max)
            value: Value = msgspec.Raw(_encode(Entry(wall, commands, trim_before)))
            trim_before = 0
            self.undecided[self.next_slot] = value
            made.append((self.next_slot, value))
            self.next_slot += 1
        return made

    def _take(self, commands_max: int, bytes_max: int) -> list[msgspec.Raw]:
        commands: list[msgspec.Raw] = []
        size = 0
        while self._pending and len(commands) < (1 if self._protocol is Protocol.MULTI else commands_max):
            size += len(self._pending[0])
            if commands and size > bytes_max:
                break
            commands.append(self._pending.popleft())
        return commands

    def decided(self, slot: int) -> None:
        self.undecided.pop(slot, None)

    def check_invariants(self) -> None:
        if self.phase is Phase.LEADING:
            require(all(slot < self.next_slot for slot in self.undecided), "what is proposed has a slot")
