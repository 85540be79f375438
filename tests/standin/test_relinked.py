"""A stand-in whose link to a neighbour breaks, or to whom news come in the turn in which it is told something."""

from __future__ import annotations

from random import Random
from typing import TypeVar

import msgspec

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.kernel.inputs import Durable, LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Append, Effect, Send, Snapshot
from holdfast.model.batch import EventBatch
from holdfast.model.event import EventBytes
from holdfast.protocols.routing.messages import Introduction, NetworkMapKnown, NetworkMapTold, Routes, Settled
from holdfast.protocols.routing.network_map import NetworkMap, ReplaceBroker, planned
from holdfast.protocols.routing.settings import Reliability, RoutingSettings, StandInSettings
from holdfast.schemes.tree.parts import make_broker
from holdfast.schemes.tree.standin.learning import Learning
from holdfast.schemes.tree.standin.messages import (
    StandInAdvertised,
    StandInForward,
    StandInRequest,
    StandInSubscribed,
)
from holdfast.topology.graph import BrokerGraph
from tests.sessions.bench import Bench

Said = TypeVar("Said", bound=Message)
GRAPH = BrokerGraph(("b0", "b1", "b2", "b3"), (("b0", "b1"), ("b1", "b2"), ("b2", "b3")))
ON_T, ON_U = "topic = 't'", "topic = 'u'"
PLACES = {name: f"{name}:2" for name in (*GRAPH.brokers, "b8")}


class Broker(Bench):
    """One broker of the network in which b8 stands in for b2, and learns."""

    def __init__(self, name: str, level: Reliability = Reliability.BUFFERED) -> None:
        self.settings = RoutingSettings(
            name=name,
            graph=GRAPH,
            addresses=PLACES,
            reliability=level,
            stand_ins=StandInSettings(enabled=True),
        )
        super().__init__(make_broker(BrokerSettings(name, durable=True), Random(1), {}, routing=self.settings))
        self.founded = self.settings.founding_map
        self.map = planned(self.founded, ReplaceBroker("b2", "b8", "b8:1", "b8:2"))
        self.links: dict[str, int] = {}
        self._last = 0
        self.handle(Started(1, log_id=f"log of {name}"))

    def meet(self, peer: str, network: NetworkMap | None = None) -> list[Effect]:
        """On a new link, in the place of one that there may be. The other side has a map, as a rule that of b8."""
        network = network or self.map
        self._last += 1
        self.links[peer] = self._last
        number, digest = network.number, network.digest
        feed = f"log of {peer}" if self.settings.reliability.buffers else ""
        hello = Introduction(self.settings.network_id, feed, map_number=number, map_digest=digest)
        self.handle(LinkUp(self._last, peer, 1, Role.BROKER, False))
        return self.hear(peer, hello, NetworkMapTold(network), NetworkMapKnown(number, digest, True))

    def hear(self, peer: str, *messages: Message) -> list[Effect]:
        return self.turn(Received(self.links[peer], peer, list(messages)))

    def turn(self, *inputs: Received) -> list[Effect]:
        effects = self.handle(*inputs)
        written = [each.token for each in effects if isinstance(each, Append | Snapshot)]
        return effects + (self.handle(Durable(max(written))) if written else [])


def said(effects: list[Effect], peer: str, kind: type[Said]) -> list[Said]:
    return [
        each.message
        for each in effects
        if isinstance(each, Send) and each.to == peer and isinstance(each.message, kind)
    ]


def learning() -> Broker:
    """b8, which both neighbours have told everything, but for whether b1 wants what b3 advertises."""
    stand_in = Broker("b8")
    stand_in.meet("b1")
    stand_in.meet("b3")
    stand_in.hear("b1", StandInAdvertised(stand_in.map.number, [("b1.1.1", ON_T)], last=True))
    stand_in.hear("b3", StandInAdvertised(stand_in.map.number, [("b3.2.1", ON_U)], last=True))
    stand_in.hear("b3", StandInSubscribed(stand_in.map.number, [("b3.1.1", ON_T)], ["b1.1.1"]))
    return stand_in


def test_a_neighbour_with_a_new_link_is_told_again_what_is_wanted_and_asked_again() -> None:
    """It may not have heard of b3's subscription on the link before: then its events would be for nobody."""
    stand_in = learning()
    number = stand_in.map.number
    again = stand_in.meet("b1")
    assert said(again, "b1", StandInRequest) == [StandInRequest(number)]
    assert said(again, "b1", StandInSubscribed) == [StandInSubscribed(number, [("b3.1.1", ON_T)])]
    assert said(again, "b1", StandInAdvertised) == [StandInAdvertised(number, [("b3.2.1", ON_U)])]


def test_what_is_taken_back_is_said_also_in_a_turn_in_which_something_is_learned() -> None:
    """D0-B6: it is news."""
    stand_in = learning()
    number = stand_in.map.number
    heard = stand_in.hear("b3", Routes(unsubscribed=["b3.1.1"]), StandInSubscribed(number, [("b3.3.1", ON_T)]))
    gone = [entry for routes in said(heard, "b1", Routes) for entry in routes.unsubscribed]
    assert gone == ["b3.1.1"]


def neighbour() -> Broker:
    """b1, whose own neighbour b0 wants what b3 advertises: it has told b2, in whose place b8 is now."""
    broker = Broker("b1", Reliability.PERIODIC)
    broker.meet("b0", broker.founded)
    broker.meet("b2", broker.founded)
    broker.hear("b0", Routes(subscriptions=[("b0.1.1", ON_T)], full=True))
    told = broker.hear("b2", Routes([("b3.1.1", ON_T)], full=True))
    assert [entry for routes in said(told, "b2", Routes) for entry, _ in routes.subscriptions] == ["b0.1.1"]
    broker.meet("b8")
    broker.hear("b8", StandInRequest(broker.map.number))
    return broker


WANTED = [("b0.1.1", ON_T)]


def test_what_was_wanted_under_an_advertisement_is_told_to_the_stand_in_also_if_it_tells_that_as_news() -> None:
    """Else it would take the silence for an answer, and events that are wanted would be for nobody."""
    broker = neighbour()
    answers = broker.hear("b8", Routes([("b3.1.1", ON_T)], ticket=1))
    assert said(answers, "b8", StandInSubscribed) == [StandInSubscribed(broker.map.number, WANTED)]
    told = [type(each.message) for each in answers if isinstance(each, Send) and each.to == "b8"]
    assert told.index(StandInSubscribed) < told.index(Settled)
    asked = broker.hear("b8", StandInAdvertised(broker.map.number, [("b3.1.1", ON_T)]))
    assert said(asked, "b8", StandInSubscribed) == [StandInSubscribed(broker.map.number, [], ["b3.1.1"])]


def test_a_stand_in_with_a_new_link_is_told_nothing_before_it_asks_again() -> None:
    broker = neighbour()
    assert said(broker.meet("b8"), "b8", Routes) == []
    broker.hear("b8", StandInRequest(broker.map.number))
    asked = broker.hear("b8", StandInAdvertised(broker.map.number, [("b3.1.1", ON_T)]))
    assert said(asked, "b8", StandInSubscribed) == [StandInSubscribed(broker.map.number, WANTED, ["b3.1.1"])]


def test_events_that_break_a_rule_are_kept_for_nobody() -> None:
    """They are left out as those of any neighbour are, and end nobody."""
    stand_in = learning()
    unsound = msgspec.msgpack.encode([["p", 1, 1, "t" * 70_000, {}, b"", 0, 0]])
    assert EventBatch.read(EventBytes(unsound)).doubtful == (0,)
    stand_in.hear("b1", StandInForward(1, EventBytes(unsound), [["b9.1.1"]]))
    [part] = [part for part in stand_in.node.parts if isinstance(part, Learning)]
    assert len(part.missed) == 0
