"""The client of this scheme: that of any broker; it knows all replicas, and proposes to all where they take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.broker.client_assembly import assemble_client
from holdfast.broker.scheme_client import SchemeClient, client_catalogue_of
from holdfast.kernel.parts import Assembly
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.sessions.conversation import ClientSettings, Conversation
from holdfast.schemes.paxos import KIND
from holdfast.schemes.paxos.direct import DirectLinks

if TYPE_CHECKING:
    from random import Random


def make_client(settings: ClientSettings, rng: Random, streams: StoredStreams) -> Assembly:
    """A client with links to other replicas; it keeps nothing over a restart."""
    conversation = Conversation(settings)
    direct = DirectLinks(conversation, rng)
    return assemble_client(conversation, rng, direct, (direct,))


CLIENT: Final = SchemeClient(make_client, client_catalogue_of(KIND))
