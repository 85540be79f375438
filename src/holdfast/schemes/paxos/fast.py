"""Fast rounds, the acceptor's and the learner's side: votes for what clients say to every replica (D4-A6, B4).

A vote needs the leader's word that the slot is open: of the ballot that is promised, and no other. An acceptor that was
restarted waits for the next heartbeat to hear it again. Votes are on the disk before they are told, to all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final, Protocol

import msgspec

from holdfast.errors import ProtocolError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.schemes.paxos.ballots import epoch_of
from holdfast.schemes.paxos.group_view import GroupView
from holdfast.schemes.paxos.memory import Memory
from holdfast.schemes.paxos.messages import (
    Decided,
    FastLearn,
    Learn,
    Proposal,
    Refused,
    Suggest,
    Value,
    Voted,
    check_value,
    digest_of_value,
)
from holdfast.schemes.paxos.notices import FastSlotExecuted, FastVoteCast, FastVotesCounted
from holdfast.schemes.paxos.peers import REPLICAS

_encode = msgspec.msgpack.Encoder().encode
DIRECT_BYTES_MAX: Final = 16 * 1024 * 1024  # of proposals that wait


class Authority(Protocol):
    """Who knows whose ballots count."""

    def takes_from(self, peer: str, ballot: int, out: Outbox) -> bool: ...


class Executing(Protocol):
    """Who executes what is decided."""

    def execute(self, out: Outbox) -> None: ...


class Asking(Protocol):
    """Who asks others for what they know to be decided."""

    def ask(self, out: Outbox) -> None: ...


class FastRounds(Part):
    """Our votes in fast rounds, and the count of what others vote there. `waiting` is what clients proposed, by its
    digest, and has no slot here yet."""

    name: ClassVar[str] = "fast"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys((Suggest, FastLearn), REPLICAS)
    notices: ClassVar[tuple[type[Notice], ...]] = (FastSlotExecuted,)

    def __init__(
        self,
        view: GroupView,
        memory: Memory,
        authority: Authority,
        learner: Executing,
        catching_up: Asking,
    ) -> None:
        self._settings, self._roster = view.settings, view.roster
        self._peers, self._liveness = view.peers, view.liveness
        self._acceptor, self._proposer = memory.acceptor, memory.proposer
        self._decided, self._vote_count = memory.decided, memory.count
        self._authority, self._learner, self._catching_up = authority, learner, catching_up
        self.votes = 0  # cast in fast rounds
        self.due = False
        self.waiting: dict[bytes, Value] = {}
        self._ballot = 0  # whose fast rounds are open …
        self._first = 0  # … from this slot on
        self._waiting_bytes = 0
        self._mine: dict[bytes, int] = {}  # what we voted for in this ballot → where, until the slot is executed
        self._unsafe: dict[tuple[int, int], bytes] = {}  # (ballot, slot) → digest: votes on their way to the disk
        self._told: dict[int, dict[int, bytes]] = {}  # of this turn: ballot → slot → digest

    # ---------------------------------------------------------------------------------------------------- permission
    @property
    def is_open(self) -> bool:
        """Whether we may vote for what clients propose."""
        return self._first > 0 and self._ballot == self._acceptor.promised and self._roster.is_voter

    def permit(self, ballot: int, first: int, out: Outbox) -> None:
        """The leader of a ballot has opened its fast rounds. The ballot is promised by that, as by a vote."""
        ours = self._roster.is_voter and epoch_of(ballot) == self._roster.epoch
        if first and ours and self._acceptor.promise(ballot, out) and (ballot, first) != (self._ballot, self._first):
            self._ballot, self._first = ballot, first
            self._mine = {}
            self._vote_count.use()

    # ----------------------------------------------------------------------------------------------------- proposals
    def propose(self, command: msgspec.Raw) -> bool:
        """Whether what a client says to every replica is taken here; all make the same bytes of it. It is not if too
        much waits, or if the client says again what was executed."""
        value = msgspec.Raw(_encode(Proposal(0, [command])))
        digest = digest_of_value(value)
        if digest in self.waiting or digest in self._mine:
            return True
        if self._vote_count.was_executed(digest):
            return self._vote_count.is_late(digest)
        if len(self.waiting) >= self._settings.direct_max or self._waiting_bytes > DIRECT_BYTES_MAX:
            return False
        self._vote_count.know(value)
        self.waiting[digest] = value
        self.due = True
        self._waiting_bytes += len(value)
        return True

    def take_waiting(self) -> list[Value]:
        """All that has no slot; it is forgotten here."""
        waiting, self.waiting, self._waiting_bytes = list(self.waiting.values()), {}, 0
        return waiting

    def _place(self, out: Outbox) -> None:
        """Votes for what waits, as far as there is room."""
        for digest in list(self.waiting):
            slot = self._slot_for(digest)
            if slot:
                self.vote(self._ballot, slot, self._forget(digest), out)

    def _forget(self, digest: bytes) -> Value:
        value = self.waiting.pop(digest)
        self._waiting_bytes -= len(value)
        return value

    def _slot_for(self, digest: bytes) -> int:
        """Where the leader has it, or most others; else the lowest one that nobody uses, or at least not the leader for
        something else. 0: no room."""
        leader = self._liveness.leader
        best, most, lowest, shared = 0, (False, 0), 0, 0
        for slot in self.free_slots():
            votes = self._vote_count.votes(self._ballot, slot)
            same = (votes.get(leader) == digest, sum(other == digest for other in votes.values()))
            if same > most:
                best, most = slot, same
            if not lowest and not votes:
                lowest = slot
            if not shared and leader not in votes:
                shared = slot
        return best or lowest or shared

    def free_slots(self) -> Iterator[int]:
        """Those in which we may vote now for what comes."""
        executed = self._decided.executed
        if self.is_open:
            for slot in range(max(self._first, executed + 1), executed + self._settings.pipeline + 1):
                if self._acceptor.may_vote_fast(slot, self._ballot) and not self._decided.knows(slot):
                    yield slot

    # --------------------------------------------------------------------------------------------------------- voting
    def vote(self, ballot: int, slot: int, value: Value, out: Outbox) -> None:
        """In the slot's fast round; the caller has the leader's word. Never behind what is executed: a vote there may
        be forgotten, and would be cast twice."""
        if slot <= self._decided.executed:
            broken("no vote is cast in a fast round that is executed", slot=slot)
        if self._acceptor.accept_fast(ballot, slot, value, out):
            digest = self._vote_count.know(value)
            self.votes += 1
            self._mine[digest] = slot
            out.tell(FastVoteCast(slot, value))
            self._unsafe[ballot, slot] = digest
            self._tell(ballot, slot, digest)

    def _tell(self, ballot: int, slot: int, digest: bytes) -> None:
        self._told.setdefault(ballot, {})[slot] = digest
        self.due = True

    def safe(self, ballot: int, slots: list[int], out: Outbox) -> None:
        """Our own votes are on the disk, and count like anyone's."""
        for slot in slots:
            digest = self._unsafe.pop((ballot, slot))
            if epoch_of(ballot) == self._roster.epoch:
                self._count(ballot, slot, self._settings.name, digest, out)
        out.tell(FastVotesCounted(ballot, slots))

    def on_suggest(self, peer: str, suggest: Suggest, out: Outbox) -> None:
        ballot, slot = suggest.ballot, suggest.slot
        if not self._peers.hears(peer):
            return
        check_value(suggest.value)
        if not self._authority.takes_from(peer, ballot, out):
            return
        if ballot < self._acceptor.promised:
            out.send(peer, Refused(self._acceptor.promised))
            return
        digest = self._vote_count.know(suggest.value)
        self._take_found(out)
        if self._decided.knows(slot):
            out.send(peer, Decided(slot, self._decided.read(slot, 1)[:1]), after=NOW)
        elif self._decided.is_near(slot) and self._roster.is_voter:
            self.vote(ballot, slot, suggest.value, out)
            self._answer(peer, ballot, slot, digest, out)
        self._learner.execute(out)

    def _answer(self, peer: str, ballot: int, slot: int, digest: bytes, out: Outbox) -> None:
        """How we voted. Also if it was told before: the leader asks when it misses something."""
        vote = self._acceptor.votes[slot]
        if not vote.fast:
            out.send(peer, Learn(ballot, [slot]))  # it went on to the classic round, and so did we
        elif digest_of_value(vote.value) == digest:
            self._tell(ballot, slot, digest)
        else:
            out.send(peer, Voted(ballot, slot, vote.value))

    # ------------------------------------------------------------------------------------------------------- learning
    def on_fast_learn(self, peer: str, learn: FastLearn, out: Outbox) -> None:
        if not self._peers.counts(peer, learn.ballot):
            return
        if len(learn.slots) != len(learn.digests):
            raise ProtocolError("votes and slots are not equally many")
        near = self._decided.is_near
        votes = {slot: digest for slot, digest in zip(learn.slots, learn.digests, strict=True) if near(slot)}
        for slot, digest in votes.items():
            self._count(learn.ballot, slot, peer, digest, out)
        out.tell(FastVotesCounted(learn.ballot, list(votes)))
        self._learner.execute(out)

    def count(self, voter: str, ballot: int, slot: int, value: Value, out: Outbox) -> None:
        """A vote that was told in full."""
        self._count(ballot, slot, voter, self._vote_count.know(value), out)
        out.tell(FastVotesCounted(ballot, [slot]))

    def _count(self, ballot: int, slot: int, voter: str, digest: bytes, out: Outbox) -> None:
        if slot <= self._decided.executed or self._decided.knows(slot):
            return
        missing = slot in self._vote_count.unknown
        self._vote_count.vote(ballot, slot, voter, digest)
        if slot in self._vote_count.unknown:
            self.value_in(slot, digest)
        self._take_found(out)
        if not missing and slot in self._vote_count.unknown:
            self._catching_up.ask(out)

    def value_in(self, slot: int, digest: bytes) -> Value | None:
        """The value with a digest; what we voted for in the slot is known for sure."""
        vote = self._acceptor.votes.get(slot)
        if self._vote_count.value(digest) is None and vote is not None and digest_of_value(vote.value) == digest:
            self._vote_count.know(vote.value)
        return self._vote_count.value(digest)

    def _take_found(self, out: Outbox) -> None:
        for slot, value in self._vote_count.take_found().items():
            self._decided.decide(slot, value)

    def on_fast_slot_executed(self, executed: FastSlotExecuted, out: Outbox) -> None:
        if executed.digest in self.waiting:
            self._forget(executed.digest)
        self._mine = {other: place for other, place in self._mine.items() if place > executed.slot}

    # ----------------------------------------------------------------------------------------------------------- turns
    def finish(self, out: Outbox) -> None:
        if self.waiting:
            if self.is_open:
                self._place(out)
            elif not self._proposer.is_leading:
                self.take_waiting()  # the leader proposes it
        told, self._told, self.due = self._told, {}, bool(self.waiting)
        for ballot, votes in told.items():
            self._peers.tell_all(FastLearn(ballot, list(votes), list(votes.values())), out)
