"""The part of a client that subscribes: makes subscriptions, also again, receives in order, and reports progress."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import ClassVar

from holdfast.errors import EventError, ProtocolError
from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.model.batch import EventBatch
from holdfast.model.received import ReceivedEvents
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.conversation import Conversation, Phase
from holdfast.protocols.sessions.incoming import IncomingSubscription, SubscriptionPhase
from holdfast.protocols.sessions.messages import (
    Deliver,
    Dropped,
    OpenSession,
    Progress,
    Subscribe,
    Subscribed,
    SubscribeRefused,
    SubscriptionEnded,
    Unsubscribe,
    Unsubscribed,
)


class Subscriber(Part):
    """A part of a client's node."""

    name: ClassVar[str] = "subscriber"
    due = False
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (Subscribed, SubscribeRefused, Unsubscribed, SubscriptionEnded, Deliver, Dropped), frozenset({Role.BROKER})
    )
    asked: ClassVar[tuple[type, ...]] = (requests.MakeSubscription, requests.EndSubscription, requests.Consume)

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._subscriptions: dict[int, IncomingSubscription] = {}
        self._last_number = 0
        self._unreported: dict[IncomingSubscription, None] = {}
        self._urgent = False  # one of those is to be reported now
        self._much = False  # of what is to be reported
        self._events = self._bytes = 0  # that came since the last report
        self._report_at = 0  # when the timer fires; 0: it is not set

    @property
    def is_waiting(self) -> bool:
        """Whether answers are missing."""
        return any(
            s.phase in {SubscriptionPhase.MAKING, SubscriptionPhase.ENDING} for s in self._subscriptions.values()
        )

    def _text(self, subscription: IncomingSubscription) -> str:
        return f"{self._conversation.name}/{self._conversation.incarnation}/{subscription.number}"

    def _find(self, peer: str, number: int, phase: SubscriptionPhase) -> IncomingSubscription | None:
        """The subscription that a broker speaks of, if its word counts and the subscription is in that phase."""
        subscription = self._subscriptions.get(number) if self._conversation.is_open_with(peer) else None
        return subscription if subscription is not None and subscription.phase is phase else None

    # ----------------------------------------------------------------------------------------------------- requests
    def on_make_subscription(self, request: int, command: requests.MakeSubscription, out: Outbox) -> None:
        if self._conversation.phase is Phase.CLOSED:
            out.complete(request, requests.SubscriptionRefused(None, "the client is closed"))
            return
        self._last_number += 1
        subscription = IncomingSubscription(
            self._last_number, request, command.filter, command.overflow, command.window
        )
        self._subscriptions[subscription.number] = subscription
        out.note(
            "subscribed",
            subscription=self._text(subscription),
            subscriber=self._conversation.name,
            filter=command.filter,
            overflow=command.overflow.value,
        )
        if self._conversation.is_open:
            self._subscribe(subscription, out)

    def _subscribe(self, subscription: IncomingSubscription, out: Outbox) -> None:
        message = Subscribe(subscription.number, subscription.filter, subscription.overflow, subscription.window)
        self._conversation.ask(message, out)

    def on_end_subscription(self, request: int, command: requests.EndSubscription, out: Outbox) -> None:
        number = command.subscription
        subscription = self._subscriptions.get(number)
        if subscription is None or self._conversation.phase is Phase.CLOSED:
            out.complete(request, requests.SubscriptionOver(number))
            return
        subscription.enders.append(request)
        if subscription.phase is not SubscriptionPhase.ENDING:
            self.report_rest(out)
            self._over(subscription, "", out)
        if self._conversation.is_open:
            self._conversation.ask(Unsubscribe(number), out)

    def _over(self, subscription: IncomingSubscription, reason: str, out: Outbox) -> None:
        """No event of the subscription is handed over any more."""
        if (maker := subscription.take_maker()) is not None:
            problem = reason or "ended before it was confirmed"
            out.complete(maker, requests.SubscriptionRefused(None, problem))
        subscription.enter(SubscriptionPhase.ENDING)
        self._unreported.pop(subscription, None)
        text, name = self._text(subscription), self._conversation.name
        out.note("unsubscribed", subscription=text, subscriber=name, reason=reason)

    def on_consume(self, request: int, command: requests.Consume, out: Outbox) -> None:
        subscription = self._subscriptions.get(command.subscription)
        if subscription is not None and subscription.phase is SubscriptionPhase.LIVE:
            subscription.consume(command.count)
            self._changed(subscription)

    # ------------------------------------------------------------------------------------------------------ answers
    def on_subscribed(self, peer: str, message: Subscribed, out: Outbox) -> None:
        subscription = self._find(peer, message.subscription, SubscriptionPhase.MAKING)
        if subscription is None:
            return
        subscription.enter(SubscriptionPhase.LIVE)
        self._conversation.progressed(out)
        out.note("confirmed", subscription=self._text(subscription), subscriber=self._conversation.name, via=peer)
        if (maker := subscription.take_maker()) is not None:
            out.complete(maker, requests.SubscriptionMade(subscription.number))

    def on_subscribe_refused(self, peer: str, refused: SubscribeRefused, out: Outbox) -> None:
        subscription = self._find(peer, refused.subscription, SubscriptionPhase.MAKING)
        if subscription is None:
            return
        del self._subscriptions[refused.subscription]
        if (maker := subscription.take_maker()) is not None:
            result = requests.SubscriptionRefused(
                refused.reason, refused.problem, refused.offset, refused.expected, refused.limit, refused.allowed
            )
            out.complete(maker, result)
        else:
            lost = requests.SubscriptionLost(subscription.number, refused.problem)
            out.complete(requests.UNSOLICITED, lost)
        self._over(subscription, refused.problem, out)

    def on_unsubscribed(self, peer: str, message: Unsubscribed, out: Outbox) -> None:
        subscription = self._find(peer, message.subscription, SubscriptionPhase.ENDING)
        if subscription is None:
            return
        del self._subscriptions[message.subscription]
        self._conversation.progressed(out)
        for request in subscription.enders:
            out.complete(request, requests.SubscriptionOver(subscription.number))

    def on_subscription_ended(self, peer: str, ended: SubscriptionEnded, out: Outbox) -> None:
        if not self._conversation.is_open_with(peer):
            return
        subscription = self._subscriptions.get(ended.subscription)
        if subscription is not None and subscription.phase is not SubscriptionPhase.ENDING:
            out.complete(requests.UNSOLICITED, requests.SubscriptionLost(ended.subscription, ended.reason))
            self._over(subscription, ended.reason, out)
        self._conversation.send(Unsubscribe(ended.subscription), out)

    # ------------------------------------------------------------------------------------------------------- events
    def on_deliver(self, peer: str, message: Deliver, out: Outbox) -> None:
        if not self._conversation.is_open_with(peer):
            return
        events = self._read(message)
        self._count_in(events.batch)
        strangers: dict[int, None] = {}
        start = 0
        for number, first, count in message.runs:
            subscription = self._subscriptions.get(number)
            if subscription is None:
                strangers[number] = None
            elif subscription.phase is SubscriptionPhase.LIVE:
                self._look(subscription, first, events.part(start, start + count), peer, out)
            start += count
        for number in strangers:
            # A repeated or belated Subscribe may have come to the broker behind the Unsubscribe.
            self._conversation.send(Unsubscribe(number), out)

    def _read(self, message: Deliver) -> ReceivedEvents:
        try:
            batch = EventBatch.read(message.events)
        except EventError as error:
            raise ProtocolError(f"in Deliver, {error}") from error
        if len(message.runs) == 1 and message.runs[0][2] == batch.count > 0 and not message.positions:
            return ReceivedEvents(batch, self._conversation.log_id)
        counts = [count for _, _, count in message.runs]
        sound = sum(counts) == batch.count and (not counts or min(counts) > 0)
        if not message.positions:
            events = ReceivedEvents(batch)
        else:
            placed = [count for _, count in message.positions]
            sound = sound and sum(placed) == batch.count and min(placed) > 0
            runs = [range(first, first + count) for first, count in message.positions] if sound else []
            positions = runs[0] if len(runs) == 1 else [*chain.from_iterable(runs)]
            events = ReceivedEvents(batch, self._conversation.log_id, positions)
        if not sound:
            raise ProtocolError("Deliver names subscriptions, numbers and events in different counts")
        return events

    def _look(
        self, subscription: IncomingSubscription, first: int, events: ReceivedEvents, via: str, out: Outbox
    ) -> None:
        """Takes what is next among events of one subscription, which are numbered from `first` on."""
        known = subscription.received + 1 - first
        if known < 0:
            subscription.note_gap()
        elif known > 0:
            subscription.note_asked()
        if 0 <= known < events.count:
            beyond = max(subscription.received, subscription.consumed + subscription.window) + 1
            if first + events.count > beyond:
                raise ProtocolError(f"event {beyond} of subscription {subscription.number} is beyond its window")
            self._take(subscription, events.part(known, events.count) if known else events, via, out)
        self._changed(subscription)

    def _take(self, subscription: IncomingSubscription, events: ReceivedEvents, via: str, out: Outbox) -> None:
        """Hands over what the application did not have before, and what is not too late."""
        late = self._late(events, out) if events.batch.expires else []
        repeated = subscription.take(events.batch.publishers, late)
        expired, taken = late, events
        if late or repeated:
            had, withheld = set(repeated), {*repeated, *late}
            expired = [row for row in late if row not in had]
            taken = events.take([row for row in range(events.count) if row not in withheld])
        if taken.count:
            if out.tracing:
                self._note_delivered(subscription, taken, via, out)
            out.deliver(subscription.number, taken)
        if expired:
            self._expired(subscription, len(expired), out)
            for event in events.take(expired) if out.tracing else ():
                text, name = self._text(subscription), self._conversation.name
                out.note("expired", event=event.id, subscription=text, subscriber=name, node=name)

    def _late(self, events: ReceivedEvents, out: Outbox) -> list[int]:
        """The rows of those that have expired. Few come too late; where none has a lifetime, none is looked at."""
        if not events.batch.expires:
            return []
        deadlines = events.batch.deadlines or ()
        return [row for row, deadline in enumerate(deadlines) if 0 < deadline <= out.wall]

    def _expired(self, subscription: IncomingSubscription, count: int, out: Outbox) -> None:
        out.complete(requests.UNSOLICITED, requests.EventsExpired(subscription.number, count))

    def _note_delivered(
        self, subscription: IncomingSubscription, events: ReceivedEvents, via: str, out: Outbox
    ) -> None:
        text, name = self._text(subscription), self._conversation.name
        for event in events:
            left = event.deadline - out.wall if event.lifetime else None
            place = None if event.position is None else (event.position.log, event.position.number)
            out.note(
                "delivered", event=event.id, subscription=text, subscriber=name, via=via, position=place, left=left
            )

    def on_dropped(self, peer: str, dropped: Dropped, out: Outbox) -> None:
        subscription = self._find(peer, dropped.subscription, SubscriptionPhase.LIVE)
        if subscription is None:
            return
        if len(dropped.expired) % 2:
            raise ProtocolError("Dropped names a run of expired events by half")
        before = subscription.received
        count = subscription.skip(dropped.through)
        if not count:
            subscription.note_asked()
        self._changed(subscription)
        expired = min(count, dropped.expired_between(before, dropped.through))
        if expired:
            self._expired(subscription, expired, out)
        if count > expired:
            self._missed(subscription, "overflow", "overflow", count - expired, out)

    def _missed(
        self, subscription: IncomingSubscription, noted: str, told: str, count: int | None, out: Outbox
    ) -> None:
        text, name = self._text(subscription), self._conversation.name
        out.note("missed", subscription=text, subscriber=name, reason=noted, count=count)
        out.complete(requests.UNSOLICITED, requests.EventsMissed(subscription.number, count, told))

    # ----------------------------------------------------------------------------------------------------- progress
    def _changed(self, subscription: IncomingSubscription) -> None:
        """The broker is to hear of the progress: now, soon, or if there is little of it a little later, with more."""
        self.due = True
        self._unreported[subscription] = None
        self._urgent = self._urgent or subscription.urgent

    def _count_in(self, batch: EventBatch) -> None:
        """What has lifetimes is much, too: whether it was on time is to be known before its broker gives it up."""
        settings = self._conversation.settings
        self._events += len(batch)
        self._bytes += batch.bytes
        much = min(self._conversation.report_every or settings.little_events, settings.little_events)
        if batch.expires or self._events >= much or self._bytes >= settings.little_bytes:
            self._much = True

    def finish(self, out: Outbox) -> None:
        if not self._conversation.is_open:
            return  # until it is
        self.due = False
        if not self._unreported:
            self._urgent = False  # what was to be reported has ended since
        elif self._urgent:
            self._report(out)
        else:
            settings = self._conversation.settings
            after = settings.report_after if self._much else max(settings.report_after, settings.report_little_after)
            if not self._report_at or out.now + after < self._report_at:
                self._report_at = out.now + after
                out.set_timer((self.name, "report"), after)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._report_at = 0
        if not self._conversation.is_open:
            self.due = True
        elif self._unreported:
            self._report(out)

    def _report(self, out: Outbox) -> None:
        subscriptions, self._unreported = list(self._unreported), {}
        self._urgent = self._much = False
        self._events = self._bytes = 0
        numbers, received, consumed = _progress(subscriptions)
        missing = any(subscription.gap for subscription in subscriptions)
        late = tuple(subscription.late for subscription in subscriptions)
        progress = Progress(numbers, received, consumed, missing, late if any(late) else ())
        self._conversation.send(progress, out)
        for subscription in subscriptions:
            subscription.reported()

    # ----------------------------------------------------------------------------------------- called by the client
    def report_rest(self, out: Outbox) -> None:
        """Before the client says goodbye, to a subscription or for good: what it has had, counts."""
        if self._unreported and self._conversation.is_open:
            self._report(out)

    def opening(self, instance: int, epoch: int) -> OpenSession:
        """What to open, or to go on with, a session with."""
        live = [s for s in self._subscriptions.values() if s.phase is SubscriptionPhase.LIVE] if epoch else []
        return OpenSession(instance, epoch, *_progress(live))

    def opened(self, forgotten: tuple[int, ...], resumed: bool, reissue: bool, out: Outbox) -> None:
        """A session is open. Subscriptions that the broker does not know are made again, unless neither side wants.
        Those that it knows may lack something all the same, if it was not in its network for a while."""
        for subscription in list(self._subscriptions.values()):
            known = resumed and subscription.number not in forgotten
            match subscription.phase:
                case SubscriptionPhase.ENDING:
                    self._conversation.send(Unsubscribe(subscription.number), out)
                case SubscriptionPhase.MAKING:
                    self._subscribe(subscription, out)
                case SubscriptionPhase.LIVE if not known:
                    again = self._conversation.settings.resubscribe or reissue
                    subscription.forgotten(again)
                    self._missed(subscription, "forgotten", "the broker forgot the subscription", None, out)
                    if again:
                        self._subscribe(subscription, out)
                case SubscriptionPhase.LIVE if self._conversation.was_apart:
                    self._missed(subscription, requests.APART, requests.APART_TOLD, None, out)
                    # It is in place again at once.
                    text, name = self._text(subscription), self._conversation.name
                    out.note("confirmed", subscription=text, subscriber=name, via=self._conversation.broker)

    def repeat(self, out: Outbox) -> None:
        """Says again what was not answered."""
        for subscription in list(self._subscriptions.values()):
            if subscription.phase is SubscriptionPhase.MAKING:
                self._subscribe(subscription, out)
            elif subscription.phase is SubscriptionPhase.ENDING:
                self._conversation.send(Unsubscribe(subscription.number), out)

    def end_all(self, reason: str, out: Outbox) -> None:
        for subscription in self._subscriptions.values():
            if subscription.phase is not SubscriptionPhase.ENDING:
                self._over(subscription, reason, out)
            for request in subscription.enders:
                out.complete(request, requests.SubscriptionOver(subscription.number))
        self._subscriptions = {}
        out.cancel_timer((self.name, "report"))

    def check_invariants(self) -> None:
        for subscription in self._subscriptions.values():
            subscription.check_invariants()
        require(all(s.number in self._subscriptions for s in self._unreported), "what is reported exists")
        require(self.due or self._report_at or not self._unreported, "progress is reported")


def _progress(
    subscriptions: list[IncomingSubscription],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return (
        tuple(s.number for s in subscriptions),
        tuple(s.received for s in subscriptions),
        tuple(s.consumed for s in subscriptions),
    )
