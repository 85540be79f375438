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
from holdfast.model.event import Event, EventBytes, check_event, decode_event, encode_batch
from holdfast.protocols.sessions import commands
from holdfast.protocols.sessions.batches import Batch
from holdfast.protocols.sessions.commands import Command
from holdfast.protocols.sessions.core import (
    EPOCH_MAX,
    Answered,
    BrokerCore,
    Freed,
    NotOpened,
    Opened,
    Output,
    Removed,
    Reply,
    Session,
    Woken,
)
from holdfast.protocols.sessions.messages import (
    Accepted,
    CloseSession,
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
    queue_bytes_max: int = 8 * 1024 * 1024  # that wait for a slow link; events beyond wait in their subscriptions
    unread_bytes_max: int = 32 * 1024 * 1024  # of all kinds; a client that goes on sending without reading is cut off
    held_bytes_max: int = 8 * 1024 * 1024  # of one publisher that waits; what is not held comes again
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

    __slots__ = ("cursors", "epoch", "heard_at", "held", "held_bytes", "held_since", "link", "opening")

    def __init__(self, link: int, now: int) -> None:
        self.link = link
        self.heard_at = now
        self.opening: OpenSession | None = None
        self.epoch = 0  # 0: no session yet
        self.cursors: dict[int, _Cursor] = {}
        # Events that wait for a blocking subscription to have room: (number of the first, their bytes).
        self.held: deque[tuple[int, list[EventBytes]]] = deque()
        self.held_bytes = 0
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
        self._replies: list[tuple[str, Message]] = []
        self._answered: dict[str, None] = {}
        self._batches: dict[str, Batch] = {}
        self._freed = False
        self._releasing = False
        self._ticking = False
        self._noted_size = 0  # the table's size that the trace knows of

    # -------------------------------------------------------------------------------------------------------- links
    def on_started(self, started: Started, out: Outbox) -> None:
        self._away = {client: out.now for client in self._core.sessions if client not in self._core.dormant}
        self._keep_ticking(out)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is Role.CLIENT:
            if up.peer in self._attached:
                self._detach(up.peer, out)  # the driver may say later that the older link is down
            self._attached[up.peer] = _Attachment(up.link, out.now)
            self._keep_ticking(out)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        attachment = self._attached.get(down.peer)
        if attachment is not None and attachment.link == down.link:
            self._detach(down.peer, out)

    def _detach(self, peer: str, out: Outbox) -> None:
        """Forgets a link, and what was to be said on it: the next one may be another client's."""
        attachment = self._attached.pop(peer)
        self._waiting.pop(peer, None)
        for cursor in attachment.cursors.values():
            self._unconfirmed.pop(cursor, None)
        self._replies = [reply for reply in self._replies if reply[0] != peer]
        self._answered.pop(peer, None)
        self._batches.pop(peer, None)
        out.drop_queue(peer)
        if peer in self._core.sessions and peer not in self._core.dormant:
            self._away[peer] = out.now
            self._keep_ticking(out)

    def on_heard(self, peer: str, out: Outbox) -> None:
        attachment = self._attached.get(peer)
        if attachment is not None:
            attachment.heard_at = out.now
            if peer in out.queues and out.queues[peer].bytes > self._settings.unread_bytes_max:
                raise ProtocolError(f"more than {self._settings.unread_bytes_max} bytes of answers are not read")

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
        if not 0 <= message.epoch <= EPOCH_MAX:
            raise ProtocolError(f"an epoch is 0 to {EPOCH_MAX}, not {message.epoch}")
        attachment.opening = message
        self._sequencer.submit(commands.OpenSession(peer, message.instance, message.epoch), out)

    def on_close_session(self, peer: str, message: CloseSession, out: Outbox) -> None:
        session = self._session(peer)
        if session is None:
            self._replies.append((peer, SessionClosed()))
        else:
            self._say_accepted(peer)
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
        self._replies.append((opened.client, reply))
        if attachment.epoch == opened.epoch:
            return  # asked twice; what has happened on the link since then stands
        attachment.epoch = opened.epoch
        for cursor in attachment.cursors.values():
            self._unconfirmed.pop(cursor, None)
        attachment.cursors = {}
        self._stop_holding(opened.client, attachment)
        known: dict[int, tuple[int, int]] = {}
        resumed = opening.epoch == opened.epoch
        if resumed:
            numbers = zip(opening.subscriptions, opening.received, opening.consumed, strict=True)
            known = {number: (received, consumed) for number, received, consumed in numbers}
        for subscription in session.subscriptions.values():
            received, consumed = known.get(subscription.number, (0, 0))
            received = max(0, min(received, subscription.last))
            attachment.cursors[subscription.number] = _Cursor(
                subscription, received, max(0, min(consumed, received)), out.now, self._settings.repeat_after
            )
        for number, reason in session.ended.items():
            self._replies.append((opened.client, SubscriptionEnded(number, reason)))
        if resumed:
            received_up_to = commands.Receive(opened.client, opened.epoch, opening.subscriptions, opening.received)
            self._sequencer.submit(received_up_to, out)
        for cursor in list(attachment.cursors.values()):
            self._send_events(cursor.subscription, out)

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
            self._send_events(cursor.subscription, out)
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
        # The window begins where the client has seen answers: what is kept for it until then is bounded too.
        last = message.first + len(events) - 1
        answered = min(message.confirmed, session.accepted)
        if message.first < 1 or answered < 0 or last > answered + self._settings.publish_window:
            raise ProtocolError(f"events {message.first} to {last} are beyond the window after {answered}")
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
                if _wants(subscription, events[row], size):
                    if tight[subscription] < 1 or room_bytes[subscription] < size:
                        return row
                    tight[subscription] -= 1
                    room_bytes[subscription] -= size
        return len(events)

    def _hold_more(self, attachment: _Attachment, first: int, slices: list[EventBytes]) -> None:
        """Puts events behind those that wait; what waits already is skipped, what leaves a gap is not taken."""
        following = first if not attachment.held else attachment.held[-1][0] + len(attachment.held[-1][1])
        fresh: list[EventBytes] = []
        for event in slices[max(0, following - first) :] if first <= following else []:
            if attachment.held_bytes and attachment.held_bytes + len(event) > self._settings.held_bytes_max:
                break
            attachment.held_bytes += len(event)
            fresh.append(event.copy())
        if fresh:
            attachment.held.append((following, fresh))

    def _stop_holding(self, peer: str, attachment: _Attachment) -> None:
        attachment.held.clear()
        attachment.held_bytes = 0
        self._waiting.pop(peer, None)

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
                attachment.held_bytes -= sum(map(len, slices[:admitted]))
                if admitted < len(slices):
                    batch = encode_batch(slices[:admitted])
                    attachment.held[0] = (first + admitted, slices[admitted:])
                else:
                    attachment.held.popleft()
                attachment.held_since = out.now
                self._sequencer.submit(commands.Publish(peer, session.epoch, first, 0, batch), out)
            if not attachment.held or session is None:
                self._stop_holding(peer, attachment)

    def _until_block_ends(self, out: Outbox) -> int:
        since = min(self._attached[peer].held_since for peer in self._waiting)
        return max(0, since + self._settings.block_max - out.now)

    def _end_blocks(self, out: Outbox) -> None:
        """A publisher has waited long enough: the subscriptions that it waits for end."""
        for peer in list(self._waiting):
            attachment = self._attached[peer]
            if not attachment.held or out.now - attachment.held_since < self._settings.block_max:
                continue
            waiting = attachment.held[0][1][0]
            event, size, limits = decode_event(waiting), len(waiting), self._core.limits
            full = [
                subscription
                for subscription in self._core.blocking
                if (len(subscription) >= limits.backlog_events or subscription.bytes + size > limits.backlog_bytes)
                and _wants(subscription, event, size)
            ]
            for subscription in full:
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
                        self._send_events(subscription, out)
                case Answered():
                    self._answered[output.client] = None
                case Reply():
                    # The client may be there in another life by now, which must not get it.
                    attachment = self._attached.get(output.client)
                    if attachment is not None and attachment.epoch == output.epoch:
                        self._replies.append((output.client, output.message))
                case NotOpened():
                    attachment = self._attached.get(output.client)
                    opening = None if attachment is None else attachment.opening
                    if opening is not None and opening.instance == output.instance:
                        self._replies.append((output.client, output.refusal))
                case Opened():
                    self._opened(output, out)
                case Removed():
                    self._forget(output.subscription)
                case Freed():
                    self._freed = True
        while self._freed and not self._releasing:
            # Here and not at the end of the turn, so that who publishes next has to stand behind those that waited,
            # however the driver cuts turns. What their events free again is for the next round.
            self._freed = False
            self._releasing = True
            self._release(out)
            self._releasing = False

    def finish(self, out: Outbox) -> None:
        """Says what the turn came to. The sequencer's own `finish` has run before."""
        for peer in list(self._answered):
            self._say_accepted(peer)
        for peer, message in self._replies:
            if peer in self._attached:
                out.send(peer, message)
        self._replies.clear()
        if out.tracing and self._noted_size != len(self._core.index):
            self._noted_size = len(self._core.index)
            out.note("table_size", node=self._node, table="subscriptions", entries=self._noted_size)
        batches, self._batches = self._batches, {}
        for peer, batch in batches.items():
            for message in batch.take():
                out.send(peer, message, Lane.USER)

    def _say_accepted(self, peer: str) -> None:
        if peer in self._answered:
            del self._answered[peer]
            session = self._session(peer) if peer in self._attached else None
            if session is not None:
                self._replies.append((peer, Accepted(session.accepted, _refusals(session))))

    def _batch(self, client: str) -> Batch:
        batch = self._batches.get(client)
        if batch is None:
            batch = self._batches[client] = Batch(self._settings.deliver_events, self._settings.deliver_bytes)
        return batch

    def _forget(self, subscription: Subscription) -> None:
        attachment = self._attached.get(subscription.client)
        cursor = None if attachment is None else attachment.cursors.get(subscription.number)
        if attachment is not None and cursor is not None and cursor.subscription is subscription:
            del attachment.cursors[subscription.number]
            self._unconfirmed.pop(cursor, None)

    def _send_events(self, subscription: Subscription, out: Outbox) -> None:
        """Collects for the turn's end what the client may be sent now: what comes later in the turn, such as the end
        of the subscription, does not take it back."""
        client = subscription.client
        attachment = self._attached.get(client)
        if out.tracing:
            out.note(
                "queue_length",
                node=self._node,
                queue=f"{client}/{subscription.number}",
                length=len(subscription),
                limit=self._core.limits.backlog_events,
                bytes=subscription.bytes,
            )
        if attachment is None or not attachment.epoch:
            return
        cursor = attachment.cursors.get(subscription.number)
        if cursor is None:
            if self._session(client) is None:
                return
            cursor = _Cursor(subscription, 0, 0, out.now, self._settings.repeat_after)
            attachment.cursors[subscription.number] = cursor
        batch = self._batch(client)
        if cursor.sent < subscription.first_kept - 1:
            cursor.sent = subscription.first_kept - 1
            batch.say(Dropped(subscription.number, cursor.sent))
        queue = out.queue(client)
        if queue.bytes + batch.weight > self._settings.queue_bytes_max:
            queue.notify_below(0)
            return
        room = cursor.consumed + subscription.window - cursor.sent
        if room > 0 and cursor.sent < subscription.last:
            events = subscription.read(cursor.sent, room)
            batch.add(subscription.number, cursor.sent, events)
            cursor.sent += len(events)
        starved = cursor.sent < subscription.last  # of credit: the client's last word may be lost
        if (starved or cursor.sent > cursor.received) and cursor not in self._unconfirmed:
            cursor.progress_at = out.now
            self._unconfirmed[cursor] = None

    def on_drained(self, drained: Drained, out: Outbox) -> None:
        attachment = self._attached.get(drained.peer)
        if attachment is not None:
            for cursor in attachment.cursors.values():
                self._send_events(cursor.subscription, out)

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
                    self._batch(cursor.subscription.client).say(Dropped(cursor.subscription.number, cursor.sent))
                cursor.sent = cursor.received
                self._send_events(cursor.subscription, out)
        for peer, attachment in self._attached.items():
            if out.now - attachment.heard_at >= settings.silent_after:
                out.disconnect(attachment.link, f"nothing heard for {settings.silent_after // SECOND} s")
                attachment.heard_at = out.now
            elif attachment.epoch:
                session = self._session(peer)
                for number, reason in () if session is None else session.ended.items():
                    self._replies.append((peer, SubscriptionEnded(number, reason)))
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
                require(live, "what is on its way belongs to a subscription", peer=peer, number=number)
                claim = "what is received was sent, and what was sent exists"
                order = cursor.consumed <= cursor.received <= cursor.sent <= cursor.subscription.last
                require(order, claim, peer=peer, number=number)
            require((peer in self._waiting) == bool(attachment.held), "held publishers are listed", peer=peer)
            held = sum(len(event) for _, slices in attachment.held for event in slices)
            require(held == attachment.held_bytes, "held bytes are counted", peer=peer)
        listed = {cursor for attachment in self._attached.values() for cursor in attachment.cursors.values()}
        require(self._unconfirmed.keys() <= listed, "what is repeated is on its way")


def _refusals(session: Session) -> tuple[tuple[int, Refusal, str], ...]:
    return tuple((number, *why) for number, why in session.refused.items())


def _wants(subscription: Subscription, event: Event, size: int) -> bool:
    """Whether a subscription would keep the event. One that breaks a rule is refused, and kept by no one."""
    try:
        check_event(event, size)
    except EventError:
        return False
    return subscription.filter.matches(event.attributes, event.topic)
