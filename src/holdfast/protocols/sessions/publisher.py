"""The part of a client that publishes: makes events, keeps them in flight until they are answered, sends them again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.queues import Lane
from holdfast.model.batch import EventBatch
from holdfast.model.event import NO_EVENTS, UNENCODABLE, Event
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.advertiser import Advertiser
from holdfast.protocols.sessions.conversation import Conversation, Phase
from holdfast.protocols.sessions.messages import Accepted, Publish, Refusal, SessionOpened
from holdfast.protocols.sessions.other_links import OtherLinks
from holdfast.protocols.sessions.outgoing import Outgoing
from holdfast.protocols.sessions.subscriber import Subscriber

# After a message that was said directly and not answered, so many go to the session's broker only; doubled each time.
INDIRECT_MIN: Final = 8
INDIRECT_MAX: Final = 1_024


class Publisher(Part):
    """A part of a client's node."""

    name: ClassVar[str] = "publisher"
    due = False
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Accepted: frozenset({Role.BROKER})}
    asked: ClassVar[tuple[type, ...]] = (requests.PublishEvents,)

    def __init__(
        self, conversation: Conversation, advertiser: Advertiser, subscriber: Subscriber, others: OtherLinks
    ) -> None:
        self._conversation = conversation
        self._advertiser = advertiser
        self._subscriber = subscriber
        self._others = others
        self._alone = False  # what is in flight was said directly: nothing may be behind it
        self._unanswered = 0  # messages in a row that were said directly and not answered in time
        self._indirect = 0  # so many more go to the session's broker only, since that came to nothing
        self._outgoing = Outgoing(conversation.settings.publish_window)
        self._sequence = 0  # of the last event that was made
        self._memory = 0  # what the broker remembered when we last talked

    @property
    def is_waiting(self) -> bool:
        """Whether answers are missing."""
        return self._outgoing.in_flight > 0

    # ----------------------------------------------------------------------------------------------------- requests
    def on_publish_events(self, request: int, command: requests.PublishEvents, out: Outbox) -> None:
        if not command.events:
            out.complete(request, requests.Published([]))
            return
        self.due = True
        conversation = self._conversation
        reason = "the client is closed" if conversation.phase is Phase.CLOSED else ""
        if len(self._outgoing) + len(command.events) > conversation.settings.waiting_max:
            reason = reason or requests.too_many(conversation.settings.waiting_max)
        if not command.retry and not conversation.is_open:
            reason = reason or requests.NOT_CONNECTED
        name, incarnation, first = conversation.name, conversation.incarnation, self._sequence + 1
        sound = EventBatch.made(name, incarnation, first, command.events, out.wall) if not out.tracing else None
        if sound is None or reason:
            self._publish_singly(request, command, reason, out)
        else:
            self._sequence += len(sound)
            self._outgoing.add_all(request, first, sound, command.retry)

    def _publish_singly(self, request: int, command: requests.PublishEvents, reason: str, out: Outbox) -> None:
        """Looks at each event: some is none, or nothing is to be sent, for that reason, or all of it is traced."""
        refused: list[tuple[int, Refusal | None, str]] = []
        made: list[tuple[int, int, EventBatch]] = []
        for place, new in enumerate(command.events):
            self._sequence += 1
            try:
                event = self._make(new, out)
            except UNENCODABLE as error:
                refused.append((place, Refusal.EVENT, str(error)))
                continue  # there is no such event
            if reason:
                refused.append((place, None, reason))
                name = self._conversation.name
                out.note("refused", event=self._id(self._sequence), publisher=name, reason=reason)
            else:
                made.append((place, self._sequence, event))
        self._outgoing.add(request, made, refused, command.retry)
        if not made:
            out.complete(request, requests.Published(refused))

    def _make(self, new: requests.NewEvent, out: Outbox) -> EventBatch:
        name, incarnation = self._conversation.name, self._conversation.incarnation
        attributes = dict(new.attributes)
        event = Event(name, incarnation, self._sequence, new.topic, attributes, new.payload, out.wall, new.lifetime)
        made = EventBatch.of_one(event)
        if out.tracing:
            self._note_published(event, out)
        return made

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

    def finish(self, out: Outbox) -> None:
        outgoing, settings = self._outgoing, self._conversation.settings
        if not self._advertiser.is_restored:
            return  # a broker that has not heard of our advertisements could refuse the events
        while outgoing.ready and self._conversation.is_open:
            if outgoing.in_flight and (self._alone or self._is_direct):
                return  # in different slots, the next could overtake it
            self._alone = self._may_be_direct
            self._indirect = max(0, self._indirect - 1)
            first, events, skipped = outgoing.take(settings.batch_events, settings.batch_bytes)
            encoded = NO_EVENTS if events is None else events.encoded
            message = Publish(first, encoded, outgoing.answered, self._alone, skipped)
            self._conversation.ask(message, out, Lane.USER)
            if self._alone:
                self._others.send(message, out)
        self.due = False

    @property
    def _is_direct(self) -> bool:
        return self._others.is_open and not self._indirect

    @property
    def _may_be_direct(self) -> bool:
        """Whether what is published next may go to several replicas. What was said before is said again to one only;
        and who publishes after subscribing or advertising may rely on that being decided before."""
        is_first = self._outgoing.sent <= self._outgoing.answered
        waiting = self._advertiser.is_waiting or self._subscriber.is_waiting
        return self._is_direct and is_first and not waiting

    # ------------------------------------------------------------------------------------------------------ answers
    def on_accepted(self, peer: str, accepted: Accepted, out: Outbox) -> None:
        if self._conversation.is_open_with(peer):
            self._check_accepted(accepted.sequence)
            self._answer(accepted.sequence, accepted.refused, out)
            self.due = True  # there may be room

    def _check_accepted(self, accepted: int) -> None:
        if accepted > self._outgoing.sent:
            raise ProtocolError(f"event {accepted} is accepted, but only {self._outgoing.sent} were sent")

    def _answer(self, accepted: int, refusals: tuple[tuple[int, Refusal, str], ...], out: Outbox) -> None:
        if accepted > self._outgoing.answered:
            self._conversation.progressed(out)
            self._unanswered = 0 if self._alone else self._unanswered
        if not refusals and not out.tracing:
            for request, left_out in self._outgoing.answer_all(accepted):
                out.complete(request, requests.Published(left_out))
            return
        name = self._conversation.name
        refused = {number: (reason, problem) for number, reason, problem in refusals}
        for number, sequence, request, place in self._outgoing.answer(accepted):
            why = refused.get(number)
            if out.tracing:
                if why is None:
                    out.note("acknowledged", event=self._id(sequence), publisher=name)
                else:
                    out.note("refused", event=self._id(sequence), publisher=name, reason=why[1])
            done = self._outgoing.settle(request, place, why)
            if done is not None:
                out.complete(request, requests.Published(done))

    def _id(self, sequence: int) -> str:
        return f"{self._conversation.name}/{self._conversation.incarnation}/{sequence}"

    # ----------------------------------------------------------------------------------------- called by the client
    def check_opened(self, opened: SessionOpened, resumed: bool) -> None:
        """Refuses, with ProtocolError, what can't be true of us, before anything is changed."""
        if resumed:
            self._check_accepted(opened.accepted)
            if opened.accepted < self._outgoing.answered:
                told = f"events up to {self._outgoing.answered} were answered"
                raise ProtocolError(f"{told}, and now only those up to {opened.accepted} are accepted")
        if opened.publish_window < 1:
            raise ProtocolError(f"a publisher's window is 1 or more, not {opened.publish_window}")

    def opened(self, opened: SessionOpened, resumed: bool, out: Outbox) -> None:
        """A session is open: ours, or a new one that knows nothing of what we sent."""
        self._outgoing.set_window(min(self._conversation.settings.publish_window, opened.publish_window))
        if resumed:
            self._answer(opened.accepted, opened.refused, out)
        else:
            if opened.memory == self._memory:
                # The broker remembers everyone but us. What it had accepted of ours reached subscribers that would take
                # a repetition for something new.
                problem = "the broker does not know any more whether it accepted this event"
                self._fail(self._outgoing.give_up_sent(), None, problem, out)
            self._outgoing.restart()
        self._memory = opened.memory
        self._outgoing.resend_all()
        self.due = True

    def link_lost(self, reason: str, out: Outbox) -> None:
        """What is not to be sent again is lost (D1-B4.4)."""
        self._fail(self._outgoing.give_up_unretried(), None, f"the link was lost: {reason}", out)

    def repeat(self) -> None:
        if self._alone and self._outgoing.in_flight:
            self._indirect = min(INDIRECT_MIN << self._unanswered, INDIRECT_MAX)
            self._unanswered += 1
        self._outgoing.resend_all()
        self.due = True

    def give_up(self, reason: Refusal | None, problem: str, out: Outbox) -> None:
        self._fail(self._outgoing.give_up_all(), reason, problem, out)

    def _fail(self, given_up: list[tuple[int, int, int]], reason: Refusal | None, problem: str, out: Outbox) -> None:
        for sequence, request, place in given_up:
            out.note("refused", event=self._id(sequence), publisher=self._conversation.name, reason=problem)
            done = self._outgoing.settle(request, place, (reason, problem))
            if done is not None:
                out.complete(request, requests.Published(done))

    def check_invariants(self) -> None:
        self._outgoing.check_invariants()
        idle = not (self._outgoing.ready and self._conversation.is_open)
        require(self.due or idle, "what may be sent is sent at the end of the turn")
