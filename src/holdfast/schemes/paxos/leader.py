"""The leader's work: prepares a ballot, proposes what clients ask for, changes the group, and gives way (D4-A2, B1).

What the leader says to clients, it says of what is applied: a majority has it on disk, so that nothing said is ever
taken back. Who may lead, and when, elections tell; which value stands in which slot, the proposer knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.sequencing import Deposed, Elected
from holdfast.schemes.paxos.authority import Authority
from holdfast.schemes.paxos.changing import Changing
from holdfast.schemes.paxos.group_view import GroupView
from holdfast.schemes.paxos.membership import Change
from holdfast.schemes.paxos.memory import Memory
from holdfast.schemes.paxos.messages import Prepare, Promise, Refused, Value
from holdfast.schemes.paxos.notices import (
    BallotOvertaken,
    BallotWanted,
    LeaderDeserted,
    LeadershipOffered,
    MembershipChanged,
    OwnPromiseSafe,
    RemovedFromGroup,
    SlotsExecuted,
    StateGivenUp,
)
from holdfast.schemes.paxos.peers import REPLICAS
from holdfast.schemes.paxos.promises import PromiseParts
from holdfast.schemes.paxos.proposer import Phase
from holdfast.schemes.paxos.report import Report


class Voting(Protocol):
    """Who promises and votes here, and asks others to."""

    def promise_ourselves(self, ballot: int, first: int, out: Outbox) -> None: ...

    def forget_own_promise(self) -> None: ...

    def propose(self, ballot: int, first: int, values: list[Value], out: Outbox) -> None: ...

    def repeat(self, ballot: int, slot: int, value: Value, out: Outbox) -> None: ...


class Coordinating(Protocol):
    """Who opens fast rounds, and proposes in them."""

    def begin(self) -> None: ...

    def close(self) -> None: ...

    def stop(self) -> None: ...

    def open_or_close(self, is_held: bool, out: Outbox) -> None: ...

    def propose(self, wall: int, trim_before: int, out: Outbox) -> bool: ...

    def resubmit(self, values: list[Value]) -> None: ...


class FastVoting(Protocol):
    """Who votes in fast rounds, and has what clients proposed there."""

    waiting: dict[bytes, Value]

    def take_waiting(self) -> list[Value]: ...


class Electing(Protocol):
    """Who says that we lead, and waits for one that does when we do not."""

    def beat(self, out: Outbox) -> None: ...

    def set_timer(self, out: Outbox) -> None: ...


class Asking(Protocol):
    """Who asks others for what they are ahead; `reached` is how far that has come."""

    @property
    def reached(self) -> tuple[int, int, int, int]: ...

    def ask(self, out: Outbox) -> None: ...


class Learning(Protocol):
    """How much this replica holds."""

    def held(self) -> int: ...


class Leader(Part):
    """What a replica does to lead, while it does, and when it stops."""

    name: ClassVar[str] = "leader"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys((Promise, Refused), REPLICAS)
    notices: ClassVar[tuple[type[Notice], ...]] = (
        BallotOvertaken,
        BallotWanted,
        LeaderDeserted,
        LeadershipOffered,
        MembershipChanged,
        OwnPromiseSafe,
        RemovedFromGroup,
        SlotsExecuted,
        StateGivenUp,
    )

    def __init__(
        self,
        view: GroupView,
        memory: Memory,
        authority: Authority,
        changing: Changing,
        report: Report,
        learner: Learning,
        catching_up: Asking,
        fast: FastVoting,
        elections: Electing,
        voter: Voting,
        coordinator: Coordinating,
        promises: PromiseParts,
    ) -> None:
        self._settings, self._roster = view.settings, view.roster
        self._peers, self._liveness = view.peers, view.liveness
        self._proposer, self._decided, self._snapshots = memory.proposer, memory.decided, memory.snapshots
        self._authority, self._changing, self._report, self._learner = authority, changing, report, learner
        self._catching_up, self._fast, self._elections, self._voter = catching_up, fast, elections, voter
        self._coordinator, self._promises = coordinator, promises
        self.due = False  # while it does not lead there is nothing to propose
        self._is_held = False  # a change of the group is due
        self._reached, self._reached_at = (0, 0, 0, 0, 0), 0  # how far we were in learning what others had executed

    # ------------------------------------------------------------------------------------------------ coming to lead
    def on_leadership_offered(self, offered: LeadershipOffered, out: Outbox) -> None:
        self._prepare(out)

    def on_ballot_wanted(self, wanted: BallotWanted, out: Outbox) -> None:
        """Takes a higher ballot without leaving: clients stay, and what they ask for waits. What was proposed in the
        ballot before is picked like anyone's votes."""
        if self._proposer.is_leading:
            self._prepare(out)
            self._elections.beat(out)

    def _prepare(self, out: Outbox) -> None:
        if self._authority.is_outdated(out):
            return
        ballot, first = self._authority.next_ballot(), self._decided.executed + 1
        self._liveness.see(ballot)
        self._proposer.prepare(ballot, first)
        self._coordinator.close()
        self._voter.promise_ourselves(ballot, first, out)
        # After our own promise is on the disk: a ballot that is heard of is never used again.
        self._peers.tell_all(Prepare(ballot, first), out)

    def on_promise(self, peer: str, promise: Promise, out: Outbox) -> None:
        counts = self._peers.hears(peer) and peer in self._roster.voters
        if counts and promise.ballot == self._proposer.ballot and promise.part <= promise.last:
            whole = self._promises.add(peer, promise)
            if whole is not None:
                self._count_promise(peer, whole, out)

    def on_own_promise_safe(self, safe: OwnPromiseSafe, out: Outbox) -> None:
        self._count_promise(self._settings.name, safe.promise, out)

    def _count_promise(self, peer: str, promise: Promise, out: Outbox) -> None:
        proposer, led = self._proposer, self._proposer.is_leading
        self._liveness.has_executed(peer, promise.executed)
        if not proposer.promise(peer, promise, self._decided.executed):
            return
        if not led:
            self.due = True
            self._liveness.lead(self._settings.name, out.now)
            self._coordinator.begin()
            out.report("leader", Level.INFO, replica=self._settings.name, ballot=proposer.ballot)
        for slot, value in proposer.open_slots():
            self._voter.propose(proposer.ballot, slot, [value], out)
        if proposer.caught_up_at > self._decided.executed:
            self._catching_up.ask(out)
        self._elections.beat(out)
        self._let_in(out)
        out.set_timer((self.name, "repeat"), self._settings.repeat_after)

    def on_slots_executed(self, executed: SlotsExecuted, out: Outbox) -> None:
        if self._proposer.is_leading:
            self._proposer.executed(executed.first, self._decided.executed)
            self._let_in(out)

    def _let_in(self, out: Outbox) -> None:
        if not self._proposer.is_serving and self._proposer.let_in(self._decided.executed):
            out.tell(Elected())

    # ----------------------------------------------------------------------------------------------------- proposing
    def finish(self, out: Outbox) -> None:
        """Proposes what waits."""
        if self._roster.is_fast or self._proposer.fast_from:
            self._coordinator.open_or_close(self._is_held, out)
        if self._fast.waiting and not self._proposer.fast_from:
            self._coordinator.resubmit(self._fast.take_waiting())
        executed = self._decided.executed
        wanted = self._proposer.is_serving and (self._changing.is_asked or self._roster.is_changing)
        change = self._changing.due(executed, out) if wanted else None
        self._is_held = change is not None
        if change is None:
            self._propose(executed, out)
        elif not self._proposer.fast_from:
            # In an open fast round nobody knows what is proposed: a change waits for a ballot without. Nothing new
            # until everything is decided; then the change, alone.
            for slot, value in self._proposer.change(change, executed, out.wall):
                self._changing.proposed(out)
                self._voter.propose(self._proposer.ballot, slot, [value], out)

    def _propose(self, executed: int, out: Outbox) -> None:
        trim = self._trim_due() if self._snapshots.is_due else 0
        if self._proposer.fast_from:
            trimmed = self._coordinator.propose(out.wall, trim, out)
        else:
            batch = (self._settings.batch_commands, self._settings.batch_bytes)
            made = self._proposer.propose(executed, out.wall, *batch, trim) if self._proposer.waiting or trim else []
            for slot, value in made:
                self._voter.propose(self._proposer.ballot, slot, [value], out)
            trimmed = bool(made)
        if trim and trimmed:
            self._snapshots.proposed(executed)

    def _trim_due(self) -> int:
        """The slot before which everyone may forget its votes, or 0. A majority must hold what came of those: a replica
        that lags takes a snapshot, and asks for the rest."""
        voters = [peer for peer in self._peers.heard if peer in self._roster.voters]
        held = sorted([self._learner.held(), *(self._liveness.held.get(peer, 0) for peer in voters)], reverse=True)
        safe = held[self._roster.quorum - 1] if len(held) >= self._roster.quorum else 0
        return safe + 1 if safe > self._snapshots.at else 0

    def change(self, change: Change, out: Outbox) -> str:
        """What is against a change of the group that an operator asks for; empty: nothing, and it is under way."""
        return self._report.not_leading() or self._changing.ask(change, out)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        require(key[1] == "repeat", "a timer of the leader has a known name", key=key)
        self._repeat(out)

    def _repeat(self, out: Outbox) -> None:
        """Links may lose messages: what was not decided is said again."""
        proposer, executed = self._proposer, self._decided.executed
        if not proposer.is_leading:
            return
        if proposer.phase is Phase.RENEWING:
            self._peers.tell_all(Prepare(proposer.ballot, proposer.first), out)
        for slot, value in proposer.open_slots():
            self._voter.repeat(proposer.ballot, slot, value, out)
        if proposer.fast_from and max(self._liveness.executed.values(), default=0) > executed:
            self._catching_up.ask(out)  # fast rounds go on without us
        if proposer.caught_up_at > executed:
            self._catching_up.ask(out)
            if self._learns_nothing(out.now):
                # Those who had executed more have been restarted since: the next election asks what they voted for.
                self._step_down(out)
                return
        out.set_timer((self.name, "repeat"), self._settings.repeat_after)

    def _learns_nothing(self, now: int) -> bool:
        """Whether we have got nowhere for long with learning what was decided before we led."""
        reached = (self._proposer.ballot, *self._catching_up.reached)
        if reached != self._reached:
            self._reached, self._reached_at = reached, now
        return now - self._reached_at > 2 * self._settings.patience

    # ----------------------------------------------------------------------------------------------------- giving way
    def on_refused(self, peer: str, refused: Refused, out: Outbox) -> None:
        if self._peers.hears(peer):
            self._liveness.see(refused.promised)
            self._authority.give_way(refused.promised, out)

    def on_ballot_overtaken(self, overtaken: BallotOvertaken, out: Outbox) -> None:
        self._step_down(out)

    def on_leader_deserted(self, deserted: LeaderDeserted, out: Outbox) -> None:
        self._step_down(out)

    def on_state_given_up(self, given_up: StateGivenUp, out: Outbox) -> None:
        """With a state of another we may lack what is no part of it."""
        self._stop(out)

    def on_removed_from_group(self, removed: RemovedFromGroup, out: Outbox) -> None:
        out.report("removed", Level.WARNING, replica=self._settings.name)
        self._stop(out)

    def on_membership_changed(self, changed: MembershipChanged, out: Outbox) -> None:
        """Ballots of before are those of other voters."""
        if self._roster.epoch == changed.before.epoch:
            return
        if self._proposer.is_leading and self._roster.is_voter:
            self._prepare(out)
            self._elections.beat(out)
        else:
            self._stop(out)

    def _stop(self, out: Outbox) -> None:
        if self._proposer.phase is not Phase.FOLLOWING:
            self._step_down(out)

    def _step_down(self, out: Outbox) -> None:
        led, self.due = self._proposer.is_leading, False
        self._proposer.step_down()
        self._coordinator.stop()
        self._voter.forget_own_promise()
        self._changing.give_up(f"{self._settings.name} leads no more", out)
        if led:
            out.report("deposed", Level.INFO, replica=self._settings.name)
            self._liveness.deposed()
            out.tell(Deposed())
        self._elections.set_timer(out)

    def check_invariants(self) -> None:
        self._proposer.check_invariants()
