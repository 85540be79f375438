"""News of links as a part: what goes out in which turn, and to whom (D1-A11, D1-B5)."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.kernel.inputs import Input, LinkDown, LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import NOW, Disconnect, Effect, Note, RecordingOutbox, Send
from holdfast.kernel.parts import Assembly
from holdfast.kernel.queues import Lane
from holdfast.protocols.failure.notices import NeighbourSuspected, NeighbourTrusted
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.network_map import Move
from holdfast.protocols.routing.notices import BecameReady, LinkMoved, ViewChanged
from holdfast.protocols.routing.roster import Roster
from holdfast.schemes.tree.bypass.database import Database
from holdfast.schemes.tree.bypass.link_state import LinkStateNews
from holdfast.schemes.tree.bypass.messages import LinkState, LinkStates
from holdfast.schemes.tree.bypass.view import View
from holdfast.topology.graph import BrokerGraph
from tests.topology.rosters import map_of, roster_of

GRAPH = BrokerGraph(["a", "b", "c", "d"], [("a", "b"), ("a", "c"), ("c", "d")])


class Trusting:
    """A detector that trusts everyone; the bench says when it tells so."""

    def trusts(self, peer: str) -> bool:
        return True


class Bench:
    def __init__(self) -> None:
        roster, database = roster_of("a", GRAPH), Database(GRAPH, "a")
        view = View(database, roster.tree)
        self.news = LinkStateNews(roster, database, view, Trusting(), Acquaintances(GRAPH.brokers))
        self.out = RecordingOutbox()
        self._node = Assembly([self.news])
        self.give(Started(4))

    @property
    def changed(self) -> int:
        return self.out.notices.count(ViewChanged())

    def trust(self, peer: str) -> None:
        self.news.on_neighbour_trusted(NeighbourTrusted(peer), self.out)

    def suspect(self, peer: str, reason: str) -> None:
        self.news.on_neighbour_suspected(NeighbourSuspected(peer, reason), self.out)

    def be_ready(self) -> None:
        self.news.on_became_ready(BecameReady(), self.out)

    def give(self, *inputs: Input) -> list[Effect]:
        self._node.handle(list(inputs), self.out)
        self._node.check_invariants()
        return self.out.take_effects()


def told(to: str, *states: LinkState) -> Send:
    return Send(to, LinkStates(states), Lane.CONTROL, NOW)


def up(peer: str, link: int, incarnation: int = 1, role: Role = Role.BROKER) -> LinkUp:
    return LinkUp(link, peer, incarnation, role, True)


def test_a_neighbour_is_told_everything_when_its_link_comes_up() -> None:
    bench = Bench()
    assert bench.give(up("b", 1)) == [told("b", LinkState("a", 4, 1))]
    assert bench.give(Received(1, "b", [LinkStates((LinkState("b", 1, 1, ("a",), True),))])) == []
    assert bench.give(up("c", 2)) == [
        told("b", LinkState("c", 1, 0)),  # that it lives; more is not known of it
        told("c", LinkState("a", 4, 1), LinkState("b", 1, 1, ("a",), True)),
    ]
    assert bench.changed == 3


def test_the_news_of_a_turn_go_out_together_at_its_end() -> None:
    bench = Bench()
    bench.give(up("b", 1), up("c", 2))
    bench.trust("b")
    bench.trust("c")
    bench.be_ready()
    assert bench.out.take_effects() == []
    news = LinkState("d", 9, 3, ("c",), True)
    own = LinkState("a", 4, 4, ("b", "c"), True)
    assert bench.give(Received(2, "c", [LinkStates((news,))])) == [told("b", own, news), told("c", own)]
    bench.suspect("c", "silent")
    later = LinkState("a", 4, 5, ("b",), True)
    assert bench.give() == [told("b", later), told("c", later)]  # who is suspected may be there
    assert bench.news.measure() == {"link_states_sent_total": 6, "link_states_received_total": 1}


def test_what_is_no_news_calls_nobody_and_is_told_to_nobody() -> None:
    bench = Bench()
    bench.give(up("b", 1), up("c", 2))
    bench.trust("b")
    bench.give()
    changed = bench.changed
    bench.trust("b")
    bench.suspect("c", "never there")
    old = LinkStates((LinkState("a", 4, 1), LinkState("c", 1, 0)))
    assert bench.give(Received(2, "c", [old])) == []
    assert bench.changed == changed


def test_a_link_that_went_down_is_told_nothing_and_an_older_one_does_not_count() -> None:
    bench = Bench()
    bench.give(up("b", 1))
    assert bench.give(up("b", 2), LinkDown(1, "b", "superseded")) == [told("b", LinkState("a", 4, 1))]
    assert bench.give(LinkDown(2, "b", "reset")) == []
    bench.suspect("b", "reset")
    bench.be_ready()
    assert bench.give() == []


def test_clients_and_brokers_that_are_no_neighbours_are_told_nothing_and_say_nothing() -> None:
    bench = Bench()
    assert bench.give(up("b", 1, role=Role.CLIENT), up("d", 2)) == []
    effects = bench.give(Received(2, "d", [LinkStates((LinkState("d", 1, 1),))]))
    problem = "LinkStates from 'd', which no link joins with a"
    assert effects == [
        Note("control", {"what": "protocol-error", "detail": {"peer": "d", "problem": problem}}),
        Disconnect(2, f"protocol error: {problem}"),
    ]
    assert bench.news.measure()["link_states_received_total"] == 0


def test_whoever_stands_in_for_a_neighbour_is_behind_it_as_events_go_when_a_link_has_moved_here() -> None:
    """a's link to b becomes one to c; at c, that is so before the map says it."""
    graph = BrokerGraph(["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("a", "d"), ("c", "d")])
    tree = BrokerGraph(graph.brokers, graph.links[:3]).spanning_tree()
    roster = Roster("c", replace(map_of(graph, tree), steps=(Move("a", "b", "c"),)), {})
    database = Database(roster.graph, "c")
    view = View(database, roster.tree)
    news = LinkStateNews(roster, database, view, Trusting(), Acquaintances(graph.brokers))
    out = RecordingOutbox()
    for state in (LinkState("a", 1, 1, ("d", "c"), True), LinkState("d", 1, 1, ("a", "c"), True)):
        database._put(state)
    for peer in ("a", "d"):
        database.set_up(peer, True)
    assert (view.targets("b"), view.targets("a")) == (("a",), ("a",))
    database.set_up("a", False)
    roster.move_on()
    news.on_link_moved(LinkMoved(), out)
    database._put(LinkState("d", 1, 2, ("c",), True))  # a has failed, and so has b
    assert (view.targets("b"), view.targets("a")) == ((), ("d",))
    assert out.notices == [ViewChanged()]
