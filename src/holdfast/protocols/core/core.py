"""The broker's core: who has a session, what is subscribed, who gets which event.

An Application: numbered commands in, outputs for sessions out; no links, timers, storage or randomness, and time only
inside the commands. A node runs it directly, behind a journal, or behind a group's decided log, and never changes it in
another way.

Beside it stand its parts: the `register` of sessions and what they want, the `crowding` of subscriptions whose
publishers wait, the `cursors` of named subscriptions. Here events are accepted, and go to all who want them.

- Events that a session publishes are numbered without gaps. What was accepted before is skipped; what leaves a gap is
  not taken. So a retried publish is not doubled.
- Each subscription keeps the events that its client has not received, numbered without gaps, up to its limit.
- Who wants an event that has expired does not get it (D1-A4): neither one that had when it was accepted, by the time of
  the command, nor one that did while it waited. It is published all the same, and has its place in the log.
- A session that has advertised something publishes what it advertised and nothing else; one that has not may publish
  anything, as if it had advertised every topic that it uses.
- Bad events are refused one by one, and the refusal is kept until the client has seen it.
- It may host an application (`hosting`), which sees events as they are accepted and answers requests. A request is
  executed once, and its answer kept until the client has confirmed it (D4-B6.4, D4-C6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from holdfast.errors import EventError
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.matching import FilterIndex
from holdfast.model.batch import EventBatch, read_or_none
from holdfast.protocols.core import commands
from holdfast.protocols.core.arrivals import Arrivals, ArrivalState
from holdfast.protocols.core.backlog import Run
from holdfast.protocols.core.commands import Command, LogCommand, StageCommand
from holdfast.protocols.core.crowding import Crowding
from holdfast.protocols.core.cursor import Cursor, CursorState
from holdfast.protocols.core.cursor_table import CursorTable
from holdfast.protocols.core.expiry import note_deadlines, without_expired
from holdfast.protocols.core.hosting import Hosting, HostingState
from holdfast.protocols.core.interests import Interests, Untold
from holdfast.protocols.core.judgement import Known, Matched, Wanted, among, judge, sound_rows
from holdfast.protocols.core.lifetimes import Outcomes
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.core.log_commands import apply_to_log
from holdfast.protocols.core.log_state import LogState
from holdfast.protocols.core.outputs import Answered, Entered, Logged, MadeByApplication, Output, Reply, Woken
from holdfast.protocols.core.register import SessionRegister
from holdfast.protocols.core.session import Session, SessionState
from holdfast.protocols.core.staging import Staging
from holdfast.protocols.core.subscriptions import Subscription, SubscriptionState
from holdfast.protocols.cursors import messages as log_messages
from holdfast.protocols.sessions.messages import Refusal

STATE_FORMAT = 1


class _State(msgspec.Struct, frozen=True, array_like=True):
    format: int
    number: int
    events: int
    memory: int
    sessions: list[SessionState]
    dormant: list[str]
    subscriptions: list[SubscriptionState]  # in the order in which they were made
    log: LogState | None = None
    cursors: list[CursorState] = []
    staging: Staging | None = None
    generations: int = 0  # of cursors
    cursors_ended: dict[str, list[tuple[int, int, str]]] = {}  # client → (epoch, its number, why)
    hosting: HostingState | None = None
    arrivals: ArrivalState | None = None
    settled: Outcomes = msgspec.field(default_factory=Outcomes)


class BrokerCore:
    """Implements `Application[Command, Output]`."""

    def __init__(
        self,
        limits: CoreLimits | None = None,
        log: bool = False,
        hosting: Hosting | None = None,
        interests: Interests | None = None,
        arrivals: Arrivals | None = None,
    ) -> None:
        """Of a network's broker: `interests` is what its clients want and advertise, `arrivals` what has come from
        other brokers."""
        self.limits = limits or CoreLimits()
        self.log = LogState() if log else None  # of the events; without one there are no positions
        self.interests = interests or Untold()
        self.cursors = CursorTable(self.log or LogState(), self.limits.named_subscriptions, self.interests)
        self.crowding = Crowding(self.limits)
        self.register = SessionRegister(self.limits, self.crowding, self.cursors, self.interests)
        self.sessions = self.register.sessions
        self.staging = Staging()
        self.hosting = hosting or Hosting()  # of no application
        self.arrivals = arrivals or Arrivals()
        self.number = 0  # of the last command
        self.events = 0  # accepted so far
        self.memory = 0  # names this core from its first command on: one that forgot everything has another

    @property
    def index(self) -> FilterIndex[Subscription]:
        return self.register.index

    # ----------------------------------------------------------------------------------------------------- commands
    def apply(self, number: int, wall: int, command: Command, known: Known | None = None) -> list[Output]:
        """`known`: what whoever made the command has just read of its events, or found by `wanted_of`."""
        if number != self.number + 1:
            broken("commands are applied in order", number=number, last=self.number)
        self.number = number
        if not self.memory:
            self.memory = max(1, wall)
        outputs: list[Output] = []
        match command:
            case commands.Publish():
                self._publish(command, wall, outputs, known if isinstance(known, EventBatch) else None)
            case commands.Receive():
                self.register.receive(command, outputs)
            case commands.Subscribe():
                self.register.subscribe(command, outputs)
            case commands.Unsubscribe():
                self.register.unsubscribe(command, outputs)
            case commands.Advertise():
                self.register.advertise(command, outputs)
            case commands.Unadvertise():
                self.register.unadvertise(command, outputs)
            case commands.EndSubscription():
                self.register.end_subscription(command, outputs)
            case commands.Execute():
                self._execute(command, outputs)
            case commands.Arrive():
                self._arrive(command, wall, outputs, known if isinstance(known, Wanted) else None)
            case commands.ExpireEvents():
                self.register.expire(command, outputs)
            case commands.OpenSession():
                self.register.open(command, wall, outputs)
            case commands.EndSession():
                self.register.end(command, wall, outputs)
            case commands.DropSubscriptions():
                self.register.drop_subscriptions(command, wall, outputs)
            case _ if self.log is not None:  # without one, the node refuses what needs it
                self._apply_to_log(self.log, wall, command, outputs)
        return outputs

    def _apply_to_log(
        self, log: LogState, wall: int, command: StageCommand | LogCommand, outputs: list[Output]
    ) -> None:
        if not isinstance(command, commands.KeepLog | commands.ExpireStages | commands.RemoveName):
            if self.register.session(command.client, command.epoch) is None:
                return
            self.register.dormant.pop(command.client, None)
        match command:
            case commands.StageEvents():
                outputs.append(Reply(command.client, command.epoch, self._stage(command, wall)))
            case commands.CommitStages():
                # The events first: whoever is told that they are published can rely on it.
                answer = self._commit(log, command, wall, outputs)
                # Also of one that was committed before: what it published may still be under way to other brokers.
                outputs.append(Reply(command.client, command.epoch, answer, self.number))
            case _:
                apply_to_log(log, self.cursors, self.staging, wall, command, outputs)

    # ------------------------------------------------------------------------------------------------------- events
    def _publish(
        self, command: commands.Publish, wall: int, outputs: list[Output], batch: EventBatch | None = None
    ) -> None:
        """What a client published, or publishes again: its own numbers tell (D4-B6.1, D4-C6)."""
        session = self.sessions.get(command.client)
        if session is None or session.epoch != command.epoch or command.first > session.accepted + 1:
            return
        batch = read_or_none(command.events) if batch is None else batch
        if batch is None:
            return  # the node that heard it refuses such bytes; a core that is handed them leaves them alone
        # In a group, a client that was given up by one node may have come back to another already.
        self.register.dormant.pop(session.client, None)
        outputs.append(Answered(session.client))
        batch = batch.behind(session.accepted + 1 - command.first)
        if session.refused:
            session.confirm(command.confirmed)
        if command.skipped:
            session.skip_to(command.first + command.skipped - 1)
            return
        if not batch:
            return
        batch = batch.apart()  # it may be kept for long, and neither the message around it nor what was said before
        first = session.accepted + 1
        refused = judge(session.advertised, batch)
        session.accept(len(batch), refused)
        batch = batch.take(sound_rows(batch, refused))
        if self.interests.are_told:
            batch = batch.take(self.arrivals.enter(batch))
        if batch:
            self._enter(batch, wall, outputs, session, first)
            self._show(batch, wall, outputs)

    def _enter(
        self, batch: EventBatch, wall: int, outputs: list[Output], session: Session | None = None, first: int = 0
    ) -> None:
        """Events are published here: other brokers of the network may want them too."""
        if self.interests.are_told:
            entered = Entered(self.number, batch)
            if session is not None:
                entered = Entered(self.number, batch, session.client, session.epoch, first)
            outputs.append(entered)
        self._accept(batch, self.index.match_encoded(batch), wall, outputs)

    def _arrive(self, command: commands.Arrive, wall: int, outputs: list[Output], wanted: Wanted | None = None) -> None:
        """Events of other brokers' clients, for ours. Those that nobody wants any more are not kept."""
        batch = read_or_none(command.events) if wanted is None else wanted.batch
        if batch is None:
            return  # as with Publish
        fresh = batch.take(self.arrivals.fresh(command.source, command.feed, command.numbers, batch, wall))
        if wanted is None or fresh is not batch:
            wanted = self.wanted_of(fresh.take(sound_rows(fresh, fresh.doubtful)))
        if wanted.batch:
            self._accept(wanted.batch, wanted.subscriptions, wall, outputs, wanted.cursors)
            self._show(wanted.batch, wall, outputs)

    def wanted_of(self, batch: EventBatch) -> Wanted:
        """Which of some sound events a subscription, a name or the hosted application of this broker wants."""
        matched = self.index.match_encoded(batch)
        cursors = self.cursors.match(batch) if self.log is not None else {}
        wishes = [*matched.values(), *cursors.values()]
        topics = self.hosting.topics
        if topics and not topics.isdisjoint(batch.topics()):
            wishes.append([row for row, event in enumerate(batch.events) if event.topic in topics])
        rows = batch.rows_in(wishes)
        if len(rows) == len(batch):  # they may be kept for long, and what is around them not
            return Wanted(batch.apart(), rows, matched, cursors)
        return Wanted(batch.take(rows), rows, among(rows, matched), among(rows, cursors))

    def _show(self, batch: EventBatch, wall: int, outputs: list[Output]) -> None:
        """The hosted application sees what was accepted last; what it derives of that comes right behind."""
        if not self.hosting.sees(batch):
            return
        made = self.hosting.observe(self.events - len(batch) + 1, wall, self.memory, batch.events)
        if made:
            derived = EventBatch.of(made)
            outputs.append(MadeByApplication(derived))
            self._enter(derived, wall, outputs)

    def _execute(self, command: commands.Execute, outputs: list[Output]) -> None:
        """A request for the hosted application, or one that is asked again."""
        session = self.register.session(command.client, command.epoch)
        if session is not None:
            self.register.dormant.pop(session.client, None)
            answer = session.execute(command, self.hosting)
            if answer is not None:
                outputs.append(Reply(session.client, session.epoch, answer.message(command.number)))

    def _accept(
        self,
        batch: EventBatch,
        matched: Matched,
        wall: int,
        outputs: list[Output],
        cursors: Mapping[Cursor, Sequence[int]] | None = None,
    ) -> None:
        """Events are published: they get their positions, and go to all who want them now, at every replica alike
        (D4-B6.3). `cursors`: those that want them, if that is known."""
        count = len(batch)
        self.events += count
        run = Run(batch)
        if self.log is not None:
            first = self.log.add(count, batch.bytes, wall)
            run = Run(batch, range(first, first + count))
            outputs.append(Logged(first, self.log.wall, batch))
            if self.cursors.owned:
                self.cursors.feed(run, self.cursors.match(batch) if cursors is None else cursors, outputs)
        if not matched:
            return
        deadlines = batch.deadlines
        if deadlines is not None:
            matched = without_expired(deadlines, batch, matched, wall, outputs)
            before = {subscription: subscription.last for subscription in matched}
        overflowed = self._keep(run, matched)
        if deadlines is not None:
            note_deadlines(deadlines, matched, before)
            self.register.perishing.update({s: None for s in matched if s.deadlines is not None})
        if self.crowding.blocking:
            for subscription in matched:
                if subscription.ledger.blocking:
                    self.crowding.look(subscription)
        if matched:
            # Also those that overflowed: they had room for some.
            outputs.append(Woken(list(matched)))
        for subscription, size in overflowed:
            self.register.end_for(subscription, self._overflow_reason(subscription, size), outputs)

    def _overflow_reason(self, subscription: Subscription, size: int) -> str:
        limits = self.limits
        if len(subscription) < limits.backlog_events and subscription.bytes + size <= limits.backlog_bytes:
            return f"overflow: more than {limits.backlog_bytes_per_session} bytes wait for the session"
        return f"overflow: more than {limits.backlog_events} events or {limits.backlog_bytes} bytes wait"

    def _keep(self, run: Run, matched: Matched) -> list[tuple[Subscription, int]]:
        """Adds events to the subscriptions that want them; gives those without room, each with the size of what did not
        fit. Who overflows at an earlier event ends earlier."""
        events_max, bytes_max = self.limits.backlog_events, self.limits.backlog_bytes
        overflowed: list[tuple[int, Subscription]] = []
        for subscription, rows in matched.items():
            taken = subscription.add(run.take(rows), events_max, bytes_max)
            if taken < len(rows):
                overflowed.append((rows[taken], subscription))
        overflowed.sort(key=lambda found: found[0])
        return [(subscription, run.batch.bytes_of(row, row + 1)) for row, subscription in overflowed]

    # ------------------------------------------------------------------------------------------------------- stages
    def _stage(self, command: commands.StageEvents, wall: int) -> Message:
        try:
            batch = EventBatch.read(command.events)
        except EventError as error:
            return log_messages.LogRefused(command.request, Refusal.EVENT, str(error))
        refused = judge(self.sessions[command.client].advertised, batch)
        for row, (reason, problem) in refused.items():
            return log_messages.LogRefused(command.request, reason, f"{problem} (event {row} of the batch)")
        return self.staging.stage(command, len(batch), wall, self.limits.staged_bytes)

    def _commit(self, log: LogState, command: commands.CommitStages, wall: int, outputs: list[Output]) -> Message:
        answer = self.staging.answer_commit(command)
        if answer is not None:
            return answer
        first, shown = log.head + 1, list[EventBatch]()
        for part in self.staging.take_parts(command.stages):
            batch = EventBatch.read(part)
            if batch:
                self._enter(batch, wall, outputs)
            if self.hosting.topics:
                shown.append(batch)
        first, last = (first, log.head) if log.head >= first else (0, 0)
        self.staging.commit(command.query, command.query_epoch, first, last, wall, self.limits.queries)
        if shown:
            self._show(EventBatch.joined(shown), wall, outputs)  # behind all of them, which have positions without gaps
        return log_messages.StagesCommitted(command.request, first, last)

    # -------------------------------------------------------------------------------------------------------- state
    def get_state(self) -> bytes:
        sessions, dormant, subscriptions, settled = self.register.get_state()
        state = _State(
            STATE_FORMAT,
            self.number,
            self.events,
            self.memory,
            sessions,
            dormant,
            subscriptions,
            self.log,
            self.cursors.get_state(),
            self.staging,
            self.cursors.generations,
            self.cursors.ended_state(),
            self.hosting.get_state(),
            self.arrivals.get_state(),
            settled,
        )
        return msgspec.msgpack.encode(state)

    @staticmethod
    def log_of(state: bytes) -> LogState:
        """What a state says of the log."""
        return msgspec.msgpack.decode(state, type=_State).log or LogState()

    def set_state(self, state: bytes) -> None:
        decoded = msgspec.msgpack.decode(state, type=_State)
        require(decoded.format == STATE_FORMAT, "the state's format is known", format=decoded.format)
        require((decoded.log is None) == (self.log is None), "a log is not begun or given up half-way")
        self.number, self.events = decoded.number, decoded.events
        self.memory = decoded.memory
        self.register.set_state(decoded.sessions, decoded.dormant, decoded.subscriptions, decoded.settled)
        self.log, self.staging = decoded.log, decoded.staging or Staging()
        self.cursors.set_state(self.log or LogState(), decoded.cursors, decoded.generations, decoded.cursors_ended)
        self.register.tell_advertisements()
        self.hosting.set_state(decoded.hosting)
        self.arrivals.set_state(decoded.arrivals)

    def check_invariants(self) -> None:
        """Raises InvariantBroken if the state contradicts itself."""
        self.register.check_invariants(self.hosting.limits.requests_in_flight)
        if self.log is not None:
            self.log.check_invariants()
            require(self.log.head == self.events, "every event has a position", head=self.log.head, events=self.events)
            self.cursors.check_invariants()
            self.staging.check_invariants()
