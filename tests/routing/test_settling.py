"""When the network has settled: whoever is told so has been told before what is wanted (D0-B1.1)."""

from __future__ import annotations

from random import Random

import msgspec

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.kernel.inputs import Input, LinkDown, LinkUp, Received, Started, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Send
from holdfast.protocols.routing.messages import Introduction, Routes, Settled
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.settings import Reliability, RoutingSettings
from holdfast.protocols.routing.settling import Settling
from holdfast.schemes.tree.parts import make_broker
from holdfast.topology.graph import BrokerGraph
from tests.sessions.bench import Bench

NETWORK = RoutingSettings(name="b2", graph=BrokerGraph(("b1", "b2", "b3"), (("b1", "b2"), ("b2", "b3"))))


class Middle(Bench):
    """b2, with links to b1 and b3, which have told it that there is nothing."""

    def __init__(self, network: RoutingSettings = NETWORK) -> None:
        super().__init__(make_broker(BrokerSettings("b2"), Random(1), {}, routing=network))
        self.handle(Started(1))
        for link, peer in enumerate(("b1", "b3"), 1):
            self.handle(LinkUp(link, peer, 1, Role.BROKER, False))
            hello = Introduction(network.network_id, map_digest=network.founding_map.digest)
            self.hear(peer, hello, Routes(full=True))

    def hear(self, peer: str, *messages: Message) -> list[tuple[str, Message]]:
        """All in one read; what is said then, to whom."""
        return self.said(Received(("b1", "b3").index(peer) + 1, peer, list(messages)))

    def said(self, *inputs: Input) -> list[tuple[str, Message]]:
        sent = [effect for effect in self.handle(*inputs) if isinstance(effect, Send)]
        return [(each.to, each.message) for each in sent if isinstance(each.message, (Routes, Settled))]


def test_who_waits_hears_what_is_wanted_before_it_hears_that_the_network_has_settled() -> None:
    """Also if a neighbour's subscriptions and its answer come in one read: seen over real sockets, not in the
    simulator."""
    node = Middle()
    ((to, advertisement),) = node.hear("b1", Routes(advertisements=[("b1.1.1", "topic = 't'")], ticket=7))
    assert isinstance(advertisement, Routes)
    assert (to, advertisement.advertisements) == ("b3", [("b1.1.1", "topic = 't'")])
    said = node.hear("b3", Routes(subscriptions=[("b3.1.1", "topic = 't'")]), Settled(advertisement.ticket))
    assert said == [("b1", Routes(subscriptions=[("b3.1.1", "topic = 't'")])), ("b1", Settled(7))]


def test_who_waits_does_not_go_on_when_everything_is_told_again_in_the_same_turn() -> None:
    """D1-B3: what was asked about is a part of what is told then."""
    node = Middle(msgspec.structs.replace(NETWORK, reliability=Reliability.PERIODIC))
    advertisement = Received(1, "b1", [Routes(advertisements=[("b1.1.1", "topic = 't'")], ticket=7)])
    said = node.said(advertisement, TimerFired(("neighbours", "refresh")))
    assert [(to, type(message)) for to, message in said] == [("b1", Routes), ("b3", Routes)]
    told = said[1][1]
    assert isinstance(told, Routes)
    assert (told.full, told.advertisements) == (True, [("b1.1.1", "topic = 't'")])
    assert node.hear("b3", Settled(told.ticket)) == [("b1", Settled(7))]


def test_who_is_told_nothing_for_a_while_is_not_answered_before_it_is_told_everything() -> None:
    """It would take the silence for the answer, and what it keeps in case it is wanted for unwanted."""
    node = Middle()
    (neighbours,) = [part for part in node.node.parts if isinstance(part, Neighbours)]
    node.hear("b3", Routes(subscriptions=[("b3.1.1", "topic = 't'")]))
    neighbours.keep_quiet("b1")
    assert node.hear("b1", Routes(advertisements=[("b1.1.1", "topic = 'u'")])) == [
        ("b3", Routes(advertisements=[("b1.1.1", "topic = 'u'")]))
    ]
    assert node.hear("b1", Routes(advertisements=[("b1.1.2", "topic = 'u'")], ticket=7)) == []
    neighbours.speak_up("b1", node.out)
    told = node.said()
    assert [(to, type(message)) for to, message in told] == [("b1", Routes), ("b1", Settled)]


def test_a_neighbour_that_is_gone_is_not_waited_for() -> None:
    settling = Settling()
    own = settling.ask("")
    ticket = settling.tell("b1")
    assert ticket != settling.tell("b2")
    assert settling.finish() == []
    assert settling.answered("b1", ticket) == []
    assert settling.lost("b2") == [("", own)]
    assert len(settling) == 0


def test_who_asked_over_a_link_that_is_gone_is_answered_nothing() -> None:
    """It counts its tickets anew after a restart: an answer to one of its earlier life would be taken for one of the
    present, and what it holds would go out too early."""
    settling = Settling()
    settling.ask("b1", 7)
    ticket = settling.tell("b2")
    assert settling.finish() == []
    assert settling.lost("b1") == []
    assert len(settling) == 0
    assert settling.answered("b2", ticket) == []


def test_a_telling_that_broke_off_is_no_part_of_the_next_one() -> None:
    """What was taken back meanwhile would be wanted for ever."""
    node = Middle()
    node.hear("b1", Routes(subscriptions=[("b1.1.1", "price > 1")], full=True, last=False))
    node.handle(LinkDown(1, "b1", "reset"))
    node.handle(LinkUp(1, "b1", 1, Role.BROKER, False))
    hello = Introduction(NETWORK.network_id, map_digest=NETWORK.founding_map.digest)
    node.hear("b1", hello, Routes(subscriptions=[("b1.1.2", "price > 2")], full=True))
    [router] = {part.router for part in node.node.parts if isinstance(part, Neighbours)}
    assert list(router.subscriptions.by_source["b1"]) == ["b1.1.2"]
