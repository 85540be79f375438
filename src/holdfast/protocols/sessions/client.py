"""The client: connects, keeps its session over broken links, publishes with a window, receives in order.

A node like a broker's: the library that users call and the simulator both drive this very machine.

- It knows one or more addresses and tries them in turn, with a pause that grows; a broker may send it elsewhere, and
  may tell it of others that serve too.
- What it publishes stays in flight until it is answered, and is sent again after a lost link. If the broker lost its
  whole memory, events in flight are published again; subscribers are spared the repetition by their own clients, which
  remember how far they were with each publisher. If it only forgot this client, nobody knows whether events in flight
  were accepted, and they fail as that.
- With `retry=False` an event that a lost link swallows is lost (D1-B4.4), and with `resubscribe=False` a subscription
  that the broker forgot stays forgotten (D1-C1): for experiments that need a naive client.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

import msgspec

from holdfast.errors import EventError, ProtocolError
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Requested, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.queues import Lane
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model.event import Event, EventBytes, check_event, decode_event, encode_batch, encode_event
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.incoming import IncomingSubscription, SubscriptionPhase
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
    SessionRefused,
    Subscribe,
    Subscribed,
    SubscribeRefused,
    SubscriptionEnded,
    Unsubscribe,
    Unsubscribed,
)
from holdfast.protocols.sessions.outgoing import Outgoing

if TYPE_CHECKING:
    from random import Random

BROKERS: Final = frozenset({Role.BROKER})
REDIRECTS_MAX: Final = 5


class ClientSettings(msgspec.Struct, frozen=True, gc=False):
    """What a client is given. Times are nanoseconds."""

    name: str
    addresses: tuple[str, ...]
    resubscribe: bool = True
    publish_window: int = 1_024  # events in flight
    batch_events: int = 256  # in one message
    batch_bytes: int = 256 * 1024
    pause_min: int = 50 * MILLISECOND  # between attempts to connect
    pause_max: int = 5 * SECOND
    opening_max: int = 5 * SECOND  # from dialling to an open session
    repeat_after: int = 1 * SECOND
    repeat_after_max: int = 8 * SECOND
    ping_every: int = 5 * SECOND
    silent_after: int = 15 * SECOND
    report_after: int = 10 * MILLISECOND  # progress is reported at the latest


class Phase(enum.Enum):
    """Where the client is with its broker."""

    PAUSING = "pausing"  # until the next attempt
    CONNECTING = "connecting"  # an attempt is under way
    OPENING = "opening"  # there is a link, and no answer yet
    OPEN = "open"
    CLOSED = "closed"  # for good


class ClientSession:
    """The one part of a client's node."""

    name: ClassVar[str] = "client"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (
            SessionOpened, SessionRefused, SessionClosed, Redirect, Subscribed, SubscribeRefused, Unsubscribed,
            SubscriptionEnded, Accepted, Deliver, Dropped, Pong,
        ),
        BROKERS,
    )  # fmt: skip

    def __init__(self, settings: ClientSettings, rng: Random) -> None:
        require(settings.addresses, "a client has an address to connect to")
        self._settings = settings
        self._rng = rng
        self._instance = rng.getrandbits(63)
        self._incarnation = 0
        self.phase = Phase.PAUSING
        self.epoch = 0
        self._memory = 0  # the broker's
        self._link = 0
        self._broker = ""
        self._address = ""
        self._heard_at = 0
        # Where to connect.
        self._addresses = list(settings.addresses)
        self._next_address = 0
        self._failures = 0
        self._redirects = 0
        # What goes out and what comes in.
        self._outgoing = Outgoing(settings.publish_window)
        self._sequence = 0  # of the last event that was made
        self._subscriptions: dict[int, IncomingSubscription] = {}
        self._last_subscription = 0
        self._unreported: dict[IncomingSubscription, None] = {}
        self._report_timer = False
        self._repeat_timer = False
        self._repeat_after = settings.repeat_after
        self._progress_at = 0
        self._closing: list[int] = []  # requests to close

    # --------------------------------------------------------------------------------------------------- connecting
    def on_started(self, started: Started, out: Outbox) -> None:
        self._incarnation = started.incarnation
        self._connect(out)

    def _connect(self, out: Outbox) -> None:
        self.phase = Phase.CONNECTING
        self._address = self._addresses[self._next_address % len(self._addresses)]
        out.connect("", self._address)
        out.set_timer((self.name, "opening"), self._settings.opening_max)

    def _pause(self, out: Outbox) -> None:
        """Waits, longer each time, and then tries the next address."""
        self.phase = Phase.PAUSING
        self._next_address += 1
        pause = min(self._settings.pause_max, self._settings.pause_min << min(self._failures, 30))
        self._failures += 1
        out.cancel_timer((self.name, "opening"))
        # Clients that lost the same broker do not come back at the same moment.
        out.set_timer((self.name, "pause"), int(pause * (0.5 + self._rng.random() / 2)))

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if self.phase is Phase.CONNECTING and failed.address == self._address:
            self._pause(out)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if self.phase is not Phase.CONNECTING or up.address != self._address:
            out.disconnect(up.link, "not wanted any more")
            return
        self.phase = Phase.OPENING
        self._link, self._broker, self._heard_at = up.link, up.peer, out.now
        self._open(out)
        self._progress_at = out.now
        self._expect_answers(out)

    def _open(self, out: Outbox) -> None:
        live = [s for s in self._subscriptions.values() if s.phase is SubscriptionPhase.LIVE] if self.epoch else []
        message = OpenSession(
            self._instance,
            self.epoch,
            tuple(s.number for s in live),
            tuple(s.received for s in live),
            tuple(s.consumed for s in live),
        )
        out.send(self._broker, message)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if down.link != self._link:
            return
        out.drop_queue(self._broker)
        was_open = self.phase is Phase.OPEN
        self._link = 0
        if self.phase is Phase.CLOSED:
            return
        if was_open:
            out.complete(requests.UNSOLICITED, requests.Disconnected(down.reason))
        self._fail(self._outgoing.give_up_unretried(), None, f"the link was lost: {down.reason}", out)
        if self._closing:
            self._closed("the broker was gone", out)
            return
        self._pause(out)

    def on_heard(self, peer: str, out: Outbox) -> None:
        self._heard_at = out.now

    def on_pong(self, peer: str, pong: Pong, out: Outbox) -> None:
        pass  # heard, which is all it says

    def _opening(self, peer: str) -> bool:
        return self.phase is Phase.OPENING and peer == self._broker

    def _open_with(self, peer: str) -> bool:
        """Whether the peer's word counts: that of a broker that was left behind does not, nor one before its time."""
        return self.phase is Phase.OPEN and peer == self._broker

    def on_redirect(self, peer: str, redirect: Redirect, out: Outbox) -> None:
        if not self._opening(peer):
            return
        self._learn(redirect.addresses)
        self._redirects += 1
        link = self._link
        if not redirect.addresses or self._redirects > REDIRECTS_MAX:
            out.disconnect(link, "sent from one broker to the next")  # LinkDown leads to a pause
            return
        self._next_address = self._addresses.index(redirect.addresses[0])
        self._link = 0
        out.drop_queue(self._broker)
        out.disconnect(link, "redirected")
        self._connect(out)

    def _learn(self, addresses: tuple[str, ...]) -> None:
        self._addresses += [address for address in addresses if address not in self._addresses]

    def on_session_refused(self, peer: str, refused: SessionRefused, out: Outbox) -> None:
        if not (self._opening(peer) or self._open_with(peer)):
            return
        out.complete(requests.UNSOLICITED, requests.SessionLost(refused.problem))
        self._end_all(refused.reason, refused.problem, out)
        self._closed(refused.problem, out)

    def on_session_opened(self, peer: str, opened: SessionOpened, out: Outbox) -> None:
        if not self._opening(peer):
            return
        if opened.epoch < 1:
            raise ProtocolError(f"an epoch is 1 or more, not {opened.epoch}")
        resumed = self.epoch == opened.epoch
        if resumed and opened.accepted > self._outgoing.sent:
            raise ProtocolError(f"event {opened.accepted} is accepted, but only {self._outgoing.sent} were sent")
        if opened.publish_window < 1:
            raise ProtocolError(f"a publisher's window is 1 or more, not {opened.publish_window}")
        first = self.epoch == 0
        self.phase = Phase.OPEN
        self._failures = self._redirects = 0
        self._learn(opened.alternates)
        out.cancel_timer((self.name, "opening"))
        out.set_timer((self.name, "ping"), self._settings.ping_every)
        self.epoch = opened.epoch
        self._outgoing.window = min(self._settings.publish_window, opened.publish_window)
        if resumed:
            self._answer(opened.accepted, opened.refused, out)
        else:
            if opened.memory == self._memory:
                # The broker remembers everyone but us. What it had accepted of ours reached subscribers that would take
                # a repetition for something new.
                unknown = self._outgoing.give_up_sent()
                self._fail(unknown, None, "the broker does not know any more whether it accepted this event", out)
            self._outgoing.restart()
        self._memory = opened.memory
        self._outgoing.resend_all()
        out.complete(requests.UNSOLICITED, requests.Connected(self._address, peer, resumed))
        for subscription in list(self._subscriptions.values()):
            known = resumed and subscription.number not in opened.forgotten
            self._take_up(subscription, known, first, out)
        if self._closing:
            out.send(self._broker, CloseSession())

    def _take_up(self, subscription: IncomingSubscription, known: bool, first: bool, out: Outbox) -> None:
        """Brings a subscription into the session that was just opened."""
        phase = subscription.phase
        if phase is SubscriptionPhase.ENDING:
            out.send(self._broker, Unsubscribe(subscription.number))
        elif phase is SubscriptionPhase.MAKING:
            self._subscribe(subscription, out)
        elif phase is SubscriptionPhase.LIVE and not known:
            require(not first, "no subscription lives before the first session")
            subscription.forgotten(self._settings.resubscribe)
            out.note(
                "missed", subscription=self._text(subscription), subscriber=self._settings.name, reason="forgotten"
            )
            reason = "the broker forgot the subscription"
            out.complete(requests.UNSOLICITED, requests.EventsMissed(subscription.number, None, reason))
            if self._settings.resubscribe:
                self._subscribe(subscription, out)

    def _text(self, subscription: IncomingSubscription) -> str:
        return f"{self._settings.name}/{self._incarnation}/{subscription.number}"

    # ----------------------------------------------------------------------------------------------------- requests
    def on_requested(self, requested: Requested, out: Outbox) -> None:
        request, command = requested.request, requested.command
        match command:
            case requests.PublishEvents():
                self._publish(request, command, out)
            case requests.Consume():
                self._consume(command, out)
            case requests.MakeSubscription():
                self._make(request, command, out)
            case requests.EndSubscription():
                self._end(request, command, out)
            case requests.Close():
                self._close(request, out)
            case _:
                broken("a client knows what it is asked", command=command)

    def _publish(self, request: int, command: requests.PublishEvents, out: Outbox) -> None:
        if not command.events:
            out.complete(request, requests.Published([]))
            return
        refused: list[tuple[int, Refusal | None, str]] = []
        made: list[tuple[int, int, EventBytes]] = []
        reason = "the client is closed" if self.phase is Phase.CLOSED else ""
        if not command.retry and self.phase is not Phase.OPEN:
            reason = reason or "not connected"
        for place, new in enumerate(command.events):
            self._sequence += 1
            event = Event(
                self._settings.name, self._incarnation, self._sequence,
                new.topic, dict(new.attributes), new.payload, out.wall, new.lifetime,
            )  # fmt: skip
            try:
                data = encode_event(event)
                check_event(event, len(data))
            except (EventError, TypeError, ValueError, OverflowError, RecursionError) as error:
                refused.append((place, Refusal.EVENT, str(error)))
                continue  # there is no such event
            if out.tracing:
                self._note_published(event, out)
            if reason:
                refused.append((place, None, reason))
                out.note("refused", event=event.id, publisher=event.publisher, reason=reason)
            else:
                made.append((place, self._sequence, data))
        self._outgoing.add(request, made, refused, command.retry)
        if not made:
            out.complete(request, requests.Published(refused))

    def _note_published(self, event: Event, out: Outbox) -> None:
        out.note(
            "published",
            event=event.id,
            publisher=event.publisher,
            incarnation=event.incarnation,
            sequence=event.sequence,
            topic=event.topic,
            attributes=event.attributes,
            lifetime=event.lifetime,
        )

    def _make(self, request: int, command: requests.MakeSubscription, out: Outbox) -> None:
        if self.phase is Phase.CLOSED:
            out.complete(request, requests.SubscriptionRefused(None, "the client is closed"))
            return
        self._last_subscription += 1
        subscription = IncomingSubscription(
            self._last_subscription, request, command.filter, command.overflow, command.window
        )
        self._subscriptions[subscription.number] = subscription
        out.note(
            "subscribed",
            subscription=self._text(subscription),
            subscriber=self._settings.name,
            filter=command.filter,
            overflow=command.overflow.value,
        )
        if self.phase is Phase.OPEN:
            self._subscribe(subscription, out)

    def _subscribe(self, subscription: IncomingSubscription, out: Outbox) -> None:
        message = Subscribe(subscription.number, subscription.filter, subscription.overflow, subscription.window)
        out.send(self._broker, message)
        self._expect_answers(out)

    def _end(self, request: int, command: requests.EndSubscription, out: Outbox) -> None:
        subscription = self._subscriptions.get(command.subscription)
        if subscription is None or self.phase is Phase.CLOSED:
            out.complete(request, requests.SubscriptionOver(command.subscription))
            return
        subscription.enders.append(request)
        if subscription.phase is not SubscriptionPhase.ENDING:
            self._over(subscription, "", out)
        if self.phase is Phase.OPEN:
            out.send(self._broker, Unsubscribe(subscription.number))
            self._expect_answers(out)

    def _over(self, subscription: IncomingSubscription, reason: str, out: Outbox) -> None:
        """No event of the subscription is handed over any more."""
        if subscription.maker is not None:
            problem = reason or "ended before it was confirmed"
            out.complete(subscription.maker, requests.SubscriptionRefused(None, problem))
            subscription.maker = None
        subscription.phase = SubscriptionPhase.ENDING
        self._unreported.pop(subscription, None)
        out.note("unsubscribed", subscription=self._text(subscription), subscriber=self._settings.name, reason=reason)

    def _consume(self, command: requests.Consume, out: Outbox) -> None:
        subscription = self._subscriptions.get(command.subscription)
        if subscription is not None and subscription.phase is SubscriptionPhase.LIVE:
            subscription.consume(command.count)
            self._unreported[subscription] = None

    def _close(self, request: int, out: Outbox) -> None:
        if self.phase is Phase.CLOSED:
            out.complete(request, requests.Closed())
            return
        self._closing.append(request)
        if self.phase is Phase.OPEN:
            out.send(self._broker, CloseSession())
            self._expect_answers(out)
        else:
            link, self._link = self._link, 0
            if link:
                out.disconnect(link, "closed by the application")
            self._closed("", out)

    def on_session_closed(self, peer: str, closed: SessionClosed, out: Outbox) -> None:
        if not self._open_with(peer):
            return
        if self._closing:
            self._closed("", out)
        else:
            # The broker gave up on this client while it was still there; it starts again with a new session.
            out.disconnect(self._link, "the broker closed the session")

    def _closed(self, reason: str, out: Outbox) -> None:
        self.phase = Phase.CLOSED
        if self._link:
            out.disconnect(self._link, reason or "closed by the application")
        for timer in ("opening", "pause", "ping", "repeat", "report"):
            out.cancel_timer((self.name, timer))
        self._end_all(None, reason or "the client was closed", out)
        for request in self._closing:
            out.complete(request, requests.Closed(reason))
        self._closing = []

    def _end_all(self, why: Refusal | None, reason: str, out: Outbox) -> None:
        self._fail(self._outgoing.give_up_all(), why, reason, out)
        for subscription in self._subscriptions.values():
            if subscription.phase is not SubscriptionPhase.ENDING:
                self._over(subscription, reason, out)
            for request in subscription.enders:
                out.complete(request, requests.SubscriptionOver(subscription.number))
        self._subscriptions = {}

    # ----------------------------------------------------------------------------------------------- what goes out
    def on_accepted(self, peer: str, accepted: Accepted, out: Outbox) -> None:
        if not self._open_with(peer):
            return
        if accepted.sequence > self._outgoing.sent:
            raise ProtocolError(f"event {accepted.sequence} is accepted, but only {self._outgoing.sent} were sent")
        self._answer(accepted.sequence, accepted.refused, out)

    def _answer(self, accepted: int, refusals: tuple[tuple[int, Refusal, str], ...], out: Outbox) -> None:
        if accepted > self._outgoing.answered:
            self._progress_at = out.now
            if self._repeat_after != self._settings.repeat_after:
                self._repeat_after = self._settings.repeat_after
                self._repeat_timer = False
                self._expect_answers(out)
        name = self._settings.name
        refused = {number: (reason, problem) for number, reason, problem in refusals}
        for number, sequence, request, place in self._outgoing.answer(accepted):
            why = refused.get(number)
            if out.tracing:
                event = f"{name}/{self._incarnation}/{sequence}"
                if why is None:
                    out.note("acknowledged", event=event, publisher=name)
                else:
                    out.note("refused", event=event, publisher=name, reason=why[1])
            done = self._outgoing.settle(request, place, why)
            if done is not None:
                out.complete(request, requests.Published(done))

    def _fail(self, given_up: list[tuple[int, int, int]], reason: Refusal | None, problem: str, out: Outbox) -> None:
        name = self._settings.name
        for sequence, request, place in given_up:
            out.note("refused", event=f"{name}/{self._incarnation}/{sequence}", publisher=name, reason=problem)
            done = self._outgoing.settle(request, place, (reason, problem))
            if done is not None:
                out.complete(request, requests.Published(done))

    def _send_events(self, out: Outbox) -> None:
        settings = self._settings
        while True:
            first, events = self._outgoing.take(settings.batch_events, settings.batch_bytes)
            if not events:
                break
            message = Publish(first, encode_batch(events), self._outgoing.answered)
            out.send(self._broker, message, Lane.USER)
            self._expect_answers(out)

    # ------------------------------------------------------------------------------------------------ what comes in
    def on_subscribed(self, peer: str, message: Subscribed, out: Outbox) -> None:
        subscription = self._subscriptions.get(message.subscription) if self._open_with(peer) else None
        if subscription is None or subscription.phase is not SubscriptionPhase.MAKING:
            return
        subscription.phase = SubscriptionPhase.LIVE
        self._progress_at = out.now
        out.note("confirmed", subscription=self._text(subscription), subscriber=self._settings.name)
        if subscription.maker is not None:
            out.complete(subscription.maker, requests.SubscriptionMade(subscription.number))
            subscription.maker = None

    def on_subscribe_refused(self, peer: str, refused: SubscribeRefused, out: Outbox) -> None:
        subscription = self._subscriptions.get(refused.subscription) if self._open_with(peer) else None
        if subscription is None or subscription.phase is not SubscriptionPhase.MAKING:
            return
        del self._subscriptions[refused.subscription]
        if subscription.maker is not None:
            result = requests.SubscriptionRefused(refused.reason, refused.problem, refused.offset, refused.expected)
            out.complete(subscription.maker, result)
            subscription.maker = None
        else:
            lost = requests.SubscriptionLost(subscription.number, refused.problem)
            out.complete(requests.UNSOLICITED, lost)
        self._over(subscription, refused.problem, out)

    def on_unsubscribed(self, peer: str, message: Unsubscribed, out: Outbox) -> None:
        subscription = self._subscriptions.get(message.subscription) if self._open_with(peer) else None
        if subscription is None or subscription.phase is not SubscriptionPhase.ENDING:
            return
        del self._subscriptions[message.subscription]
        self._progress_at = out.now
        for request in subscription.enders:
            out.complete(request, requests.SubscriptionOver(subscription.number))

    def on_subscription_ended(self, peer: str, ended: SubscriptionEnded, out: Outbox) -> None:
        if not self._open_with(peer):
            return
        subscription = self._subscriptions.get(ended.subscription)
        if subscription is not None and subscription.phase is not SubscriptionPhase.ENDING:
            out.complete(requests.UNSOLICITED, requests.SubscriptionLost(ended.subscription, ended.reason))
            self._over(subscription, ended.reason, out)
        out.send(self._broker, Unsubscribe(ended.subscription))

    def on_deliver(self, peer: str, message: Deliver, out: Outbox) -> None:
        if not len(message.subscriptions) == len(message.numbers) == len(message.events):
            raise ProtocolError("Deliver names subscriptions, numbers and events in different counts")
        if not self._open_with(peer):
            return
        batches: dict[IncomingSubscription, list[Event]] = {}
        strangers: dict[int, None] = {}
        known = self._subscriptions
        for number, place, data in zip(message.subscriptions, message.numbers, message.events, strict=True):
            subscription = known.get(number)
            if subscription is None or subscription.phase is not SubscriptionPhase.LIVE:
                if subscription is None:
                    strangers[number] = None
                continue
            if place != subscription.received + 1:
                if place > subscription.received:
                    subscription.gap = True
                else:
                    subscription.asked = True
                self._unreported[subscription] = None
                continue
            if place > subscription.consumed + subscription.window:
                raise ProtocolError(f"event {place} of subscription {number} is beyond its window")
            try:
                event = decode_event(data)
            except EventError as error:
                raise ProtocolError(f"in Deliver, {error}") from error
            self._unreported[subscription] = None
            if subscription.take(event):
                batch = batches.get(subscription)
                if batch is None:
                    batch = batches[subscription] = []
                batch.append(event)
        for number in strangers:
            # A repeated or belated Subscribe may have come to the broker behind the Unsubscribe.
            out.send(self._broker, Unsubscribe(number))
        for subscription, events in batches.items():
            if out.tracing:
                self._note_delivered(subscription, events, peer, out)
            out.deliver(subscription.number, events)

    def _note_delivered(self, subscription: IncomingSubscription, events: list[Event], via: str, out: Outbox) -> None:
        text = self._text(subscription)
        for event in events:
            out.note("delivered", event=event.id, subscription=text, subscriber=self._settings.name, via=via)

    def on_dropped(self, peer: str, dropped: Dropped, out: Outbox) -> None:
        subscription = self._subscriptions.get(dropped.subscription) if self._open_with(peer) else None
        if subscription is None or subscription.phase is not SubscriptionPhase.LIVE:
            return
        count = subscription.skip(dropped.through)
        self._unreported[subscription] = None
        if not count:
            subscription.asked = True
        else:
            text, reason = self._text(subscription), "overflow"
            out.note("missed", subscription=text, subscriber=self._settings.name, reason=reason, count=count)
            out.complete(requests.UNSOLICITED, requests.EventsMissed(subscription.number, count, reason))

    # --------------------------------------------------------------------------------------------------------- turn
    def finish(self, out: Outbox) -> None:
        if self.phase is Phase.OPEN:
            if self._outgoing.ready:
                self._send_events(out)
            if not self._unreported:
                return
            if any(subscription.urgent for subscription in self._unreported):
                self._report(out)
            elif not self._report_timer:
                self._report_timer = True
                out.set_timer((self.name, "report"), self._settings.report_after)

    def _report(self, out: Outbox) -> None:
        subscriptions, self._unreported = list(self._unreported), {}
        missing = any(subscription.gap for subscription in subscriptions)
        out.send(
            self._broker,
            Progress(
                tuple(s.number for s in subscriptions),
                tuple(s.received for s in subscriptions),
                tuple(s.consumed for s in subscriptions),
                missing,
            ),
        )
        for subscription in subscriptions:
            subscription.reported()

    # --------------------------------------------------------------------------------------------------------- time
    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        match key[1]:
            case "pause":
                if self.phase is Phase.PAUSING:  # and not closed in this very turn
                    self._connect(out)
            case "opening":
                self._give_up_attempt(out)
            case "ping":
                self._ping(out)
            case "repeat":
                self._repeat_timer = False
                self._repeat(out)
            case "report":
                self._report_timer = False
                if self.phase is Phase.OPEN and self._unreported:
                    self._report(out)
            case _:
                broken("a timer of the client has a known name", key=key)

    def _give_up_attempt(self, out: Outbox) -> None:
        if self.phase is Phase.OPENING:
            out.disconnect(self._link, "no session in time")  # LinkDown leads to a pause
        elif self.phase is Phase.CONNECTING:
            self._pause(out)

    def _ping(self, out: Outbox) -> None:
        if self.phase is not Phase.OPEN:
            return
        if out.now - self._heard_at >= self._settings.silent_after:
            out.disconnect(self._link, f"nothing heard for {self._settings.silent_after // SECOND} s")
        else:
            out.send(self._broker, Ping(), after=NOW)
            out.set_timer((self.name, "ping"), self._settings.ping_every)

    def _expect_answers(self, out: Outbox) -> None:
        if not self._repeat_timer:
            self._repeat_timer = True
            out.set_timer((self.name, "repeat"), self._repeat_after)

    def _repeat(self, out: Outbox) -> None:
        """Says again what has not been answered for a while. Over TCP that is rare, and harmless."""
        if self.phase is Phase.OPENING:
            self._open(out)
            self._expect_answers(out)
            return
        if self.phase is not Phase.OPEN:
            return
        making = [s for s in self._subscriptions.values() if s.phase is SubscriptionPhase.MAKING]
        ending = [s for s in self._subscriptions.values() if s.phase is SubscriptionPhase.ENDING]
        if not (self._outgoing.in_flight or making or ending or self._closing):
            return
        if out.now - self._progress_at >= self._repeat_after:
            self._progress_at = out.now
            self._repeat_after = min(2 * self._repeat_after, self._settings.repeat_after_max)
            self._outgoing.resend_all()
            for subscription in making:
                self._subscribe(subscription, out)
            for subscription in ending:
                out.send(self._broker, Unsubscribe(subscription.number))
            if self._closing:
                out.send(self._broker, CloseSession())
        self._expect_answers(out)

    def check_invariants(self) -> None:
        self._outgoing.check_invariants()
        for subscription in self._subscriptions.values():
            subscription.check_invariants()
        if self.phase in {Phase.OPENING, Phase.OPEN}:
            require(self._link, "a session is on a link", phase=self.phase)
