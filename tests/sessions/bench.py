"""A broker's node and a client's node on the bench: inputs in, effects out, and a clock that is set by hand."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.client_assembly import make_client
from holdfast.errors import EventError
from holdfast.kernel.application import Hosted
from holdfast.kernel.inputs import Input, LinkDown, LinkUp, Received, Requested, Started, TimerFired
from holdfast.kernel.links import Role, peer_name
from holdfast.kernel.messages import Message
from holdfast.kernel.node import Node
from holdfast.kernel.outbox import CancelTimer, Complete, Deliver, Effect, RecordingOutbox, Send, SetTimer
from holdfast.kernel.storage import EVENTS, LogBounds, StoredStreams
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model.event import Event, EventBytes, decode_events, encode_batch, encode_event
from holdfast.model.values import Value
from holdfast.protocols.core.limits import CoreLimits, HostingLimits
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.sessions import messages
from holdfast.protocols.sessions.client import ClientSession
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.schemes.tree.parts import make_broker
from tests.codec.examples import plain

MakeClient = Callable[[ClientSettings, Random, StoredStreams], Node]

WALL = 1_700_000_000 * SECOND
EPOCH = WALL // MILLISECOND


def event(n: int = 1, topic: str = "", publisher: str = "p", payload: bytes = b"", **attributes: Value) -> EventBytes:
    """The n-th event of a publisher, as bytes."""
    return encode_event(Event(publisher, 1, n, topic, {"n": n, **attributes}, payload))


def batch(*numbers: int, **fields: Any) -> EventBytes:
    return encode_batch([event(n, **fields) for n in numbers])


def _by(client: str, message: Message) -> Message:
    """The same, with the client as the publisher of what it publishes, if that can be read."""
    if not isinstance(message, messages.Publish):
        return message
    try:
        events = decode_events(message.events)
        own = [encode_event(msgspec.structs.replace(event, publisher=client)) for event in events]
    except (EventError, OverflowError):
        return message
    return msgspec.structs.replace(message, events=encode_batch(own))


class Bench:
    """A node, its outbox and its timers."""

    def __init__(self, node: Node) -> None:
        self.node: Any = node
        self.out = RecordingOutbox(tracing=False)
        self.out.wall = WALL
        self.timers: dict[tuple[str, ...], int] = {}

    def handle(self, *inputs: Input) -> list[Effect]:
        """The effects of one turn. Messages count as sent once they are asked for; the queues are emptied."""
        self.node.handle(list(inputs), self.out)
        self.node.check_invariants()
        effects = self.out.take_effects()
        for effect in effects:
            if isinstance(effect, SetTimer):
                self.timers[effect.key] = self.out.now + effect.after
            elif isinstance(effect, CancelTimer):
                self.timers.pop(effect.key, None)
        return effects

    def drain(self) -> None:
        """As a driver with a fast disk and a fast link would."""
        for queue in self.out.queues.values():
            while queue.take(self.out.token, 1 << 30)[0]:
                pass

    def advance(self, by: int) -> list[Effect]:
        """Lets time pass; timers fire when they are due."""
        until = self.out.now + by
        effects: list[Effect] = []
        while True:
            due = min(self.timers.items(), key=lambda timer: timer[1], default=None)
            if due is None or due[1] > until:
                break
            del self.timers[due[0]]
            self.out.wall += due[1] - self.out.now
            self.out.now = due[1]
            effects += self.handle(TimerFired(due[0]))
        self.out.wall += until - self.out.now
        self.out.now = until
        return effects


class BrokerBench(Bench):
    """A broker with clients that say what the test makes them say."""

    def __init__(
        self,
        limits: CoreLimits | None = None,
        durable: bool = False,
        streams: StoredStreams | None = None,
        log_end: int = 1,
        application: Hosted | None = None,
        hosted: str = "",
        hosting: HostingLimits | None = None,
        **settings: Any,
    ) -> None:
        self.settings = BrokerSettings(
            "b1",
            durable,
            limits or CoreLimits(),
            DeskSettings(**settings),
            application=hosted,
            hosting=hosting or HostingLimits(),
        )
        super().__init__(make_broker(self.settings, Random(1), streams or {}, application))
        self.links: dict[str, int] = {}
        self._last_link = 0
        self.handle(Started(1, "disk", {EVENTS: LogBounds(1, log_end)}) if durable else Started(1))

    @property
    def desk(self) -> Any:
        return next(part for part in self.node.parts if part.name == "sessions")

    def up(self, client: str) -> LinkUp:
        self._last_link += 1
        self.links[client] = self._last_link
        return LinkUp(self._last_link, peer_name(Role.CLIENT, client), 1, Role.CLIENT, False)

    def down(self, client: str) -> LinkDown:
        return LinkDown(self.links[client], peer_name(Role.CLIENT, client), "gone")

    def received(self, client: str, *said: Message) -> Received:
        return Received(self.links[client], peer_name(Role.CLIENT, client), [_by(client, message) for message in said])

    def say(self, client: str, *said: Message) -> list[Any]:
        """What everyone is sent because a client said something, in plain types; other effects too, but for timers."""
        effects = self.handle(self.received(client, *said))
        self.drain()
        return shown(effects)

    def open(self, client: str, *said: Message, instance: int = 1, epoch: int = 0) -> list[Any]:
        """Links a client, opens its session, and has it say more in the same read."""
        self.handle(self.up(client))
        return self.say(client, messages.OpenSession(instance, epoch), *said)


class ClientBench(Bench):
    """A client with a broker that says what the test makes it say."""

    def __init__(self, *addresses: str, make: MakeClient = make_client, **settings: Any) -> None:
        super().__init__(make(ClientSettings("c", addresses or ("a:1",), **settings), Random(1), {}))
        self._last_link = 0
        self._last_request = 0

    @property
    def part(self) -> ClientSession:
        part = self.node.parts[0]
        assert isinstance(part, ClientSession)
        return part

    def up(self, broker: str = "b1", address: str = "a:1", scheme: str = "tree", role: Role = Role.BROKER) -> LinkUp:
        self._last_link += 1
        return LinkUp(self._last_link, broker, 1, role, True, address, scheme)

    def down(self, broker: str = "b1") -> LinkDown:
        return LinkDown(self._last_link, broker, "gone")

    def received(self, *said: Message, broker: str = "b1") -> Received:
        return Received(self._last_link, broker, list(said))

    def say(self, *said: Message, broker: str = "b1") -> list[Any]:
        effects = self.handle(self.received(*said, broker=broker))
        self.drain()
        return shown(effects)

    def ask(self, *commands: Any) -> list[Any]:
        """The application asks; requests are numbered from 1."""
        asked = []
        for command in commands:
            self._last_request += 1
            asked.append(Requested(self._last_request, command))
        effects = self.handle(*asked)
        self.drain()
        return shown(effects)

    def open(self, *said: Message, epoch: int = 5, accepted: int = 0, memory: int = 9, window: int = 100) -> list[Any]:
        """Starts the client if need be, links it, and has the broker open its session and say more."""
        if not self.part._conversation.incarnation:
            self.handle(Started(3))
        self.handle(self.up())
        return self.say(messages.SessionOpened(epoch, accepted, window, memory), *said)


def shown(effects: Sequence[Effect]) -> list[Any]:
    """Effects in plain types, without timers: (peer, message), ("complete", request, result), ("deliver", …), …"""
    rows: list[Any] = []
    for effect in effects:
        if isinstance(effect, Send):
            message = effect.message
            rows.append((effect.to, *_message(message)))
        elif isinstance(effect, Complete):
            rows.append(("complete", effect.request, effect.result))
        elif isinstance(effect, Deliver):
            rows.append(("deliver", effect.subscription, [one.sequence for one in effect.events]))
        elif not isinstance(effect, SetTimer | CancelTimer):
            rows.append(effect)
    return rows


def _message(message: Message) -> tuple[Any, ...]:
    if isinstance(message, messages.Deliver):
        events = [one[2] for one in msgspec.msgpack.decode(message.events)]
        places = [(number, place) for number, first, count in message.runs for place in range(first, first + count)]
        return ("Deliver", [(*place, event) for place, event in zip(places, events, strict=True)])
    if isinstance(message, messages.Publish):
        sequences = [one[2] for one in msgspec.msgpack.decode(message.events)]
        return ("Publish", message.first, sequences, message.confirmed)
    return (message,)


def sent(effects: Sequence[Any], peer: str) -> list[Any]:
    """Of shown effects, what goes to one peer."""
    return [row[1] if len(row) == 2 and isinstance(row[1], Message) else row[1:] for row in _sends(effects, peer)]


def _sends(effects: Sequence[Any], peer: str) -> list[Any]:
    return [row for row in effects if isinstance(row, tuple) and row[0] == peer]


__all__ = ["EPOCH", "WALL", "Bench", "BrokerBench", "ClientBench", "batch", "event", "plain", "sent", "shown"]
