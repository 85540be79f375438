"""Events on their way to clients: credits, repetition, and what one turn comes to for each client.

A cursor says how far one subscription's events are on their way over the link of the moment. Events are sent as far as
the client has room (credit), and again from where it stopped receiving, if it does not confirm them for a while.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.errors import ProtocolError
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.subscriptions import Subscription
from holdfast.protocols.desks.batches import Batch
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.sequencer import CHECK_SHARE
from holdfast.protocols.sessions.messages import Dropped, Progress


class SentSoFar:
    """How far one subscription's events are on their way over this link."""

    __slots__ = ("consumed", "progress_at", "received", "repeat_after", "sent", "subscription")

    def __init__(self, subscription: Subscription, received: int, consumed: int, now: int, repeat_after: int) -> None:
        self.subscription = subscription
        self.sent = received
        self.received = received
        self.consumed = consumed
        self.progress_at = now
        self.repeat_after = repeat_after

    def go_to(self, number: int) -> None:
        """What comes next is behind this number, forwards or back."""
        self.sent = number

    def land(self, received: int, consumed: int, now: int, repeat_after: int) -> bool:
        """The client says how far it is. Whether it has received something new."""
        self.consumed = max(self.consumed, consumed)
        if received <= self.received:
            return False
        self.received = received
        self.sent = max(self.sent, received)
        self.progress_at = now
        self.repeat_after = repeat_after
        return True

    def wait_from(self, now: int) -> None:
        self.progress_at = now

    def wait_longer(self, repeat_after_max: int) -> None:
        self.repeat_after = min(2 * self.repeat_after, repeat_after_max)


class Deliveries:
    """Cursors of all clients that are there, and the turn's messages for them."""

    def __init__(self, node: str, core: BrokerCore, settings: DeskSettings) -> None:
        self._node = node
        self._core = core
        self._settings = settings
        self._cursors: dict[str, dict[int, SentSoFar]] = {}  # client → number → cursor
        self._unconfirmed: dict[SentSoFar, None] = {}
        self.batches: dict[str, Batch] = {}  # of this turn
        self._turns_unchecked = 0
        self.sent_total = 0  # events, with those that were sent again
        self.repeated_total = 0

    # ------------------------------------------------------------------------------------------------------ clients
    def attach(self, client: str, known: dict[int, tuple[int, int]], out: Outbox) -> None:
        """A client is there with its session; `known` is how far it is with subscriptions: received and consumed."""
        self.detach(client)
        cursors = self._cursors[client] = {}
        for subscription in self._core.sessions[client].subscriptions.values():
            received, consumed = known.get(subscription.number, (0, 0))
            received = max(0, min(received, subscription.last))
            consumed = max(0, min(consumed, received))
            cursors[subscription.number] = SentSoFar(
                subscription, received, consumed, out.now, self._settings.repeat_after
            )

    def detach(self, client: str) -> None:
        for cursor in self._cursors.pop(client, {}).values():
            self._unconfirmed.pop(cursor, None)
        self.batches.pop(client, None)

    def forget(self, subscription: Subscription) -> None:
        """The subscription is over."""
        cursors = self._cursors.get(subscription.client, {})
        cursor = cursors.get(subscription.number)
        if cursor is not None and cursor.subscription is subscription:
            del cursors[subscription.number]
            self._unconfirmed.pop(cursor, None)

    # ------------------------------------------------------------------------------------------------------- events
    def send(self, subscription: Subscription, out: Outbox) -> None:
        """Collects for the turn's end what the client may be sent now: what comes later in the turn, such as the end
        of the subscription, does not take it back."""
        client = subscription.client
        if out.tracing:
            out.note(
                "queue_length",
                node=self._node,
                queue=f"{client}/{subscription.number}",
                length=len(subscription),
                limit=self._core.limits.backlog_events,
                bytes=subscription.bytes,
            )
        cursors = self._cursors.get(client)
        if cursors is None:
            return
        cursor = cursors.get(subscription.number)
        if cursor is None:
            cursor = SentSoFar(subscription, 0, 0, out.now, self._settings.repeat_after)
            cursors[subscription.number] = cursor
        batch = self._batch(client)
        gone = subscription.first_kept - 1
        if cursor.sent < gone:
            expired = subscription.expired_runs(cursor.sent, gone)
            cursor.go_to(gone)
            batch.say(Dropped(subscription.number, cursor.sent, expired))
        queue = out.queue(client)
        room_bytes = self._settings.queue_bytes_max - queue.bytes - batch.weight
        if room_bytes < 0:
            queue.notify_below(0)
            return
        room = cursor.consumed + subscription.window - cursor.sent
        if room > 0 and cursor.sent < subscription.last:
            for run in subscription.read(cursor.sent, room):
                size = run.batch.bytes
                if size > room_bytes:
                    # Those that fit, and the one with which they do not any more.
                    run = run.part(0, run.batch.rows_within(0, room_bytes) + 1)
                batch.add(subscription.number, cursor.sent, run)
                cursor.go_to(cursor.sent + run.batch.count)
                self.sent_total += run.batch.count
                room_bytes -= size
                if room_bytes < 0:
                    if cursor.sent < subscription.last:
                        queue.notify_below(0)
                    break
        starved = cursor.sent < subscription.last  # of credit: the client's last word may be lost
        if (starved or cursor.sent > cursor.received) and cursor not in self._unconfirmed:
            cursor.wait_from(out.now)
            self._unconfirmed[cursor] = None

    def send_all(self, client: str, out: Outbox) -> None:
        for cursor in list(self._cursors.get(client, {}).values()):
            self.send(cursor.subscription, out)

    def _batch(self, client: str) -> Batch:
        batch = self.batches.get(client)
        if batch is None:
            batch = self.batches[client] = Batch(self._settings.deliver_events, self._settings.deliver_bytes)
        return batch

    def take(self) -> Iterator[tuple[str, Message]]:
        """What the turn came to, for each client in order."""
        batches, self.batches = self.batches, {}
        for client, batch in batches.items():
            for message in batch.take():
                yield client, message

    # ----------------------------------------------------------------------------------------------------- progress
    def on_progress(self, client: str, message: Progress, out: Outbox) -> bool:
        """Takes in how far a client is, and sends more. Whether it has received something new."""
        cursors = self._cursors.get(client, {})
        advanced = False
        for number, received, consumed in zip(message.subscriptions, message.received, message.consumed, strict=True):
            cursor = cursors.get(number)
            if cursor is None:
                continue
            if received > cursor.subscription.last or consumed > received:
                raise ProtocolError(f"subscription {number} has {cursor.subscription.last} events, not {received}")
            advanced |= cursor.land(received, consumed, out.now, self._settings.repeat_after)
            if cursor.sent == cursor.received:
                self._unconfirmed.pop(cursor, None)  # if it is starved, it comes back below
            elif message.missing and received == cursor.received and self._may_repeat(cursor, out):
                cursor.go_to(received)
                cursor.wait_from(out.now)
            if cursor.sent < cursor.subscription.last or out.tracing:
                self.send(cursor.subscription, out)
        return advanced

    def _may_repeat(self, cursor: SentSoFar, out: Outbox) -> bool:
        """A client that misses something says so with everything that comes after it; once is enough."""
        return out.now - cursor.progress_at >= self._settings.repeat_pause

    def repeat(self, out: Outbox) -> None:
        """Sends again what was not confirmed in time, and asks those without room whether that is still so."""
        for cursor in list(self._unconfirmed):
            if out.now - cursor.progress_at < cursor.repeat_after:
                continue
            cursor.wait_from(out.now)
            cursor.wait_longer(self._settings.repeat_after_max)
            del self._unconfirmed[cursor]
            if cursor.sent == cursor.received:
                # A question: the client answers how far it is.
                self._batch(cursor.subscription.client).say(Dropped(cursor.subscription.number, cursor.sent))
            self.repeated_total += cursor.sent - cursor.received
            cursor.go_to(cursor.received)
            self.send(cursor.subscription, out)

    def check_invariants(self) -> None:
        # As with the core: a look at everything, but in large runs not after every turn.
        self._turns_unchecked += 1
        if self._turns_unchecked <= len(self._cursors) // CHECK_SHARE:
            return
        self._turns_unchecked = 0
        # Without a call for each cursor: this is a good part of the time of a simulation.
        for client, cursors in self._cursors.items():
            session = self._core.sessions.get(client)
            subscriptions = session.subscriptions if session is not None else {}
            for number, cursor in cursors.items():
                subscription = cursor.subscription
                if subscriptions.get(number) is not subscription:
                    broken("what is on its way belongs to a subscription", client=client, number=number)
                if not cursor.consumed <= cursor.received <= cursor.sent <= subscription.last:
                    broken("what is received was sent, and what was sent exists", client=client, number=number)
        if self._unconfirmed:
            listed = {cursor for cursors in self._cursors.values() for cursor in cursors.values()}
            require(self._unconfirmed.keys() <= listed, "what is repeated is on its way")
