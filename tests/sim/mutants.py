"""Brokers and clients with one mistake each, and the checker that must see it."""

from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

import msgspec

from holdfast.broker.kit import BrokerKit
from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import LATEST, NOW, After, Outbox
from holdfast.kernel.parts import Assembly
from holdfast.kernel.queues import Lane
from holdfast.kernel.storage import StoredStreams
from holdfast.model.batch import EventBatch
from holdfast.model.received import ReceivedEvents
from holdfast.protocols.core.backlog import Run, batch_of, positions_of
from holdfast.protocols.core.commands import Publish
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.judgement import Matched
from holdfast.protocols.core.register import SessionRegister
from holdfast.protocols.core.session import Session
from holdfast.protocols.core.subscriptions import Subscription
from holdfast.protocols.desks.admission import Admission
from holdfast.protocols.desks.sequencer import DirectSequencer
from holdfast.protocols.desks.session_desk import SessionDesk
from holdfast.protocols.sessions.advertiser import Advertiser
from holdfast.protocols.sessions.client import ClientSession
from holdfast.protocols.sessions.conversation import ClientSettings, Conversation
from holdfast.protocols.sessions.incoming import IncomingSubscription
from holdfast.protocols.sessions.messages import Accepted, Deliver
from holdfast.protocols.sessions.other_links import NoOtherLinks
from holdfast.protocols.sessions.publisher import Publisher
from holdfast.protocols.sessions.subscriber import Subscriber
from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import Broker, Scenario


@dataclass(frozen=True)
class Mutant:
    """A mistake, and who must see it."""

    about: str
    checker: str
    factories: Factories
    shape: OneBrokerShape = field(default_factory=OneBrokerShape)
    swarm: ClassVar[str] = "one broker"

    @property
    def mistake(self) -> str:
        return f"{self.checker}: {self.about}"

    def seen(self, seed: int) -> str:
        """By its checker alone, where the scenario promises what that looks at."""
        scenario = self._drawn(seed)
        outcome = run_scenario(scenario, self.factories) if scenario.checkers else None
        return "" if outcome is None or not outcome.violations else str(outcome.violations[0])

    def sound(self, seed: int) -> str:
        return run_scenario(self._drawn(seed)).problem

    def _drawn(self, seed: int) -> Scenario:
        scenario = self.shape.draw(seed)
        promised = {*scenario.checkers, *(["exactly-once"] if "no-loss" in scenario.checkers else [])}
        return msgspec.structs.replace(scenario, checkers=[self.checker] if self.checker in promised else [])


# --------------------------------------------------------------------------------------------------- broken brokers
class DeliversToEveryone(BrokerCore):
    def _accept(self, batch: EventBatch, matched: Matched, *rest: Any) -> None:
        everyone = {subscription: range(len(batch)) for subscription, _ in self.index.items()}
        super()._accept(batch, everyone, *rest)


class TakesRepetitionsForNew(BrokerCore):
    def _publish(self, command: Publish, *rest: Any) -> None:
        session = self.register.session(command.client, command.epoch)
        if session is not None and command.first <= session.accepted:
            accepted, session.accepted = session.accepted, command.first - 1
            super()._publish(command, *rest)
            session.accepted = max(accepted, session.accepted)
        else:
            super()._publish(command, *rest)


class SkipsGaps(BrokerCore):
    """Takes events that leave a gap as if what is missing had come: a late original is then taken for a repetition."""

    def _publish(self, command: Publish, *rest: Any) -> None:
        session = self.register.session(command.client, command.epoch)
        if session is not None and command.first > session.accepted + 1:
            session.accepted = command.first - 1
        super()._publish(command, *rest)


class _Careless(Admission):
    def publish(self, session: Session, message: Any, *arguments: Any) -> bool:
        self._submitted[session.client] = message.first
        return super().publish(session, message, *arguments)


class TakesGaps(SessionDesk):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._admission = _Careless(self._core, self._sequencer, self._settings)


class ForgetsEverySeventh(BrokerCore):
    def _accept(self, batch: EventBatch, matched: Matched, *rest: Any) -> None:
        left = {subscription: list(rows) for subscription, rows in matched.items()}
        for row in range(len(batch)):
            wanting = [rows for rows in left.values() if row in rows]
            if (self.events + row) % 7 == 0 and len(wanting) > 1:
                wanting[-1].remove(row)
        super()._accept(batch, {subscription: rows for subscription, rows in left.items() if rows}, *rest)


class SwapsForSome(BrokerCore):
    """Two neighbouring events of different publishers reach every second subscription in the wrong order."""

    def _publish(self, command: Publish, *rest: Any) -> None:
        before = {subscription: len(subscription) for subscription, _ in self.index.items()}
        super()._publish(command, *rest)
        for subscription, length in before.items():
            added = len(subscription) - length
            if subscription.number % 2 == 0 and added == 1 and length >= 1:
                runs = subscription.read(0, len(subscription))
                events = batch_of(runs).slices
                events[-1], events[-2] = events[-2], events[-1]
                subscription._backlog.clear()
                subscription._backlog.add(Run(EventBatch.of(events), positions_of(runs)))

    def check_invariants(self) -> None:
        pass


class SwapsForAll(BrokerCore):
    """The last two events of a batch change places, for everyone alike."""

    def _enter(self, batch: EventBatch, *arguments: Any) -> None:
        slices = batch.slices
        if len(slices) > 1:
            slices[-1], slices[-2] = slices[-2], slices[-1]
        super()._enter(EventBatch.of(slices), *arguments)


class KnowsNoLimit(BrokerCore):
    def _publish(self, command: Publish, *rest: Any) -> None:
        limits = self.limits
        self.limits = self.crowding.limits = msgspec.structs.replace(limits, backlog_events=10**9)
        super()._publish(command, *rest)
        self.limits = self.crowding.limits = limits

    def check_invariants(self) -> None:
        pass


class EndsWhatWaits(BrokerCore):
    """Takes two events that wait for an overflow."""

    def _publish(self, command: Publish, *rest: Any) -> None:
        limits = self.limits
        self.limits = self.crowding.limits = msgspec.structs.replace(
            limits, backlog_events=min(2, limits.backlog_events)
        )
        super()._publish(command, *rest)
        self.limits = self.crowding.limits = limits

    def check_invariants(self) -> None:
        pass


class _Early(Outbox):
    """Sends some messages without waiting for the disk."""

    def send(self, to: str, message: Message, lane: Lane = Lane.CONTROL, after: After = LATEST) -> None:
        super().send(to, message, lane, NOW if isinstance(message, Accepted) else after)


class AcknowledgesBeforeTheDisk(SessionDesk):
    def finish(self, out: Outbox) -> None:
        early = _Early(out.tracing)
        early.queues, early.touched, early.token = out.queues, out.touched, out.token
        early.actions, early.timers, early.stored = out.actions, out.timers, out.stored
        early.notes = out.notes
        early.now, early.wall = out.now, out.wall
        super().finish(early)


class DeliversBeforeTheDisk(SessionDesk):
    def finish(self, out: Outbox) -> None:
        token, out.token = out.token, 0
        super().finish(out)
        out.token = token


class NeverRepeats(SessionDesk):
    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._deliveries._unconfirmed.clear()
        super().on_timer(key, out)


class ForgetsToAnswer(SessionDesk):
    """Says nothing of events that it had accepted before."""

    def on_publish(self, peer: str, message: Any, out: Outbox) -> None:
        session = self.session(peer)
        if session is None or message.first > session.accepted:
            super().on_publish(peer, message, out)


class _Stubborn(Admission):
    def release(self, out: Outbox) -> None:
        pass

    def lose_patience(self, out: Outbox) -> None:
        pass


class ForgetsThePaused(SessionDesk):
    """Does not let publishers go on that waited for room."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._admission = _Stubborn(self._core, self._sequencer, self._settings)


class _GivesUpTheNext(Subscription):
    __slots__ = ()

    def expire(self, before: int) -> list[Run]:
        runs = super().expire(before)
        if runs and len(self) and self.deadlines is not None:
            runs += self.read(0, 1)
            self.deadlines.expire(self.first_kept, 1)
            self._release(1)
        return runs


class _ExpiringOneMore(SessionRegister):
    def _add(self, subscription: Subscription) -> None:
        super()._add(subscription)
        subscription.__class__ = _GivesUpTheNext


class ExpiresOneMore(BrokerCore):
    """Gives up the event behind those that have expired, too, and says that it has."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.register.__class__ = _ExpiringOneMore


class JournalsNothing(DirectSequencer):
    def finish(self, out: Outbox) -> None:
        self._turn.clear()


# --------------------------------------------------------------------------------------------------- broken clients
class _TakesTwice(IncomingSubscription):
    __slots__ = ()

    def forgotten(self, again: bool) -> None:
        super().forgotten(again)
        self._seen_before = {}


class BelievesItself(Subscriber):
    """Takes whatever comes as the next event."""

    def on_deliver(self, peer: str, message: Deliver, out: Outbox) -> None:
        runs = []
        received: dict[int, int] = {}
        for subscription, _, count in message.runs:
            known = self._subscriptions.get(subscription)
            last = received.get(subscription, known.received if known is not None else 0)
            received[subscription] = last + count
            runs.append((subscription, last + 1, count))
        super().on_deliver(peer, Deliver(runs, message.events), out)


def _brokers(
    core: type[BrokerCore] = BrokerCore,
    sessions: type[SessionDesk] = SessionDesk,
    sequencer: type[DirectSequencer] = DirectSequencer,
) -> Factories:
    kit = BrokerKit(core=core, sessions=sessions, sequencer=sequencer)
    return Factories(kit=kit)


def _clients(part: type[Subscriber]) -> Factories:
    def make(settings: ClientSettings, rng: Random, streams: StoredStreams) -> Assembly:
        conversation = Conversation(settings)
        advertiser, subscriber = Advertiser(conversation), part(conversation)
        others = NoOtherLinks()
        publisher = Publisher(conversation, advertiser, subscriber, others)
        session = ClientSession(conversation, publisher, subscriber, (advertiser,), others, rng)
        return Assembly([session, advertiser, publisher, subscriber])

    return Factories(client=make)


class KnowsNoDeadline(Subscriber):
    """Hands over whatever comes, however late."""

    def _late(self, events: ReceivedEvents, out: Outbox) -> list[int]:
        return []


class _Forgetful(Subscriber):
    def on_make_subscription(self, request: int, command: Any, out: Outbox) -> None:
        super().on_make_subscription(request, command, out)
        made = self._subscriptions[self._last_number]
        forgetful = _TakesTwice(made.number, request, made.filter, made.overflow, made.window)
        self._subscriptions[made.number] = forgetful


DURABLE = OneBrokerShape(brokers=(Broker(id="b1", durable=True, sync_us=(5_000, 300_000)),), fixed_brokers=True)
FORGETFUL = OneBrokerShape(
    brokers=(Broker(id="b1", durable=False),), fixed_brokers=True, faults_max=16, publishes_max=80, safety_ms=4_000
)
MORTAL = OneBrokerShape(lifetimes=True, name="mortal")
TIGHT = OneBrokerShape(brokers=(Broker(id="b1", durable=True, backlog_events=2),), fixed_brokers=True)

MUTANTS = [
    Mutant("delivers events that do not match", "only-matching", _brokers(DeliversToEveryone)),
    Mutant("takes a repeated publish for a new one", "at-most-once", _brokers(TakesRepetitionsForNew)),
    Mutant("takes a repeated publish for a new one", "exactly-once", _brokers(TakesRepetitionsForNew)),
    Mutant("a client takes a repeated delivery for a new one", "at-most-once", _clients(BelievesItself)),
    Mutant("a client forgets what it had got before", "at-most-once", _clients(_Forgetful), FORGETFUL),
    Mutant("swaps events of one publisher", "publisher-order", _brokers(SwapsForAll)),
    Mutant("swaps events for some subscribers", "total-order", _brokers(SwapsForSome)),
    Mutant("skips an event for some subscribers", "complete", _brokers(ForgetsEverySeventh)),
    Mutant("skips an event for some subscribers", "no-loss", _brokers(ForgetsEverySeventh)),
    Mutant("skips an event for some subscribers", "exactly-once", _brokers(ForgetsEverySeventh)),
    Mutant("takes what leaves a gap", "no-loss", _brokers(SkipsGaps, TakesGaps)),
    Mutant("acknowledges what is not on the disk", "no-loss", _brokers(sessions=AcknowledgesBeforeTheDisk), DURABLE),
    Mutant("speaks of what is not on the disk", "no-loss", _brokers(sessions=DeliversBeforeTheDisk), DURABLE),
    Mutant("keeps no journal", "no-forgetting", _brokers(sequencer=JournalsNothing), DURABLE),
    Mutant("keeps more than its limit", "bounded-queues", _brokers(KnowsNoLimit), TIGHT),
    Mutant("ends subscriptions that have room", "endings", _brokers(EndsWhatWaits), DURABLE),
    Mutant("does not repeat what was lost", "no-loss", _brokers(sessions=NeverRepeats)),
    Mutant("does not answer a repetition", "liveness", _brokers(sessions=ForgetsToAnswer)),
    Mutant("a client looks at no deadline", "in-time", _clients(KnowsNoDeadline), MORTAL),
    Mutant("gives up more than what has expired", "no-loss", _brokers(ExpiresOneMore), MORTAL),
    Mutant("lets publishers wait for ever", "liveness", _brokers(sessions=ForgetsThePaused), TIGHT),
]  # fmt: skip
