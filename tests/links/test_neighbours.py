"""The neighbours of a network's broker come and go while it runs: their links do, too."""

from __future__ import annotations

from holdfast.kernel.inputs import ConnectFailed, Input, LinkDown, LinkUp, Received, Started, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import CancelTimer, Connect, Disconnect, Effect, RecordingOutbox, SetTimer
from holdfast.kernel.parts import Assembly
from holdfast.protocols.routing.links import Links
from holdfast.protocols.routing.messages import Introduction
from holdfast.protocols.routing.notices import (
    NeighbourAccepted,
    NeighbourConnected,
    NeighbourLinked,
    NeighbourUnlinked,
)
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.topology.graph import BrokerGraph

SETTINGS = RoutingSettings("b1", BrokerGraph(("b1", "b2"), (("b1", "b2"),)), {"b2": "b2:1"})
HELLO = Introduction(SETTINGS.network_id, map_digest=SETTINGS.founding_map.digest)
REDIAL = SetTimer(("links", "dial", "b3"), SETTINGS.dial_every)


class Bench:
    """Broker b1, with the neighbour b2 from the beginning."""

    def __init__(self) -> None:
        self.links = Links(SETTINGS)
        self.out = RecordingOutbox()
        self._node = Assembly([self.links])
        assert self.give(Started(1)) == [Connect("b2", "b2:1")]

    def give(self, *inputs: Input) -> list[Effect]:
        self._node.handle(list(inputs), self.out)
        self._node.check_invariants()
        return self.out.take_effects()

    def told(self) -> list[Notice]:
        return self.out.take_notices()

    def add(self, address: str = "b3:1", dials: bool = True) -> list[Effect]:
        self.links.add("b3", address, dials, self.out)
        return self.out.take_effects()

    def remove(self, peer: str = "b3") -> list[Effect]:
        self.links.remove(peer, "no neighbour any more", self.out)
        self._node.check_invariants()
        return self.out.take_effects()


def up(link: int, peer: str = "b3", incarnation: int = 1) -> LinkUp:
    return LinkUp(link, peer, incarnation, Role.BROKER, True, f"{peer}:1")


def said(link: int, message: Message = HELLO, peer: str = "b3") -> Received:
    return Received(link, peer, [message])


def test_a_neighbour_that_is_added_is_dialled_and_introduced() -> None:
    bench = Bench()
    assert bench.add() == [Connect("b3", "b3:1")]
    assert bench.give(ConnectFailed("b3", "b3:1", "refused")) == [REDIAL]
    assert bench.give(TimerFired(REDIAL.key)) == [Connect("b3", "b3:1")]
    assert bench.give(up(3, incarnation=5), said(3)) == []
    assert bench.told() == [NeighbourConnected("b3"), NeighbourLinked("b3", HELLO), NeighbourAccepted("b3", 5)]
    assert list(bench.links.acquaintances) == ["b3"]
    assert bench.add() == []
    assert bench.told() == []


def test_a_neighbour_that_dials_is_waited_for() -> None:
    bench = Bench()
    assert bench.add(dials=False) == []
    assert bench.give(up(3), LinkDown(3, "b3", "gone")) == []
    assert bench.told() == [NeighbourConnected("b3"), NeighbourUnlinked("b3")]


def test_a_neighbour_that_is_removed_loses_its_link_and_what_waits_for_it_and_is_not_dialled_again() -> None:
    bench = Bench()
    bench.add()
    bench.give(up(3), said(3))
    bench.out.send("b3", HELLO)
    bench.told()
    bench.out.take_effects()
    assert bench.remove() == [CancelTimer(REDIAL.key), Disconnect(3, "no neighbour any more")]
    assert bench.told() == [NeighbourUnlinked("b3")]
    assert bench.links.acquaintances == {}
    assert bench.out.queues == {}
    assert bench.give(LinkDown(3, "b3", "closed"), TimerFired(REDIAL.key)) == []
    assert bench.told() == []


def test_a_neighbour_that_is_removed_before_there_is_a_link_is_refused_when_it_comes() -> None:
    bench = Bench()
    bench.add()
    assert bench.remove() == [CancelTimer(REDIAL.key)]
    assert bench.give(up(3)) == [Disconnect(3, "b3 is no neighbour of b1")]
    assert bench.give(LinkDown(3, "b3", "closed")) == []
    assert bench.told() == []


def test_a_neighbour_may_be_removed_and_added_elsewhere_in_a_turn() -> None:
    bench = Bench()
    bench.add()
    bench.give(up(3), said(3))
    bench.told()
    bench.remove()
    assert bench.add("b3:9") == [Connect("b3", "b3:9")]
    assert bench.give(LinkDown(3, "b3", "closed")) == []
    bench.give(up(4, incarnation=2), said(4))
    assert bench.told() == [
        NeighbourUnlinked("b3"),
        NeighbourConnected("b3"),
        NeighbourLinked("b3", HELLO),
        NeighbourAccepted("b3", 2),
    ]


def test_a_newer_link_takes_the_place_of_an_older_one_and_what_waited_for_that_is_dropped() -> None:
    bench = Bench()
    bench.give(up(2, "b2"), said(2, peer="b2"))
    bench.out.send("b2", HELLO)
    bench.out.take_effects()
    bench.told()
    assert bench.give(up(3, "b2", incarnation=2)) == []
    assert bench.told() == [NeighbourUnlinked("b2"), NeighbourConnected("b2")]
    assert bench.out.queues == {}
    assert bench.links.acquaintances == {}
    assert bench.give(LinkDown(2, "b2", "superseded by a newer link")) == []
    assert bench.told() == []


def test_the_others_are_nothing_to_a_neighbour_that_comes_or_goes() -> None:
    bench = Bench()
    bench.give(up(2, "b2"), said(2, peer="b2"))
    bench.add()
    bench.remove()
    assert list(bench.links.acquaintances) == ["b2"]
    assert bench.remove("b9") == []
