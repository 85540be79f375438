"""What outlives a crash at the levels that buffer: events with their forwarding sets, and tables (D1-A12, D1-B4.2)."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.kernel.inputs import LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.outbox import NOW, Append, Effect, Send, Truncate
from holdfast.model.event import Event, encode_batch, encode_event
from holdfast.protocols.routing.messages import AcknowledgeEvents, Forward, Introduction, Routes, Settled
from holdfast.protocols.routing.settings import Reliability, RoutingSettings
from holdfast.schemes.tree.parts import make_broker
from holdfast.topology.graph import BrokerGraph
from tests.sessions.bench import Bench

NETWORK = RoutingSettings(
    name="b2",
    graph=BrokerGraph(("b1", "b2", "b3"), (("b1", "b2"), ("b2", "b3"))),
    reliability=Reliability.BUFFERED,
)
LINKS = {"b1": 1, "b3": 2}
ADVERTISEMENT = Routes(advertisements=[("b1.1.1", "topic = 't'")], full=True)
SUBSCRIPTION = Routes(subscriptions=[("b3.1.1", "topic = 't'")], full=True)


def batch(*numbers: int) -> msgspec.Raw:
    return encode_batch([encode_event(Event("p", 1, number, "t", {})) for number in numbers])


class Middle(Bench):
    """b2, durable, between b1 and b3; `disk` is what it has appended so far."""

    def __init__(self, disk: dict[str, list[Record]] | None = None, life: int = 1) -> None:
        self.disk: dict[str, list[Record]] = disk if disk is not None else {}
        super().__init__(make_broker(BrokerSettings("b2", durable=True), Random(1), self.disk, routing=NETWORK))
        self.life = life
        self.keep(self.handle(Started(life, "disk-2")))

    def keep(self, effects: list[Effect]) -> list[Effect]:
        for effect in effects:
            if isinstance(effect, Append):
                self.disk.setdefault(effect.stream, []).append(effect.record)
        return effects

    def link(self, peer: str, stored: int = 0, *routes: Routes) -> list[Effect]:
        known = ("disk-2", stored) if stored else ("", 0)
        said: list[Message] = [
            Introduction(NETWORK.network_id, f"disk-{peer[1:]}", *known, map_digest=NETWORK.founding_map.digest),
            *routes,
        ]
        up = LinkUp(LINKS[peer], peer, 1, Role.BROKER, False)
        return self.keep(self.handle(up, Received(LINKS[peer], peer, said)))

    def hear(self, peer: str, message: Message) -> list[Effect]:
        return self.keep(self.handle(Received(LINKS[peer], peer, [message])))

    def settle(self, effects: list[Effect]) -> list[Effect]:
        """Neighbours answer what they were told."""
        return [
            effect
            for peer, routes in sent(effects, Routes)
            if routes.ticket
            for effect in self.hear(peer, Settled(routes.ticket))
        ]


def sent(effects: list[Effect], kind: type[Message]) -> list[tuple[str, Any]]:
    return [(each.to, each.message) for each in effects if isinstance(each, Send) and isinstance(each.message, kind)]


def test_an_event_is_stored_before_it_is_acknowledged_and_before_it_is_sent() -> None:
    """D1-B4: nothing that claims it leaves without waiting for the disk."""
    node = Middle()
    node.link("b1", 0, ADVERTISEMENT)
    node.settle(node.link("b3", 0, SUBSCRIPTION))
    effects = node.hear("b1", Forward(1, batch(1)))
    stored = next(place for place, each in enumerate(effects) if isinstance(each, Append) and each.stream == "feeds")
    for kind, to in ((AcknowledgeEvents, "b1"), (Forward, "b3")):
        (place,) = [n for n, each in enumerate(effects) if isinstance(each, Send) and isinstance(each.message, kind)]
        each = effects[place]
        assert isinstance(each, Send)
        assert (each.to, each.after is NOW, place > stored) == (to, False, True)


def test_what_was_not_acknowledged_is_sent_again_after_a_crash() -> None:
    """D1-B4.2, D1-B4.3: at once when the neighbour is back, from where it is, and table and numbers are still there."""
    node = Middle()
    node.link("b1", 0, ADVERTISEMENT)
    node.settle(node.link("b3", 0, SUBSCRIPTION))
    node.hear("b1", Forward(1, batch(1, 2, 3)))
    node.hear("b3", AcknowledgeEvents(1))
    node = Middle(node.disk, life=2)
    assert sent(node.link("b3", stored=1), Forward) == [("b3", Forward(2, batch(2, 3)))]
    node.link("b1")
    assert sent(node.hear("b1", Forward(1, batch(1, 2, 3))), Forward) == [], "it has them"
    assert sent(node.hear("b1", Forward(4, batch(4))), Forward) == [("b3", Forward(4, batch(4)))]


def test_a_stored_event_is_for_its_neighbour_whatever_that_wants_later() -> None:
    """D1-A12: the forwarding set is stored. Found by seed 117 of drawn networks, where events were dropped."""
    node = Middle()
    node.link("b1", 0, ADVERTISEMENT)
    node.settle(node.link("b3", 0, SUBSCRIPTION))
    node.hear("b1", Forward(1, batch(1)))
    node = Middle(node.disk, life=2)
    assert sent(node.link("b3", 0, Routes(full=True)), Forward) == [("b3", Forward(1, batch(1)))]


def test_what_may_be_for_a_neighbour_that_was_never_heard_of_waits_for_it() -> None:
    """D1-B4.1: the table is empty, and nobody says that it is complete."""
    node = Middle()
    node.link("b1", 0, ADVERTISEMENT)
    acknowledged = sent(node.hear("b1", Forward(1, batch(1))), AcknowledgeEvents)
    assert acknowledged == [("b1", AcknowledgeEvents(1))], "it is stored"
    effects = node.link("b3", 0, SUBSCRIPTION)
    assert sent(effects, Forward) == [], "what it wants may still be on its way to it"
    assert sent(node.settle(effects), Forward) == [("b3", Forward(1, batch(1)))]
    other = Middle()
    other.link("b1", 0, ADVERTISEMENT)
    other.hear("b1", Forward(1, batch(1)))
    effects = other.link("b3", 0, Routes(full=True))
    assert sent(effects + other.settle(effects), Forward) == [], "it turned out to be for nobody"
    assert other.node.measure()["feeds_events"] == 0


def test_records_go_when_all_of_their_events_are_acknowledged() -> None:
    node = Middle()
    node.link("b1", 0, ADVERTISEMENT)
    node.settle(node.link("b3", 0, SUBSCRIPTION))
    for number in (1, 2, 3):
        node.hear("b1", Forward(number, batch(number)))
    kept = len(node.disk["feeds"])
    effects = node.hear("b3", AcknowledgeEvents(2))
    cut = [each for each in effects if isinstance(each, Truncate)]
    assert [(each.stream, each.before) for each in cut] == [("feeds", kept)], "the last one knows the numbers"
