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

from collections.abc import Collection, Mapping

import msgspec

from holdfast.errors import EventError
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.matching import FilterIndex
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event, EventBytes, any_expires, slices_of
from holdfast.model.values import Value
from holdfast.protocols.core import commands
from holdfast.protocols.core.arrivals import Arrivals, ArrivalState
from holdfast.protocols.core.commands import Command, LogCommand, StageCommand
from holdfast.protocols.core.crowding import Crowding
from holdfast.protocols.core.cursor import CursorState
from holdfast.protocols.core.cursor_table import CursorTable
from holdfast.protocols.core.expiry import note_deadlines, without_expired
from holdfast.protocols.core.hosting import Hosting, HostingState
from holdfast.protocols.core.interests import Interests, Untold
from holdfast.protocols.core.judgement import Refused, judge
from holdfast.protocols.core.lifetimes import Outcomes, deadlines_of
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
        self._decoded: tuple[EventBytes, EventBatch] | None = None

    @property
    def index(self) -> FilterIndex[Subscription]:
        return self.register.index

    # ----------------------------------------------------------------------------------------------------- commands
    def apply(self, number: int, wall: int, command: Command) -> list[Output]:
        if number != self.number + 1:
            broken("commands are applied in order", number=number, last=self.number)
        self.number = number
        if not self.memory:
            self.memory = max(1, wall)
        outputs: list[Output] = []
        match command:
            case commands.Publish():
                self._publish(command, wall, outputs)
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
                self._arrive(command, wall, outputs)
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
    def decode(self, events: EventBytes) -> EventBatch:
        """The events of these bytes. Decoded once, though a node looks at a batch before it is applied."""
        if self._decoded is None or self._decoded[0] is not events:
            self._decoded = (events, EventBatch.decoded(events))
        return self._decoded[1]

    def _publish(self, command: commands.Publish, wall: int, outputs: list[Output]) -> None:
        """What a client published, or publishes again: its own numbers tell (D4-B6.1, D4-C6)."""
        session = self.sessions.get(command.client)
        if session is None or session.epoch != command.epoch or command.first > session.accepted + 1:
            return
        try:
            batch = self.decode(command.events)
        except EventError:
            # The node that heard it refuses such bytes; a core that is handed them all the same leaves them alone.
            return
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
        first = session.accepted + 1
        matched, refused = self._judge(session, batch.events, batch.slices)
        session.accept(len(batch), refused)
        rows = [row for row in range(len(batch)) if row not in refused] if refused else range(len(batch))
        if self.interests.are_told:
            new = self.arrivals.enter(batch.take(rows).events)
            rows = rows if len(new) == len(rows) else [rows[row] for row in new]
        if len(rows) < len(batch):
            batch, matched = batch.take(rows), [matched[row] for row in rows]
        if batch:
            self._enter(batch, matched, wall, outputs, session, first)
            self._show(batch.events, wall, outputs)

    def _enter(
        self,
        batch: EventBatch,
        matched: list[list[Subscription]],
        wall: int,
        outputs: list[Output],
        session: Session | None = None,
        first: int = 0,
    ) -> None:
        """Events are published here: other brokers of the network may want them too."""
        if self.interests.are_told:
            entered = Entered(self.number, batch)
            if session is not None:
                entered = Entered(self.number, batch, session.client, session.epoch, first)
            outputs.append(entered)
        self._accept(batch.events, batch.slices, matched, wall, outputs)

    def _arrive(self, command: commands.Arrive, wall: int, outputs: list[Output]) -> None:
        """Events of other brokers' clients, for ours. Those that nobody wants any more are not kept."""
        try:
            batch = self.decode(command.events)
        except EventError:
            return  # as with Publish
        fresh = self.arrivals.fresh(command.source, command.feed, command.numbers, batch.events, wall)
        if not fresh:
            return
        batch = batch.take(fresh)
        matched, refused = judge(self.index, None, batch.events, batch.slices)
        wanted = self.wanted_rows(batch.events, matched, refused)
        if wanted:
            batch = batch.take(wanted)
            self._accept(batch.events, batch.slices, [matched[row] for row in wanted], wall, outputs)
            self._show(batch.events, wall, outputs)

    def wanted_rows(
        self, events: list[Event], matched: list[list[Subscription]], refused: Collection[int]
    ) -> list[int]:
        """The rows of sound events that a subscription, a name or the hosted application of this broker wants."""
        named = self.cursors.wanted_rows(events, refused) if self.log is not None else set()
        topics = self.hosting.topics
        return [
            row
            for row, event in enumerate(events)
            if (matched[row] or row in named or event.topic in topics) and row not in refused
        ]

    def _show(self, events: list[Event], wall: int, outputs: list[Output]) -> None:
        """The hosted application sees what was accepted last; what it derives of that comes right behind."""
        if not self.hosting.topics:
            return
        first = self.events - len(events) + 1
        made, slices, matched = self.hosting.observe(first, wall, self.memory, events, self._match)
        if made:
            outputs.append(MadeByApplication(made))
            self._enter(EventBatch(made, slices), matched, wall, outputs)

    def _match(self, attributes: Mapping[str, Value], topic: str) -> list[Subscription]:
        return self.index.match_batch([(attributes, topic)])[0]

    def _execute(self, command: commands.Execute, outputs: list[Output]) -> None:
        """A request for the hosted application, or one that is asked again."""
        session = self.register.session(command.client, command.epoch)
        if session is not None:
            self.register.dormant.pop(session.client, None)
            answer = session.execute(command, self.hosting)
            if answer is not None:
                outputs.append(Reply(session.client, session.epoch, answer.message(command.number)))

    def _judge(
        self, session: Session, events: list[Event], slices: list[EventBytes]
    ) -> tuple[list[list[Subscription]], Refused]:
        return judge(self.index, session.advertised, events, slices)

    def _accept(
        self,
        events: list[Event],
        slices: list[EventBytes],
        matched: list[list[Subscription]],
        wall: int,
        outputs: list[Output],
    ) -> None:
        """Events are published: they get their positions, and go to all who want them now, at every replica alike
        (D4-B6.3). `events` may be left out if nobody looks at them."""
        self.events += len(slices)
        first = 0
        if self.log is not None:
            first = self.log.add(len(slices), sum(map(len, slices)), wall)
            outputs.append(Logged(first, self.log.wall, slices))
            if self.cursors.owned:
                self.cursors.feed(first, events, slices, outputs)
        deadlines = deadlines_of(events) if any_expires(events) else {}
        if deadlines:
            matched = without_expired(deadlines, slices, matched, wall, outputs)
        woken: dict[Subscription, tuple[list[EventBytes], list[int]]] = {}
        for row, wanted in enumerate(matched):
            if wanted:
                # A slice keeps the whole batch that it came in alive; a copy keeps itself.
                kept, position = slices[row].copy(), first + row if first else 0
                for subscription in wanted:
                    if subscription in woken:
                        woken[subscription][0].append(kept)
                        woken[subscription][1].append(position)
                    else:
                        woken[subscription] = ([kept], [position])
        before = {subscription: subscription.last for subscription in woken} if deadlines else {}
        overflowed = self._keep(woken, slices, matched, first)
        if deadlines:
            note_deadlines(deadlines, matched, before)
            mortal = {subscription: None for subscription in woken if subscription.deadlines is not None}
            self.register.perishing.update(mortal)
        if self.crowding.blocking:
            for subscription in woken:
                if subscription.ledger.blocking:
                    self.crowding.look(subscription)
        if woken:
            # Also those that overflowed: they had room for some.
            outputs.append(Woken(list(woken)))
        for subscription, size in overflowed.items():
            self.register.end_for(subscription, self._overflow_reason(subscription, size), outputs)

    def _overflow_reason(self, subscription: Subscription, size: int) -> str:
        limits = self.limits
        if len(subscription) < limits.backlog_events and subscription.bytes + size <= limits.backlog_bytes:
            return f"overflow: more than {limits.backlog_bytes_per_session} bytes wait for the session"
        return f"overflow: more than {limits.backlog_events} events or {limits.backlog_bytes} bytes wait"

    def _keep(
        self,
        woken: dict[Subscription, tuple[list[EventBytes], list[int]]],
        slices: list[EventBytes],
        matched: list[list[Subscription]],
        first: int,
    ) -> dict[Subscription, int]:
        """Adds events to the subscriptions that want them; gives those without room, in the order of overflowing, each
        with the size of what did not fit."""
        events_max, bytes_max = self.limits.backlog_events, self.limits.backlog_bytes
        tight = {s: None for s, kept in woken.items() if not s.add_all(*kept, events_max, bytes_max)}
        overflowed: dict[Subscription, int] = {}
        for row, wanted in enumerate(matched) if tight else ():
            # One by one: each keeps what it has room for, and who overflows at an earlier event ends earlier.
            position = first + row if first else 0
            for subscription in wanted:
                if subscription not in tight or subscription in overflowed:
                    continue
                if not subscription.add(slices[row].copy(), position, events_max, bytes_max):
                    overflowed[subscription] = len(slices[row])
        return overflowed

    # ------------------------------------------------------------------------------------------------------- stages
    def _stage(self, command: commands.StageEvents, wall: int) -> Message:
        try:
            batch = self.decode(command.events)
        except EventError as error:
            return log_messages.LogRefused(command.request, Refusal.EVENT, str(error))
        refused: Refused = {}
        if batch:
            _, refused = judge(FilterIndex(), self.sessions[command.client].advertised, batch.events, batch.slices)
        for row, (reason, problem) in refused.items():
            return log_messages.LogRefused(command.request, reason, f"{problem} (event {row} of the batch)")
        return self.staging.stage(command, len(batch), wall, self.limits.staged_bytes)

    def _commit(self, log: LogState, command: commands.CommitStages, wall: int, outputs: list[Output]) -> Message:
        answer = self.staging.answer_commit(command)
        if answer is not None:
            return answer
        first, shown = log.head + 1, list[Event]()
        wanted = len(self.index) > 0 or bool(self.cursors.owned) or bool(self.hosting.topics)
        wanted = wanted or self.interests.are_told
        for part in self.staging.take_parts(command.stages):
            # What nobody looks at now needs no decoding: it was found sound when it was staged, and goes to the log.
            batch = self.decode(part) if wanted else EventBatch([], slices_of(part))
            if batch:
                matched = self.index.match_batch([(event.attributes, event.topic) for event in batch.events])
                self._enter(batch, matched, wall, outputs)
            if self.hosting.topics:
                shown += batch.events
        first, last = (first, log.head) if log.head >= first else (0, 0)
        self.staging.commit(command.query, command.query_epoch, first, last, wall, self.limits.queries)
        self._show(shown, wall, outputs)  # behind all of them, which have positions without gaps
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
        self.number, self.events, self._decoded = decoded.number, decoded.events, None
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
