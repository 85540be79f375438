"""The proposer: prepares a ballot for all slots at once, then proposes values in a window of slots (D4-B1–B3)."""

from __future__ import annotations

import enum
from collections import deque

import msgspec

from holdfast.kernel.node import require
from holdfast.schemes.paxos.membership import Change
from holdfast.schemes.paxos.messages import Promise, Proposal, Value, Vote
from holdfast.schemes.paxos.picking import pick
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.settings import Protocol

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

_proposal = msgspec.msgpack.Decoder(Proposal).decode
NOTHING: Value = msgspec.Raw(_encode(Proposal(0, [])))


def _changes(value: Value) -> bool:
    return _proposal(value).change is not None


class Proposer:
    """Our ballot, and what is proposed in it. Nothing of it is written to the disk: what must not be forgotten, our own
    acceptor keeps."""

    def __init__(self, roster: Roster, pipeline: int) -> None:
        self.phase = Phase.FOLLOWING
        self.is_leading = False  # commands are taken here; while a ballot is renewed they wait
        self.is_serving = False  # clients are let in
        self.elections_won = 0
        self.ballot = 0
        self.fast_from = 0  # the first slot of the ballot with an open fast round; 0: there is none
        self.undecided: dict[int, Value] = {}  # what it proposed
        self.next_slot = 1
        self.caught_up_at = 0  # the slot up to which others have executed when they promised
        self.first = 1  # slot that the ballot was prepared for
        self.gate = 1  # the first slot of the ballot that was free: nothing is proposed behind it before it is decided
        self.changing_at = 0  # the slot of a change of the membership that is proposed; nothing follows before it
        self._roster = roster
        self._pipeline = pipeline
        self._promises: dict[str, Promise] = {}
        self.waiting: deque[msgspec.Raw] = deque()  # commands
        self._serves_after = 0  # slots, that others may have executed before this replica led

    def enter(self, phase: Phase) -> None:
        require(phase in TRANSITIONS[self.phase], "a proposer changes its phase by the table", at=self.phase, to=phase)
        self.phase = phase
        self.is_leading = phase in (Phase.LEADING, Phase.RENEWING)

    def prepare(self, ballot: int, first: int) -> None:
        """Whoever leads already keeps what waits. What it has proposed, its own acceptor has voted for: its own promise
        brings it back."""
        require(ballot > self.ballot, "a ballot is never used twice", ballot=ballot, last=self.ballot)
        self.enter(Phase.RENEWING if self.is_leading else Phase.PREPARING)
        self.ballot, self.first, self.fast_from = ballot, first, 0
        self._promises = {}
        self.undecided = {}

    def step_down(self) -> None:
        """Someone else leads, or wants to. What waited is given up: who asked for it will ask the next leader."""
        if self.phase is not Phase.FOLLOWING:
            self.enter(Phase.FOLLOWING)
        self._promises, self.undecided = {}, {}
        self.waiting.clear()
        self.is_serving, self.fast_from = False, 0

    def promise(self, peer: str, promise: Promise, executed: int) -> bool:
        """Whether the ballot is ours now. `executed`: by this replica, perhaps since it prepared."""
        preparing = self.phase in (Phase.PREPARING, Phase.RENEWING)
        if not preparing or promise.ballot != self.ballot or promise.first != self.first:
            return False
        self._promises[peer] = promise
        if len(self._promises) < self._roster.quorum:
            return False
        # What someone has executed is decided, and its votes may be forgotten: nothing is proposed there.
        self.caught_up_at = max(executed, *(promise.executed for promise in self._promises.values()))
        votes: list[list[Vote]] = [promise.votes for promise in self._promises.values()]
        picked = self._pick(votes, self.caught_up_at + 1)
        self.undecided = {slot: NOTHING if value is None else value.copy() for slot, value in picked.items()}
        self.next_slot = self.gate = self.caught_up_at + 1 + len(picked)
        self.changing_at = max((slot for slot, value in self.undecided.items() if _changes(value)), default=0)
        self._promises = {}
        self.elections_won += not self.is_leading
        if not self.is_serving:
            self._serves_after = self.next_slot - 1
        self.enter(Phase.LEADING)
        return True

    def _pick(self, promises: list[list[Vote]], first: int) -> dict[int, Value | None]:
        return pick(promises, first, len(self._roster.voters))

    def let_in(self, executed: int) -> bool:
        """Whether clients are let in now, and were not before: when all is executed that an earlier leader may have
        told them of; else one that comes back would find its session as it was, and be told that the newest of it is
        forgotten."""
        if not self.is_leading or self.is_serving or executed < self._serves_after:
            return False
        self.is_serving = True
        return True

    def open_fast_rounds(self) -> None:
        """Behind all that is proposed, for as long as the ballot lasts."""
        self.fast_from = self.next_slot

    # ----------------------------------------------------------------------------------------------------- proposing
    def submit(self, command: msgspec.Raw) -> None:
        self.waiting.append(command)

    def propose(
        self, executed: int, wall: int, commands_max: int, bytes_max: int, trim_before: int = 0
    ) -> list[tuple[int, Value]]:
        """New values, as far as the window of `pipeline` slots behind what is executed has room."""
        made: list[tuple[int, Value]] = []
        while (self.waiting or trim_before) and self.next_slot <= self.room(executed):
            value = self.take(wall, commands_max, bytes_max, trim_before)
            trim_before = 0
            made.append((self.next_slot, value))
            self.put(self.next_slot, value)
        return made

    def room(self, executed: int) -> int:
        """The last slot that may be used now.

        The first slot of a ballot is decided alone: a leader before may have proposed a change of the membership there,
        which this one has not heard of. Were something decided behind it and the change picked later, there would be
        decisions of the old voters behind the change. For the same reason nothing follows a change.
        """
        if self.phase is not Phase.LEADING or executed < self.gate - 1 or executed < self.changing_at:
            return 0
        return self.gate if executed < self.gate else executed + self._pipeline

    def open_slots(self) -> list[tuple[int, Value]]:
        """What is to be voted for now, in order: nothing behind a change of the membership that is not decided. What is
        decided behind it, is so by the voters that the change makes: they pick what stands there, perhaps an old
        leader's, from what the others voted for."""
        opened: list[tuple[int, Value]] = []
        for slot, value in sorted(self.undecided.items()):
            opened.append((slot, value))
            if _changes(value):
                break
        return opened

    def change(self, change: Change, executed: int, wall: int) -> list[tuple[int, Value]]:
        """Proposes a change of the membership when everything before it is executed."""
        if executed < self.next_slot - 1 or self.next_slot > self.room(executed):
            return []
        slot, value = self.next_slot, msgspec.Raw(_encode(Proposal(wall, [], 0, change, self.ballot)))
        self.changing_at = slot
        self.put(slot, value)
        return [(slot, value)]

    def put(self, slot: int, value: Value) -> None:
        """The value is proposed in the slot, and again until something is decided there."""
        self.undecided[slot] = value
        self.next_slot = max(self.next_slot, slot + 1)

    def take(self, wall: int, commands_max: int, bytes_max: int, trim_before: int = 0) -> Value:
        """A value of what waits."""
        commands: list[msgspec.Raw] = []
        size = 0
        while self.waiting and len(commands) < (
            1 if self._roster.membership.protocol is Protocol.MULTI else commands_max
        ):
            size += len(self.waiting[0])
            if commands and size > bytes_max:
                break
            commands.append(self.waiting.popleft())
        return msgspec.Raw(_encode(Proposal(wall, commands, trim_before, None, self.ballot if commands else 0)))

    def executed(self, first: int, last: int) -> None:
        """These slots are decided: nothing is proposed there any more."""
        for slot in range(first, last + 1):
            self.undecided.pop(slot, None)

    def check_invariants(self) -> None:
        if self.phase is Phase.LEADING:
            highest = max(self.undecided, default=self.next_slot - 1)
            require(highest < self.next_slot, "what is proposed has a slot")
