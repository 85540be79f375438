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
from holdfast.kernel.node import require
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.paxos.acceptor import Acceptor
from holdfast.protocols.paxos.ballots import epoch_of
from holdfast.protocols.paxos.decided import DecidedLog
from holdfast.protocols.paxos.liveness import Liveness
from holdfast.protocols.paxos.messages import (
    Decided,
    Entry,
    FastLearn,
    Learn,
    Refused,
    Suggest,
    Value,
    Voted,
    check_value,
    digest_of_value,
)
from holdfast.protocols.paxos.notices import FastVoteCast, FastVotesCounted
from holdfast.protocols.paxos.peers import REPLICAS, Peers
from holdfast.protocols.paxos.roster import Roster
from holdfast.protocols.paxos.settings import PaxosSettings
from holdfast.protocols.paxos.tally import Tally

_encode = msgspec.msgpack.Encoder().encode
DIRECT_BYTES_MAX: Final = 16 * 1024 * 1024  # of proposals that wait


class Host(Protocol):
    """The replica, as far as it matters here."""

    acceptor: Acceptor
    decided: DecidedLog
    liveness: Liveness
    peers: Peers
    roster: Roster
    settings: PaxosSettings

    @property
    def is_leading(self) -> bool: ...

    def takes_from(self, peer: str, ballot: int, out: Outbox) -> bool:
        """Whether a peer leads by this ballot, among the same voters; whoever leads below it does not any more."""
        ...

    def counts(self, peer: str, ballot: int) -> bool:
        """Whether a peer's vote in this ballot counts."""
        ...

    def execute(self, out: Outbox) -> None: ...

    def ask_for_decided(self, out: Outbox) -> None: ...


class FastRounds(Part):
    """Votes in fast rounds, and counts what others vote there."""

    name: ClassVar[str] = "fast"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys((Suggest, FastLearn), REPLICAS)

    def __init__(self, host: Host) -> None:
        self.votes = 0  # cast in fast rounds
        self.tally = Tally(host.roster)
        self._host = host
        self._ballot = 0  # whose fast rounds are open …
        self._first = 0  # … from this slot on
        self._waiting: dict[bytes, Value] = {}  # what clients proposed, and has no slot here yet
        self._waiting_bytes = 0
        self._mine: dict[bytes, int] = {}  # what we voted for in this ballot → where, until the slot is executed
        self._unsafe: dict[tuple[int, int], bytes] = {}  # (ballot, slot) → digest: votes on their way to the disk
        self._told: dict[int, dict[int, bytes]] = {}  # of this turn: ballot → slot → digest

    # ---------------------------------------------------------------------------------------------------- permission
    @property
    def is_open(self) -> bool:
        """Whether we may vote for what clients propose."""
        return self._first > 0 and self._ballot == self._host.acceptor.promised and self._host.roster.is_voter

    def permit(self, ballot: int, first: int, out: Outbox) -> None:
        """The leader of a ballot has opened its fast rounds. The ballot is promised by that, as by a vote."""
        ours = self._host.roster.is_voter and epoch_of(ballot) == self._host.roster.epoch
        if (
            first
            and ours
            and self._host.acceptor.promise(ballot, out)
            and (ballot, first) != (self._ballot, self._first)
        ):
            self._ballot, self._first = ballot, first
            self._mine = {}

    # ----------------------------------------------------------------------------------------------------- proposals
    def propose(self, command: msgspec.Raw) -> bool:
        """What a client says to every replica; all make the same bytes of it. False: it is not taken, since too much
        waits, or since the client says again what was executed."""
        value = msgspec.Raw(_encode(Entry(0, [command])))
        digest = digest_of_value(value)
        if digest in self._waiting or digest in self._mine:
            return True
        if self.tally.was_executed(digest):
            return self.tally.is_late(digest)
        if len(self._waiting) >= self._host.settings.direct_max or self._waiting_bytes > DIRECT_BYTES_MAX:
            return False
        self.tally.know(value)
        self._waiting[digest] = value
        self._waiting_bytes += len(value)
        return True

    def take_waiting(self) -> list[Value]:
        """All that has no slot; it is forgotten here."""
        waiting, self._waiting, self._waiting_bytes = list(self._waiting.values()), {}, 0
        return waiting

    def _place(self, out: Outbox) -> None:
        """Votes for what waits, as far as there is room."""
        for digest in list(self._waiting):
            slot = self._slot_for(digest)
            if slot:
                self.vote(self._ballot, slot, self._forget(digest), out)

    def _forget(self, digest: bytes) -> Value:
        value = self._waiting.pop(digest)
        self._waiting_bytes -= len(value)
        return value

    def _slot_for(self, digest: bytes) -> int:
        """Where the leader has it, or most others; else the lowest one that nobody uses, or at least not the leader for
        something else. 0: no room."""
        leader = self._host.liveness.leader
        best, most, lowest, shared = 0, (False, 0), 0, 0
        for slot in self.free_slots():
            votes = self.tally.votes(self._ballot, slot)
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
        executed, acceptor = self._host.decided.executed, self._host.acceptor
        if self.is_open:
            for slot in range(max(self._first, executed + 1), executed + self._host.settings.pipeline + 1):
                if acceptor.may_vote_fast(slot, self._ballot) and not self._host.decided.knows(slot):
                    yield slot

    # --------------------------------------------------------------------------------------------------------- voting
    def vote(self, ballot: int, slot: int, value: Value, out: Outbox) -> None:
        """In the slot's fast round; the caller has the leader's word. Never behind what is executed: a vote there may
        be forgotten, and would be cast twice."""
        require(slot > self._host.decided.executed, "no vote is cast in a fast round that is executed", slot=slot)
        if self._host.acceptor.accept_fast(ballot, slot, value, out):
            digest = self.tally.know(value)
            self.votes += 1
            self._mine[digest] = slot
            out.tell(FastVoteCast(slot, value))
            self._unsafe[ballot, slot] = digest
            self._tell(ballot, slot, digest)

    def _tell(self, ballot: int, slot: int, digest: bytes) -> None:
        self._told.setdefault(ballot, {})[slot] = digest

    def safe(self, ballot: int, slots: list[int], out: Outbox) -> None:
        """Our own votes are on the disk, and count like anyone's."""
        for slot in slots:
            digest = self._unsafe.pop((ballot, slot))
            if epoch_of(ballot) == self._host.roster.epoch:
                self._count(ballot, slot, self._host.settings.name, digest, out)
        out.tell(FastVotesCounted(ballot, slots))

    def on_suggest(self, peer: str, suggest: Suggest, out: Outbox) -> None:
        host, ballot, slot = self._host, suggest.ballot, suggest.slot
        if not host.peers.hears(peer):
            return
        check_value(suggest.value)
        if not host.takes_from(peer, ballot, out):
            return
        if ballot < host.acceptor.promised:
            out.send(peer, Refused(host.acceptor.promised))
            return
        digest = self.tally.know(suggest.value)
        self._take_found(out)
        if host.decided.knows(slot):
            out.send(peer, Decided(slot, host.decided.read(slot, 1)[:1]), after=NOW)
        elif host.decided.is_near(slot) and host.roster.is_voter:
            self.vote(ballot, slot, suggest.value, out)
            self._answer(peer, ballot, slot, digest, out)
        host.execute(out)

    def _answer(self, peer: str, ballot: int, slot: int, digest: bytes, out: Outbox) -> None:
        """How we voted. Also if it was told before: the leader asks when it misses something."""
        vote = self._host.acceptor.votes[slot]
        if not vote.fast:
            out.send(peer, Learn(ballot, [slot]))  # it went on to the classic round, and so did we
        elif digest_of_value(vote.value) == digest:
            self._tell(ballot, slot, digest)
        else:
            out.send(peer, Voted(ballot, slot, vote.value))

    # ------------------------------------------------------------------------------------------------------- learning
    def on_fast_learn(self, peer: str, learn: FastLearn, out: Outbox) -> None:
        if not self._host.counts(peer, learn.ballot):
            return
        if len(learn.slots) != len(learn.digests):
            raise ProtocolError("votes and slots are not equally many")
        near = self._host.decided.is_near
        votes = {slot: digest for slot, digest in zip(learn.slots, learn.digests, strict=True) if near(slot)}
        for slot, digest in votes.items():
            self._count(learn.ballot, slot, peer, digest, out)
        out.tell(FastVotesCounted(learn.ballot, list(votes)))
        self._host.execute(out)

    def count(self, voter: str, ballot: int, slot: int, value: Value, out: Outbox) -> None:
        """A vote that was told in full."""
        self._count(ballot, slot, voter, self.tally.know(value), out)
        out.tell(FastVotesCounted(ballot, [slot]))

    def _count(self, ballot: int, slot: int, voter: str, digest: bytes, out: Outbox) -> None:
        if slot <= self._host.decided.executed or self._host.decided.knows(slot):
            return
        missing = slot in self.tally.unknown
        self.tally.vote(ballot, slot, voter, digest)
        if slot in self.tally.unknown:
            self.value_in(slot, digest)
        self._take_found(out)
        if not missing and slot in self.tally.unknown:
            self._host.ask_for_decided(out)

    def value_in(self, slot: int, digest: bytes) -> Value | None:
        """The value with a digest; what we voted for in the slot is known for sure."""
        vote = self._host.acceptor.votes.get(slot)
        if self.tally.value(digest) is None and vote is not None and digest_of_value(vote.value) == digest:
            self.tally.know(vote.value)
        return self.tally.value(digest)

    def _take_found(self, out: Outbox) -> None:
        found, self.tally.found = self.tally.found, {}
        for slot, value in found.items():
            self._host.decided.decide(slot, value)

    def executed(self, slot: int, value: Value) -> bytes:
        """Gives the value's digest, if it is of interest: not where there never was a fast round."""
        if not self._first and not self.tally.is_used:
            return b""
        digest = self.tally.executed(slot, value)
        if digest in self._waiting:
            self._forget(digest)
        self._mine = {other: place for other, place in self._mine.items() if place > slot}
        return digest

    # ----------------------------------------------------------------------------------------------------------- turns
    def finish(self, out: Outbox) -> None:
        if self._waiting:
            if self.is_open:
                self._place(out)
            elif not self._host.is_leading:
                self.take_waiting()  # the leader proposes it
        told, self._told = self._told, {}
        for ballot, votes in told.items():
            self._host.peers.tell_all(FastLearn(ballot, list(votes), list(votes.values())), out)
