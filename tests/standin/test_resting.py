"""A broker that is started again while another one stands in for it: what only it has waits for its place (D0-F6)."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.kernel.inputs import Durable, LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.outbox import Append, Effect, Send, Snapshot
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.messages import Forward, Introduction, NetworkMapKnown, NetworkMapTold, Routes, Settled
from holdfast.protocols.routing.network_map import HandBack, NetworkMap, ReplaceBroker, done, planned
from holdfast.protocols.routing.settings import Reliability, RoutingSettings, StandInSettings
from holdfast.schemes.tree.parts import make_broker
from holdfast.topology.graph import BrokerGraph
from tests.sessions.bench import Bench, batch

GRAPH = BrokerGraph(("b1", "b2", "b3"), (("b1", "b2"), ("b2", "b3")))
WANTED = "topic = 't'"


def settings(level: Reliability) -> RoutingSettings:
    return RoutingSettings(name="b2", graph=GRAPH, reliability=level, stand_ins=StandInSettings(enabled=True))


class Faulty(Bench):
    """b2, between b1 and b3, which wants events; with what its disk has."""

    def __init__(self, level: Reliability, streams: StoredStreams | None = None) -> None:
        self.settings = settings(level)
        self.map = self.settings.founding_map
        self.disk: dict[str, list[Record]] = {}
        durable = BrokerSettings("b2", durable=True)
        super().__init__(make_broker(durable, Random(1), streams or {}, routing=self.settings))
        self.handle(Started(2 if streams else 1, log_id="log of b2"))

    def meet(self, peer: str, *messages: Message) -> list[Effect]:
        """On a link of its own, from a broker that has the newest map."""
        link = {"b1": 1, "b3": 2, "b8": 3}[peer]
        feed = f"log of {peer}" if self.settings.reliability.buffers else ""
        number, digest = self.map.number, self.map.digest
        hello = Introduction(self.settings.network_id, feed, map_number=number, map_digest=digest)
        self.handle(LinkUp(link, peer, 1, Role.BROKER, False))
        return self.hear(peer, hello, *messages)

    def hear(self, peer: str, *messages: Message) -> list[Effect]:
        effects = self.handle(Received({"b1": 1, "b3": 2, "b8": 3}[peer], peer, list(messages)))
        for each in effects:
            if isinstance(each, Append):
                self.disk.setdefault(each.stream, []).append(each.record)
            elif isinstance(each, Snapshot):
                self.disk[each.stream] = [each.record]
        written = [each.token for each in effects if isinstance(each, Append | Snapshot)]
        return effects + (self.handle(Durable(max(written))) if written else [])

    def change(self, network: NetworkMap, peer: str) -> list[Effect]:
        self.map = network
        return self.hear(peer, NetworkMapKnown(network.number, network.digest, True), NetworkMapTold(network))

    @property
    def waiting(self) -> int:
        forwarding = next(part for part in self.node.parts if isinstance(part, Forwarding))
        return sum(len(feed) for feed in (*forwarding.feeds.values(), *forwarding.feeds.aside.values()))


def forwarded(effects: list[Effect]) -> list[str]:
    return [each.to for each in effects if isinstance(each, Send) and isinstance(each.message, Forward)]


def replaced(faulty: Faulty) -> None:
    """It has an event for b3, which has not come, and hears that b8 has its place."""
    faulty.meet("b1", Routes([("b1.1.1", WANTED)], full=True))
    faulty.meet("b3", Routes(subscriptions=[("b3.1.1", WANTED)], full=True))
    assert forwarded(faulty.hear("b1", Forward(1, batch(1, topic="t", publisher="b1")))) == ["b3"]
    faulty.change(done(planned(faulty.map, ReplaceBroker("b2", "b8", "c:8", "p:8"))), "b1")


def handed_back(faulty: Faulty) -> list[Effect]:
    """What it does when b8 has told it that it is a member again."""
    returned = planned(faulty.map, HandBack("b2", "c:2", "p:2"))
    faulty.meet("b8")
    effects = faulty.change(returned, "b8")
    effects += faulty.hear("b8", Routes([("b1.1.1", WANTED)], [("b3.1.1", WANTED)], full=True))
    asked = [each.message.ticket for each in effects if isinstance(each, Send) and isinstance(each.message, Routes)]
    return effects + [more for ticket in asked if ticket for more in faulty.hear("b8", Settled(ticket))]


@pytest.mark.parametrize("restarts", [0, 1, 2])
def test_what_only_the_faulty_broker_had_stored_goes_on_when_it_has_its_place_back(restarts: int) -> None:
    faulty = Faulty(Reliability.BUFFERED)
    replaced(faulty)
    for _ in range(restarts):
        disk, network = faulty.disk, faulty.map
        faulty = Faulty(Reliability.BUFFERED, {stream: list(records) for stream, records in disk.items()})
        faulty.disk, faulty.map = disk, network
        assert faulty.waiting == 1
    assert forwarded(handed_back(faulty)) == ["b8"]
    assert faulty.waiting == 1


def test_what_is_not_stored_does_not_come_behind_newer_events() -> None:
    """D0-C4."""
    faulty = Faulty(Reliability.NONE)
    replaced(faulty)
    assert faulty.waiting == 0
    assert forwarded(handed_back(faulty)) == []
