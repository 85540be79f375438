"""A replica: acceptor, proposer, learner and liveness, joined around an application (D4-A2, A9).

It decides the order of commands for the host on top, as a sequencer does; every replica applies the same commands in
the same order, and only the leader is asked. What the leader says to clients, it says of what is applied: a majority
has it on disk, so that nothing said is ever taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from holdfast.codec import UNREADABLE
from holdfast.errors import ProtocolError
from holdfast.kernel.application import Application
from holdfast.kernel.inputs import Durable, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.sequencing import CommandsApplied, Deposed, Elected, StateReplaced
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.paxos import acceptor as acceptor_module
from holdfast.protocols.paxos import formation as formation_module
from holdfast.protocols.paxos import report
from holdfast.protocols.paxos import snapshots as snapshots_module
from holdfast.protocols.paxos.acceptor import Acceptor
from holdfast.protocols.paxos.ballots import epoch_of, next_ballot, place_of
from holdfast.protocols.paxos.catching_up import CatchingUp
from holdfast.protocols.paxos.changing import Changing
from holdfast.protocols.paxos.coordinator import Coordinator
from holdfast.protocols.paxos.decided import DecidedLog
from holdfast.protocols.paxos.elections import Elections
from holdfast.protocols.paxos.fast import FastRounds
from holdfast.protocols.paxos.group_view import GroupView
from holdfast.protocols.paxos.holding import Holding
from holdfast.protocols.paxos.holdings import Holdings, NoHoldings
from holdfast.protocols.paxos.membership import Change, Membership, changed
from holdfast.protocols.paxos.messages import (
    Accept,
    CanvassAnswer,
    Entry,
    Learn,
    Prepare,
    Promise,
    Refused,
    ReplicaState,
    Value,
    check_value,
)
from holdfast.protocols.paxos.notices import PeerLost, RemovedFromGroup
from holdfast.protocols.paxos.peers import REPLICAS, Peers
from holdfast.protocols.paxos.promises import PromiseParts, split
from holdfast.protocols.paxos.proposer import Phase, Proposer
from holdfast.protocols.paxos.settings import PaxosSettings
from holdfast.protocols.paxos.snapshots import Snapshots
from holdfast.protocols.paxos.transfer import make_state

if TYPE_CHECKING:
    from random import Random

_entry = msgspec.msgpack.Decoder(Entry).decode


class Replica(Part):
    """The sequencer of a broker's commands. `encode` and `decode` are the application's: a command as bytes."""

    name: ClassVar[str] = "replica"
    applies_at_once = False
    applied_is_safe = True
    shares_log = True
    peers_type: ClassVar[type[Peers]] = Peers
    catching_up_type: ClassVar[type[CatchingUp]] = CatchingUp
    fast_type: ClassVar[type[FastRounds]] = FastRounds
    coordinator_type: ClassVar[type[Coordinator]] = Coordinator
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (Prepare, Promise, Refused, Accept, Learn), REPLICAS
    )
    notices: ClassVar[tuple[type[Notice], ...]] = (PeerLost, RemovedFromGroup)

    def __init__(
        self,
        settings: PaxosSettings,
        application: Application[Any, Any],
        encode: Callable[[Any], bytes],
        decode: Callable[[msgspec.Raw], Any],
        rng: Random,
        view: GroupView | None = None,
        holdings: Holdings | None = None,
    ) -> None:
        view = view or GroupView(settings, rng, self.peers_type)
        self.holdings = holdings or NoHoldings()
        self.commands = 0  # executed
        self.wall = 0  # the time that the last of them had
        self._trimmed = 0  # up to this slot the group has decided to forget its votes
        self._origins: dict[int, int] = {}  # place → the highest ballot of it in which something executed was proposed
        self.elections_won = 0
        self.settings = settings
        self._application = application
        self._encode = encode
        self._decode = decode
        self.roster, self.liveness, self.peers = view.roster, view.liveness, view.peers
        self.acceptor = Acceptor()
        self.proposer = Proposer(self.roster, settings.pipeline)
        self.decided = DecidedLog(self.roster)
        self._reached, self._reached_at = (0, 0, 0, 0, 0), 0  # how far we were in learning what others had executed
        self._holding = Holding()
        self.is_serving = False
        self._serves_after = 0  # slots, that others may have executed before this replica led
        self._promise_parts = PromiseParts()
        self._own_promise: Promise | None = None  # of the ballot that we prepare, until it is on the disk
        self._learned: dict[int, list[int]] = {}  # of this turn: ballot → slots that we voted for
        self.snapshots = Snapshots(settings)
        self._prepare_ahead: tuple[str, Prepare] | None = None  # of an epoch that we have not reached
        self.changing = Changing(settings, self.roster, self.liveness, self.peers)
        self.catching_up = self.catching_up_type(settings, self.peers, self)
        self.fast = self.fast_type(self)
        self.coordinator = self.coordinator_type(self, self.fast)
        self.elections = Elections(self)

    # -------------------------------------------------------------------------------------------------------- life
    @property
    def parts(self) -> tuple[Any, ...]:
        """What a node lists for a replica, in this order."""
        # The coordinator before the replica that proposes what it gives back; fast rounds tell all votes at the end.
        return (self.peers, self.coordinator, self, self.elections, self.catching_up, self.fast)

    def recover(self, streams: StoredStreams) -> None:
        self.peers.formation.recover(streams.get(formation_module.STREAM, ()))
        self.acceptor.recover(streams.get(acceptor_module.STREAM, ()))
        self.snapshots.recover(streams.get(snapshots_module.STREAM, ()))
        if self.snapshots.latest is not None:
            self._restore(self.snapshots.latest)
        self.peers.formation.check()
        self.liveness.see(self.acceptor.promised)

    def _restore(self, state: ReplicaState) -> None:
        self._application.set_state(state.state)
        self.commands, self.wall, self._origins = state.commands, state.wall, dict(state.origins)
        self._trimmed = state.trimmed
        self.decided.skip_to(state.slot)
        self.fast.tally.skip_to(state.slot)
        self.peers.formation.is_joining = False
        if state.membership is not None:
            self.roster.set(state.membership)

    def on_started(self, started: Started, out: Outbox) -> None:
        self.liveness.start(out.now)
        self.elections.set_timer(out)

    def on_peer_lost(self, lost: PeerLost, out: Outbox) -> None:
        self.catching_up.forget(lost.peer)
        self.liveness.lost_link(lost.peer, out.now)
        self.elections.set_timer(out)

    # ---------------------------------------------------------------------------------------------------- sequencer
    @property
    def is_leading(self) -> bool:
        return self.proposer.is_leading

    @property
    def leader_addresses(self) -> tuple[str, ...]:
        """Where clients find the leader, if this replica knows of another that leads."""
        leader = self.liveness.leader
        if not leader or leader == self.settings.name:
            return ()
        address = self.roster.client_address(leader)
        return (address,) if address else ()

    def submit(self, command: Any, out: Outbox) -> None:
        """Puts a command in its place, some time. Without leading it is dropped: whoever asked will ask the leader."""
        if self.is_leading:
            self.proposer.submit(msgspec.Raw(self._encode(command)))

    @property
    def takes_direct(self) -> bool:
        """Whether clients may propose publications to every replica themselves (D4-A6)."""
        return self.fast.is_open

    @property
    def direct_addresses(self) -> tuple[str, ...]:
        """Where clients find the other replicas."""
        others = (self.roster.client_address(name) for name in self.roster.voters if name != self.settings.name)
        return tuple(address for address in others if address)

    def submit_direct(self, command: Any, out: Outbox) -> None:
        """What a client says to every replica itself. In classic rounds only the leader takes it."""
        raw = msgspec.Raw(self._encode(command))
        if not (self.fast.is_open and self.fast.propose(raw)) and self.is_leading:
            self.proposer.submit(raw)

    def finish(self, out: Outbox) -> None:
        """Proposes what waits; says what we voted for."""
        if self._trimmed > self.acceptor.trimmed:
            self._forget_votes(0, out)
        if self.is_leading:
            self._propose(out)
        learned, self._learned = self._learned, {}
        for ballot, slots in learned.items():
            self.peers.tell_all(Learn(ballot, slots), out)

    def _propose(self, out: Outbox) -> None:
        executed = self.decided.executed
        change = self.changing.due(executed, out) if self.is_serving else None
        self.coordinator.is_held = change is not None
        if self.coordinator.is_open:
            # In an open fast round nobody knows what is proposed: a change waits for a ballot without.
            if change is None and self.coordinator.propose(out.wall, trim := self._trim_due(), out) and trim:
                self.snapshots.at = executed
            return
        if change is not None:
            # Nothing new until everything is decided; then the change, alone.
            made = self.proposer.change(change, executed, out.wall)
            if made:
                self.changing.proposed()
        else:
            trim = self._trim_due()
            batch = (self.settings.batch_commands, self.settings.batch_bytes)
            made = self.proposer.propose(executed, out.wall, *batch, trim)
            if trim and made:
                self.snapshots.at = executed
        for slot, value in made:
            self.accept(slot, [value], out)

    def _trim_due(self) -> int:
        """Before which slot everyone may forget its votes, or 0. A majority must hold what came of those: a replica
        that lags takes a snapshot, and asks for the rest."""
        executed = self.decided.executed
        if not self.snapshots.is_due(executed):
            return 0
        voters = [peer for peer in self.peers.heard if peer in self.roster.voters]
        held = sorted([self.held(), *(self.liveness.held.get(peer, 0) for peer in voters)], reverse=True)
        safe = held[self.roster.quorum - 1] if len(held) >= self.roster.quorum else 0
        return safe + 1 if safe > self.snapshots.at else 0

    def accept(self, first: int, values: list[Value], out: Outbox) -> None:
        """Phase 2: the leader's own vote is one among the others, and counts when it is on the disk."""
        ballot = self.proposer.ballot
        # Before our own disk has it: the message claims nothing that could be forgotten.
        self.peers.tell_all(Accept(ballot, first, values), out, now=True)
        self._vote(ballot, first, values, out)

    def _vote(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        if not self.roster.is_voter:
            for slot, value in enumerate(values, first):
                self.decided.propose(ballot, slot, value)  # a learner hears what is proposed, and who votes for it
            return True
        if not self.acceptor.accept(ballot, first, values, out):
            return False
        for slot, value in enumerate(values, first):
            self.decided.propose(ballot, slot, value)
        self._learned.setdefault(ballot, []).extend(range(first, first + len(values)))
        return True

    def on_durable(self, durable: Durable, out: Outbox) -> None:
        for ballot, slots, fast in self.acceptor.on_durable(durable.token):
            if fast:
                self.fast.safe(ballot, slots, out)
            else:
                for slot in slots:
                    self.decided.vote(ballot, slot, self.settings.name)
        if self._own_promise is not None and self.acceptor.is_safe(self._own_promise.ballot):
            promise, self._own_promise = self._own_promise, None
            self._count_promise(self.settings.name, promise, out)
        self.execute(out)

    # ------------------------------------------------------------------------------------------------------ acceptor
    def on_prepare(self, peer: str, prepare: Prepare, out: Outbox) -> None:
        if epoch_of(prepare.ballot) > self.roster.epoch and self.peers.hears(peer):
            self._prepare_ahead = (peer, prepare)
        if not self.is_of_our_time(peer, prepare.ballot, out) or not self.roster.is_voter:
            return
        self.liveness.see(prepare.ballot)
        if not self.acceptor.promise(prepare.ballot, out):
            out.send(peer, Refused(self.acceptor.promised))
            return
        self.liveness.someone_prepares(out.now)
        self.step_down_below(prepare.ballot, out)
        vouched = self.vouched()
        votes = self.acceptor.votes_from(max(prepare.first, vouched + 1))
        for part in split(Promise(prepare.ballot, prepare.first, votes, vouched), self.settings.part_bytes):
            out.send(peer, part)
        self.elections.set_timer(out)

    def on_accept(self, peer: str, accept: Accept, out: Outbox) -> None:
        if not self.peers.hears(peer):
            return
        for value in accept.values:
            check_value(value)
        if not self.takes_from(peer, accept.ballot, out):
            return
        if not self._vote(accept.ballot, accept.first, accept.values, out):
            out.send(peer, Refused(self.acceptor.promised))
        self.execute(out)

    def on_learn(self, peer: str, learn: Learn, out: Outbox) -> None:
        if self.counts(peer, learn.ballot):
            for slot in filter(self.decided.is_near, learn.slots):
                self.decided.vote(learn.ballot, slot, peer)
            self.execute(out)

    def is_of_our_time(self, peer: str, ballot: int, out: Outbox) -> bool:
        """Whether a leader, or one that wants to be, has the same voters as we. One that has older ones is told so; if
        its are newer, we have to catch up first. Raises ProtocolError if the ballot is another one's."""
        if not self.peers.hears(peer):
            return False
        if epoch_of(ballot) < self.roster.epoch:
            out.send(peer, CanvassAnswer(ballot, False, self.floor()), after=NOW)
            return False
        if epoch_of(ballot) > self.roster.epoch:
            self.liveness.executed[peer] = max(self.liveness.executed.get(peer, 0), self.decided.executed + 1)
            self.catching_up.later(out)
            return False
        if place_of(ballot) != self.roster.place_of(peer):
            raise ProtocolError(f"ballot {ballot} is not {peer}'s")
        return True

    def floor(self) -> int:
        """What was promised; and that nothing below our epoch will be."""
        return max(self.acceptor.promised, next_ballot(0, 0, self.roster.epoch) if self.roster.epoch else 0)

    # ------------------------------------------------------------------------------------------------------ proposer
    def is_outdated(self, out: Outbox) -> bool:
        """Whether the voters are others by now: all that we can do is to catch up."""
        if epoch_of(self.liveness.highest) <= self.roster.epoch:
            return False
        self.catching_up.ask(out)
        return True

    def next_ballot(self) -> int:
        above = max(self.liveness.highest, self.acceptor.promised)
        return next_ballot(above, self.roster.place_of(self.settings.name), self.roster.epoch)

    def beat(self, out: Outbox) -> None:
        """Says that it leads."""
        self.elections.beat(out)

    def renew(self, out: Outbox) -> None:
        """Takes a higher ballot without leaving: clients stay, and what they ask for waits. What was proposed in the
        ballot before is picked like anyone's votes."""
        if self.is_leading:
            self.prepare(out)
            self.elections.beat(out)

    def prepare(self, out: Outbox) -> None:
        if self.is_outdated(out):
            return
        ballot = self.next_ballot()
        self.liveness.see(ballot)
        first = self.decided.executed + 1
        self.proposer.prepare(ballot, first)
        self.coordinator.close()
        require(self.acceptor.promise(ballot, out), "a new ballot is above all that was promised", ballot=ballot)
        votes = self.acceptor.votes_from(first)
        self._own_promise = Promise(ballot, first, votes, self.decided.executed)
        # After our own promise is on the disk: a ballot that is heard of is never used again.
        self.peers.tell_all(Prepare(ballot, first), out)

    def on_promise(self, peer: str, promise: Promise, out: Outbox) -> None:
        counts = self.peers.hears(peer) and peer in self.roster.voters
        if counts and promise.ballot == self.proposer.ballot and promise.part <= promise.last:
            whole = self._promise_parts.add(peer, promise)
            if whole is not None:
                self._count_promise(peer, whole, out)

    def _count_promise(self, peer: str, promise: Promise, out: Outbox) -> None:
        self.liveness.executed[peer] = promise.executed
        led = self.is_leading
        if not self.proposer.promise(peer, promise):
            return
        if not led:
            self.elections_won += 1
            self.liveness.lead(self.settings.name, out.now)
            self.coordinator.begin()
            out.report("leader", Level.INFO, replica=self.settings.name, ballot=self.proposer.ballot)
        for slot, value in self.proposer.open_slots():
            self.accept(slot, [value], out)
        if self.proposer.caught_up_at > self.decided.executed:
            self.catching_up.ask(out)
        self.elections.beat(out)
        if not self.is_serving:
            self._serves_after = self.proposer.next_slot - 1
            self._serve_if_caught_up(out)
        out.set_timer((self.name, "repeat"), self.settings.repeat_after)

    def _serve_if_caught_up(self, out: Outbox) -> None:
        """Clients are let in when all is executed that an earlier leader may have told them of; else one that comes
        back would find its session as it was, and be told that the newest of it is forgotten."""
        if self.is_leading and not self.is_serving and self.decided.executed >= self._serves_after:
            self.is_serving = True
            out.tell(Elected())

    def on_refused(self, peer: str, refused: Refused, out: Outbox) -> None:
        if self.peers.hears(peer):
            self.liveness.see(refused.promised)
            self.step_down_below(refused.promised, out)

    def takes_from(self, peer: str, ballot: int, out: Outbox) -> bool:
        """Whether a peer leads by this ballot, among the same voters; whoever leads below it does not any more."""
        if not self.is_of_our_time(peer, ballot, out):
            return False
        self.liveness.see(ballot)
        self.step_down_below(ballot, out)
        return True

    def counts(self, peer: str, ballot: int) -> bool:
        """Whether a peer's vote in a ballot counts: those of another epoch are counted by other rules."""
        return self.peers.hears(peer) and epoch_of(ballot) == self.roster.epoch and peer in self.roster.voters

    def ask_for_decided(self, out: Outbox) -> None:
        self.catching_up.ask(out)

    def step_down_below(self, ballot: int, out: Outbox) -> None:
        if ballot > self.proposer.ballot and self.proposer.phase is not Phase.FOLLOWING:
            self.step_down(out)

    def step_down(self, out: Outbox) -> None:
        led = self.is_leading
        self.is_serving = False
        self.proposer.step_down()
        self.coordinator.stop()
        self._own_promise = None
        self.changing.give_up(f"{self.settings.name} leads no more")
        if led:
            out.report("deposed", Level.INFO, replica=self.settings.name)
            self.liveness.deposed()
            out.tell(Deposed())
        self.elections.set_timer(out)

    # ------------------------------------------------------------------------------------------------------ learner
    def execute(self, out: Outbox) -> None:
        while (taken := self.decided.take_next()) is not None:
            slot, value = taken
            try:
                entry = _entry(value)
            except UNREADABLE:
                broken("what is decided can be read", slot=slot)
            stale = self._is_stale(entry.origin)
            if entry.change is not None and not stale and self._removes_us(entry.change):
                self.decided.put_back()
                break
            self.proposer.decided(slot)
            self.coordinator.executed(slot, self.fast.executed(slot, value))
            self.snapshots.executed(len(value))
            if stale:
                continue
            self.wall = entry.wall or self.wall
            for raw in entry.commands:
                self.commands += 1
                outputs = self._application.apply(self.commands, self.wall, self._decode(raw))
                if outputs:
                    out.tell(CommandsApplied(outputs))
            if entry.trim_before:
                self._trim(entry.trim_before, out)
            if entry.change is not None:
                self._change(entry.change, out)
        self._serve_if_caught_up(out)

    def _is_stale(self, origin: int) -> bool:
        """Whether a leader proposed it whose successor has decided something since. It would come behind what it was
        meant to come before: a session that is opened again would be closed by its client's earlier word. Nobody was
        told that it is done, and whoever still wants it says it again."""
        if not origin:
            return False
        place = place_of(origin)
        if any(ballot > origin for other, ballot in self._origins.items() if other != place):
            return True
        self._origins[place] = max(self._origins.get(place, 0), origin)
        return False

    def _trim(self, before: int, out: Outbox) -> None:
        """By a decided command, so at the same slot everywhere; each keeps its own snapshot of the same state."""
        earlier, self._trimmed = self._trimmed, max(self._trimmed, before - 1)
        self._snapshot(out)
        self._forget_votes(earlier, out)
        self.decided.trim(before - self.settings.trim_keep)

    def _forget_votes(self, earlier: int, out: Outbox) -> None:
        """As far as the group has decided to. One that lacks something goes no further than the decision before:
        whoever holds what the last one was about has its snapshot at the one before, and may have been restarted there.
        To lead, it needs others that answer for no more (`vouched`)."""
        through = self._trimmed if self.holdings.is_whole() else earlier
        if through > max(0, self.acceptor.trimmed):
            self.acceptor.trim(through + 1, out)

    def _snapshot(self, out: Outbox) -> None:
        self.holdings.settle(out)
        state = self._application.get_state()
        self.snapshots.keep(
            make_state(
                self.decided.executed,
                self.commands,
                state,
                self.roster.membership,
                self.wall,
                sorted(self._origins.items()),
                self._trimmed,
            ),
            out,
        )

    # --------------------------------------------------------------------------------------------------- membership
    def _change(self, change: Change, out: Outbox) -> None:
        """A change of the membership was decided. The snapshot makes sure that whoever promises or votes in the new
        epoch never wakes up in an old one: it would have promised more than it may use."""
        before = self.roster.membership
        now = changed(before, change)
        if now is not before:
            self.roster.set(now)
            self._snapshot(out)
            out.report("membership", Level.INFO, replica=self.settings.name, number=now.number, change=str(change))
            self._follow_change(before, out)

    def _removes_us(self, change: Change) -> bool:
        """We may be the only one yet that knows that it is decided, and the others may need our vote to learn it: they
        tell us that we are gone, once they know."""
        return changed(self.roster.membership, change).find(self.settings.name) is None

    def _follow_change(self, before: Membership, out: Outbox) -> None:
        """The membership is another one, and a snapshot that says so is on its way to the disk."""
        self.liveness.forget([member.name for member in before.members if member.name not in self.roster.names])
        self.peers.membership_changed(out)
        if self.roster.epoch == before.epoch:
            return
        self.decided.forget_votes()
        self.fast.tally.forget_votes()
        self.elections.give_up_canvassing()
        if self.is_leading and self.roster.is_voter:
            self.prepare(out)  # the ballots before are those of other voters
            self.elections.beat(out)
        elif self.proposer.phase is not Phase.FOLLOWING:
            self.step_down(out)
        early, self._prepare_ahead = self._prepare_ahead, None
        if early is not None:
            self.on_prepare(*early, out)

    def on_removed_from_group(self, removed: RemovedFromGroup, out: Outbox) -> None:
        out.report("removed", Level.WARNING, replica=self.settings.name)
        if self.proposer.phase is not Phase.FOLLOWING:
            self.step_down(out)

    def change(self, change: Change, out: Outbox) -> str:
        """An operator asks for a change of the group: what is against it, if something is."""
        problem = report.not_leading(self)
        return problem or self.changing.ask(change, out)

    # ----------------------------------------------------------------------------------------------------- liveness
    def held(self) -> int:
        """Up to which slot all that came of it is on the disk, as far as we know."""
        held = self._holding.look(self.decided.executed, *self.holdings.extent())
        return held if self.holdings.is_whole() and not self.peers.formation.is_joining else 0

    def vouched(self) -> int:
        """Up to which slot nobody has to ask for our votes: we have executed it, and bring others there.

        One that lacks events gives its state to nobody. It has its votes, though, and so have all others, but for
        slots that a majority holds: whoever holds those comes to everything that is decided by votes alone.
        """
        is_of_help = self.holdings.is_whole() or self.acceptor.trimmed < 0
        return self.decided.executed if is_of_help else self.acceptor.trimmed

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        require(key[1] == "repeat", "a timer of the replica has a known name", key=key)
        self._repeat(out)

    def _repeat(self, out: Outbox) -> None:
        """Links may lose messages: what was not decided is said again."""
        if not self.is_leading:
            return
        if self.proposer.phase is Phase.RENEWING:
            self.peers.tell_all(Prepare(self.proposer.ballot, self.proposer.first), out)
        for slot, value in self.proposer.open_slots():
            if self.acceptor.has_vote(slot, self.proposer.ballot):
                self.peers.tell_all(Accept(self.proposer.ballot, slot, [value]), out, now=True)
                self._learned.setdefault(self.proposer.ballot, []).append(slot)
            else:
                self.accept(slot, [value], out)  # it was behind a change that has been decided since
        if self.coordinator.is_open and max(self.liveness.executed.values(), default=0) > self.decided.executed:
            self.catching_up.ask(out)  # fast rounds go on without us
        if self.proposer.caught_up_at > self.decided.executed:
            self.catching_up.ask(out)
            if self._learns_nothing(out.now):
                # Those who had executed more have been restarted since: the next election asks what they voted for.
                self.step_down(out)
                return
        out.set_timer((self.name, "repeat"), self.settings.repeat_after)

    def _learns_nothing(self, now: int) -> bool:
        """Whether we have got nowhere for long with learning what was decided before we led."""
        reached = (self.proposer.ballot, *self.catching_up.reached)
        if reached != self._reached:
            self._reached, self._reached_at = reached, now
        return now - self._reached_at > 2 * self.settings.patience

    def install(self, state: ReplicaState, out: Outbox) -> None:
        """Another replica's state takes the place of ours. Votes are kept until the group has decided to forget them:
        they may be needed for what this replica lacks. The state says how far that is: the next such decision may be
        far, and the votes would hold the disk until then."""
        before = self.roster.membership
        if state.membership is not None and state.membership.find(self.settings.name) is None:
            return  # of a time before we were added, or after we were removed
        if self.proposer.phase is not Phase.FOLLOWING:
            self.step_down(out)  # with a state of another it may lack what is no part of it
        self._restore(state)
        self.snapshots.keep(state, out)
        out.tell(StateReplaced())  # first: from here on it is known whether something is lacking
        self._forget_votes(0, out)
        if self.roster.membership.number != before.number:
            self._follow_change(before, out)
        self.execute(out)

    # ----------------------------------------------------------------------------------------------------- operators
    def measure(self) -> dict[str, int]:
        return report.measures(self)

    def facts(self) -> dict[str, str]:
        """What there is to say in words."""
        return report.facts(self)

    def check_invariants(self) -> None:
        self.acceptor.check_invariants()
        self.proposer.check_invariants()
        self.decided.check_invariants()
        require(epoch_of(self.acceptor.promised) <= self.roster.epoch, "nothing is promised to voters of the future")
