"""Its client: it greets others at their addresses, and greets back whoever greets it."""

from collections.abc import Mapping
from random import Random
from typing import ClassVar

import msgspec

from holdfast.broker.client_assembly import assemble_client
from holdfast.broker.scheme_client import SchemeClient, client_catalogue_of
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Assembly, Part
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.sessions.conversation import ClientSettings, Conversation
from holdfast.protocols.sessions.messages import OpenDirect, Publish
from tests.taking_scheme import KIND


class Greeting(Message, frozen=True):
    said: str
    back: bool = False


class Greet(msgspec.Struct, frozen=True):
    """Answered with what comes back, or with why nothing does."""

    address: str


class Guests(Part):
    """The part of it that has links to other clients."""

    name: ClassVar[str] = "guests"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Greeting: frozenset({Role.CLIENT})}
    asked: ClassVar[tuple[type, ...]] = (Greet,)

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._asked: dict[str, int] = {}  # address → the request
        self._visited: dict[str, str] = {}  # peer → address
        self._guests: dict[int, str] = {}  # link → peer

    @property
    def is_open(self) -> bool:
        return False

    def is_dialling(self, address: str) -> bool:
        return False

    def check(self, addresses: tuple[str, ...]) -> None: ...

    def opened(self, opening: OpenDirect, address: str, addresses: tuple[str, ...], out: Outbox) -> None: ...

    def close(self, reason: str, out: Outbox) -> None: ...

    def send(self, message: Publish, out: Outbox) -> None: ...

    def takes(self, up: LinkUp, out: Outbox) -> bool:
        if up.role is not Role.CLIENT or (up.initiated and up.address not in self._asked):
            return False
        self._guests[up.link] = up.peer
        if up.initiated:
            self._visited[up.peer] = up.address
            out.send(up.peer, Greeting(f"hello from {self._conversation.name}"))
        return True

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if self._guests.pop(down.link, None) is not None:
            out.drop_queue(down.peer)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if failed.address in self._asked:
            out.complete(self._asked.pop(failed.address), failed.reason)

    def on_greet(self, request: int, command: Greet, out: Outbox) -> None:
        self._asked[command.address] = request
        out.connect("", command.address)

    def on_greeting(self, peer: str, greeting: Greeting, out: Outbox) -> None:
        if not greeting.back:
            out.send(peer, Greeting(f"{greeting.said}, says {self._conversation.settings.listening}", True))
        elif peer in self._visited:
            out.complete(self._asked.pop(self._visited[peer]), f"{peer}: {greeting.said}")


def make_client(settings: ClientSettings, rng: Random, streams: StoredStreams) -> Assembly:
    conversation = Conversation(settings)
    guests = Guests(conversation)
    return assemble_client(conversation, rng, guests, (guests,))


CLIENT = SchemeClient(make_client, client_catalogue_of(KIND, {200: Greeting}), frozenset({Role.CLIENT}))
