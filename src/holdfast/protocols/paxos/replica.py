"""A replica: acceptor, proposer, learner and liveness, joined around an application (D4-A2, A9).

It decides the order of commands for the host on top, as a sequencer does; every replica applies the same commands in
the same order, and only the leader is asked. What the leader says to clients, it says of what is applied: a majority
has it on disk, so that nothing said is ever taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from holdfast.errors import ProtocolError
from holdfast.kernel.application import Application
from holdfast.kernel.inputs import ConnectFailed, Durable, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.paxos import acceptor as acceptor_module
from holdfast.protocols.paxos import formation as formation_module
from holdfast.protocols.paxos.acceptor import Acceptor
from holdfast.protocols.paxos.ballots import next_ballot, place_of, quorum, tolerated
from holdfast.protocols.paxos.decided import DecidedLog
from holdfast.protocols.paxos.formation import Formation, Standing
from holdfast.protocols.paxos.liveness import Liveness
from holdfast.protocols.paxos.messages import (
    Accept,
    AskDecided,
    AskSnapshot,
    Canvass,
    CanvassAnswer,
    Decided,
    Entry,
    Greeting,
    Heartbeat,
    HeartbeatSeen,
    Learn,
    Prepare,
    Promise,
    Refused,
    ReplicaState,
    SnapshotPart,
    TakeOver,
    Value,
)
from holdfast.protocols.paxos.promises import PromiseParts, split
from holdfast.protocols.paxos.proposer import Phase, Proposer
from holdfast.protocols.paxos.settings import PaxosSettings
from holdfast.protocols.paxos.transfer import IncomingSnapshot, make_state, pack

if TYPE_CHECKING:
    from random import Random

REPLICAS: Final = frozenset({Role.BROKER})
STATE_STREAM: Final = "state"

_entry = msgspec.msgpack.Decoder(Entry).decode


class Replica:
    """A part of a broker's node, and the sequencer of its commands.

    `encode` and `decode` are the application's: a command as bytes. `applied` is called with what comes of commands,
    `deposed` when this replica leads no more.
    """

    name: ClassVar[str] = "replica"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (
            Greeting, Canvass, CanvassAnswer, Prepare, Promise, Refused, Accept, Learn, Heartbeat, HeartbeatSeen,
            AskDecided, Decided, AskSnapshot, SnapshotPart, TakeOver,
        ),
        REPLICAS,
    )  # fmt: skip

    def __init__(
        self,
        settings: PaxosSettings,
        application: Application[Any, Any],
        encode: Callable[[Any], bytes],
        decode: Callable[[msgspec.Raw], Any],
        rng: Random,
    ) -> None:
        names = tuple(member.name for member in settings.members)
        require(settings.name in names, "a replica is a member of its group", name=settings.name)
        self.applied: Callable[[list[Any], Outbox], None] = lambda outputs, out: None
        self.elected: Callable[[Outbox], None] = lambda out: None  # and caught up
        self.deposed: Callable[[Outbox], None] = lambda out: None
        self.followed: Callable[[Outbox], None] = lambda out: None  # another one leads, and it is known which
        self.restored: Callable[[Outbox], None] = lambda out: None  # by another's snapshot
        # The application writes what it holds back: the snapshot that follows speaks of it.
        self.settle: Callable[[Outbox], None] = lambda out: None
        # Whether the application has all that is no part of its state; one that lacks something does not lead.
        self.is_whole: Callable[[], bool] = lambda: True
        self.commands = 0  # executed
        self.elections = 0  # that this replica won
        self._settings = settings
        self._application = application
        self._encode = encode
        self._decode = decode
        self._place = names.index(settings.name)
        self._names = names
        self._quorum = quorum(len(names))
        self.acceptor = Acceptor()
        self.proposer = Proposer(self._quorum, settings.pipeline, settings.protocol)
        self.decided = DecidedLog(self._quorum)
        self.formation = Formation(settings.name, names)
        self.liveness = Liveness(settings, self._place, self._quorum, rng)
        self._snapshot: ReplicaState | None = None
        self._incoming = IncomingSnapshot()
        self._incoming_from = ""
        self._reached, self._reached_at = (0, 0, 0, 0), 0  # how far we were in learning what others had executed
        self._outgoing: dict[str, ReplicaState] = {}  # what a peer is being sent, though there may be a newer one
        self._connected: dict[str, bool] = {}  # peers with a link → whether they listen to us
        self._link_numbers: dict[str, int] = {}  # of the same
        self._links: dict[str, None] = {}  # of those, the ones that we listen to
        self._beats = 0
        self._trimmed_at = 0
        self._bytes_since = 0  # of what was decided since the last snapshot
        self._behind_due = False  # the timer is set
        self._greet_due = False  # likewise
        self.is_serving = False
        self._serves_after = 0  # slots, that others may have executed before this replica led
        self._canvassed = 0  # the ballot that we would use
        self._supporters: set[str] = set()
        self._promise_parts = PromiseParts()
        self._own_promise: Promise | None = None  # of the ballot that we prepare, until it is on the disk
        self._learned: dict[int, list[int]] = {}  # of this turn: ballot → slots that we voted for

    # -------------------------------------------------------------------------------------------------------- life
    def recover(self, streams: StoredStreams) -> None:
        self.formation.recover(streams.get(formation_module.STREAM, ()))
        self.acceptor.recover(streams.get(acceptor_module.STREAM, ()))
        for record in streams.get(STATE_STREAM, ()):
            if not isinstance(record, ReplicaState):
                broken("a replica keeps states", record=type(record).__name__)
            self._snapshot = record
        if self._snapshot is not None:
            self._restore(self._snapshot)
        self.liveness.see(self.acceptor.promised)

    def _restore(self, state: ReplicaState) -> None:
        require(make_state(state.slot, state.commands, state.state).digest == state.digest, "a snapshot is what it was")
        self._application.set_state(state.state)
        self.commands = state.commands
        self.decided.skip_to(state.slot)
        self._trimmed_at = state.slot
        self._bytes_since = 0

    def on_started(self, started: Started, out: Outbox) -> None:
        # A disk of which something was given up may lack votes: it is another one than the group was formed with.
        repaired = f"/{started.repairs}" if started.repairs else ""
        self.formation.start(started.log_id + repaired)
        self.formation.form_alone(out)
        self.liveness.start(out.now)
        for member in self._settings.members[self._place + 1 :]:
            out.connect(member.name, member.peer_address)
        self._set_timer(out)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is Role.BROKER:
            if up.peer not in self._names:
                out.disconnect(up.link, f"{up.peer} is no member of this group")
                return
            self._connected[up.peer], self._link_numbers[up.peer] = False, up.link
            self._links.pop(up.peer, None)
            self._greet(out)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if down.peer not in self._connected:
            return
        del self._connected[down.peer], self._link_numbers[down.peer]
        self._links.pop(down.peer, None)
        self._outgoing.pop(down.peer, None)
        out.drop_queue(down.peer)
        self.liveness.lost_link(down.peer, out.now)
        self._set_timer(out)
        if self._names.index(down.peer) > self._place:
            out.set_timer((self.name, "dial", down.peer), self._settings.dial_every)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if failed.peer in self._names:
            out.set_timer((self.name, "dial", failed.peer), self._settings.dial_every)

    def on_greeting(self, peer: str, greeting: Greeting, out: Outbox) -> None:
        if peer not in self._connected:
            return
        self._connected[peer] = greeting.hears
        before = (self.formation.standing, bool(self.formation.disks))
        told = [peer] if self.formation.greet(peer, greeting, out) and peer not in self._links else []
        if before != (self.formation.standing, bool(self.formation.disks)):
            told = list(self._connected)  # whoever greeted before may be listened to now
        for other in told:
            if self.formation.accepts(other):
                self._links[other] = None
            out.send(other, self.formation.greeting(other in self._links))
        if not greeting.hears:
            # Not at once: two that do not listen to each other would answer each other without end.
            self._greet_later(out)
        if before[0] is not self.formation.standing and self.formation.standing is Standing.WIPED:
            out.note("control", what="wiped-disk", detail={"replica": self._settings.name})

    def _greet(self, out: Outbox) -> None:
        """Greets whoever does not listen to us, or has not been greeted by; links may lose greetings."""
        self._greet_due = False
        deaf = [peer for peer, hears in self._connected.items() if not hears or peer not in self._links]
        for peer in deaf:
            out.send(peer, self.formation.greeting(peer in self._links))
        if deaf:
            self._greet_later(out)

    def _greet_later(self, out: Outbox) -> None:
        if not self._greet_due:
            self._greet_due = True
            out.set_timer((self.name, "greet"), self._settings.repeat_after)

    def _is_heard(self, peer: str) -> bool:
        """Whether a peer's word counts: it has the disk that it was formed with, and so have we."""
        return peer in self._links

    def _tell_all(self, message: Message, out: Outbox, now: bool = False) -> None:
        for peer in self._links:
            if peer in out.queues and out.queues[peer].bytes > self._settings.unread_bytes_max:
                continue  # it reads nothing; it will catch up when it does
            if now:
                out.send(peer, message, after=NOW)
            else:
                out.send(peer, message)

    def others(self) -> list[str]:
        """The replicas that are heard, the leader first."""
        return sorted(self._links, key=lambda peer: peer != self.liveness.leader)

    # ---------------------------------------------------------------------------------------------------- sequencer
    @property
    def is_leading(self) -> bool:
        return self.proposer.phase is Phase.LEADING

    @property
    def leader_addresses(self) -> tuple[str, ...]:
        """Where clients find the leader, if this replica knows of another that leads."""
        leader = self.liveness.leader
        if not leader or leader == self._settings.name:
            return ()
        return tuple(member.client_address for member in self._settings.members if member.name == leader)

    def submit(self, command: Any, out: Outbox) -> None:
        """Puts a command in its place, some time. Without leading it is dropped: whoever asked will ask the leader."""
        if self.is_leading:
            self.proposer.submit(msgspec.Raw(self._encode(command)))

    def finish(self, out: Outbox) -> None:
        """Proposes what waits; says what we voted for."""
        if self.is_leading:
            trim = self._trim_due()
            made = self.proposer.propose(
                self.decided.executed, out.wall, self._settings.batch_commands, self._settings.batch_bytes, trim
            )
            if trim and made:
                self._trimmed_at = self.decided.executed
            for slot, value in made:
                self._accept(slot, [value], out)
        learned, self._learned = self._learned, {}
        for ballot, slots in learned.items():
            self._tell_all(Learn(ballot, slots), out)

    def _trim_due(self) -> int:
        """Before which slot everyone may forget its votes, or 0. A majority must hold what came of those: a replica
        that lags takes a snapshot, and asks for the rest. A large state is written again only when as much was
        decided."""
        executed, settings = self.decided.executed, self._settings
        due = executed - self._trimmed_at >= settings.trim_every or self._bytes_since >= settings.trim_bytes
        written = len(self._snapshot.state) if self._snapshot else 0
        if not due or self._bytes_since < settings.trim_ratio * written:
            return 0
        held = sorted([executed, *(self.liveness.held.get(peer, 0) for peer in self._links)], reverse=True)
        safe = held[self._quorum - 1] if len(held) >= self._quorum else 0
        return safe + 1 if safe > self._trimmed_at else 0

    def _accept(self, first: int, values: list[Value], out: Outbox) -> None:
        """Phase 2: the leader's own vote is one among the others, and counts when it is on the disk."""
        ballot = self.proposer.ballot
        # Before our own disk has it: the message claims nothing that could be forgotten.
        self._tell_all(Accept(ballot, first, values), out, now=True)
        self._vote(ballot, first, values, out)

    def _vote(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        if not self.acceptor.accept(ballot, first, values, out):
            return False
        for slot, value in enumerate(values, first):
            self.decided.propose(ballot, slot, value)
        self._learned.setdefault(ballot, []).extend(range(first, first + len(values)))
        return True

    def on_durable(self, durable: Durable, out: Outbox) -> None:
        for ballot, slots in self.acceptor.on_durable(durable.token):
            for slot in slots:
                self.decided.vote(ballot, slot, self._settings.name)
        if self._own_promise is not None and self.acceptor.is_safe(self._own_promise.ballot):
            promise, self._own_promise = self._own_promise, None
            self._count_promise(self._settings.name, promise, out)
        self._execute(out)

    # ------------------------------------------------------------------------------------------------------ acceptor
    def on_prepare(self, peer: str, prepare: Prepare, out: Outbox) -> None:
        if not self._is_heard(peer):
            return
        if place_of(prepare.ballot) != self._names.index(peer):
            raise ProtocolError(f"ballot {prepare.ballot} is not {peer}'s")
        self.liveness.see(prepare.ballot)
        if not self.acceptor.promise(prepare.ballot, out):
            out.send(peer, Refused(self.acceptor.promised))
            return
        self.liveness.someone_prepares(out.now)
        self._step_down_below(prepare.ballot, out)
        executed = self.decided.executed
        votes = self.acceptor.votes_from(max(prepare.first, executed + 1))
        for part in split(Promise(prepare.ballot, prepare.first, votes, executed), self._settings.part_bytes):
            out.send(peer, part)
        self._set_timer(out)

    def on_accept(self, peer: str, accept: Accept, out: Outbox) -> None:
        if not self._is_heard(peer):
            return
        if place_of(accept.ballot) != self._names.index(peer):
            raise ProtocolError(f"ballot {accept.ballot} is not {peer}'s")
        self.liveness.see(accept.ballot)
        self._step_down_below(accept.ballot, out)
        if not self._vote(accept.ballot, accept.first, accept.values, out):
            out.send(peer, Refused(self.acceptor.promised))
        self._execute(out)

    def on_learn(self, peer: str, learn: Learn, out: Outbox) -> None:
        if self._is_heard(peer):
            for slot in learn.slots:
                self.decided.vote(learn.ballot, slot, peer)
            self._execute(out)

    # ------------------------------------------------------------------------------------------------------ proposer
    def _canvass(self, out: Outbox) -> None:
        """Asks who would follow; nothing is promised by that, and no ballot is used up."""
        self._canvassed = next_ballot(max(self.liveness.highest, self.acceptor.promised), self._place)
        self._supporters = {self._settings.name}
        self._tell_all(Canvass(self._canvassed, self.decided.executed), out, now=True)
        self._count_support(out)

    def on_canvass(self, peer: str, canvass: Canvass, out: Outbox) -> None:
        if self._is_heard(peer):
            trusting = self.is_leading or (self.liveness.trusts_leader(out.now) and self.liveness.leader != peer)
            near = canvass.executed >= self.decided.executed or self.decided.knows(canvass.executed + 1)
            yes = not trusting and near and canvass.ballot > self.acceptor.promised
            out.send(peer, CanvassAnswer(canvass.ballot, yes, self.acceptor.promised), after=NOW)

    def on_canvass_answer(self, peer: str, answer: CanvassAnswer, out: Outbox) -> None:
        if not self._is_heard(peer):
            return
        self.liveness.see(answer.promised)
        if answer.yes and answer.ballot == self._canvassed:
            self._supporters.add(peer)
            self._count_support(out)

    def _count_support(self, out: Outbox) -> None:
        if self._canvassed and len(self._supporters) >= self._quorum and not self.is_leading:
            self._canvassed = 0
            self._prepare(out)

    def _prepare(self, out: Outbox) -> None:
        ballot = next_ballot(max(self.liveness.highest, self.acceptor.promised), self._place)
        self.liveness.see(ballot)
        first = self.decided.executed + 1
        self.proposer.prepare(ballot, first)
        require(self.acceptor.promise(ballot, out), "a new ballot is above all that was promised", ballot=ballot)
        votes = self.acceptor.votes_from(first)
        self._own_promise = Promise(ballot, first, votes, self.decided.executed)
        # After our own promise is on the disk: a ballot that is heard of is never used again.
        self._tell_all(Prepare(ballot, first), out)

    def on_promise(self, peer: str, promise: Promise, out: Outbox) -> None:
        if self._is_heard(peer) and promise.ballot == self.proposer.ballot and promise.part <= promise.last:
            whole = self._promise_parts.add(peer, promise)
            if whole is not None:
                self._count_promise(peer, whole, out)

    def _count_promise(self, peer: str, promise: Promise, out: Outbox) -> None:
        self.liveness.executed[peer] = promise.executed
        if not self.proposer.promise(peer, promise):
            return
        ballot = self.proposer.ballot
        self.elections += 1
        self.liveness.lead(self._settings.name, out.now)
        out.note("control", what="leader", detail={"replica": self._settings.name, "ballot": ballot})
        for slot, value in sorted(self.proposer.undecided.items()):
            self._accept(slot, [value], out)
        if self.proposer.caught_up_at > self.decided.executed:
            self._catch_up(out)
        self._beat(out)
        self._serves_after = self.proposer.next_slot - 1
        self._serve_if_caught_up(out)
        out.set_timer((self.name, "repeat"), self._settings.repeat_after)

    def _serve_if_caught_up(self, out: Outbox) -> None:
        """Clients are let in when all is executed that an earlier leader may have told them of; else one that comes
        back would find its session as it was, and be told that the newest of it is forgotten."""
        if self.is_leading and not self.is_serving and self.decided.executed >= self._serves_after:
            self.is_serving = True
            self.elected(out)

    def on_refused(self, peer: str, refused: Refused, out: Outbox) -> None:
        if self._is_heard(peer):
            self.liveness.see(refused.promised)
            self._step_down_below(refused.promised, out)

    def _step_down_below(self, ballot: int, out: Outbox) -> None:
        if ballot > self.proposer.ballot and self.proposer.phase is not Phase.FOLLOWING:
            self._step_down(out)

    def _step_down(self, out: Outbox) -> None:
        led = self.is_leading
        self.is_serving = False
        self.proposer.step_down()
        self._own_promise = None
        if led:
            out.note("control", what="deposed", detail={"replica": self._settings.name})
            self.liveness.deposed()
            self.deposed(out)
        self._set_timer(out)

    # ------------------------------------------------------------------------------------------------------ learner
    def _execute(self, out: Outbox) -> None:
        while (taken := self.decided.take_next()) is not None:
            slot, value = taken
            self.proposer.decided(slot)
            self._bytes_since += len(value)
            try:
                entry = _entry(value)
            except msgspec.DecodeError:
                broken("what is decided can be read", slot=slot)
            for raw in entry.commands:
                self.commands += 1
                outputs = self._application.apply(self.commands, entry.wall, self._decode(raw))
                if outputs:
                    self.applied(outputs, out)
            if entry.trim_before:
                self._trim(entry.trim_before, out)
        self._serve_if_caught_up(out)

    def _trim(self, before: int, out: Outbox) -> None:
        """By a decided command, so at the same slot everywhere; each keeps its own snapshot of the same state."""
        self.settle(out)
        state = make_state(self.decided.executed, self.commands, self._application.get_state())
        self._snapshot = state
        self._trimmed_at = self.decided.executed
        self._bytes_since = 0
        out.snapshot(STATE_STREAM, state)
        self.acceptor.trim(before, out)
        self.decided.trim(before - self._settings.trim_keep)

    # ----------------------------------------------------------------------------------------------------- liveness
    def _beat(self, out: Outbox) -> None:
        self._beats += 1
        self._tell_all(Heartbeat(self.proposer.ballot, self.decided.executed, self._beats), out, now=True)
        out.set_timer((self.name, "beat"), self._settings.heartbeat)

    def on_heartbeat(self, peer: str, beat: Heartbeat, out: Outbox) -> None:
        if not self._is_heard(peer):
            return
        if place_of(beat.ballot) != self._names.index(peer):
            raise ProtocolError(f"ballot {beat.ballot} is not {peer}'s")
        if beat.ballot < self.acceptor.promised:
            out.send(peer, Refused(self.acceptor.promised))
            return
        self._step_down_below(beat.ballot, out)
        before = self.liveness.leader
        self._canvassed = 0  # there is a leader: support that comes late is not used against it
        self.liveness.heard(beat.ballot, beat.executed, out.now)
        if self.liveness.leader != before:
            self.followed(out)
        self._set_timer(out)
        executed = self.decided.executed
        held = executed if self.is_whole() else 0
        out.send(peer, HeartbeatSeen(beat.ballot, executed, beat.number, held), after=NOW)
        if (beat.executed > executed or self.decided.is_behind) and not self._behind_due:
            # What is under way may still come.
            self._behind_due = True
            out.set_timer((self.name, "behind"), self._settings.repeat_after)

    def on_heartbeat_seen(self, peer: str, seen: HeartbeatSeen, out: Outbox) -> None:
        if self._is_heard(peer) and self.is_leading and seen.ballot == self.proposer.ballot:
            self.liveness.answered(peer, seen.executed, seen.held, out.now)

    def _give_up(self, out: Outbox) -> None:
        """Too few answer. Those that still hear us trust us, and send clients here, where nothing can be decided: a
        broken link tells them sooner than silence."""
        self._step_down(out)
        for link in self._link_numbers.values():
            out.disconnect(link, "too few answer this leader")

    def _set_timer(self, out: Outbox) -> None:
        if not self.is_leading:
            out.set_timer((self.name, "patience"), self.liveness.until_deadline(out.now))

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        match key[1]:
            case "patience":
                self._lose_patience(out)
            case "beat":
                if self.is_leading:
                    if self.liveness.is_alone(self._settings.name, out.now):
                        self._give_up(out)
                    else:
                        self._beat(out)
            case "repeat":
                self._repeat(out)
            case "behind":
                self._behind_due = False
                if not self.is_leading and self.liveness.executed.get(self.liveness.leader, 0) > self.decided.executed:
                    self._catch_up(out)
            case "greet":
                self._greet(out)
            case "dial":
                self._dial(key[2], out)
            case _:
                broken("a timer of the replica has a known name", key=key)

    def _lose_patience(self, out: Outbox) -> None:
        if self.is_leading:
            return
        heard = 1 + len(self._links)
        if self.liveness.wants_to_lead(out.now) and self.formation.standing is Standing.FORMED:
            self.liveness.attempt(out.now)
            if heard >= self._quorum and self.is_whole():  # with too few there is nothing to lead
                self._canvass(out)
        elif self.formation.standing is not Standing.FORMED:
            self.liveness.attempt(out.now)
        self._set_timer(out)

    def _dial(self, peer: str, out: Outbox) -> None:
        if peer not in self._connected:
            member = self._settings.members[self._names.index(peer)]
            out.connect(peer, member.peer_address)

    def _repeat(self, out: Outbox) -> None:
        """Links may lose messages: what was not decided is said again."""
        if not self.is_leading:
            return
        for slot, value in sorted(self.proposer.undecided.items()):
            self._tell_all(Accept(self.proposer.ballot, slot, [value]), out, now=True)
            if self.acceptor.has_vote(slot, self.proposer.ballot):
                self._learned.setdefault(self.proposer.ballot, []).append(slot)
        if self.proposer.caught_up_at > self.decided.executed:
            self._catch_up(out)
            if self._learns_nothing(out.now):
                # Those who had executed more have been restarted since: the next election asks what they voted for.
                self._step_down(out)
                return
        out.set_timer((self.name, "repeat"), self._settings.repeat_after)

    def _learns_nothing(self, now: int) -> bool:
        """Whether we have got nowhere for long with learning what was decided before we led."""
        reached = (self.proposer.ballot, self.decided.executed, self._incoming.slot, self._incoming.offset)
        if reached != self._reached:
            self._reached, self._reached_at = reached, now
        return now - self._reached_at > 2 * self._settings.patience

    # --------------------------------------------------------------------------------------------------- catching up
    def _catch_up(self, out: Outbox) -> None:
        """Asks someone who is further; a leader that has just been elected may be behind too."""
        ahead = [peer for peer in self._links if self.liveness.executed.get(peer, 0) > self.decided.executed]
        target = self.liveness.leader if self.liveness.leader in self._links else ""
        # A snapshot that we have got ahead of meanwhile is not wanted any more, nor one that its sender has not begun.
        begun = self._incoming_from if self._incoming.offset and self._incoming.slot > self.decided.executed else ""
        for peer in [target] if target else ahead or list(self._links):
            if peer == begun:
                out.send(peer, AskSnapshot(self._incoming.slot, self._incoming.offset), after=NOW)
            else:
                out.send(peer, AskDecided(self.decided.executed + 1), after=NOW)
        if not self.is_leading and not self._behind_due:
            self._behind_due = True
            out.set_timer((self.name, "behind"), self._settings.repeat_after)

    def on_ask_decided(self, peer: str, ask: AskDecided, out: Outbox) -> None:
        if not self._is_heard(peer) or ask.first > self.decided.executed:
            return
        values = self.decided.read(ask.first, self._settings.part_bytes)
        known = self.decided.executed - ask.first + 1
        if values:
            out.send(peer, Decided(ask.first, values[:known]), after=NOW)
            self._outgoing.pop(peer, None)
        elif self._snapshot is not None and self._snapshot.slot >= ask.first and self.is_whole():
            self._send_part(peer, self._snapshot, 0, out)

    def on_decided(self, peer: str, decided: Decided, out: Outbox) -> None:
        if not self._is_heard(peer):
            return
        for slot, value in enumerate(decided.values, decided.first):
            self.decided.decide(slot, value)
        before = self.decided.executed
        self._execute(out)
        if self.decided.executed > before and self.liveness.executed.get(peer, 0) > self.decided.executed:
            out.send(peer, AskDecided(self.decided.executed + 1), after=NOW)

    def on_ask_snapshot(self, peer: str, ask: AskSnapshot, out: Outbox) -> None:
        state = self._outgoing.get(peer, self._snapshot)
        if self._is_heard(peer) and state is not None and self.is_whole():
            if ask.slot == state.slot:
                self._send_part(peer, state, ask.offset, out)
            elif self._snapshot is not None:
                self._send_part(peer, self._snapshot, 0, out)

    def _send_part(self, peer: str, state: ReplicaState, offset: int, out: Outbox) -> None:
        self._outgoing[peer] = state
        data = pack(state)
        part = data[offset : offset + self._settings.part_bytes]
        out.send(peer, SnapshotPart(state.slot, len(data), state.digest, offset, part), after=NOW)

    def on_snapshot_part(self, peer: str, part: SnapshotPart, out: Outbox) -> None:
        if not self._is_heard(peer) or part.slot <= self.decided.executed:
            return
        before = (self._incoming.slot, self._incoming.offset)
        state = self._incoming.add(part)
        if state is None:
            if self._incoming.slot == part.slot:
                self._incoming_from = peer
                # A part that came twice is not answered twice, or the copies would become more and more.
                if before != (self._incoming.slot, self._incoming.offset):
                    out.send(peer, AskSnapshot(part.slot, self._incoming.offset), after=NOW)
            return
        if self.is_leading:
            self._step_down(out)  # with a state of another it may lack what is no part of it
        self._restore(state)
        for slot in [slot for slot in self.proposer.undecided if slot <= state.slot]:
            self.proposer.decided(slot)
        self._snapshot = state
        # Votes are kept until the group decides to forget them: they may be needed for what this replica lacks.
        out.snapshot(STATE_STREAM, state)
        self.restored(out)
        self._execute(out)
        out.send(peer, AskDecided(self.decided.executed + 1), after=NOW)

    # ----------------------------------------------------------------------------------------------------- operators
    def transfer(self, to: str, out: Outbox) -> tuple[str, str]:
        """Asks another replica to lead: which one, and what is against it, if something is."""
        if not self.is_leading:
            leader = self.liveness.leader
            return to, f"{self._settings.name} does not lead; " + (f"{leader} does" if leader else "nobody does now")
        executed = self.liveness.executed
        if not to and self._links:
            to = max(self._links, key=lambda peer: executed.get(peer, 0))
        if to == self._settings.name:
            return to, f"{to} leads already"
        if to not in self._names:
            known = ", ".join(self._names)
            return to, f"there is no replica {to!r}; there is {known}" if to else "no other replica can be reached"
        if to not in self._links:
            return to, f"{to} can't be reached"
        behind = self.decided.executed - executed.get(to, 0)
        if behind > max(self._settings.trim_keep, self._settings.pipeline):
            return to, f"{to} is {behind} slots behind"
        out.send(to, TakeOver(self.proposer.ballot), after=NOW)
        return to, ""

    def on_take_over(self, peer: str, message: TakeOver, out: Outbox) -> None:
        asked = self._is_heard(peer) and self.liveness.leader == peer and message.ballot == self.liveness.highest
        if asked and not self.is_leading and self.formation.standing is Standing.FORMED and self.is_whole():
            self._prepare(out)

    def measure(self) -> dict[str, int]:
        formed, executed = self.formation.standing is Standing.FORMED, self.decided.executed
        return {
            "replica_ballot": self.acceptor.promised,
            "replica_slots_executed": executed,
            "replica_slots_behind": max(0, *self.liveness.executed.values(), executed) - executed,
            "replica_slots_undecided": len(self.proposer.undecided),
            "replica_commands_waiting": self.proposer.waiting,
            "replica_is_leading": int(self.is_leading),
            "replica_elections_total": self.elections,
            "replica_peers": len(self._links),
            "replica_survives": max(0, 1 + len(self._links) - self._quorum) if formed else 0,
            "replica_tolerates": tolerated(len(self._names)),
        }

    def facts(self) -> dict[str, str]:
        """What there is to say in words."""
        standing = self.formation.standing
        role = self.proposer.phase.value if standing is Standing.FORMED else standing.value
        return {"role": role, "leader": self.liveness.leader, "protocol": self._settings.protocol.value}

    def check_invariants(self) -> None:
        self.acceptor.check_invariants()
        self.proposer.check_invariants()
        self.decided.check_invariants()
