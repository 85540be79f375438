"""Which parts the nodes of clients and operators are made of. Nothing that only brokers need is imported for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.kernel.parts import Assembly
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.cursors.asker import LogAsker
from holdfast.protocols.cursors.consumer import Consumer
from holdfast.protocols.operating.operator import Operator
from holdfast.protocols.sessions.advertiser import Advertiser
from holdfast.protocols.sessions.application_asker import ApplicationAsker
from holdfast.protocols.sessions.client import ClientSession
from holdfast.protocols.sessions.conversation import ClientSettings, Conversation
from holdfast.protocols.sessions.direct import DirectLinks
from holdfast.protocols.sessions.publisher import Publisher
from holdfast.protocols.sessions.subscriber import Subscriber

if TYPE_CHECKING:
    from random import Random


def make_operator(address: str) -> Assembly:
    """What stands behind `holdfast status`."""
    return Assembly([Operator(address)])


def make_client(settings: ClientSettings, rng: Random, streams: StoredStreams) -> Assembly:
    """A client; it keeps nothing over a restart."""
    conversation = Conversation(settings)
    advertiser, subscriber = Advertiser(conversation), Subscriber(conversation)
    direct = DirectLinks(conversation, rng)
    publisher = Publisher(conversation, advertiser, subscriber, direct)
    consumer, asker = Consumer(conversation), LogAsker(conversation)
    application = ApplicationAsker(conversation)
    companions = (advertiser, consumer, asker, application)
    session = ClientSession(conversation, publisher, subscriber, companions, direct, rng)
    return Assembly([session, direct, advertiser, publisher, subscriber, consumer, asker, application])
