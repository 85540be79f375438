"""When the network has settled while a link of the tree moves: who is told nothing for a while is waited for, and hears
no answer before what it has to know.

b3 moves from b1 to b2, which is a neighbour of b1 and b4. What b2 says is looked at; and in the end what b3 says.
"""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.kernel.inputs import Input, LinkDown, LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Send
from holdfast.protocols.routing.messages import (
    Introduction,
    MoveSaid,
    MoveWord,
    NetworkMapKnown,
    NetworkMapTold,
    Routes,
    Settled,
)
from holdfast.protocols.routing.network_map import Move
from holdfast.protocols.routing.settings import Reliability, RoutingSettings
from holdfast.schemes.tree.parts import make_broker
from holdfast.topology.graph import BrokerGraph
from tests.sessions.bench import Bench

GRAPH = BrokerGraph(("b1", "b2", "b3", "b4"), (("b1", "b2"), ("b1", "b3"), ("b2", "b4")))
LINKS = {"b1": 1, "b4": 2, "b3": 3}
ON_T = "topic = 't'"
Said = list[tuple[str, Message]]


class NewNeighbour(Bench):
    """b2, which has welcomed b3, and has not heard yet that b1 has rewritten its tables."""

    def __init__(self, level: Reliability) -> None:
        network = RoutingSettings(name="b2", graph=GRAPH, reliability=level)
        super().__init__(make_broker(BrokerSettings("b2"), Random(1), {}, routing=network))
        self.moved = msgspec.structs.replace(network.founding_map, number=1, steps=(Move("b3", "b1", "b2"),))
        self._hello = Introduction(network.network_id, feed="log", map_digest=network.founding_map.digest)
        self.handle(Started(1))
        for peer in ("b1", "b4"):
            self.handle(LinkUp(LINKS[peer], peer, 1, Role.BROKER, False))
            self.hear(peer, self._hello, Routes(full=True))

    def welcome(self, *told: Routes) -> Said:
        """The move begins, and b3, which has told something, becomes a neighbour, which is told nothing yet."""
        known = NetworkMapKnown(1, self.moved.digest, True)
        self.hear("b1", known, NetworkMapTold(self.moved))
        self.hear("b4", known)
        self.handle(LinkUp(LINKS["b3"], "b3", 1, Role.BROKER, False))
        hello = msgspec.structs.replace(self._hello, map_number=1, map_digest=self.moved.digest)
        self.hear("b3", hello, Routes(full=True), *told)
        said = self.said(Received(LINKS["b1"], "b1", [MoveSaid(1, MoveWord.PASSED)]))
        assert [message for _, message in said if isinstance(message, MoveSaid)] == [MoveSaid(1, MoveWord.TAKEN)]
        return said

    def go_on(self) -> Said:
        """b1 has rewritten its tables: b1 and b3 are told everything."""
        return self.hear("b1", MoveSaid(1, MoveWord.REWRITTEN))

    def hear(self, peer: str, *messages: Message) -> Said:
        told = self.said(Received(LINKS[peer], peer, list(messages)))
        return [(to, message) for to, message in told if isinstance(message, (Routes, Settled))]

    def asked(self, routes: Routes) -> Said:
        """A broker that takes part in the move advertises something, and b4, which does not, has answered."""
        said = self.hear(routes.advertisements[0][0][:2], routes)
        [told] = [message for to, message in said if to == "b4" and isinstance(message, Routes)]
        return said + self.hear("b4", Settled(told.ticket))

    def said(self, *inputs: Input) -> Said:
        return [(each.to, each.message) for each in self.handle(*inputs) if isinstance(each, Send)]


def ticket_to(said: Said, peer: str) -> int:
    """The one under which a neighbour is told everything, that there is a topic among it."""
    [told] = [message for to, message in said if to == peer and isinstance(message, Routes)]
    assert told.full
    assert [filter for _, filter in told.advertisements] == [ON_T]
    assert told.ticket
    return told.ticket


def settled(said: Said) -> list[str]:
    return [to for to, message in said if isinstance(message, Settled)]


@pytest.fixture(params=[Reliability.NONE, Reliability.PERIODIC, Reliability.BUFFERED])
def node(request: pytest.FixtureRequest) -> NewNeighbour:
    return NewNeighbour(request.param)


def advertised(broker: str) -> Routes:
    return Routes(advertisements=[(f"{broker}.1.1", ON_T)], ticket=7)


def test_who_moves_waits_for_those_beyond_its_old_neighbour(node: NewNeighbour) -> None:
    """b1 has not been told what b3 advertises, and nobody has said what is wanted there."""
    node.welcome()
    assert settled(node.asked(advertised("b3"))) == []
    ticket = ticket_to(node.go_on(), "b1")
    wanted = Routes(subscriptions=[("b1.1.1", ON_T)])
    said = node.hear("b1", wanted, Settled(ticket))
    assert [to for to, message in said if isinstance(message, Routes) and message.subscriptions] == ["b3"]
    assert settled(said) == ["b3"]


def test_who_moves_waits_for_all_whom_what_it_told_before_it_was_welcomed_concerns(node: NewNeighbour) -> None:
    """b4 is told of it when b3 is welcomed, and b1 later."""
    [to_b4] = [message for to, message in node.welcome(advertised("b3")) if to == "b4" and isinstance(message, Routes)]
    assert to_b4.advertisements == [("b3.1.1", ON_T)]
    ticket = ticket_to(node.go_on(), "b1")
    assert settled(node.hear("b1", Settled(ticket))) == []
    assert settled(node.hear("b4", Settled(to_b4.ticket))) == ["b3"]


def test_others_wait_for_who_moves(node: NewNeighbour) -> None:
    """b3 has not been told what they advertise, if they do so in the middle of the move."""
    node.welcome()
    assert settled(node.hear("b4", advertised("b4"))) == []
    said = node.go_on()
    tickets = {peer: ticket_to(said, peer) for peer in ("b1", "b3")}
    assert settled(node.hear("b1", Settled(tickets["b1"]))) == []
    assert settled(node.hear("b3", Settled(tickets["b3"]))) == ["b4"]


def test_others_wait_for_who_moves_though_the_old_neighbour_answers(node: NewNeighbour) -> None:
    """What b1 was told before, it may have told b3 when that one did not listen any more."""
    [told] = [message for to, message in node.hear("b4", advertised("b4")) if to == "b1"]
    assert isinstance(told, Routes)
    assert told.advertisements == [("b4.1.1", ON_T)]
    node.welcome()
    ticket = ticket_to(said := node.go_on(), "b3")
    assert settled(said) == []
    [anew] = [message.ticket for to, message in said if to == "b1" and isinstance(message, Routes)]
    assert settled(node.hear("b1", Settled(told.ticket), Settled(anew))) == []
    assert settled(node.hear("b3", Settled(ticket))) == ["b4"]


def test_the_old_neighbour_hears_no_answer_before_it_is_told_again(node: NewNeighbour) -> None:
    """It is told nothing meanwhile, and would take for everything what it has."""
    node.welcome()
    assert settled(node.asked(advertised("b1"))) == []
    ticket = ticket_to(said := node.go_on(), "b3")
    assert settled(said) == []
    assert settled(node.hear("b3", Routes(subscriptions=[("b3.1.1", ON_T)]), Settled(ticket))) == ["b1"]


def test_who_is_held_and_loses_its_link_is_not_waited_for_until_it_has_one(node: NewNeighbour) -> None:
    """As with all whose links are gone: at the levels that buffer it counts as wanting everything."""
    node.welcome()
    node.hear("b4", advertised("b4"))
    node.handle(LinkDown(LINKS["b3"], "b3", "reset"))
    ticket = ticket_to(said := node.go_on(), "b1")
    assert settled(said) == []
    assert settled(node.hear("b1", Settled(ticket))) == ["b4"]


def test_the_old_neighbour_hears_no_answer_in_the_turn_in_which_it_is_one_no_more() -> None:
    """What belongs to the answer is told to the new one, and nothing more to the old one: it asks that one, too."""
    graph = BrokerGraph(GRAPH.brokers, (("b1", "b2"), ("b1", "b3"), ("b3", "b4")))
    network = RoutingSettings(name="b3", graph=graph)
    moved = msgspec.structs.replace(network.founding_map, number=1, steps=(Move("b3", "b1", "b2"),))
    node = Bench(make_broker(BrokerSettings("b3"), Random(1), {}, routing=network))
    links = {"b1": 1, "b2": 2, "b4": 3}

    def heard(peer: str, *messages: Message) -> Received:
        return Received(links[peer], peer, list(messages))

    def said(*inputs: Input) -> Said:
        return [(each.to, each.message) for each in node.handle(*inputs) if isinstance(each, Send)]

    hello = Introduction(network.network_id, map_digest=network.founding_map.digest)
    node.handle(Started(1))
    for peer in ("b1", "b4"):
        node.handle(LinkUp(links[peer], peer, 1, Role.BROKER, False), heard(peer, hello, Routes(full=True)))
    asked = said(heard("b1", advertised("b1")))
    [ticket] = [message.ticket for to, message in asked if to == "b4" and isinstance(message, Routes)]
    known = NetworkMapKnown(1, moved.digest, True)
    node.handle(heard("b1", known, NetworkMapTold(moved)), heard("b4", known))
    node.handle(LinkUp(links["b2"], "b2", 1, Role.BROKER, False))
    anew = msgspec.structs.replace(hello, map_number=1, map_digest=moved.digest)
    wanted = Routes(subscriptions=[("b4.1.1", ON_T)])
    turn = said(heard("b4", wanted, Settled(ticket)), heard("b2", anew))
    assert [message.word for to, message in turn if to == "b1" and isinstance(message, MoveSaid)] == [MoveWord.ENDED]
    [told] = [message for to, message in turn if to == "b2" and isinstance(message, Routes)]
    assert told.subscriptions == [("b4.1.1", ON_T)]
    assert settled(turn) == []
