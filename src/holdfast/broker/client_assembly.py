"""Which parts the nodes of clients and operators are made of. Nothing that only brokers need is imported for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kernel.parts import Assembly, Part
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.cursors.asker import LogAsker
from holdfast.protocols.cursors.consumer import Consumer
from holdfast.protocols.operating.operator import Operator
from holdfast.protocols.sessions.advertiser import Advertiser
from holdfast.protocols.sessions.application_asker import ApplicationAsker
from holdfast.protocols.sessions.client import ClientSession
from holdfast.protocols.sessions.conversation import ClientSettings, Conversation
from holdfast.protocols.sessions.other_links import NoOtherLinks, OtherLinks
from holdfast.protocols.sessions.publisher import Publisher
from holdfast.protocols.sessions.subscriber import Subscriber

if TYPE_CHECKING:
    from random import Random


def make_operator(address: str) -> Assembly:
    """What stands behind `holdfast status`."""
    return Assembly([Operator(address)])


def make_client(settings: ClientSettings, rng: Random, streams: StoredStreams) -> Assembly:
    """A client with one link, to its broker; it keeps nothing over a restart."""
    return assemble_client(Conversation(settings), rng, NoOtherLinks())


def assemble_client(conversation: Conversation, rng: Random, others: OtherLinks, own: Sequence[Part] = ()) -> Assembly:
    """A client with other links beside that of its session, and with the parts that are its scheme's own."""
    advertiser, subscriber = Advertiser(conversation), Subscriber(conversation)
    publisher = Publisher(conversation, advertiser, subscriber, others)
    consumer, asker = Consumer(conversation), LogAsker(conversation)
    application = ApplicationAsker(conversation)
    companions = (advertiser, consumer, asker, application)
    session = ClientSession(conversation, publisher, subscriber, companions, others, rng)
    return Assembly([session, *own, advertiser, publisher, subscriber, consumer, asker, application])
