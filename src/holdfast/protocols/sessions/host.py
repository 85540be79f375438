"""The broker's side of sessions: links, credits, repetition, and publishers that wait.

Everything that must outlive a link is in the core, and changes only by commands; here is what concerns the links of the
moment. Replies are held until the end of the turn, when the sequencer has journalled it: nothing is said to a client
that could be forgotten, since a send waits for what was appended before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import ClassVar, Final, Protocol

import msgspec

from holdfast.errors import EventError, ProtocolError
from holdfast.kernel.inputs import Drained, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.queues import Lane
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model.event import EventBytes, encode_batch
from holdfast.protocols.sessions import commands
from holdfast.protocols.sessions.commands import Command
from holdfast.protocols.sessions.core import (
    Answered,
    BrokerCore,
    Freed,
    NotOpened,
    Opened,
    Output,
    Reply,
    Session,
    Woken,
)
from holdfast.protocols.sessions.messages import (
    Accepted,
    CloseSession,
    Deliver,
    Dropped,
    OpenSession,
    Ping,
    Pong,
    Progress,
    Publish,
    Redirect,
    Refusal,
    SessionClosed,
    SessionOpened,
    Subscribe,
    SubscriptionEnded,
    Unsubscribe,
)
from holdfast.protocols.sessions.subscriptions import Subscription

CLIENTS: Final = frozenset({Role.CLIENT})


class HostSettings(msgspec.Struct, frozen=True, gc=False):
    """Times and sizes of the broker's side."""

    publish_window: int = 4_096  # events that a client may have unanswered
    deliver_events: int = 1_024  # in one message
    deliver_bytes: int = 256 * 1024
    queue_bytes_max: int = 8 * 1024 * 1024  # that wait for a slow link
    window_max: int = 65_536  # events that a client may ask to be sent ahead
    repeat_after: int = 1 * SECOND  # what is not confirmed is sent again; doubled each time
    repeat_after_max: int = 8 * SECOND
    repeat_pause: int = 100 * MILLISECOND  # when the client asks
    tick: int = 500 * MILLISECOND
    silent_after: int = 15 * SECOND  # a link on which nothing comes is closed
    away_after: int = 120 * SECOND  # the subscriptions of a client that does not come back are dropped
    block_max: int = 10 * SECOND  # longest that a publisher waits for a subscription
    alternates: tuple[str, ...] = ()  # addresses that clients may try if this broker fails
    redirect: tuple[str, ...] = ()  # send every client there


class Sequencer(Protocol):
    """What decides the order of commands. It calls the host's `on_applied` with what came of them."""

    def submit(self, command: Command, out: Outbox) -> None: ...


class _Cursor:
    """How far one subscription's events are on their way over this link."""

    __slots__ = ("consumed", "progress_at", "received", "repeat_after", "sent", "subscription")

    def __init__(self, subscription: Subscription, received: int, consumed: int, now: int, repeat_after: int) -> None:
        self.subscription = subscription
        self.sent = received
        self.received = received
        self.consumed = consumed
        self.progress_at = now
        self.repeat_after = repeat_after


class _Attachment:
    """A client's link."""

    __slots__ = ("cursors", "epoch", "heard_at", "held", "held_since", "link", "opening")

    def __init__(self, link: int, now: int) -> None:
        self.link = link
        self.heard_at = now
        self.opening: OpenSession | None = None
        self.epoch = 0  # 0: no session yet
        self.cursors: dict[int, _Cursor] = {}
        # Events that wait for a blocking subscription to have room: (number of the first, their bytes).
        self.held: deque[tuple[int, list[EventBytes]]] = deque()
        self.held_since = 0


class SessionHost:
    """A part of a broker's node."""

    name: ClassVar[str] = "host"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {
        OpenSession: CLIENTS,
        Subscribe: CLIENTS,
        Unsubscribe: CLIENTS,
        Publish: CLIENTS,
        Progress: CLIENTS,
        CloseSession: CLIENTS,
        Ping: CLIENTS,
    }

    def __init__(self, node: str, core: BrokerCore, sequencer: Sequencer, settings: HostSettings | None = None) -> None:
        self._node = node
        self._core = core
        self._sequencer = sequencer
        self._settings = settings or HostSettings()
        self._attached: dict[str, _Attachment] = {}
        self._away: dict[str, int] = {}  # clients with a session and no link → since when
        self._unconfirmed: dict[_Cursor, None] = {}
        self._waiting: dict[str, None] = {}  # publishers that are held, in the order in which they came to wait
        # Of this turn:
        self._replies: list[tuple[int, str, Message]] = []  # link, peer
        self._answered: dict[str, None] = {}
        self._woken: dict[Subscription, None] = {}
        self._freed = False
        self._ticking = False
        self._noted_size = 0  # the table's size that the trace knows of

    # -------------------------------------------------------------------------------------------------------- links
    def on_started(self, started: Started, out: Outbox) -> None:
        self._away = {client: out.now for client in self._core.sessions if client not in self._core.dormant}
        self._keep_ticking(out)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is Role.CLIENT:
            self._attached[up.peer] = _Attachment(up.link, out.now)
            self._keep_ticking(out)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        attachment = self._attached.get(down.peer)
        if attachment is None or attachment.link != down.link:
            return
        del self._attached[down.peer]
        self._waiting.pop(down.peer, None)
        for cursor in attachment.cursors.values():
            self._unconfirmed.pop(cursor, None)
        out.drop_queue(down.peer)
        if down.peer in self._core.sessions and down.peer not in self._core.dormant:
            self._away[down.peer] = out.now
            self._keep_ticking(out)

    def on_heard(self, peer: str, out: Outbox) -> None:
        attachment = self._attached.get(peer)
        if attachment is not None:
            attachment.heard_at = out.now

    def on_ping(self, peer: str, ping: Ping, out: Outbox) -> None:
        out.send(peer, Pong(), after=NOW)

    # ----------------------------------------------------------------------------------------------------- sessions
    def on_open_session(self, peer: str, message: OpenSession, out: Outbox) -> None:
        attachment = self._attached[peer]
        if self._settings.redirect:
            out.send(peer, Redirect(self._settings.redirect))
            return
        if not len(message.subscriptions) == len(message.received) == len(message.consumed):
            raise ProtocolError("OpenSession names subscriptions and numbers in different counts")
        attachment.opening = message
        self._sequencer.submit(commands.OpenSession(peer, message.instance, message.epoch), out)

    def on_close_session(self, peer: str, message: CloseSession, out: Outbox) -> None:
        session = self._session(peer)
        if session is None:
            self._reply(self._attached[peer], peer, SessionClosed())
        else:
            self._sequencer.submit(commands.EndSession(peer, session.epoch), out)

    def _opened(self, opened: Opened, out: Outbox) -> None:
        self._away.pop(opened.client, None)
        attachment = self._attached.get(opened.client)
        opening = None if attachment is None else attachment.opening
        if attachment is None or opening is None or opening.instance != opened.instance:
            if attachment is None:
                self._away[opened.client] = out.now
            return
        session = self._core.sessions[opened.client]
        forgotten = [n for n in opening.subscriptions if n not in session.subscriptions and n not in session.ended]
        reply = SessionOpened(
            opened.epoch,
            session.accepted,
            self._settings.publish_window,
            self._core.memory,
            tuple(forgotten),
            self._settings.alternates,
            _refusals(session),
        )
        self._reply(attachment, opened.client, reply)
        if attachment.epoch == opened.epoch:
            return  # asked twice; what has happened on the link since then stands
        attachment.epoch = opened.epoch
        for cursor in attachment.cursors.values():
            self._unconfirmed.pop(cursor, None)
        attachment.cursors = {}
        settings = self._settings
        known: dict[int, tuple[int, int]] = {}
        if opening.epoch == opened.epoch:
            numbers = zip(opening.subscriptions, opening.received, opening.consumed, strict=True)
            known = {number: (received, consumed) for number, received, consumed in numbers}
            self._sequencer.submit(
                commands.Receive(opened.client, opened.epoch, opening.subscriptions, opening.received), out
            )
        for subscription in session.subscriptions.values():
            received, consumed = known.get(subscription.number, (0, 0))
            received = min(received, subscription.last)
            attachment.cursors[subscription.number] = _Cursor(
                subscription, received, min(consumed, received), out.now, settings.repeat_after
            )
            self._woken[subscription] = None
        for number, reason in session.ended.items():
            self._reply(attachment, opened.client, SubscriptionEnded(number, reason))

    def _reply(self, attachment: _Attachment, peer: str, message: Message) -> None:
        self._replies.append((attachment.link, peer, message))

    def _session(self, peer: str) -> Session | None:
        """The session that is open on the peer's link. Without one, a message came too early, and comes again."""
        attachment = self._attached[peer]
        return self._core.session(peer, attachment.epoch) if attachment.epoch else None

    # ------------------------------------------------------------------------------------------------ subscriptions
    def on_subscribe(self, peer: str, message: Subscribe, out: Outbox) -> None:
        if not 1 <= message.window <= self._settings.window_max:
            raise ProtocolError(f"a subscription's window is 1 to {self._settings.window_max}, not {message.window}")
        session = self._session(peer)
        if session is not None:
            command = commands.Subscribe(
                peer, session.epoch, message.subscription, message.filter, message.overflow, message.window
            )
            self._sequencer.submit(command, out)

    def on_unsubscribe(self, peer: str, message: Unsubscribe, out: Outbox) -> None:
        session = self._session(peer)
        if session is not None:
            self._sequencer.submit(commands.Unsubscribe(peer, session.epoch, message.subscription), out)

    def on_progress(self, peer: str, message: Progress, out: Outbox) -> None:
        if not len(message.subscriptions) == len(message.received) == len(message.consumed):
            raise ProtocolError("Progress names subscriptions and numbers in different counts")
        session = self._session(peer)
        if session is None:
            return
        cursors = self._attached[peer].cursors
        advanced = False
        for number, received, consumed in zip(message.subscriptions, message.received, message.consumed, strict=True):
            cursor = cursors.get(number)
            if cursor is None:
                continue
            if received > cursor.subscription.last or consumed > received:
                raise ProtocolError(f"subscription {number} has {cursor.subscription.last} events, not {received}")
            if received > cursor.received:
                cursor.received = received
                cursor.sent = max(cursor.sent, received)
                cursor.progress_at = out.now
                cursor.repeat_after = self._settings.repeat_after
                advanced = True
            if cursor.sent == cursor.received:
                self._unconfirmed.pop(cursor, None)  # if it is starved, it comes back below
            elif message.missing and received == cursor.received and self._may_repeat(cursor, out):
                cursor.sent = received
                cursor.progress_at = out.now
            cursor.consumed = max(cursor.consumed, consumed)
            self._woken[cursor.subscription] = None
        if advanced:
            command = commands.Receive(peer, session.epoch, message.subscriptions, message.received)
            self._sequencer.submit(command, out)

    def _may_repeat(self, cursor: _Cursor, out: Outbox) -> bool:
        """A client that misses something says so with everything that comes after it; once is enough."""
        return out.now - cursor.progress_at >= self._settings.repeat_pause

    # --------------------------------------------------------------------------------------------------- publishing
    def on_publish(self, peer: str, message: Publish, out: Outbox) -> None:
        session = self._session(peer)
        if session is None:
            return
        attachment = self._attached[peer]
        try:
            events, slices = self._core.decode(message.events)
        except EventError as error:
            raise ProtocolError(f"in Publish, {error}") from error
        last = message.first + len(events) - 1
        if message.first < 1 or last > session.accepted + self._settings.publish_window:
            raise ProtocolError(f"events {message.first} to {last} are beyond the window after {session.accepted}")
        if attachment.held:
            self._hold_more(attachment, message.first, slices)
            return
        admitted = self._admissible(session, message)
        if admitted >= len(events):
            command = commands.Publish(peer, session.epoch, message.first, message.confirmed, message.events)
            self._sequencer.submit(command, out)
            return
        if admitted:
            batch = encode_batch(slices[:admitted])
            self._sequencer.submit(commands.Publish(peer, session.epoch, message.first, message.confirmed, batch), out)
        self._hold_more(attachment, message.first + admitted, slices[admitted:])
        attachment.held_since = out.now
        self._waiting[peer] = None
        out.set_timer((self.name, "block"), self._until_block_ends(out))

    def _admissible(self, session: Session, message: Publish) -> int:
        """How many of the events, from the first on, find room in every blocking subscription that wants them."""
        events, _ = self._core.decode(message.events)
        limits = self._core.limits
        tight = {
            subscription: limits.backlog_events - len(subscription)
            for subscription in self._core.blocking
            if len(subscription) + len(events) > limits.backlog_events
            or subscription.bytes + len(message.events) > limits.backlog_bytes
        }
        if not tight:
            return len(events)
        room_bytes = {subscription: limits.backlog_bytes - subscription.bytes for subscription in tight}
        _, slices = self._core.decode(message.events)
        seen = max(0, session.accepted + 1 - message.first)
        for row in range(seen, len(events)):
            size = len(slices[row])
            for subscription in tight:
                if subscription.filter.matches(events[row].attributes, events[row].topic):
                    if tight[subscription] < 1 or room_bytes[subscription] < size:
                        return row
                    tight[subscription] -= 1
                    room_bytes[subscription] -= size
        return len(events)

    def _hold_more(self, attachment: _Attachment, first: int, slices: list[EventBytes]) -> None:
        """Puts events behind those that wait; what waits already is skipped, what leaves a gap is not taken."""
        following = first if not attachment.held else attachment.held[-1][0] + len(attachment.held[-1][1])
        fresh = slices[max(0, following - first) :]
        if first <= following and fresh:
            attachment.held.append((following, [event.copy() for event in fresh]))

    def _release(self, out: Outbox) -> None:
        """Lets waiting publishers go on as far as there is room."""
        for peer in list(self._waiting):
            attachment = self._attached[peer]
            session = self._session(peer)
            while attachment.held and session is not None:
                first, slices = attachment.held[0]
                batch = encode_batch(slices)
                admitted = self._admissible(session, Publish(first, batch))
                if admitted == 0:
                    break
                if admitted < len(slices):
                    batch = encode_batch(slices[:admitted])
                    attachment.held[0] = (first + admitted, slices[admitted:])
                else:
                    attachment.held.popleft()
                attachment.held_since = out.now
                self._sequencer.submit(commands.Publish(peer, session.epoch, first, 0, batch), out)
            if not attachment.held or session is None:
                attachment.held.clear()
                del self._waiting[peer]

    def _until_block_ends(self, out: Outbox) -> int:
        since = min(self._attached[peer].held_since for peer in self._waiting)
        return max(0, since + self._settings.block_max - out.now)

    def _end_blocks(self, out: Outbox) -> None:
        """A publisher has waited long enough: the subscriptions that it waits for end."""
        for peer in list(self._waiting):
            attachment = self._attached[peer]
            if not attachment.held or out.now - attachment.held_since < self._settings.block_max:
                continue
            slices = attachment.held[0][1]
            events, _ = self._core.decode(encode_batch(slices[:1]))
            limits = self._core.limits
            for subscription in list(self._core.blocking):
                full = len(subscription) >= limits.backlog_events
                full = full or subscription.bytes + len(slices[0]) > limits.backlog_bytes
                if full and subscription.filter.matches(events[0].attributes, events[0].topic):
                    owner = self._core.sessions[subscription.client]
                    reason = f"overflow: publishers waited {self._settings.block_max // SECOND} s for room"
                    command = commands.EndSubscription(owner.client, owner.epoch, subscription.number, reason)
                    self._sequencer.submit(command, out)

    # ------------------------------------------------------------------------------------------------------ outputs
    def on_applied(self, outputs: list[Output], out: Outbox) -> None:
        """What came of commands, from the sequencer."""
        for output in outputs:
            match output:
                case Woken():
                    for subscription in output.subscriptions:
                        self._woken[subscription] = None
                case Answered():
                    self._answered[output.client] = None
                case Reply():
                    # By the end of the turn the client may be there in another life, which must not get it.
                    attachment = self._attached.get(output.client)
                    if attachment is not None and attachment.epoch == output.epoch:
                        self._reply(attachment, output.client, output.message)
                case NotOpened():
                    attachment = self._attached.get(output.client)
                    opening = None if attachment is None else attachment.opening
                    if attachment is not None and opening is not None and opening.instance == output.instance:
                        self._reply(attachment, output.client, output.refusal)
                case Opened():
                    self._opened(output, out)
                case Freed():
                    self._freed = True

    def settle(self, out: Outbox) -> None:
        """Lets publishers go on that waited for room, while the turn can still take commands."""
        if self._freed:
            self._freed = False
            if self._waiting:
                self._release(out)

    def finish(self, out: Outbox) -> None:
        """Says what the turn came to. The sequencer's own `finish` has run before."""
        for link, peer, message in self._replies:
            attachment = self._attached.get(peer)
            if attachment is not None and attachment.link == link:
                out.send(peer, message)
        self._replies.clear()
        for peer in self._answered:
            session = self._session(peer) if peer in self._attached else None
            if session is not None:
                out.send(peer, Accepted(session.accepted, _refusals(session)))
        self._answered.clear()
        if out.tracing and self._noted_size != len(self._core.index):
            self._noted_size = len(self._core.index)
            out.note("table_size", node=self._node, table="subscriptions", entries=self._noted_size)
        if self._woken:
            woken, self._woken = self._woken, {}
            self._send_events(woken, out)

    def _send_events(self, woken: dict[Subscription, None], out: Outbox) -> None:
        batches: dict[str, _Batch] = {}
        for subscription in woken:
            attachment = self._attached.get(subscription.client)
            if out.tracing:
                out.note(
                    "queue_length",
                    node=self._node,
                    queue=f"{subscription.client}/{subscription.number}",
                    length=len(subscription),
                    limit=self._core.limits.backlog_events,
                    bytes=subscription.bytes,
                )
            if attachment is None or not attachment.epoch:
                continue
            cursor = attachment.cursors.get(subscription.number)
            if cursor is None or cursor.subscription is not subscription:
                session = self._session(subscription.client)
                if session is None or session.subscriptions.get(subscription.number) is not subscription:
                    continue
                cursor = _Cursor(subscription, 0, 0, out.now, self._settings.repeat_after)
                attachment.cursors[subscription.number] = cursor
            batch = batches.get(subscription.client)
            if batch is None:
                batch = batches[subscription.client] = _Batch(subscription.client, self._settings)
            if cursor.sent < subscription.first_kept - 1:
                cursor.sent = subscription.first_kept - 1
                batch.flush(out)
                out.send(subscription.client, Dropped(subscription.number, cursor.sent), Lane.USER)
            if out.queue(subscription.client).bytes > self._settings.queue_bytes_max:
                batch.flush(out)
                out.queue(subscription.client).notify_below(0)
                continue
            room = cursor.consumed + subscription.window - cursor.sent
            if room > 0 and cursor.sent < subscription.last:
                events = subscription.read(cursor.sent, room)
                batch.add(subscription.number, cursor.sent, events, out)
                cursor.sent += len(events)
            starved = cursor.sent < subscription.last  # of credit: the client's last word may be lost
            if (starved or cursor.sent > cursor.received) and cursor not in self._unconfirmed:
                cursor.progress_at = out.now
                self._unconfirmed[cursor] = None
        for batch in batches.values():
            batch.flush(out)

    def on_drained(self, drained: Drained, out: Outbox) -> None:
        attachment = self._attached.get(drained.peer)
        if attachment is not None:
            self._woken.update(dict.fromkeys(cursor.subscription for cursor in attachment.cursors.values()))

    # --------------------------------------------------------------------------------------------------------- time
    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        if key[1] == "block":
            self._end_blocks(out)
            if self._waiting:
                out.set_timer((self.name, "block"), max(MILLISECOND, self._until_block_ends(out)))
            return
        self._ticking = False
        settings = self._settings
        for cursor in list(self._unconfirmed):
            if out.now - cursor.progress_at >= cursor.repeat_after:
                cursor.progress_at = out.now
                cursor.repeat_after = min(2 * cursor.repeat_after, settings.repeat_after_max)
                del self._unconfirmed[cursor]
                if cursor.sent == cursor.received:
                    # A question: the client answers how far it is.
                    question = Dropped(cursor.subscription.number, cursor.sent)
                    out.send(cursor.subscription.client, question, Lane.USER)
                cursor.sent = cursor.received
                self._woken[cursor.subscription] = None
        for peer, attachment in self._attached.items():
            if out.now - attachment.heard_at >= settings.silent_after:
                out.disconnect(attachment.link, f"nothing heard for {settings.silent_after // SECOND} s")
                attachment.heard_at = out.now
            elif attachment.epoch:
                session = self._session(peer)
                for number, reason in () if session is None else session.ended.items():
                    self._reply(attachment, peer, SubscriptionEnded(number, reason))
        for client in [client for client, since in self._away.items() if out.now - since >= settings.away_after]:
            del self._away[client]
            session = self._core.sessions.get(client)
            if session is not None:
                out.note("control", what="client-away", detail={"client": client})
                self._sequencer.submit(commands.DropSubscriptions(client, session.epoch), out)
        self._keep_ticking(out)

    def _keep_ticking(self, out: Outbox) -> None:
        if not self._ticking and (self._attached or self._away):
            self._ticking = True
            out.set_timer((self.name, "tick"), self._settings.tick)

    def check_invariants(self) -> None:
        for peer, attachment in self._attached.items():
            session = self._session(peer)
            for number, cursor in attachment.cursors.items():
                live = session is not None and session.subscriptions.get(number) is cursor.subscription
                if live:
                    claim = "what is received was sent, and what was sent exists"
                    order = cursor.consumed <= cursor.received <= cursor.sent <= cursor.subscription.last
                    require(order, claim, peer=peer, number=number)
            require((peer in self._waiting) == bool(attachment.held), "held publishers are listed", peer=peer)


def _refusals(session: Session) -> tuple[tuple[int, Refusal, str], ...]:
    return tuple((number, *why) for number, why in session.refused.items())


class _Batch:
    """Events for one client, collected into messages of bounded size."""

    __slots__ = ("_bytes", "_client", "_events", "_numbers", "_settings", "_subscriptions")

    def __init__(self, client: str, settings: HostSettings) -> None:
        self._client = client
        self._settings = settings
        self._clear()

    def _clear(self) -> None:
        self._subscriptions: list[int] = []
        self._numbers: list[int] = []
        self._events: list[EventBytes] = []
        self._bytes = 0

    def add(self, subscription: int, after: int, events: list[EventBytes], out: Outbox) -> None:
        for number, event in enumerate(events, after + 1):
            if len(self._events) >= self._settings.deliver_events or (
                self._events and self._bytes + len(event) > self._settings.deliver_bytes
            ):
                self.flush(out)
            self._subscriptions.append(subscription)
            self._numbers.append(number)
            self._events.append(event)
            self._bytes += len(event)

    def flush(self, out: Outbox) -> None:
        if self._events:
            out.send(self._client, Deliver(self._subscriptions, self._numbers, self._events), Lane.USER)
            self._clear()
