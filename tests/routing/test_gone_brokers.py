"""Of brokers that have left the network nothing stays behind: records do not grow with all that were neighbours."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.kernel.inputs import Durable, LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Append, Disconnect, Effect, Send
from holdfast.protocols.routing.messages import (
    AcknowledgeEvents,
    EventsStored,
    Forward,
    Introduction,
    NetworkMapKnown,
    NetworkMapTold,
    Routes,
)
from holdfast.protocols.routing.network_map import AddBroker, NetworkMap, RemoveBroker, done, planned
from holdfast.protocols.routing.settings import Reliability, RoutingSettings
from holdfast.schemes.tree.parts import make_broker
from holdfast.topology.graph import BrokerGraph
from tests.sessions.bench import Bench, batch

GRAPH = BrokerGraph(("b1", "b2", "b3"), (("b1", "b2"), ("b2", "b3")))
NETWORK = RoutingSettings(name="b2", graph=GRAPH, reliability=Reliability.BUFFERED)
LINKS = {"b1": 1, "b3": 2, "b9": 3}
ON_T = "topic = 't'"


class Hub(Bench):
    """b2, which b1 and b3 are joined with, and b9 for a while."""

    def __init__(self, record: EventsStored | None = None) -> None:
        streams = {"feeds": [] if record is None else [record]}
        super().__init__(make_broker(BrokerSettings("b2"), Random(1), streams, routing=NETWORK))
        self.map = NETWORK.founding_map
        self.handle(Started(1, log_id="log of b2"))
        self.meet("b1")
        self.meet("b3")
        self.hear("b3", Routes(subscriptions=[("b3.1.1", ON_T)]))

    def meet(self, peer: str) -> None:
        self.handle(LinkUp(LINKS[peer], peer, 1, Role.BROKER, False))
        number, digest = self.map.number, self.map.digest
        hello = Introduction(NETWORK.network_id, f"log of {peer}", map_number=number, map_digest=digest)
        self.hear(peer, hello, Routes(full=True))

    def hear(self, peer: str, *messages: Message) -> list[Effect]:
        return self.handle(Received(LINKS[peer], peer, list(messages)))

    def change(self, network: NetworkMap) -> None:
        self.map = network
        known = NetworkMapKnown(network.number, network.digest, True)
        self.hear("b1", known, NetworkMapTold(network))
        self.hear("b3", known)

    def stored(self, peer: str, number: int) -> EventsStored:
        """What is on the disk with an event that comes from a neighbour."""
        effects = self.hear(peer, Forward(number, batch(number, topic="t", publisher=peer)))
        [append] = [each for each in effects if isinstance(each, Append) and isinstance(each.record, EventsStored)]
        self.handle(Durable(append.token))
        assert isinstance(append.record, EventsStored)
        return append.record


@pytest.fixture
def hub() -> Hub:
    """b9 was there, and has left."""
    hub = Hub()
    hub.change(planned(hub.map, AddBroker("b9", "c:9", "p:9", "b2")))
    hub.meet("b9")
    hub.hear("b9", Routes(subscriptions=[("b9.1.1", ON_T)]))
    assert hub.stored("b9", 1).stored == {"b9": ("log of b9", 1)}
    with_b9 = hub.stored("b1", 1)
    assert with_b9.following == {"b1": 1, "b3": 2, "b9": 1}
    assert list(with_b9.stored) == ["b9", "b1"]
    hub.change(done(planned(hub.map, RemoveBroker("b9"))))
    return hub


def test_records_do_not_name_who_has_left(hub: Hub) -> None:
    record = hub.stored("b1", 2)
    assert (list(record.following), list(record.stored)) == (["b1", "b3"], ["b1"])


def test_who_has_left_and_acknowledges_what_it_got_makes_no_mistake(hub: Hub) -> None:
    """Its word was under way."""
    assert not [each for each in hub.hear("b9", AcknowledgeEvents(1)) if isinstance(each, Disconnect)]


def test_what_an_older_record_says_of_it_is_forgotten_at_the_start(hub: Hub) -> None:
    record = msgspec.structs.replace(hub.stored("b1", 2), following={"b1": 1, "b3": 1, "b7": 8})
    again = Hub(record)
    made = again.stored("b1", 3)
    assert list(made.following) == ["b1", "b3"]
    assert not [each for each in again.hear("b1", AcknowledgeEvents(0)) if isinstance(each, Send)]
