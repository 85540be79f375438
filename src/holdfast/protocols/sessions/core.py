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
- A session that has advertised something publishes what it advertised and nothing else; one that has not may publish
  anything, as if it had advertised every topic that it uses.
- Bad events are refused one by one, and the refusal is kept until the client has seen it.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never

import msgspec

from holdfast.errors import EventError, FilterError
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.time import MILLISECOND
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.model.event import SMALL_BYTES, Event, EventBytes, check_limits, decode_batch
from holdfast.protocols.sessions import commands, messages
from holdfast.protocols.sessions.commands import Command
from holdfast.protocols.sessions.messages import Overflow, Refusal
from holdfast.protocols.sessions.subscriptions import Subscription, SubscriptionState

STATE_FORMAT = 1
# A client says which epoch it had. Larger ones were never granted, and would leave no room for the next.
EPOCH_MAX = 2**62


class CoreLimits(msgspec.Struct, frozen=True, gc=False):
    """What one broker allows. Part of the configuration, equal at all replicas."""

    sessions: int = 100_000
    subscriptions_per_session: int = 1_000
    advertisements_per_session: int = 1_000
    backlog_events: int = 10_000  # that a subscription keeps at its broker
    backlog_bytes: int = 8 * 1024 * 1024


class Reply(msgspec.Struct, frozen=True, gc=False):
    """A message for the client of a session, if it is there; not for another life of the client."""

    client: str
    epoch: int
    message: Message


class Opened(msgspec.Struct, frozen=True, gc=False):
    """A client has a session."""

    client: str
    instance: int
    epoch: int


class NotOpened(msgspec.Struct, frozen=True, gc=False):
    """A client gets no session."""

    client: str
    instance: int
    refusal: messages.SessionRefused


class Answered(msgspec.Struct, frozen=True, gc=False):
    """What a session has published was taken in or refused: its client is to be told how far it is."""

    client: str


class Woken(msgspec.Struct, frozen=True, gc=False):
    """These subscriptions have events that they did not have before."""

    subscriptions: list[Subscription]


class Removed(msgspec.Struct, frozen=True, gc=False):
    """A subscription is gone. What it had before is still in it."""

    subscription: Subscription


class Freed(msgspec.Struct, frozen=True, gc=False):
    """Subscriptions have room again, or ended: publishers that wait may try."""


Output: TypeAlias = Reply | Opened | NotOpened | Answered | Woken | Removed | Freed


class Session:
    """What the core knows of one life of a client."""

    __slots__ = ("accepted", "advertised", "client", "ended", "epoch", "instance", "refused", "subscriptions")

    def __init__(self, client: str, instance: int, epoch: int) -> None:
        self.client = client
        self.instance = instance
        self.epoch = epoch
        self.accepted = 0  # events of this session up to here are answered
        self.refused: dict[
            int, tuple[Refusal, str]
        ] = {}  # those of them that were refused, until the client has seen it
        self.subscriptions: dict[int, Subscription] = {}
        self.ended: dict[int, str] = {}  # by us, until the client has seen it
        self.advertised: FilterIndex[int] | None = None  # what it publishes, by number; None: it has not said


class _SessionState(msgspec.Struct, frozen=True, array_like=True):
    client: str
    instance: int
    epoch: int
    accepted: int
    refused: dict[int, tuple[Refusal, str]]
    ended: dict[int, str]
    advertised: dict[int, str] = {}


class _State(msgspec.Struct, frozen=True, array_like=True):
    format: int
    number: int
    events: int
    memory: int
    sessions: list[_SessionState]
    dormant: list[str]
    subscriptions: list[SubscriptionState]  # in the order in which they were made


class BrokerCore:
    """Implements `Application[Command, Output]`."""

    def __init__(self, limits: CoreLimits | None = None) -> None:
        self.limits = limits or CoreLimits()
        self.number = 0  # of the last command
        self.events = 0  # accepted so far
        self.memory = 0  # names this core from its first command on: one that forgot everything has another
        self.sessions: dict[str, Session] = {}
        self.dormant: dict[str, None] = {}  # clients that stayed away, oldest first; kept while there is room
        self.blocking: dict[Subscription, None] = {}  # those whose publishers wait
        self._crowded: dict[Subscription, None] = {}  # of those, the ones with half of their room taken
        self.index: FilterIndex[Subscription] = FilterIndex()
        self._decoded: tuple[EventBytes, list[Event], list[EventBytes]] | None = None

    # ----------------------------------------------------------------------------------------------------- commands
    def apply(self, number: int, wall: int, command: Command) -> list[Output]:
        require(number == self.number + 1, "commands are applied in order", number=number, last=self.number)
        self.number = number
        if not self.memory:
            self.memory = max(1, wall)
        outputs: list[Output] = []
        match command:
            case commands.Publish():
                self._publish(command, outputs)
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
            case commands.OpenSession():
                self._open(command, wall, outputs)
            case commands.EndSession():
                self._end_session(command, outputs)
            case commands.DropSubscriptions():
                self._drop_subscriptions(command, outputs)
            case _:
                assert_never(command)
        return outputs

    def session(self, client: str, epoch: int) -> Session | None:
        """The session, if it is this one that the client has."""
        session = self.sessions.get(client)
        return session if session is not None and session.epoch == epoch else None

    def _open(self, command: commands.OpenSession, wall: int, outputs: list[Output]) -> None:
        known = self.sessions.get(command.client)
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
                refusal = messages.SessionRefused(Refusal.LIMIT, problem)
                outputs.append(NotOpened(command.client, command.instance, refusal))
                return
            # The clock keeps the epochs of different brokers apart, and those of a broker that forgot.
            last = max(min(command.epoch, EPOCH_MAX), 0 if known is None else known.epoch)
            known = Session(command.client, command.instance, max(wall // MILLISECOND, last + 1))
            self.sessions[command.client] = known
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
            self.dormant[session.client] = None

    def _forget(self, session: Session, outputs: list[Output]) -> None:
        for subscription in session.subscriptions.values():
            self._remove(subscription, outputs)
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
            refusal = messages.SubscribeRefused(number, Refusal.LIMIT, problem)
        else:
            try:
                wanted = Filter(command.filter)
            except FilterError as error:
                refusal = messages.SubscribeRefused(number, Refusal.FILTER, error.problem, error.offset, error.expected)
            else:
                self._add(Subscription(session.client, number, wanted, command.overflow, command.window))
        outputs.append(Reply(session.client, session.epoch, refusal or messages.Subscribed(number)))

    def _add(self, subscription: Subscription) -> None:
        self.sessions[subscription.client].subscriptions[subscription.number] = subscription
        self.index.add(subscription, subscription.filter)
        if subscription.overflow is Overflow.BLOCK:
            self.blocking[subscription] = None
            self._count_crowded(subscription)

    def _count_crowded(self, subscription: Subscription) -> None:
        if subscription.is_crowded(self.limits.backlog_events, self.limits.backlog_bytes):
            self._crowded[subscription] = None
        else:
            self._crowded.pop(subscription, None)

    def possibly_full(self, events: int, size: int) -> dict[Subscription, None]:
        """The blocking subscriptions that may not have room for so many events of that size in all.

        A batch that fits into half of the room needs a look at the crowded ones only: there may be thousands of others.
        """
        small = 2 * events <= self.limits.backlog_events and 2 * size <= self.limits.backlog_bytes
        return self._crowded if small else self.blocking

    def _remove(self, subscription: Subscription, outputs: list[Output]) -> None:
        self.index.remove(subscription)
        outputs.append(Removed(subscription))
        if subscription.overflow is Overflow.BLOCK:
            del self.blocking[subscription]
            self._crowded.pop(subscription, None)
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
        freed = False
        for number, received in zip(command.subscriptions, command.numbers, strict=False):
            subscription = session.subscriptions.get(number)
            if subscription is not None:
                subscription.receive(received)
                if subscription.overflow is Overflow.BLOCK:
                    freed = True
                    self._count_crowded(subscription)
        if freed:
            outputs.append(Freed())

    # ----------------------------------------------------------------------------------------------- advertisements
    def _advertise(self, command: commands.Advertise, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is None:
            return
        self.dormant.pop(session.client, None)
        number, limit = command.advertisement, self.limits.advertisements_per_session
        offered = FilterIndex[int]() if session.advertised is None else session.advertised
        refusal: messages.AdvertiseRefused | None = None
        if number in offered:
            if str(offered.filter(number)) != command.filter:
                problem = f"advertisement {number} exists already, with another filter"
                refusal = messages.AdvertiseRefused(number, Refusal.CONFLICT, problem)
        elif len(offered) >= limit:
            refusal = messages.AdvertiseRefused(number, Refusal.LIMIT, f"a session has at most {limit} advertisements")
        else:
            try:
                offered.add(number, Filter(command.filter))
                session.advertised = offered
            except FilterError as error:
                refusal = messages.AdvertiseRefused(number, Refusal.FILTER, error.problem, error.offset, error.expected)
        outputs.append(Reply(session.client, session.epoch, refusal or messages.Advertised(number)))

    def _unadvertise(self, command: commands.Unadvertise, outputs: list[Output]) -> None:
        session = self.session(command.client, command.epoch)
        if session is None:
            return
        if session.advertised is not None and command.advertisement in session.advertised:
            session.advertised.remove(command.advertisement)
            if not len(session.advertised):
                session.advertised = None
        outputs.append(Reply(session.client, session.epoch, messages.Unadvertised(command.advertisement)))

    # ------------------------------------------------------------------------------------------------------- events
    def decode(self, batch: EventBytes) -> tuple[list[Event], list[EventBytes]]:
        """A batch's events and their bytes. Decoded once, though a node looks at a batch before it is applied."""
        if self._decoded is None or self._decoded[0] is not batch:
            events, slices = decode_batch(batch)
            self._decoded = (batch, events, slices)
        return self._decoded[1], self._decoded[2]

    def _publish(self, command: commands.Publish, outputs: list[Output]) -> None:
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
        if not events:
            return
        woken: dict[Subscription, list[EventBytes]] = {}
        matched = self._match(session, events, slices)
        for data, wanted in zip(slices, matched, strict=True):
            if wanted:
                # A slice keeps the whole batch that it came in alive; a copy keeps itself.
                kept = data.copy()
                for subscription in wanted:
                    if subscription in woken:
                        woken[subscription].append(kept)
                    else:
                        woken[subscription] = [kept]
        overflowed = self._keep(woken, slices, matched)
        session.accepted += len(events)
        if self.blocking:
            for subscription in woken:
                if subscription.overflow is Overflow.BLOCK:
                    self._count_crowded(subscription)
        if woken:
            # Also those that overflowed: they had room for some.
            outputs.append(Woken(list(woken)))
        for subscription in overflowed:
            owner = self.sessions[subscription.client]
            reason = (
                f"overflow: more than {self.limits.backlog_events} events or {self.limits.backlog_bytes} bytes wait"
            )
            self._end(owner, subscription, reason, outputs)

    def _keep(
        self, woken: dict[Subscription, list[EventBytes]], slices: list[EventBytes], matched: list[list[Subscription]]
    ) -> dict[Subscription, None]:
        """Adds events to the subscriptions that want them; gives those without room, in the order of overflowing."""
        events_max, bytes_max = self.limits.backlog_events, self.limits.backlog_bytes
        tight = {s: None for s, kept in woken.items() if not s.add_all(kept, events_max, bytes_max)}
        overflowed: dict[Subscription, None] = {}
        for data, wanted in zip(slices, matched, strict=True) if tight else ():
            # One by one: each keeps what it has room for, and who overflows at an earlier event ends earlier.
            for subscription in wanted:
                if subscription not in tight or subscription in overflowed:
                    continue
                if not subscription.add(data.copy(), events_max, bytes_max):
                    overflowed[subscription] = None
        return overflowed

    def _match(self, session: Session, events: list[Event], slices: list[EventBytes]) -> list[list[Subscription]]:
        """For each event, who wants it; events that break a rule are refused and wanted by no one."""
        first = session.accepted + 1
        pairs = [(event.attributes, event.topic) for event in events]
        refused: dict[int, str] = {}
        for row, data in enumerate(slices if max(map(len, slices)) > SMALL_BYTES else ()):
            if len(data) > SMALL_BYTES:
                try:
                    check_limits(events[row], len(data))
                except EventError as error:
                    refused[row] = str(error)
                    pairs[row] = ({}, "")
        matched: list[list[Subscription]] = []
        while len(matched) < len(pairs):
            start = len(matched)
            try:
                matched += self.index.match_batch(pairs[start:])
            except EventError as error:
                # The events before are matched again and those behind go on: a batch of bad events is not to cost
                # more than twice a good one.
                require(error.row is not None, "the index names the event that it refuses")
                row = start + (error.row or 0)
                refused[row] = error.problem
                matched += [*self.index.match_batch(pairs[start:row]), []]
        reasons = dict.fromkeys(refused, Refusal.EVENT)
        if session.advertised is not None:
            sound = [row for row in range(len(pairs)) if row not in refused]
            offers = session.advertised.match_batch([pairs[row] for row in sound])
            for row, offer in zip(sound, offers, strict=True):
                if not offer:
                    reasons[row] = Refusal.NOT_ADVERTISED
                    refused[row] = "the event matches nothing that its publisher has advertised"
        for row in sorted(refused):
            matched[row] = []
            session.refused[first + row] = (reasons[row], refused[row])
        self.events += len(events) - len(refused)
        return matched

    # -------------------------------------------------------------------------------------------------------- state
    def get_state(self) -> bytes:
        state = _State(
            STATE_FORMAT,
            self.number,
            self.events,
            self.memory,
            [
                _SessionState(s.client, s.instance, s.epoch, s.accepted, s.refused, s.ended, _offers(s))
                for s in self.sessions.values()
            ],
            list(self.dormant),
            [subscription.get_state() for subscription, _ in self.index.items()],
        )
        return msgspec.msgpack.encode(state)

    def set_state(self, state: bytes) -> None:
        decoded = msgspec.msgpack.decode(state, type=_State)
        require(decoded.format == STATE_FORMAT, "the state's format is known", format=decoded.format)
        self.number, self.events = decoded.number, decoded.events
        self.memory, self.dormant = decoded.memory, dict.fromkeys(decoded.dormant)
        self.sessions, self.blocking, self._crowded, self.index = {}, {}, {}, FilterIndex()
        self._decoded = None
        for stored in decoded.sessions:
            session = Session(stored.client, stored.instance, stored.epoch)
            session.accepted, session.refused, session.ended = stored.accepted, stored.refused, stored.ended
            if stored.advertised:
                session.advertised = FilterIndex()
                for number, text in stored.advertised.items():
                    session.advertised.add(number, Filter(text))
            self.sessions[stored.client] = session
        for kept in decoded.subscriptions:
            self._add(Subscription.from_state(kept))

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
            require(session.advertised is None or len(session.advertised), "no offers are none", client=client)
            dormant = client in self.dormant
            wants = session.subscriptions or session.advertised is not None
            require(not (dormant and wants), "a dormant session wants and offers nothing", client=client)
            require(all(n <= session.accepted for n in session.refused), "what is refused was answered", client=client)
        require(self.dormant.keys() <= self.sessions.keys(), "who is dormant has a session")
        require(count == len(self.index), "the index holds the sessions' subscriptions and no others", count=count)


def _offers(session: Session) -> dict[int, str]:
    return {} if session.advertised is None else {number: str(offer) for number, offer in session.advertised.items()}
