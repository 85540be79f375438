"""The broker's side of the log: cursors, reading by position, stages; and letting go of what is not needed.

A part of a broker's node, behind the sequencer and the session desk. What must outlive a link is in the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, get_args

import msgspec

from holdfast.errors import EventError, FilterError, ProtocolError
from holdfast.kernel.inputs import Drained, Durable, LinkDown, LinkUp, LogRead, LogSent, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.sequencing import CommandsApplied, StateReplaced
from holdfast.kernel.storage import EVENTS
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model import Filter
from holdfast.model.batch import EventBatch
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.outputs import (
    CursorFed,
    CursorLeft,
    CursorTaken,
    Kept,
    Logged,
    LogLookedAt,
    LogOutput,
    NameRemoval,
    Output,
)
from holdfast.protocols.core.session import Session
from holdfast.protocols.cursors.messages import (
    NEW,
    Acknowledge,
    AskLog,
    CloseCursor,
    CommitStages,
    CursorEnded,
    CursorProgress,
    CursorRefused,
    ForgetName,
    LogRefused,
    LogTold,
    OpenCursor,
    ReadRange,
    StageEvents,
)
from holdfast.protocols.desks.cursor_deliveries import CursorDeliveries, DeliverySettings
from holdfast.protocols.desks.event_log import EventLog
from holdfast.protocols.desks.held_log import HeldLog
from holdfast.protocols.desks.ranges import RangePart, gone
from holdfast.protocols.desks.sequencer import Sequencer
from holdfast.protocols.desks.session_desk import SessionDesk
from holdfast.protocols.sessions.messages import Refusal

CLIENTS: Final = frozenset({Role.CLIENT})
WAITING_MAX: Final = 10_000  # requests that wait for a position
NAME_BYTES_MAX: Final = 128
NO_LOG: Final = "the broker keeps no log: give it 'data' in the site file"
NO_NAME: Final = f"a name has 1 to {NAME_BYTES_MAX} bytes"
WRITE_WITHIN: Final = 10 * MILLISECOND  # in a group: what is decided is appended to the log at the latest
LOG_OUTPUTS: Final = frozenset(get_args(LogOutput))
FOUND_RECORDS: Final = 1_000  # read at a time when a time is looked for


def is_name(text: str) -> bool:
    return 0 < len(text.encode(errors="replace")) <= NAME_BYTES_MAX


class RetentionSettings(msgspec.Struct, frozen=True, gc=False):
    """How long events are kept. 0 is for ever; what a cursor needs is kept up to `bytes_hard` all the same."""

    bytes: int = 1024**3
    age: int = 0
    bytes_hard: int = 8 * 1024**3
    stage_age: int = 600 * SECOND
    look_every: int = 5 * SECOND


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    peer: str
    message: AskLog | ReadRange


class LogDesk(Part):
    """Serves the log: named subscriptions, ranges, stages. `events` is the log itself."""

    name: ClassVar[str] = "log"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (
            OpenCursor,
            CloseCursor,
            CursorProgress,
            Acknowledge,
            ForgetName,
            AskLog,
            ReadRange,
            StageEvents,
            CommitStages,
        ),
        CLIENTS,
    )
    notices: ClassVar[tuple[type[Notice], ...]] = (CommandsApplied, StateReplaced)

    def __init__(
        self,
        core: BrokerCore,
        sequencer: Sequencer,
        sessions: SessionDesk,
        events: EventLog,
        retention: RetentionSettings | None = None,
        delivery: DeliverySettings | None = None,
    ) -> None:
        self._core = core
        self._sequencer = sequencer
        self._sessions = sessions
        self._retention = retention or RetentionSettings()
        self._settings = delivery or DeliverySettings()
        self.events = events
        self._deliveries = CursorDeliveries(lambda: 0 if core.log is None else core.log.head, self._settings)
        self._links: dict[str, int] = {}
        self._aged: tuple[int, int] | None = None  # when we last looked for what is old, and the wall clock then
        self._waiting: list[_Waiting] = []
        self._looked_for: dict[tuple[str, int], AskLog] = {}  # questions that the group has not agreed on yet
        self._looking: dict[int, tuple[str, AskLog]] = {}  # for the event at a time
        self._last_look = 0
        self._ticking = False
        self._writing_due = False  # the timer is set
        self._held = HeldLog(self._retention.bytes, self._retention.bytes_hard)

    # -------------------------------------------------------------------------------------------------------- life
    def on_started(self, started: Started, out: Outbox) -> None:
        if self._core.log is not None:
            self.events.on_started(started, self._core.log.tail, self._core.log.head)
            out.set_timer((self.name, "retention"), self._retention.look_every)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is Role.CLIENT:
            self._detach(up.peer)  # the driver may say later that an older link is down
            self._links[up.peer] = up.link

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if self._links.get(down.peer) == down.link:
            del self._links[down.peer]
            self._detach(down.peer)

    def _detach(self, peer: str) -> None:
        self._deliveries.detach(peer)
        self._waiting = [waiting for waiting in self._waiting if waiting.peer != peer]
        for key in [key for key in self._looked_for if key[0] == peer]:
            del self._looked_for[key]

    def on_commands_applied(self, applied: CommandsApplied, out: Outbox) -> None:
        for output in applied.outputs:
            if type(output) in LOG_OUTPUTS:
                self._take(output, out)

    def _take(self, output: Output, out: Outbox) -> None:
        """Of what came of commands, what concerns the log."""
        match output:
            case Logged() | Kept():
                self.events.add(output)
            case CursorFed():
                self._deliveries.feed(output)
            case CursorTaken():
                owner = output.cursor.owner
                session = None if owner is None else self._sessions.session(owner[0])
                # In a group all execute this, and only the replica that its owner talks to sends anything.
                if owner is not None and session is not None and session.epoch == owner[1]:
                    self._deliveries.take(output, out)
                    self._tick(out)
            case CursorLeft():
                self._deliveries.leave(output.owner)
            case LogLookedAt():
                asked = self._looked_for.pop((output.client, output.request), None)
                if asked is not None:
                    self._ask(output.client, asked, out)
            case NameRemoval() if output.removed:
                self._deliveries.forget(output.name)

    def on_durable(self, durable: Durable, out: Outbox) -> None:
        if self.events.under_way:
            self.events.on_durable(durable)
        self._deliveries.on_durable(durable.token)
        ready = [w for w in self._waiting if w.message.at_least <= self.events.durable_head]
        if ready:
            self._waiting = [w for w in self._waiting if w.message.at_least > self.events.durable_head]
            for waiting in ready:
                self._answer(waiting.peer, waiting.message, out)

    def on_drained(self, drained: Drained, out: Outbox) -> None:
        self._deliveries.look_again(drained.peer)

    def on_log_sent(self, sent: LogSent, out: Outbox) -> None:
        self._deliveries.on_log_sent(sent, out)

    def finish(self, out: Outbox) -> None:
        events = self.events
        if events.waiting and self._sequencer.applied_is_safe and not out.stored:
            # In a group the votes are what must be on the disk, and are: a sync for the log alone can be saved.
            if not self._writing_due:
                self._writing_due = True
                out.set_timer((self.name, "write"), WRITE_WITHIN)
        elif events.waiting or events.keep_from or events.has_hole:
            self.write(out)
        if self._deliveries.due:
            self._deliveries.finish(out)

    def write(self, out: Outbox) -> None:
        """Appends what was accepted to the log."""
        if self._core.log is not None:
            self.events.finish(self._core.log.head, self._core.log.wall, out)

    def on_state_replaced(self, replaced: StateReplaced, out: Outbox) -> None:
        if self._core.log is not None:
            self.events.restored(self._core.log.head, self._core.log.tail, out)

    # ------------------------------------------------------------------------------------------------------ cursors
    def on_open_cursor(self, peer: str, message: OpenCursor, out: Outbox) -> None:
        if not 1 <= message.window <= 65_536:
            raise ProtocolError(f"a window is 1 to 65536, not {message.window}")
        if message.start < NEW or message.generation < 0:
            raise ProtocolError(f"a position is 1 or more, not {message.start}")
        session = self._sessions.session(peer)
        if session is None:
            return
        if self._core.log is None:
            out.send(peer, CursorRefused(message.cursor, Refusal.NO_LOG, NO_LOG))
            return
        if not is_name(message.name):
            out.send(peer, CursorRefused(message.cursor, Refusal.LIMIT, NO_NAME))
            return
        known = self._core.cursors.cursors.get(message.name)
        command = commands.OpenCursor(
            peer,
            session.epoch,
            message.cursor,
            message.name,
            message.filter,
            message.start,
            message.move,
            message.window,
            message.generation,
            message.received,
            # In a group more may be sent until this is applied, and another leader may have sent anything.
            self._deliveries.sent_to_anyone(known) if self._sequencer.applies_at_once else -1,
            message.unconsumed,
        )
        self._sequencer.submit(command, out)

    def on_close_cursor(self, peer: str, message: CloseCursor, out: Outbox) -> None:
        session = self._session(peer)
        if session is not None:
            self._sequencer.submit(commands.CloseCursor(peer, session.epoch, message.cursor), out)

    def on_cursor_progress(self, peer: str, message: CursorProgress, out: Outbox) -> None:
        session = self._session(peer)
        if session is not None:
            self._deliveries.progress((peer, session.epoch, message.cursor), message, out)

    def on_acknowledge(self, peer: str, message: Acknowledge, out: Outbox) -> None:
        session = self._session(peer)
        if session is not None:
            command = commands.AcknowledgeCursor(peer, session.epoch, message.cursor, message.position)
            self._sequencer.submit(command, out)

    def _session(self, peer: str) -> Session | None:
        return None if self._core.log is None else self._sessions.session(peer)

    # ---------------------------------------------------------------------------------------------------- requests
    def _session_for(self, peer: str, request: int, out: Outbox) -> Session | None:
        """The session that asks; who has one is told if there is no log."""
        session = self._sessions.session(peer)
        if session is not None and self._core.log is None:
            out.send(peer, LogRefused(request, Refusal.NO_LOG, NO_LOG))
            return None
        return session

    def on_forget_name(self, peer: str, message: ForgetName, out: Outbox) -> None:
        session = self._session_for(peer, message.request, out)
        if session is not None:
            self._deliveries.forget(message.name)
            command = commands.ForgetName(peer, session.epoch, message.request, message.name)
            self._sequencer.submit(command, out)

    def on_stage_events(self, peer: str, message: StageEvents, out: Outbox) -> None:
        session = self._session_for(peer, message.request, out)
        if session is None:
            return
        if not (is_name(message.query) and is_name(message.stage)):
            out.send(peer, LogRefused(message.request, Refusal.LIMIT, NO_NAME))
            return
        try:
            batch = EventBatch.read(message.events)
        except EventError as error:
            raise ProtocolError(f"in StageEvents, {error}") from error
        name = peer.partition(":")[2]
        if any(publisher != name for publisher, *_ in batch.publishers):
            raise ProtocolError(f"a staged event names another publisher than {name!r}")
        command = commands.StageEvents(
            peer,
            session.epoch,
            message.request,
            message.query,
            message.epoch,
            message.task,
            message.stage,
            message.part,
            message.events,
        )
        self._sequencer.submit(command, out)

    def on_commit_stages(self, peer: str, message: CommitStages, out: Outbox) -> None:
        session = self._session_for(peer, message.request, out)
        if session is not None and not is_name(message.query):
            out.send(peer, LogRefused(message.request, Refusal.LIMIT, NO_NAME))
        elif session is not None:
            command = commands.CommitStages(
                peer, session.epoch, message.request, message.query, message.epoch, message.stages
            )
            self._sequencer.submit(command, out)

    def on_ask_log(self, peer: str, message: AskLog, out: Outbox) -> None:
        session = self._sessions.session(peer)
        if self._sequencer.applies_at_once or session is None:
            self._ask(peer, message, out)
        else:
            # A replica that was deposed and does not know it would tell of an older end: the group has to agree.
            self._looked_for[peer, message.request] = message
            self._sequencer.submit(commands.LookAtLog(peer, session.epoch, message.request), out)

    def on_read_range(self, peer: str, message: ReadRange, out: Outbox) -> None:
        self._ask(peer, message, out)

    def _ask(self, peer: str, message: AskLog | ReadRange, out: Outbox) -> None:
        if self._session_for(peer, message.request, out) is None:
            return
        if message.at_least <= self.events.durable_head:
            self._answer(peer, message, out)
        elif any(w.peer == peer and w.message.request == message.request for w in self._waiting):
            pass  # it asks again, and waits already
        elif len(self._waiting) >= WAITING_MAX:
            problem = f"{WAITING_MAX} requests wait for positions already"
            out.send(peer, LogRefused(message.request, Refusal.LIMIT, problem))
        else:
            self._waiting.append(_Waiting(peer, message))

    def _answer(self, peer: str, message: AskLog | ReadRange, out: Outbox) -> None:
        log = self._core.log
        if log is None:
            return
        if isinstance(message, ReadRange):
            self._read(peer, message, log.tail, out)
        elif not message.since:
            out.send(peer, LogTold(message.request, self._sessions.log_id, log.tail, log.head))
        elif message.since > log.wall:
            told = LogTold(message.request, self._sessions.log_id, log.tail, log.head, log.head + 1)
            out.send(peer, told)
        else:
            self._look(peer, message, log.position_before(message.since), out)

    def _read(self, peer: str, message: ReadRange, tail: int, out: Outbox) -> None:
        try:
            wanted = Filter(message.filter)
        except FilterError as error:
            refusal = LogRefused(message.request, Refusal.FILTER, error.problem, 0, error.offset, error.expected)
            out.send(peer, refusal)
            return
        if message.start < tail:
            problem = gone(tail, message.start)
            out.send(peer, LogRefused(message.request, Refusal.POSITION_GONE, problem, tail))
            return
        part = RangePart(message.request, self._sessions.log_id, wanted, message.start, message.end)
        bytes_max = max(1, min(message.bytes_max, self._settings.read_bytes))
        out.queue(peer)
        out.send_log(peer, 0, EVENTS, message.start, bytes_max, part)

    # -------------------------------------------------------------------------------------------- looking for a time
    def _look(self, peer: str, message: AskLog, start: int, out: Outbox) -> None:
        self._last_look += 1
        self._looking[self._last_look] = (peer, message)
        out.read_log(self._last_look, EVENTS, start, FOUND_RECORDS)

    def on_log_read(self, read: LogRead, out: Outbox) -> None:
        asked = self._looking.pop(read.request, None)
        log = self._core.log
        if asked is None or log is None:
            return
        peer, message = asked
        for number, record in read.records:
            if isinstance(record, commands.LoggedEvents) and record.wall >= message.since:
                found = max(number, log.tail)
                break
        else:
            if read.records:
                self._look(peer, message, read.next, out)
                return
            if self.events.durable_head < log.head:
                # It is among those that are not on the disk yet.
                self._ask(peer, AskLog(message.request, message.since, log.head), out)
                return
            found = max(read.next, log.tail)
        if self._sessions.session(peer) is not None:
            out.send(peer, LogTold(message.request, self._sessions.log_id, log.tail, log.head, found))

    # --------------------------------------------------------------------------------------------------------- time
    def _tick(self, out: Outbox) -> None:
        if not self._ticking and (self._deliveries or self._core.cursors.ended):
            self._ticking = True
            out.set_timer((self.name, "tick"), self._settings.tick)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        if key[1] == "write":
            self._writing_due = False
            self.write(out)
            return
        if key[1] == "tick":
            self._ticking = False
            self._deliveries.repeat(out)
            self._say_ended_again(out)
            self._tick(out)
            return
        self._retain(out)
        out.set_timer((self.name, "retention"), self._retention.look_every)

    def _say_ended_again(self, out: Outbox) -> None:
        """To those who lost a cursor and have not said that they know."""
        for (peer, epoch), numbers in self._core.cursors.ended.items():
            session = self._sessions.session(peer)
            if session is not None and session.epoch == epoch and not len(out.queue(peer)):
                for number, problem in numbers.items():
                    out.send(peer, CursorEnded(number, Refusal.SUPERSEDED, problem))

    def _retain(self, out: Outbox) -> None:
        """Gives up events that are beyond what is to be kept, unless a cursor needs them; beyond the hard limit, also
        then: its owner is told that they are gone."""
        log, settings = self._core.log, self._retention
        if log is None:
            return
        never = 1 << 62
        wall = self._trusted_wall(out)
        oldest = wall - settings.age if settings.age else -1
        soft, hard = log.expendable(settings.bytes or never, oldest), log.expendable(settings.bytes_hard or never, -1)
        if max(hard, min(soft, self._core.cursors.floor())) > log.tail:
            self._sequencer.submit(commands.KeepLog("", hard, soft), out)
        self._held.look(log, self._core.cursors.holder(), soft, out)
        staged = self._core.staging.oldest()
        if staged is not None and staged < wall - settings.stage_age:
            self._sequencer.submit(commands.ExpireStages("", wall - settings.stage_age), out)

    def _trusted_wall(self, out: Outbox) -> int:
        """The wall clock, as far as something may be given up for it. One that jumps ahead would make everything old at
        once: it counts as going at most twice as fast as time does here, which is no loss to a clock that is right."""
        now, wall = self._aged or (out.now, out.wall)
        self._aged = (out.now, min(out.wall, wall + 2 * (out.now - now)))
        return self._aged[1]

    def measure(self) -> dict[str, int]:
        log, cursors = self._core.log, self._core.cursors.cursors.values()
        if log is None:
            return {}
        return {
            "log_head": log.head,
            "log_tail": log.tail,
            "log_bytes": log.kept_bytes,
            "log_alarm": int(log.kept_bytes >= self._held.alarm_bytes),
            "named_subscriptions": len(cursors),
            "named_lag_events": max((log.head - cursor.acknowledged for cursor in cursors), default=0),
            "named_sent_total": self._deliveries.sent_total,
            "named_read_total": self._deliveries.read_total,
            "named_expired_total": self._deliveries.expired_total,
            "staged_bytes": self._core.staging.bytes,
        }

    def check_invariants(self) -> None:
        self._deliveries.check_invariants()
        if self._core.log is not None:
            self.events.check_invariants(self._core.log.head)
