"""The client of the scheme: that of any broker, with a second link, to a witness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from holdfast.broker.client_assembly import assemble_client
from holdfast.broker.scheme_client import SchemeClient, client_catalogue_of
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Assembly, Part
from holdfast.kernel.storage import StoredStreams
from holdfast.kernel.time import MILLISECOND
from holdfast.protocols.sessions.conversation import ClientSettings, Conversation
from holdfast.protocols.sessions.messages import OpenDirect, Publish
from tests.schemes.flood import KIND
from tests.schemes.flood.messages import WITNESS_MESSAGES, AskWitness, FindWitness, Witnessed, WitnessFound

if TYPE_CHECKING:
    from random import Random

ASK_EVERY: Final = 200 * MILLISECOND
BROKERS = frozenset({Role.BROKER})


class Witness(Part):
    """The second link. Whom it leads to, the session's broker says."""

    name: ClassVar[str] = "witness"
    due = False
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {WitnessFound: BROKERS, Witnessed: BROKERS}

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._address = ""
        self._is_dialling = False
        self._link = 0
        self._peer = ""
        self._witnessed = (0, 0)

    # ---------------------------------------------------------------------------------- asked by the client's session
    @property
    def is_open(self) -> bool:
        return False

    def is_dialling(self, address: str) -> bool:
        return self._is_dialling and address == self._address

    def check(self, addresses: tuple[str, ...]) -> None: ...

    def send(self, message: Publish, out: Outbox) -> None: ...

    def opened(self, opening: OpenDirect, address: str, addresses: tuple[str, ...], out: Outbox) -> None:
        self._conversation.send(FindWitness(), out)

    def close(self, reason: str, out: Outbox) -> None:
        if self._link:
            out.disconnect(self._link, reason)
        self._address = ""
        out.cancel_timer((self.name, "ask"))

    def takes(self, up: LinkUp, out: Outbox) -> bool:
        if not self.is_dialling(up.address):
            return False
        self._is_dialling, self._link, self._peer = False, up.link, up.peer
        self._ask(out)
        return True

    # ---------------------------------------------------------------------------------------------------- the witness
    def on_witness_found(self, peer: str, found: WitnessFound, out: Outbox) -> None:
        if found.address and not self._link and self._conversation.is_open_with(peer):
            self._address = found.address
            self._dial(out)

    def _dial(self, out: Outbox) -> None:
        if not self._is_dialling:
            self._is_dialling = True
            out.connect("", self._address)

    def _ask(self, out: Outbox) -> None:
        out.send(self._peer, AskWitness())
        out.set_timer((self.name, "ask"), ASK_EVERY)

    def on_witnessed(self, peer: str, witnessed: Witnessed, out: Outbox) -> None:
        self._witnessed = (witnessed.incarnation, witnessed.sequence)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if self.is_dialling(failed.address):
            self._is_dialling = False
            out.set_timer((self.name, "ask"), ASK_EVERY)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if self._link == down.link:
            self._link = 0
            out.drop_queue(down.peer)
            out.set_timer((self.name, "ask"), ASK_EVERY)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        if self._link:
            self._ask(out)
        elif self._address:
            self._dial(out)

    def measure(self) -> dict[str, int]:
        own = self._witnessed[0] == self._conversation.incarnation
        return {"witnessed": self._witnessed[1] if own else 0, "witnesses": int(bool(self._link))}


def make_client(settings: ClientSettings, rng: Random, streams: StoredStreams) -> Assembly:
    conversation = Conversation(settings)
    witness = Witness(conversation)
    return assemble_client(conversation, rng, witness, (witness,))


CLIENT: Final = SchemeClient(make_client, client_catalogue_of(KIND, WITNESS_MESSAGES))
