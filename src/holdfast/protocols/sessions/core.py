"""The broker's core: who has a session, what is subscribed, who gets which event.

An Application: numbered commands in, outputs for sessions out; no links, timers, storage or randomness, and time only
inside the commands. A node runs it directly, behind a journal, or behind a group's decided log, and never changes it in
another way.

- A session is (client, epoch). The epoch is granted here, larger than any that the client had, when a client comes with
  a new instance or one that is not known any more; so a client that was started again is not taken for its earlier self
  and its new first event not for a repetition of its old first event.
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
from typing import assert_never

import msgspec

from holdfast.errors import EventError, FilterError
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.time import MILLISECOND
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.model.event import Event, EventBytes, decode_batch, slices_of
from holdfast.model.values import Value
from holdfast.protocols.cursors import messages as log_messages
from holdfast.protocols.cursors.cursor import CursorState
from holdfast.protocols.cursors.log_state import LogState
from holdfast.protocols.cursors.staging import Staging
from holdfast.protocols.cursors.table import CursorTable
from holdfast.protocols.sessions import commands, messages
from holdfast.protocols.sessions.arrivals import Arrivals, ArrivalState
from holdfast.protocols.sessions.commands import Command, LogCommand, LogCommandOfClient
from holdfast.protocols.sessions.expiry import expire, note_deadlines, without_expired
from holdfast.protocols.sessions.hosting import Hosting, HostingState
from holdfast.protocols.sessions.interests import Interests, Untold
from holdfast.protocols.sessions.judgement import Refused, judge
from holdfast.protocols.sessions.lifetimes import Tally, deadlines_of
from holdfast.protocols.sessions.limits import CoreLimits
from holdfast.protocols.sessions.messages import Overflow, Refusal
from holdfast.protocols.sessions.outputs import (
    Answered,
    Entered,
    Freed,
    Kept,
    Logged,
    LogLookedAt,
    MadeByApplication,
    NotOpened,
    Opened,
    Output,
    Removed,
    Reply,
    Woken,
)
from holdfast.protocols.sessions.session import (
    Session,
    SessionState,
    session_from,
    session_state,
    too_many_filter_bytes,
)
from holdfast.protocols.sessions.subscriptions import Ledger, Subscription, SubscriptionState

STATE_FORMAT = 1
# A client says which epoch it had. Larger ones were never granted, and would leave no room for the next.
EPOCH_MAX = 2**62


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
    settled: Tally = msgspec.field(default_factory=Tally)


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
        """Of a network's broker: `interests` is what its clients want and offer, `arrivals` what has come from other
        brokers."""
        self.limits = limits or CoreLimits()
        self.log = LogState() if log else None  # of the events; without one there are no positions
        self.interests = interests or Untold()
        self.cursors = CursorTable(self.log or LogState(), self.limits.named_subscriptions, self.interests)
        self.staging = Staging()
        self.hosting = hosting or Hosting()  # of no application
        self.arrivals = arrivals or Arrivals()
        self.number = 0  # of the last command
        self.events = 0  # accepted so far
        self.memory = 0  # names this core from its first command on: one that forgot everything has another
        self.sessions: dict[str, Session] = {}
        self.dormant: dict[str, None] = {}  # clients that stayed away, oldest first; kept while there is room
        self.blocking: dict[Subscription, None] = {}  # those whose publishers wait
        self._crowded: dict[Subscription, None] = {}  # of those, the ones with half of their room taken
        # Ledgers of sessions with half of their room taken, and with some that block.
        self._crowded_ledgers: dict[Ledger, None] = {}
        self.perishing: dict[Subscription, None] = {}  # those that know of deadlines
        self.settled = Tally()  # what became of events of subscriptions that are over
        self.index: FilterIndex[Subscription] = FilterIndex()
        self._decoded: tuple[EventBytes, list[Event], list[EventBytes]] | None = None

    # ----------------------------------------------------------------------------------------------------- commands
    def apply(self, number: int, wall: int, command: Command) -> list[Output]:
        require(number == self.number + 1, "commands are applied in order", number=number, last=self.number)
        self.number = number
        if not self.memory:
            self.memory = max(1, wall)
        self.cursors.wall = wall
        outputs: list[Output] = []
        match command:
            case commands.Publish():
                self._publish(command, wall, outputs)
            case commands.Receive():
                self._receive(command, outputs)
            case commands.Subscribe():
                self._subscribe(command, outputs)
            case commands.Unsubscribe():
                self._unsubscribe(command, outputs)
            case commands.Advertise():
                self._advertise(command, outputs)
            case commands.Unadvertise():
                self._unadvertise(command, outputs)
            case commands.EndSubscription():
                self._end_subscription(command, outputs)
            case commands.Execute():
                self._execute(command, outputs)
            case commands.Arrive():
                self._arrive(command, wall, outputs)
            case commands.ExpireEvents():
                self._expire(command, outputs)
            case commands.OpenSession():
                self._open(command, wall, outputs)
            case commands.EndSession():
                self._end_session(command, outputs)
            case commands.DropSubscriptions():
                self._drop_subscriptions(command, outputs)
            case _:
                self._apply_to_log(wall, command, outputs)
        return outputs

    def session(self, client: str, epoch: int) -> Session | None:
        """The session, if it is this one that the client has."""
        session = self.sessions.get(client)
        return session if session is not None and session.epoch == epoch else None

    def _open(self, command: commands.OpenSession, wall: int, outputs: list[Output]) -> None:
        known = self.sessions.get(command.client)
        if known is not None and known.instance == command.instance and known.epoch < command.epoch:
            # It has had a session at another broker since, and counts anew: what is known here is of before.
            self._forget(known, outputs)
            known = None
        if known is not None and known.instance != command.instance:
            if 0 < command.epoch < known.epoch:
                problem = f"another client has opened a session under the name {command.client!r}"
                refusal = messages.SessionRefused(Refusal.SUPERSEDED, problem)
                outputs.append(NotOpened(command.client, command.instance, refusal))
                return
            self._forget(known, outputs)
        if known is None or known.instance != command.instance:
            if len(self.sessions) >= self.limits.sessions and not self._forget_oldest(outputs):
                problem = f"the broker has {self.limits.sessions} sessions, and takes no more"
                refusal = messages.SessionRefused(Refusal.LIMIT, problem, "sessions", self.limits.sessions)
                outputs.append(NotOpened(command.client, command.instance, refusal))
                return
            # The clock keeps the epochs of different brokers apart, and those of a broker that forgot.
            last = max(min(command.epoch, EPOCH_MAX), 0 if known is None else known.epoch)
            epoch = max(wall // MILLISECOND, last + 1)
            known = Session(command.client, command.instance, epoch, self.limits.backlog_bytes_per_session)
            self.sessions[command.client] = known
        known.incarnation = command.incarnation
        self.dormant.pop(command.client, None)
        outputs.append(Opened(command.client, command.instance, known.epoch))

    def _end_session(self, command: commands.EndSession, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is not None:
            self._forget(session, outputs)
            outputs.append(Reply(command.client, command.epoch, messages.SessionClosed()))

    def _drop_subscriptions(self, command: commands.DropSubscriptions, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is not None:
            for subscription in session.subscriptions.values():
                self._remove(subscription, outputs)
            session.subscriptions = {}
            session.ended = {}
            session.advertised = None
            self.interests.left(session.client)
            self.cursors.leave(session.client, session.epoch, outputs)
            self.dormant[session.client] = None

    def _forget(self, session: Session, outputs: list[Output]) -> None:
        for subscription in session.subscriptions.values():
            self._remove(subscription, outputs)
        self.cursors.leave(session.client, session.epoch, outputs)
        self.interests.left(session.client)
        del self.sessions[session.client]
        self.dormant.pop(session.client, None)

    def _forget_oldest(self, outputs: list[Output]) -> bool:
        """Makes room for a session. A client that comes back later is told that nothing is known of it any more."""
        oldest = next(iter(self.dormant), None)
        if oldest is not None:
            self._forget(self.sessions[oldest], outputs)
        return oldest is not None

    def _subscribe(self, command: commands.Subscribe, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is None:
            return
        self.dormant.pop(session.client, None)
        number = command.subscription
        known = session.subscriptions.get(number)
        refusal: messages.SubscribeRefused | None = None
        if known is not None:
            if str(known.filter) != command.filter or known.overflow is not command.overflow:
                problem = f"subscription {number} exists already, with another filter"
                refusal = messages.SubscribeRefused(number, Refusal.CONFLICT, problem)
        elif number in session.ended:
            return  # it ended; the client will hear of that, if it has not yet
        elif len(session.subscriptions) + len(session.ended) >= self.limits.subscriptions_per_session:
            # One that ended counts until its client has said that it knows, or there would be no end to them.
            problem = f"a session has at most {self.limits.subscriptions_per_session} subscriptions"
            allowed = self.limits.subscriptions_per_session
            limit = "subscriptions_per_session"
            refusal = messages.SubscribeRefused(number, Refusal.LIMIT, problem, limit=limit, allowed=allowed)
        elif session.filter_bytes() + len(command.filter) > self.limits.filter_bytes_per_session:
            allowed = self.limits.filter_bytes_per_session
            limit, problem = "filter_bytes_per_session", too_many_filter_bytes(allowed)
            refusal = messages.SubscribeRefused(number, Refusal.LIMIT, problem, limit=limit, allowed=allowed)
        else:
            try:
                wanted = Filter(command.filter)
            except FilterError as error:
                refusal = messages.SubscribeRefused(number, Refusal.FILTER, error.problem, error.offset, error.expected)
            else:
                self._add(Subscription(session.client, number, wanted, command.overflow, command.window))
        outputs.append(Reply(session.client, session.epoch, refusal or messages.Subscribed(number)))

    def _add(self, subscription: Subscription) -> None:
        session = self.sessions[subscription.client]
        session.subscriptions[subscription.number] = subscription
        subscription.ledger = session.ledger
        session.ledger.bytes += subscription.bytes
        self.index.add(subscription, subscription.filter)
        self.interests.subscribed(session.client, subscription.number, subscription.filter)
        if subscription.deadlines is not None:
            self.perishing[subscription] = None
        if subscription.overflow is Overflow.BLOCK:
            self.blocking[subscription] = None
            session.ledger.blocking[subscription] = None
            self._count_crowded(subscription)
        self._count_ledger(session.ledger)

    def _count_crowded(self, subscription: Subscription) -> None:
        if subscription.is_crowded(self.limits.backlog_events, self.limits.backlog_bytes):
            self._crowded[subscription] = None
        else:
            self._crowded.pop(subscription, None)

    def _count_ledger(self, ledger: Ledger) -> None:
        if ledger.blocking and ledger.is_crowded:
            self._crowded_ledgers[ledger] = None
        else:
            self._crowded_ledgers.pop(ledger, None)

    def possibly_full(self, events: int, size: int) -> dict[Subscription, None]:
        """The blocking subscriptions that may not have room for so many events of that size in all.

        A batch that fits into half of the room needs a look at the crowded ones only: there may be thousands of others.
        """
        bytes_max = min(self.limits.backlog_bytes, self.limits.backlog_bytes_per_session)
        if 2 * events > self.limits.backlog_events or 2 * size > bytes_max:
            return self.blocking
        if not self._crowded_ledgers:
            return self._crowded
        found = dict(self._crowded)
        for ledger in self._crowded_ledgers:
            found |= ledger.blocking
        return found

    def _remove(self, subscription: Subscription, outputs: list[Output]) -> None:
        self.index.remove(subscription)
        self.interests.unsubscribed(subscription.client, subscription.number)
        ledger = subscription.ledger
        freed = bool(ledger.blocking) and ledger.is_crowded  # for others, which share the session's room with it
        ledger.bytes -= subscription.bytes
        self.settled.add(subscription.tally)
        self.perishing.pop(subscription, None)
        outputs.append(Removed(subscription))
        if subscription.overflow is Overflow.BLOCK:
            del self.blocking[subscription]
            del ledger.blocking[subscription]
            self._crowded.pop(subscription, None)
            freed = True
        self._count_ledger(ledger)
        if freed:
            outputs.append(Freed())

    def _unsubscribe(self, command: commands.Unsubscribe, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is None:
            return
        session.ended.pop(command.subscription, None)
        subscription = session.subscriptions.pop(command.subscription, None)
        if subscription is not None:
            self._remove(subscription, outputs)
        outputs.append(Reply(session.client, session.epoch, messages.Unsubscribed(command.subscription)))

    def _end_subscription(self, command: commands.EndSubscription, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is not None and command.subscription in session.subscriptions:
            self._end(session, session.subscriptions[command.subscription], command.reason, outputs)

    def _end(self, session: Session, subscription: Subscription, reason: str, outputs: list[Output]) -> None:
        del session.subscriptions[subscription.number]
        session.ended[subscription.number] = reason
        self._remove(subscription, outputs)
        outputs.append(Reply(session.client, session.epoch, messages.SubscriptionEnded(subscription.number, reason)))

    def _receive(self, command: commands.Receive, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is None:
            return
        # A session that kept much may have made a blocking subscription's publishers wait for any of its others.
        freed = bool(session.ledger.blocking) and session.ledger.is_crowded
        late = command.late or (0,) * len(command.numbers)
        for number, received, expired in zip(command.subscriptions, command.numbers, late, strict=False):
            subscription = session.subscriptions.get(number)
            if subscription is not None:
                subscription.receive(received, expired)
                if subscription.deadlines is None:
                    self.perishing.pop(subscription, None)
                if subscription.overflow is Overflow.BLOCK:
                    freed = True
                    self._count_crowded(subscription)
        self._count_ledger(session.ledger)
        if freed:
            outputs.append(Freed())

    def _expire(self, command: commands.ExpireEvents, outputs: list[Output]) -> None:
        """Gives up what waited for too long. Clients are told which numbers they need not wait for."""
        # As with what is received: room in a crowded session is room for any of its subscriptions.
        crowded = dict(self._crowded_ledgers)
        lost = expire(self.perishing, command.before, outputs)
        for subscription in lost:
            if subscription.overflow is Overflow.BLOCK:
                self._count_crowded(subscription)
            self._count_ledger(subscription.ledger)
        if lost:
            outputs.append(Woken(lost))
        if any(subscription.overflow is Overflow.BLOCK or subscription.ledger in crowded for subscription in lost):
            outputs.append(Freed())

    def tally(self) -> Tally:
        """What became of all events that anyone wanted."""
        total = Tally()
        total.add(self.settled)
        for session in self.sessions.values():
            for subscription in session.subscriptions.values():
                total.add(subscription.tally)
        return total

    # ----------------------------------------------------------------------------------------------- advertisements
    def _advertise(self, command: commands.Advertise, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is not None:
            self.dormant.pop(session.client, None)
            answer = session.advertise(command.advertisement, command.filter, self.limits)
            if isinstance(answer, messages.Advertised):
                self.interests.advertised(session.client, command.advertisement, command.filter)
            outputs.append(Reply(session.client, session.epoch, answer))

    def _unadvertise(self, command: commands.Unadvertise, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is not None:
            session.unadvertise(command.advertisement)
            self.interests.unadvertised(session.client, command.advertisement)
            outputs.append(Reply(session.client, session.epoch, messages.Unadvertised(command.advertisement)))

    # ------------------------------------------------------------------------------------------------------- events
    def decode(self, batch: EventBytes) -> tuple[list[Event], list[EventBytes]]:
        """A batch's events and their bytes. Decoded once, though a node looks at a batch before it is applied."""
        if self._decoded is None or self._decoded[0] is not batch:
            events, slices = decode_batch(batch)
            self._decoded = (batch, events, slices)
        return self._decoded[1], self._decoded[2]

    def _publish(self, command: commands.Publish, wall: int, outputs: list[Output]) -> None:
        """What a client published, or publishes again: its own numbers tell (D4-B6.1, D4-C6)."""
        session = self.session(command.client, command.epoch)
        if session is None or command.first > session.accepted + 1:
            return
        try:
            events, slices = self.decode(command.events)
        except EventError:
            # The node that heard it refuses such bytes; a core that is handed them all the same leaves them alone.
            return
        # In a group, a client that was given up by one node may have come back to another already.
        self.dormant.pop(session.client, None)
        outputs.append(Answered(session.client))
        seen = session.accepted + 1 - command.first
        if seen:
            events, slices = events[seen:], slices[seen:]
        if session.refused:
            session.refused = {n: why for n, why in session.refused.items() if n > command.confirmed}
        if command.skipped:
            session.accepted = max(session.accepted, command.first + command.skipped - 1)
            return
        if not events:
            return
        matched, refused = self._judge(session, events, slices)
        if refused:
            session.refused |= {session.accepted + 1 + row: why for row, why in refused.items()}
            rows = [row for row in range(len(events)) if row not in refused]
            events, slices = [events[row] for row in rows], [slices[row] for row in rows]
            matched = [matched[row] for row in rows]
            session.accepted += len(refused)
        session.accepted += len(events)
        if self.interests.are_told:
            rows = self.arrivals.enter(events)
            if len(rows) < len(events):
                events, slices = [events[row] for row in rows], [slices[row] for row in rows]
                matched = [matched[row] for row in rows]
        if events:
            self._enter(events, slices, matched, wall, outputs)
            self._show(events, wall, outputs)

    def _enter(
        self,
        events: list[Event],
        slices: list[EventBytes],
        matched: list[list[Subscription]],
        wall: int,
        outputs: list[Output],
    ) -> None:
        """Events are published here: other brokers of the network may want them too."""
        if self.interests.are_told:
            outputs.append(Entered(self.number, events, slices))
        self._accept(events, slices, matched, wall, outputs)

    def _arrive(self, command: commands.Arrive, wall: int, outputs: list[Output]) -> None:
        """Events of other brokers' clients, for ours. Those that nobody wants any more are not kept."""
        try:
            events, slices = self.decode(command.events)
        except EventError:
            return  # as with Publish
        fresh = self.arrivals.fresh(command.source, command.feed, command.numbers, events, wall)
        if not fresh:
            return
        events, slices = [events[row] for row in fresh], [slices[row] for row in fresh]
        matched, refused = judge(self.index, None, events, slices)
        wanted = self.wanted_rows(events, matched, refused)
        if wanted:
            events, slices = [events[row] for row in wanted], [slices[row] for row in wanted]
            self._accept(events, slices, [matched[row] for row in wanted], wall, outputs)
            self._show(events, wall, outputs)

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
            self._enter(made, slices, matched, wall, outputs)

    def _match(self, attributes: Mapping[str, Value], topic: str) -> list[Subscription]:
        return self.index.match_batch([(attributes, topic)])[0]

    def _execute(self, command: commands.Execute, outputs: list[Output]) -> None:
        """A request for the hosted application, or one that is asked again."""
        session = self.session(command.client, command.epoch)
        if session is not None:
            self.dormant.pop(session.client, None)
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
            self.cursors.feed(first, events, slices, outputs)
        deadlines = deadlines_of(events)
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
            self.perishing |= {subscription: None for subscription in woken if subscription.deadlines is not None}
        if self.blocking:
            for subscription in woken:
                if subscription.overflow is Overflow.BLOCK:
                    self._count_crowded(subscription)
                if subscription.ledger.blocking:
                    self._count_ledger(subscription.ledger)
        if woken:
            # Also those that overflowed: they had room for some.
            outputs.append(Woken(list(woken)))
        for subscription, size in overflowed.items():
            owner = self.sessions[subscription.client]
            self._end(owner, subscription, self._overflow_reason(subscription, size), outputs)

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

    # ---------------------------------------------------------------------------------------------------------- log
    def _apply_to_log(self, wall: int, command: LogCommand, outputs: list[Output]) -> None:
        """Commands that concern the log. The broker's own have no client."""
        log = self.log
        if log is None:
            return  # the node refuses what needs one
        match command:
            case commands.KeepLog():
                log.keep_from(max(command.tail, min(command.wanted, self.cursors.floor())))
                outputs.append(Kept(log.tail))
            case commands.ExpireStages():
                self.staging.expire(command.before)
            case commands.RemoveName():
                self.cursors.remove(command, outputs)
            case _:
                if self.session(command.client, command.epoch) is None:
                    return
                self.dormant.pop(command.client, None)
                self._apply_to_log_for(log, wall, command, outputs)

    def _apply_to_log_for(self, log: LogState, wall: int, command: LogCommandOfClient, outputs: list[Output]) -> None:
        match command:
            case commands.AcknowledgeCursor():
                self.cursors.acknowledge(command, outputs)
            case commands.OpenCursor():
                self.cursors.open(command, outputs)
            case commands.CloseCursor():
                self.cursors.close(command, outputs)
            case commands.ForgetName():
                self.cursors.forget(command, outputs)
            case commands.StageEvents():
                outputs.append(Reply(command.client, command.epoch, self._stage(command, wall)))
            case commands.CommitStages():
                # The events first: whoever is told that they are published can rely on it.
                answer = self._commit(log, command, wall, outputs)
                outputs.append(Reply(command.client, command.epoch, answer))
            case commands.LookAtLog():
                outputs.append(LogLookedAt(command.client, command.request))
            case _:
                assert_never(command)

    def _stage(self, command: commands.StageEvents, wall: int) -> Message:
        try:
            events, slices = self.decode(command.events)
        except EventError as error:
            return log_messages.LogRefused(command.request, Refusal.EVENT, str(error))
        refused: Refused = {}
        if events:
            _, refused = judge(FilterIndex(), self.sessions[command.client].advertised, events, slices)
        for row, (reason, problem) in refused.items():
            return log_messages.LogRefused(command.request, reason, f"{problem} (event {row} of the batch)")
        return self.staging.stage(command, len(events), wall, self.limits.staged_bytes)

    def _commit(self, log: LogState, command: commands.CommitStages, wall: int, outputs: list[Output]) -> Message:
        answer = self.staging.answer_commit(command)
        if answer is not None:
            return answer
        first, shown = log.head + 1, list[Event]()
        wanted = len(self.index) > 0 or self.cursors.is_followed or bool(self.hosting.topics)
        wanted = wanted or self.interests.are_told
        for part in self.staging.take_parts(command.stages):
            # What nobody looks at now needs no decoding: it was found sound when it was staged, and goes to the log.
            events, slices = self.decode(part) if wanted else ([], slices_of(part))
            if slices:
                matched = self.index.match_batch([(event.attributes, event.topic) for event in events])
                self._enter(events, slices, matched, wall, outputs)
            if self.hosting.topics:
                shown += events
        first, last = (first, log.head) if log.head >= first else (0, 0)
        self.staging.commit(command.query, command.query_epoch, first, last, wall, self.limits.queries)
        self._show(shown, wall, outputs)  # behind all of them, which have positions without gaps
        return log_messages.StagesCommitted(command.request, first, last)

    # -------------------------------------------------------------------------------------------------------- state
    def get_state(self) -> bytes:
        state = _State(
            STATE_FORMAT,
            self.number,
            self.events,
            self.memory,
            [session_state(session) for session in self.sessions.values()],
            list(self.dormant),
            [subscription.get_state() for subscription, _ in self.index.items()],
            self.log,
            self.cursors.get_state(),
            self.staging,
            self.cursors.generations,
            self.cursors.ended_state(),
            self.hosting.get_state(),
            self.arrivals.get_state(),
            self.settled,
        )
        return msgspec.msgpack.encode(state)

    @staticmethod
    def log_of(state: bytes) -> LogState:
        """What a state says of the log."""
        return msgspec.msgpack.decode(state, type=_State).log or LogState()

    def set_state(self, state: bytes) -> None:
        decoded = msgspec.msgpack.decode(state, type=_State)
        require(decoded.format == STATE_FORMAT, "the state's format is known", format=decoded.format)
        self.number, self.events = decoded.number, decoded.events
        self.memory, self.dormant = decoded.memory, dict.fromkeys(decoded.dormant)
        self.sessions, self.blocking, self.index = {}, {}, FilterIndex()
        self._crowded, self._crowded_ledgers, self.perishing = {}, {}, {}
        self.settled = decoded.settled
        self._decoded = None
        for stored in decoded.sessions:
            self.sessions[stored.client] = session_from(stored, self.limits.backlog_bytes_per_session)
        for kept in decoded.subscriptions:
            self._add(Subscription.from_state(kept))
        require((decoded.log is None) == (self.log is None), "a log is not begun or given up half-way")
        self.log, self.staging = decoded.log, decoded.staging or Staging()
        self.cursors = CursorTable(self.log or LogState(), self.limits.named_subscriptions, self.interests)
        self.cursors.set_state(decoded.cursors, decoded.generations, decoded.cursors_ended)
        self._tell_interests()
        self.hosting.set_state(decoded.hosting)
        self.arrivals.set_state(decoded.arrivals)

    def _tell_interests(self) -> None:
        """Of a network's broker: names and offers that were restored. Subscriptions are told as they are added."""
        for cursor in self.cursors.cursors.values():
            self.interests.named(cursor.name, cursor.filter)
        for session in self.sessions.values():
            for number, offer in () if session.advertised is None else session.advertised.items():
                self.interests.advertised(session.client, number, str(offer))

    def _check_ledger(self, session: Session) -> None:
        ledger, client = session.ledger, session.client
        kept = sum(subscription.bytes for subscription in session.subscriptions.values())
        require(ledger.bytes == kept, "a session's backlog is counted", client=client, bytes=kept)
        crowded = bool(ledger.blocking) and ledger.is_crowded
        require((ledger in self._crowded_ledgers) == crowded, "crowded sessions are listed", client=client)

    def check_invariants(self) -> None:
        """Raises InvariantBroken if the state contradicts itself."""
        count = 0
        for client, session in self.sessions.items():
            require(client == session.client, "a session is found under its client's name", client=client)
            for number, subscription in session.subscriptions.items():
                count += 1
                subscription.check_invariants(self.limits.backlog_events)
                require(subscription in self.index, "a subscription is in the index", client=client, number=number)
                require(number not in session.ended, "a subscription that lives has not ended", number=number)
                blocks = subscription.overflow is Overflow.BLOCK
                require((subscription in self.blocking) == blocks, "blocking subscriptions are listed", number=number)
                crowded = blocks and subscription.is_crowded(self.limits.backlog_events, self.limits.backlog_bytes)
                require((subscription in self._crowded) == crowded, "crowded subscriptions are listed", number=number)
                require((subscription in session.ledger.blocking) == blocks, "a ledger knows who blocks", number=number)
                knows = subscription.deadlines is not None
                require((subscription in self.perishing) == knows, "who knows of deadlines is listed", number=number)
            self._check_ledger(session)
            require(session.advertised is None or len(session.advertised), "no offers are none", client=client)
            dormant = client in self.dormant
            wants = session.subscriptions or session.advertised is not None
            require(not (dormant and wants), "a dormant session wants and offers nothing", client=client)
            require(all(n <= session.accepted for n in session.refused), "what is refused was answered", client=client)
            require(
                len(session.answers) <= self.hosting.limits.requests_in_flight, "answers are bounded", client=client
            )
        require(self.dormant.keys() <= self.sessions.keys(), "who is dormant has a session")
        if self.log is not None:
            self.log.check_invariants()
            require(self.log.head == self.events, "every event has a position", head=self.log.head, events=self.events)
            self.cursors.check_invariants()
            self.staging.check_invariants()
        require(count == len(self.index), "the index holds the sessions' subscriptions and no others", count=count)
