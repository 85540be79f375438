"""Small nodes that the proofs are made with. They speak in messages of the catalogue, whose meaning is theirs here."""

from collections.abc import Callable, Sequence
from random import Random
from typing import ClassVar

import msgspec

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.kernel.inputs import ConnectFailed, Input, LinkDown, LinkUp, LogSent, Received, Started, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Assembly, Part
from holdfast.kernel.queues import Lane
from holdfast.kernel.sequencing import CommandsApplied
from holdfast.kernel.storage import EVENTS, StoredStreams
from holdfast.kernel.time import MILLISECOND
from holdfast.protocols.core.commands import Applied, Command, CoreState, LoggedEvents
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.desks.session_desk import SessionDesk
from holdfast.protocols.routing.feed import Feed
from holdfast.protocols.routing.feeds import Feeds
from holdfast.protocols.sessions.messages import Publish, Redirect
from tests.routing.events import numbered_events, numbers_of

NOTHING = msgspec.Raw(msgspec.msgpack.encode([]))


def numbered(number: int) -> Publish:
    """A message that is nothing but a number."""
    return Publish(number, NOTHING)


class Recorder:
    """Writes down the numbers that it gets, by the sender."""

    def __init__(self) -> None:
        self.got: dict[str, list[int]] = {}

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        for event in inputs:
            if isinstance(event, Received):
                numbers = [message.first for message in event.messages if isinstance(message, Publish)]
                self.got.setdefault(event.peer, []).extend(numbers)

    def check_invariants(self) -> None:
        pass


class Mover:
    """Sends numbers to one peer, suspends its feed half way, moves it to another peer, and goes on there."""

    def __init__(self, first: str, second: str, count: int, address: Callable[[str], str]) -> None:
        self._first, self._second, self._count = first, second, count
        self._address = address
        self._feeds = Feeds({first: Feed(), second: Feed()})
        self._up: set[str] = set()
        self._put = 0
        self.moved = 0

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        for event in inputs:
            match event:
                case Started():
                    out.connect(self._first, self._address(self._first))
                    out.connect(self._second, self._address(self._second))
                case LinkUp():
                    self._up.add(event.peer)
                    if len(self._up) == 2:
                        out.set_timer(("mover", "tick"), MILLISECOND)
                case TimerFired():
                    self._tick(out)

    def _tick(self, out: Outbox) -> None:
        half, last = self._count // 2, self._count * 3 // 4
        first, second = self._feeds[self._first], self._feeds[self._second]
        if self._put == half:
            first.suspend()
        if self._put == last:
            second.suspend()
        if self._put == last + 1:
            self.moved = self._feeds.move(self._first, self._second).count
            first.go_on()
            second.go_on()
        self._put += 1
        (first if self._put <= last else second).put(numbered_events(self._put))
        for peer, feed in self._feeds.items():
            for batch in feed.take(out.wall, out.now):
                for number in numbers_of(batch.events):
                    out.send(peer, numbered(number), Lane.USER)
        if self._put < self._count:
            out.set_timer(("mover", "tick"), MILLISECOND)

    def check_invariants(self) -> None:
        pass


class _Part(msgspec.Struct, frozen=True):
    """A `LogMessage`: the number of the last record."""

    def make(self, records: Sequence[tuple[int, Record]], end: int) -> tuple[Message, int, int]:
        last = records[-1][0] if records else 0
        return numbered(100 + last), last, len(records)

    def gone(self, first: int) -> Message:
        return numbered(-first)


class Librarian:
    """When there is a link: has its log sent, says 1 behind something that has to become durable first, has the log
    sent again, and asks for what is gone. It writes down how far each sending went."""

    def __init__(self, peer: str, address: str) -> None:
        self._peer, self._address = peer, address
        self.sent: list[tuple[int, int, int, int]] = []

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        for event in inputs:
            match event:
                case Started():
                    for n in range(3):
                        out.append(EVENTS, LoggedEvents(1 + 2 * n, 0, NOTHING), 2)
                    out.truncate(EVENTS, 3)
                    out.set_timer(("librarian", "dial"), 50 * MILLISECOND)
                case TimerFired():
                    out.connect(self._peer, self._address)
                case LinkUp():
                    out.queue(event.peer)
                    out.append("state", CoreState(1, b""))
                    out.send(event.peer, numbered(1))
                    out.send_log(event.peer, 1, EVENTS, 4, 1 << 20, _Part())
                    out.send_log(event.peer, 2, EVENTS, 2, 1 << 20, _Part())
                case LogSent():
                    self.sent.append((event.request, event.through, event.count, event.gone))

    def check_invariants(self) -> None:
        pass


class Mistaken:
    """Dials an address and expects someone else there."""

    def __init__(self, peer: str, address: str) -> None:
        self._peer, self._address = peer, address
        self.failed: list[ConnectFailed] = []
        self.linked = False

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        for event in inputs:
            match event:
                case Started():
                    out.connect(self._peer, self._address)
                case ConnectFailed():
                    self.failed.append(event)
                case LinkUp():
                    self.linked = True

    def check_invariants(self) -> None:
        pass


class Early:
    """Sends to a peer before there is a link, and before it even dials."""

    def __init__(self, peer: str, address: str) -> None:
        self._peer, self._address = peer, address

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        for event in inputs:
            match event:
                case Started():
                    for number in (1, 2, 3):
                        out.send(self._peer, numbered(number), Lane.USER)
                    out.set_timer(("early", "dial"), MILLISECOND)
                case TimerFired():
                    out.connect(self._peer, self._address)

    def check_invariants(self) -> None:
        pass


class Member:
    """Knows its peers from its disk or, the first time, from its configuration; a `Redirect` replaces them all.

    It answers with the number of peers, after the new set is safe; then it drops the old links and makes the new ones.
    """

    def __init__(self, peers: Sequence[str], streams: StoredStreams, address: Callable[[str], str]) -> None:
        self.peers = list(peers)
        self._address = address
        for record in streams.get("state", ()):
            if isinstance(record, CoreState):
                self.peers = msgspec.msgpack.decode(record.state)
        self.links: dict[str, int] = {}

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        for event in inputs:
            match event:
                case Started():
                    for peer in self.peers:
                        out.connect(peer, self._address(peer))
                case LinkUp() if event.initiated:
                    self.links[event.peer] = event.link
                case LinkDown():
                    self.links.pop(event.peer, None)
                case Received():
                    for message in event.messages:
                        if isinstance(message, Redirect):
                            self._join(list(message.addresses), event.peer, out)

    def _join(self, peers: list[str], asked_by: str, out: Outbox) -> None:
        out.append("state", CoreState(len(peers), msgspec.msgpack.encode(peers)))
        out.send(asked_by, numbered(len(peers)))
        for peer, link in self.links.items():
            if peer not in peers:
                out.disconnect(link, "left the set")
        for peer in peers:
            if peer not in self.links:
                out.connect(peer, self._address(peer))
        self.peers = peers

    def check_invariants(self) -> None:
        pass


class Asker(Recorder):
    """Asks a member to replace its peers, and writes down the answers."""

    def __init__(self, member: str, peers: Sequence[str], address: Callable[[str], str]) -> None:
        super().__init__()
        self._member, self._peers, self._address = member, tuple(peers), address

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        super().handle(inputs, out)
        for event in inputs:
            if isinstance(event, Started):
                out.connect(self._member, self._address(self._member))
            elif isinstance(event, LinkUp):
                out.send(self._member, Redirect(self._peers))


_encode_commands = msgspec.msgpack.Encoder().encode
_decode_commands = msgspec.msgpack.Decoder(list[Command]).decode


class RemoteSequencer(Part):
    """A part that has another node decide the order of commands: each goes there and comes back."""

    name: ClassVar[str] = "remote"
    due = False
    messages: ClassVar[dict[type, frozenset[Role]]] = {Publish: frozenset({Role.BROKER})}

    is_serving = True
    applies_at_once = False
    applied_is_safe = False
    shares_log = False
    leader_addresses: tuple[str, ...] = ()
    takes_direct = False
    direct_addresses: tuple[str, ...] = ()

    def __init__(self, core: BrokerCore, sequencer: str, address: str) -> None:
        self._core = core
        self._sequencer = sequencer
        self._address = address
        self._turn: list[Command] = []

    def on_started(self, started: Started, out: Outbox) -> None:
        out.connect(self._sequencer, self._address)

    def submit(self, command: Command, out: Outbox, known: object = None) -> None:
        self._turn.append(command)
        self.due = True

    submit_direct = submit

    def on_publish(self, peer: str, message: Publish, out: Outbox) -> None:
        for place, command in enumerate(_decode_commands(message.events)):
            out.tell(CommandsApplied(self._core.apply(message.first + place, message.confirmed, command)))

    def finish(self, out: Outbox) -> None:
        self.due = False
        out.send(self._sequencer, Publish(0, msgspec.Raw(_encode_commands(self._turn)), out.wall))
        self._turn = []


class Sequencer:
    """Numbers the commands that come, keeps them, and gives them back."""

    def __init__(self) -> None:
        self.decided: list[Applied] = []
        self._number = 1

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        for event in inputs:
            if isinstance(event, Received):
                for message in event.messages:
                    if isinstance(message, Publish):
                        commands = _decode_commands(message.events)
                        self.decided.append(Applied(self._number, message.confirmed, commands))
                        out.send(event.peer, Publish(self._number, message.events, message.confirmed))
                        self._number += len(commands)

    def check_invariants(self) -> None:
        pass


def broker_behind(sequencer: str, address: str, core: BrokerCore, settings: BrokerSettings, rng: Random) -> Assembly:
    """The usual broker, except that another node decides the order of its commands."""
    remote = RemoteSequencer(core, sequencer, address)
    host = SessionDesk(settings.name, core, remote, settings.desk)
    return Assembly([remote, host])
