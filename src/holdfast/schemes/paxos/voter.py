"""The voter: answers those who want to lead with promises, and those who lead with votes (D4-B1).

Promises and votes are the acceptor's, and on the disk before anyone hears of them. A replica that leads votes here,
too: its own vote is one among the others, and counts when it is on the disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from holdfast.kernel.inputs import Durable
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.schemes.paxos.authority import Authority
from holdfast.schemes.paxos.ballots import epoch_of
from holdfast.schemes.paxos.group_view import GroupView
from holdfast.schemes.paxos.memory import Memory
from holdfast.schemes.paxos.messages import Accept, Learn, Prepare, Promise, Refused, Value, check_value
from holdfast.schemes.paxos.notices import MembershipChanged, OwnPromiseSafe
from holdfast.schemes.paxos.peers import REPLICAS
from holdfast.schemes.paxos.promises import split


class Executing(Protocol):
    """Who executes what is decided."""

    def execute(self, out: Outbox) -> None: ...

    def vouched(self) -> int: ...


class FastVotes(Protocol):
    """Who counts our own votes in fast rounds."""

    def safe(self, ballot: int, slots: list[int], out: Outbox) -> None:
        """They are on the disk."""
        ...


class Patience(Protocol):
    """Who waits for a leader."""

    def set_timer(self, out: Outbox) -> None: ...


class Voter(Part):
    """Votes in classic rounds, and promises in both kinds."""

    name: ClassVar[str] = "voter"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys((Prepare, Accept), REPLICAS)
    notices: ClassVar[tuple[type[Notice], ...]] = (MembershipChanged,)

    def __init__(
        self,
        view: GroupView,
        memory: Memory,
        authority: Authority,
        learner: Executing,
        fast: FastVotes,
        elections: Patience,
    ) -> None:
        self._settings, self._roster = view.settings, view.roster
        self._peers, self._liveness = view.peers, view.liveness
        self._acceptor, self._decided = memory.acceptor, memory.decided
        self._authority, self._learner, self._fast, self._elections = authority, learner, fast, elections
        self._own_promise: Promise | None = None  # of the ballot that we prepare, until it is on the disk
        self.due = False
        self._learned: dict[int, list[int]] = {}  # of this turn: ballot → slots that we voted for
        self._prepare_ahead: tuple[str, Prepare] | None = None  # of an epoch that we have not reached

    # ----------------------------------------------------------------------------------------------------- promises
    def on_prepare(self, peer: str, prepare: Prepare, out: Outbox) -> None:
        if epoch_of(prepare.ballot) > self._roster.epoch and self._peers.hears(peer):
            self._prepare_ahead = (peer, prepare)
        if not self._authority.is_of_our_time(peer, prepare.ballot, out) or not self._roster.is_voter:
            return
        self._liveness.see(prepare.ballot)
        if not self._acceptor.promise(prepare.ballot, out):
            out.send(peer, Refused(self._acceptor.promised))
            return
        self._liveness.someone_prepares(out.now)
        self._authority.give_way(prepare.ballot, out)
        vouched = self._learner.vouched()
        votes = self._acceptor.votes_from(max(prepare.first, vouched + 1))
        for part in split(Promise(prepare.ballot, prepare.first, votes, vouched), self._settings.part_bytes):
            out.send(peer, part)
        self._elections.set_timer(out)

    def on_membership_changed(self, changed: MembershipChanged, out: Outbox) -> None:
        if self._roster.epoch == changed.before.epoch:
            return
        early, self._prepare_ahead = self._prepare_ahead, None
        if early is not None:
            self.on_prepare(*early, out)

    def promise_ourselves(self, ballot: int, first: int, out: Outbox) -> None:
        """We want to lead by this ballot, from this slot on."""
        if not self._acceptor.promise(ballot, out):
            broken("a new ballot is above all that was promised", ballot=ballot)
        self._own_promise = Promise(ballot, first, self._acceptor.votes_from(first), self._decided.executed)

    def forget_own_promise(self) -> None:
        """We do not want to lead any more."""
        self._own_promise = None

    # -------------------------------------------------------------------------------------------------------- votes
    def on_accept(self, peer: str, accept: Accept, out: Outbox) -> None:
        if not self._peers.hears(peer):
            return
        # What came in a large message would keep all of it alive.
        values = [value.copy() for value in accept.values]
        proposals = [check_value(value) for value in values]
        if not self._authority.takes_from(peer, accept.ballot, out):
            return
        for slot, (value, proposal) in enumerate(zip(values, proposals, strict=True), accept.first):
            self._decided.has_read(slot, value, proposal)
        if not self._vote(accept.ballot, accept.first, values, out):
            out.send(peer, Refused(self._acceptor.promised))
        if self._decided.ready is not None:
            self._learner.execute(out)

    def propose(self, ballot: int, first: int, values: list[Value], out: Outbox) -> None:
        """Phase 2: asks all to vote for the values of our ballot, and votes."""
        # Before our own disk has it: the message claims nothing that could be forgotten.
        self._peers.tell_all(Accept(ballot, first, values), out, now=True)
        self._vote(ballot, first, values, out)

    def repeat(self, ballot: int, slot: int, value: Value, out: Outbox) -> None:
        """Links may lose messages: says again what is proposed, and that we voted for it."""
        if self._acceptor.has_vote(slot, ballot):
            self._peers.tell_all(Accept(ballot, slot, [value]), out, now=True)
            self._tell_later(ballot, range(slot, slot + 1))
        else:
            self.propose(ballot, slot, [value], out)  # it was behind a change that has been decided since

    def _vote(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        if not self._roster.is_voter:
            self._decided.propose(ballot, first, values)  # a learner hears what is proposed, and who votes for it
            return True
        if not self._acceptor.accept(ballot, first, values, out):
            return False
        self._decided.propose(ballot, first, values)
        self._tell_later(ballot, range(first, first + len(values)))
        return True

    def _tell_later(self, ballot: int, slots: range) -> None:
        """All are to hear of our votes, at the end of the turn."""
        self._learned.setdefault(ballot, []).extend(slots)
        self.due = True

    def on_durable(self, durable: Durable, out: Outbox) -> None:
        for ballot, slots, fast in self._acceptor.on_durable(durable.token):
            if fast:
                self._fast.safe(ballot, slots, out)
            else:
                self._decided.vote(ballot, slots, self._settings.name)
        if self._own_promise is not None and self._acceptor.is_safe(self._own_promise.ballot):
            promise, self._own_promise = self._own_promise, None
            out.tell(OwnPromiseSafe(promise))
        if self._decided.ready is not None:
            self._learner.execute(out)

    def finish(self, out: Outbox) -> None:
        """Says what we voted for."""
        learned, self._learned, self.due = self._learned, {}, False
        for ballot, slots in learned.items():
            self._peers.tell_all(Learn(ballot, slots), out)

    def check_invariants(self) -> None:
        self._acceptor.check_invariants()
        require(epoch_of(self._acceptor.promised) <= self._roster.epoch, "nothing is promised to voters of the future")
