"""The learner: executes what is decided against the application, slot by slot, and keeps snapshots of it (D4-A9, B10).

Every replica executes the same commands in the same order. What is said of them is true for good: a majority has them
on disk. A learner decides nothing and leads nobody; what came about, it tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from holdfast.codec import UNREADABLE
from holdfast.kernel.application import Application
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken
from holdfast.kernel.outbox import Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.sequencing import CommandsApplied, StateReplaced
from holdfast.schemes.paxos.ballots import PLACES
from holdfast.schemes.paxos.group_view import GroupView
from holdfast.schemes.paxos.holding import Holding
from holdfast.schemes.paxos.holdings import Holdings
from holdfast.schemes.paxos.membership import Change, Membership, changed
from holdfast.schemes.paxos.memory import Memory
from holdfast.schemes.paxos.messages import Learn, Proposal, ReplicaState
from holdfast.schemes.paxos.notices import FastSlotExecuted, MembershipChanged, SlotsExecuted, StateGivenUp
from holdfast.schemes.paxos.peers import REPLICAS
from holdfast.schemes.paxos.transfer import make_state

_proposal = msgspec.msgpack.Decoder(Proposal).decode


class Learner(Part):
    """The application, and how far it has come. `decode` makes a command of the application's own bytes."""

    name: ClassVar[str] = "learner"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Learn: REPLICAS}

    def __init__(
        self,
        application: Application[Any, Any],
        decode: Callable[[msgspec.Raw], Any],
        view: GroupView,
        memory: Memory,
        holdings: Holdings,
    ) -> None:
        self._settings, self._roster = view.settings, view.roster
        self._formation, self._peers = view.formation, view.peers
        self._acceptor, self._decided = memory.acceptor, memory.decided
        self._count, self._snapshots = memory.count, memory.snapshots
        self._application, self._decode, self._holdings = application, decode, holdings
        self.commands = 0  # executed
        self.wall = 0  # the time that the last of them had
        self._trimmed = 0  # up to this slot the group has decided to forget its votes
        self._origins: dict[int, int] = {}  # place → the highest ballot of it in which something executed was proposed
        self._holding = Holding()

    # ---------------------------------------------------------------------------------------------------- executing
    def on_learn(self, peer: str, learn: Learn, out: Outbox) -> None:
        if self._peers.counts(peer, learn.ballot):
            self._decided.learn(learn.ballot, learn.slots, peer)
            if self._decided.ready is not None:
                self.execute(out)

    def execute(self, out: Outbox) -> None:
        """Executes what is decided, as far as there is no gap."""
        if self._decided.ready is None:
            return
        first = self._decided.executed + 1
        while self._decided.ready is not None:
            slot, value, proposal = self._decided.take_next()
            if proposal is None:
                try:
                    proposal = _proposal(value)
                except UNREADABLE:
                    broken("what is decided can be read", slot=slot)
            stale = self._is_stale(proposal.origin)
            if proposal.change is not None and not stale and self._removes_us(proposal.change):
                self._decided.put_back()
                break
            if self._count.is_used:
                out.tell(FastSlotExecuted(slot, self._count.executed(slot, value)))
            self._snapshots.executed(slot, len(value))
            if stale:
                continue
            self.wall = proposal.wall or self.wall
            for raw in proposal.commands:
                self.commands += 1
                outputs = self._application.apply(self.commands, self.wall, self._decode(raw))
                if outputs:
                    out.tell(CommandsApplied(outputs))
            if proposal.trim_before:
                self._trim(proposal.trim_before, out)
            if proposal.change is not None:
                self._change(proposal.change, out)
        out.tell(SlotsExecuted(first))

    def _is_stale(self, origin: int) -> bool:
        """Whether a leader proposed it whose successor has decided something since. It would come behind what it was
        meant to come before: a session that is opened again would be closed by its client's earlier word. Nobody was
        told that it is done, and whoever still wants it says it again."""
        if not origin:
            return False
        place = origin % PLACES
        if any(ballot > origin for other, ballot in self._origins.items() if other != place):
            return True
        self._origins[place] = max(self._origins.get(place, 0), origin)
        return False

    # ---------------------------------------------------------------------------------------------------- snapshots
    def recover(self) -> None:
        """Begins where the last snapshot was taken."""
        if self._snapshots.latest is not None:
            self._restore(self._snapshots.latest)
        self.due = self._trimmed > self._acceptor.trimmed

    def _restore(self, state: ReplicaState) -> None:
        self._application.set_state(state.state)
        self.commands, self.wall, self._origins = state.commands, state.wall, dict(state.origins)
        self._trimmed = state.trimmed
        self._decided.skip_to(state.slot)
        self._count.skip_to(state.slot)
        self._formation.joined()
        if state.membership is not None:
            self._roster.set(state.membership)

    def install(self, state: ReplicaState, out: Outbox) -> None:
        """Another replica's state takes the place of ours. Votes are kept until the group has decided to forget them:
        they may be needed for what this replica lacks. The state says how far that is: the next such decision may be
        far, and the votes would hold the disk until then."""
        before = self._roster.membership
        if state.membership is not None and state.membership.find(self._settings.name) is None:
            return  # of a time before we were added, or after we were removed
        out.tell(StateGivenUp())
        self._restore(state)
        self._snapshots.keep(state, out)
        out.tell(StateReplaced())  # first: from here on it is known whether something is lacking
        self._forget_votes(0, out)
        if self._roster.membership.number != before.number:
            self._follow_change(before, out)
        self.execute(out)

    def _trim(self, before: int, out: Outbox) -> None:
        """By a decided command, so at the same slot everywhere; each keeps its own snapshot of the same state."""
        earlier, self._trimmed = self._trimmed, max(self._trimmed, before - 1)
        self._snapshot(out)
        self._forget_votes(earlier, out)
        self._decided.trim(before - self._settings.trim_keep)

    def _forget_votes(self, earlier: int, out: Outbox) -> None:
        """As far as the group has decided to. One that lacks something goes no further than the decision before:
        whoever holds what the last one was about has its snapshot at the one before, and may have been restarted there.
        To lead, it needs others that answer for no more (`vouched`)."""
        through = self._trimmed if self._holdings.is_whole() else earlier
        if through > max(0, self._acceptor.trimmed):
            self._acceptor.trim(through + 1, out)
        self.due = self._trimmed > self._acceptor.trimmed

    def finish(self, out: Outbox) -> None:
        """Forgets votes that were kept for something that was lacking, if it is not any more."""
        self._forget_votes(0, out)

    def _snapshot(self, out: Outbox) -> None:
        self._holdings.settle(out)
        self._snapshots.keep(self._state(), out)

    def _state(self) -> ReplicaState:
        state, membership, origins = self._application.get_state(), self._roster.membership, self._origins.items()
        executed, trimmed = self._decided.executed, self._trimmed
        return make_state(executed, self.commands, state, membership, self.wall, sorted(origins), trimmed)

    # --------------------------------------------------------------------------------------------------- membership
    def _change(self, change: Change, out: Outbox) -> None:
        """A change of the membership was decided. The snapshot makes sure that whoever promises or votes in the new
        epoch never wakes up in an old one: it would have promised more than it may use."""
        before, now = self._roster.membership, self._changed(change)
        if now is not before:
            self._roster.set(now)
            self._snapshot(out)
            out.report("membership", Level.INFO, replica=self._settings.name, number=now.number, change=str(change))
            self._follow_change(before, out)

    def _removes_us(self, change: Change) -> bool:
        """We may be the only one yet that knows that it is decided, and the others may need our vote to learn it: they
        tell us that we are gone, once they know."""
        return self._changed(change).find(self._settings.name) is None

    def _changed(self, change: Change) -> Membership:
        return changed(self._roster.membership, change)

    def _follow_change(self, before: Membership, out: Outbox) -> None:
        if self._roster.epoch != before.epoch:
            self._decided.forget_votes()
            self._count.forget_votes()
        out.tell(MembershipChanged(before))

    # ----------------------------------------------------------------------------------------- what others may rely on
    def held(self) -> int:
        """The slot up to which all that came of commands is on the disk, as far as we know."""
        held = self._holding.look(self._decided.executed, *self._holdings.extent())
        return held if self._holdings.is_whole() and not self._formation.is_joining else 0

    def vouched(self) -> int:
        """The slot up to which nobody has to ask for our votes: we have executed it, and bring others there.

        One that lacks events gives its state to nobody. It has its votes, though, and so have all others, but for
        slots that a majority holds: whoever holds those comes to everything that is decided by votes alone.
        """
        is_of_help = self._holdings.is_whole() or self._acceptor.trimmed < 0
        return self._decided.executed if is_of_help else self._acceptor.trimmed

    def check_invariants(self) -> None:
        self._decided.check_invariants()
