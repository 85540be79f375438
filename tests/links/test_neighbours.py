"""The neighbours of a network's broker come and go with its map: their links do, too."""

from __future__ import annotations

import pytest

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import ConnectFailed, Input, LinkDown, LinkUp, Received, Started, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import (
    LATEST,
    NOW,
    CancelTimer,
    Connect,
    Disconnect,
    Effect,
    Note,
    RecordingOutbox,
    Send,
    SetTimer,
)
from holdfast.kernel.parts import Assembly
from holdfast.kernel.queues import Lane
from holdfast.protocols.routing.links import LOOK_AFTER, STRANGER_FOR, STRANGERS_MAX, Links
from holdfast.protocols.routing.messages import Introduction, NetworkMapKnown, NetworkMapTold
from holdfast.protocols.routing.network_map import (
    LOST_ABOVE,
    AddBroker,
    NetworkMap,
    NetworkMember,
    RemoveBroker,
    founding_map,
    planned,
)
from holdfast.protocols.routing.notices import (
    BrokerIntroduced,
    MapChanged,
    MapHeard,
    NeighbourAccepted,
    NeighbourConnected,
    NeighbourLinked,
    NeighbourUnlinked,
)
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import Reliability, RoutingSettings
from holdfast.topology.graph import BrokerGraph

GRAPH = BrokerGraph(("b1", "b2"), (("b1", "b2"),))
SETTINGS = RoutingSettings("b1", GRAPH, {"b2": "b2:1"}, reliability=Reliability.BUFFERED)
FOUNDING = SETTINGS.founding_map
WITH_B3 = planned(FOUNDING, AddBroker("b3", "b3:0", "b3:1", "b1"))
WITHOUT_B3 = planned(WITH_B3, RemoveBroker("b3", lost=True))
REDIAL = SetTimer(("links", "dial", "b3"), SETTINGS.dial_every)
LET_GO = SetTimer(("links", "stranger", "b3"), STRANGER_FOR)
LOOK = SetTimer(("links", "look"), LOOK_AFTER * SETTINGS.dial_every)
SUSPICION = CancelTimer(("links", "stranger", "b3"))


def hello(network: NetworkMap, neighbour: bool = True, of: str = SETTINGS.network_id) -> Introduction:
    return Introduction(of, map_number=network.number, map_digest=network.digest, neighbour=neighbour)


class Bench:
    """Broker b1, with the neighbour b2 from the beginning."""

    def __init__(self) -> None:
        self.roster = Roster("b1", FOUNDING, SETTINGS.addresses)
        self.links = Links(SETTINGS, self.roster)
        self.out = RecordingOutbox()
        self._node = Assembly([self.links])
        assert self.give(Started(1)) == [Connect("b2", "b2:1")]

    def give(self, *inputs: Input) -> list[Effect]:
        self._node.handle(list(inputs), self.out)
        self._node.check_invariants()
        return self.out.take_effects()

    def told(self) -> list[Notice]:
        return self.out.take_notices()

    def adopt(self, network: NetworkMap) -> list[Effect]:
        before = self.roster.map
        self.roster.adopt(network)
        self.links.acquaintances.greeted.clear()
        self.links.on_map_changed(MapChanged(before), self.out)
        self._node.check_invariants()
        return self.out.take_effects()


def up(link: int, peer: str = "b3", incarnation: int = 1) -> LinkUp:
    return LinkUp(link, peer, incarnation, Role.BROKER, True, f"{peer}:1")


def said(link: int, message: Message, peer: str = "b3") -> Received:
    return Received(link, peer, [message])


def told_map(peer: str, network: NetworkMap) -> Send:
    """A level that buffers has the map on its disk before it tells it on."""
    return Send(peer, NetworkMapTold(network), Lane.CONTROL, LATEST)


def known_map(peer: str, network: NetworkMap, neighbour: bool) -> Send:
    return Send(peer, NetworkMapKnown(network.number, network.digest, neighbour), Lane.CONTROL, NOW)


def test_a_neighbour_that_the_map_adds_is_dialled_and_introduced() -> None:
    bench = Bench()
    assert bench.adopt(WITH_B3) == [Connect("b3", "b3:1"), LOOK]
    assert bench.give(ConnectFailed("b3", "b3:1", "refused")) == [REDIAL]
    assert bench.give(TimerFired(REDIAL.key)) == [Connect("b3", "b3:1")]
    assert bench.give(up(3, incarnation=5), said(3, hello(WITH_B3))) == [SUSPICION]
    introduction = hello(WITH_B3)
    assert bench.told() == [
        NeighbourConnected("b3"),
        BrokerIntroduced("b3"),
        NeighbourLinked("b3", introduction),
        NeighbourAccepted("b3", 5),
    ]
    assert list(bench.links.acquaintances) == ["b3"]
    assert bench.adopt(WITH_B3) == [LOOK]
    assert bench.links.has_map("b3", WITH_B3.number)
    assert not bench.links.has_map("b3", WITH_B3.number + 1)


def test_who_has_an_older_map_is_told_the_newer_one_and_no_neighbour_before_it_has_it() -> None:
    bench = Bench()
    bench.adopt(WITH_B3)
    bench.told()
    assert bench.give(up(3), said(3, hello(FOUNDING, neighbour=False))) == [told_map("b3", WITH_B3)]
    assert bench.told() == [NeighbourConnected("b3"), BrokerIntroduced("b3")]
    assert bench.links.acquaintances == {}
    assert bench.give(said(3, NetworkMapKnown(WITH_B3.number, WITH_B3.digest, True))) == [SUSPICION]
    assert [type(notice) for notice in bench.told()] == [NeighbourLinked, NeighbourAccepted]


def test_a_neighbour_that_is_told_of_its_place_by_an_older_map_is_linked_at_once_and_accepted_later() -> None:
    """What it says may be of the map that it has; what it is told may not be of one that it has not."""
    bench = Bench()
    bench.give(up(2, "b2"), said(2, hello(FOUNDING), "b2"))
    bench.told()
    assert bench.adopt(WITH_B3) == [
        Connect("b3", "b3:1"),
        LOOK,
        known_map("b2", WITH_B3, True),
        told_map("b2", WITH_B3),
    ]
    assert bench.told() == []
    assert list(bench.links.acquaintances) == ["b2"]
    assert bench.give(said(2, NetworkMapKnown(WITH_B3.number, WITH_B3.digest, True), "b2")) == []
    assert bench.told() == [NeighbourAccepted("b2", 1)]


def test_a_neighbour_that_the_map_takes_out_is_told_so_before_its_link_is_closed() -> None:
    bench = Bench()
    bench.adopt(WITH_B3)
    bench.give(up(3), said(3, hello(WITH_B3)))
    bench.told()
    assert bench.adopt(WITHOUT_B3) == [
        CancelTimer(REDIAL.key),
        LET_GO,
        LOOK,
        known_map("b3", WITHOUT_B3, False),
        told_map("b3", WITHOUT_B3),
    ]
    assert bench.told() == [NeighbourUnlinked("b3")]
    assert bench.links.acquaintances == {}
    reason = "b3 is no neighbour of b1"
    assert bench.give(said(3, NetworkMapKnown(WITHOUT_B3.number, WITHOUT_B3.digest, False))) == [Disconnect(3, reason)]
    assert bench.give(LinkDown(3, "b3", "closed"), TimerFired(REDIAL.key)) == []


def test_a_broker_that_is_none_any_more_and_says_nothing_is_closed_after_a_while() -> None:
    bench = Bench()
    bench.adopt(WITH_B3)
    bench.give(up(3), said(3, hello(WITH_B3)))
    bench.adopt(WITHOUT_B3)
    assert bench.give(TimerFired(LET_GO.key)) == [Disconnect(3, "b3 is no neighbour of b1")]
    assert bench.out.queues == {}


def test_a_stranger_that_has_an_older_map_is_told_and_one_with_ours_is_let_go() -> None:
    bench = Bench()
    bench.adopt(WITHOUT_B3)
    assert bench.give(up(3), said(3, hello(WITH_B3))) == [LET_GO, told_map("b3", WITHOUT_B3)]
    assert bench.give(LinkDown(3, "b3", "gone")) == []
    no_neighbour = Disconnect(4, "b3 is no neighbour of b1")
    assert bench.give(up(4), said(4, hello(WITHOUT_B3, neighbour=False))) == [LET_GO, no_neighbour]


def test_links_of_strangers_are_kept_up_to_a_limit() -> None:
    bench = Bench()
    for number in range(STRANGERS_MAX):
        bench.give(up(10 + number, f"x{number}"))
    assert bench.give(up(99, "x99")) == [Disconnect(99, "x99 is no neighbour of b1")]
    assert bench.give(up(98, "b2")) == []  # whom the map names is none
    assert bench.told()[-1] == NeighbourConnected("b2")


def test_a_newer_map_that_a_stranger_tells_is_heard_of() -> None:
    """So one that was away for long finds the others again, whatever has become of its neighbours."""
    bench = Bench()
    bench.give(up(3), said(3, hello(WITH_B3)), said(3, NetworkMapTold(WITH_B3)))
    assert bench.told() == [NeighbourConnected("b3"), BrokerIntroduced("b3"), MapHeard("b3", WITH_B3)]


def test_while_a_neighbour_is_not_there_other_members_are_looked_for_in_a_network_that_has_changed() -> None:
    """Seed 5063: the hub of a star was lost, and had told only some of the last map. Who had heard of it knew whom to
    ask for a change, and that one did not."""
    bench = Bench()
    chain = WITH_B3
    for name in ("b4", "b5"):
        chain = planned(chain, AddBroker(name, f"{name}:0", f"{name}:1", "b3"))
    assert LOOK in bench.adopt(chain)
    bench.give(up(2, "b2"), said(2, hello(chain), "b2"))
    for name in ("b4", "b5", "b4"):  # and not b3, which is dialled as it is
        assert bench.give(TimerFired(LOOK.key)) == [LOOK, Connect(name, f"{name}:1")]
        assert bench.give(ConnectFailed(name, f"{name}:1", "refused")) == []
    bench.give(up(3), said(3, hello(chain)))
    assert bench.give(TimerFired(LOOK.key)) == [LOOK]


def test_maps_that_differ_under_one_number_end_the_link() -> None:
    bench = Bench()
    members = [NetworkMember(name, "", "") for name in ("b1", "b2", "b9")]
    other = founding_map(members, (("b1", "b2"), ("b2", "b9")))
    note, reason = bench.give(up(2, "b2"), said(2, hello(other), "b2"))
    assert isinstance(note, Note)
    assert note.fields["what"] == "other-map"
    assert reason == Disconnect(2, "b2 has another map of the network, or another site file")
    assert bench.links.acquaintances == {}


def test_a_broker_of_another_network_is_refused_whatever_map_it_has() -> None:
    bench = Bench()
    effects = bench.give(up(2, "b2"), said(2, hello(FOUNDING, of="another"), "b2"))
    assert effects[-1] == Disconnect(2, "b2 belongs to another network, or to one of another level")
    assert bench.links.acquaintances == {}


def test_a_newer_link_takes_the_place_of_an_older_one_and_what_waited_for_that_is_dropped() -> None:
    bench = Bench()
    bench.give(up(2, "b2"), said(2, hello(FOUNDING), "b2"))
    bench.out.send("b2", hello(FOUNDING))
    bench.out.take_effects()
    bench.told()
    assert bench.give(up(3, "b2", incarnation=2)) == []
    assert bench.told() == [NeighbourUnlinked("b2"), NeighbourConnected("b2")]
    assert bench.out.queues == {}
    assert bench.links.acquaintances == {}
    assert bench.give(LinkDown(2, "b2", "superseded by a newer link")) == []
    assert bench.told() == []


def test_a_neighbour_that_comes_back_with_another_address_is_dialled_there() -> None:
    bench = Bench()
    bench.adopt(WITH_B3)
    bench.adopt(WITHOUT_B3)
    assert WITHOUT_B3.number == WITH_B3.number + LOST_ABOVE + 1
    moved = planned(FOUNDING, AddBroker("b3", "b3:8", "b3:9", "b1"))
    assert Connect("b3", "b3:9") in bench.adopt(moved)


def test_more_that_a_stranger_said_before_its_link_was_given_up_is_no_mistake() -> None:
    """In the turn in which its time is over: it may hold itself for a neighbour, by an older map."""
    bench = Bench()
    bench.give(up(3), said(3, hello(FOUNDING)))
    assert bench.give(TimerFired(LET_GO.key), said(3, NetworkMapKnown(0, "older", True)))[0] == Disconnect(
        3, "b3 is no neighbour of b1"
    )
    assert not bench.links.acquaintances.hears("b3", "a mistake")
    bench.give(up(4))
    with pytest.raises(ProtocolError, match="a mistake"):
        bench.links.acquaintances.hears("b3", "a mistake")
