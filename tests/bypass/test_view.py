"""The view of one broker: which links can be used, the way to everyone, and who stands in for a neighbour in the tree
that failed (D1-A13, D1-A14, D1-B5). Compared with the obvious way to find each."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from holdfast.schemes.tree.bypass.database import Database
from holdfast.schemes.tree.bypass.messages import LinkState
from holdfast.schemes.tree.bypass.view import View
from holdfast.topology.graph import BrokerGraph, SpanningTree
from tests.bypass.graphs import random_graph


class World:
    """Links and brokers as they are, and what everyone knows of them."""

    def __init__(self, graph: BrokerGraph, down: set[str], cut: set[tuple[str, str]], unready: set[str]) -> None:
        self.graph, self.down, self.unready = graph, down, unready
        self.tree: SpanningTree = graph.spanning_tree()
        self.links = [link for link in graph.links if link not in cut and link[0] not in down and link[1] not in down]
        self._joined = set(self.links) | {(other, one) for one, other in self.links}

    def view(self, own: str) -> View:
        database = Database(self.graph, own)
        database.start(1)
        others = []
        for broker in self.graph.brokers:
            near = self.graph.neighbours(broker)
            # Who is down claims what it claimed when it was up; it does no harm.
            up = near if broker in self.down else tuple(far for far in near if (broker, far) in self._joined)
            if broker == own:
                for far in up:
                    database.set_up(far, True)
            else:
                others.append(LinkState(broker, 1, 1, up, broker not in self.unready))
        database.merge(self.graph.neighbours(own)[0], others)
        return View(database, self.tree)

    def ways(self, source: str, target: str) -> list[list[str]]:
        """Every shortest way over links that are there, by trying all of them."""
        ways = [[source]]
        while ways:
            arrived = [way for way in ways if way[-1] == target]
            if arrived:
                return arrived
            ways = [
                [*way, near]
                for way in ways
                for near in self.graph.neighbours(way[-1])
                if (way[-1], near) in self._joined and near not in way
            ]
        return []

    def is_live(self, own: str, broker: str) -> bool:
        return broker not in self.unready and bool(self.ways(own, broker))


def drawn(seed: int, size: int) -> World:
    rng = Random(seed)
    graph = random_graph(size, rng)
    down = {broker for broker in graph.brokers if rng.random() < 0.2}
    cut = {link for link in graph.links if rng.random() < 0.2}
    unready = {broker for broker in graph.brokers if rng.random() < 0.15}
    return World(graph, down, cut, unready)


SEEDS = st.integers(0, 2**32)
SIZES = st.integers(2, 9)


@given(SEEDS, SIZES)
def test_the_way_to_everyone_is_a_shortest_one_and_the_first_of_those(seed: int, size: int) -> None:
    world = drawn(seed, size)
    for own in world.graph.brokers:
        if own in world.down:
            continue
        view = world.view(own)
        unreachable = 0
        for target in world.graph.brokers:
            ways = world.ways(own, target)
            assert view.reachable(target) == bool(ways)
            unreachable += not ways
            if target != own:
                hops = [way[1] for way in ways]
                assert view.next_hop(target) == (min(hops, key=world.graph.brokers.index) if hops else None)
        assert view.unreachable == unreachable


@given(SEEDS, SIZES)
def test_who_follows_next_hops_arrives(seed: int, size: int) -> None:
    """Every broker on the way has a view of its own; where they agree, each step is one nearer."""
    world = drawn(seed, size)
    live = [broker for broker in world.graph.brokers if broker not in world.down]
    views = {broker: world.view(broker) for broker in live}
    for source in live:
        for target in live:
            if source == target or not views[source].reachable(target):
                continue
            way = [source]
            while way[-1] != target:
                hop = views[way[-1]].next_hop(target)
                assert hop is not None
                way.append(hop)
            assert len(way) == len(world.ways(source, target)[0])
            assert all(views[source].is_usable(one, other) for one, other in pairwise(way))


@given(SEEDS, SIZES, st.booleans())
def test_targets_are_the_first_live_brokers_on_every_branch(seed: int, size: int, unready: bool) -> None:
    """D1-A14, by looking at every broker of the network: it is a target if it is live and everyone between is not."""
    world = drawn(seed, size)

    def is_live(own: str, broker: str) -> bool:
        return bool(world.ways(own, broker)) if unready else world.is_live(own, broker)

    for own in world.graph.brokers:
        if own in world.down:
            continue
        view = world.view(own)
        for neighbour in world.tree.neighbours(own):
            beyond = [broker for broker in world.graph.brokers if broker != own]
            expected = {
                broker
                for broker in beyond
                if (way := world.tree.path(own, broker))[1] == neighbour
                and is_live(own, broker)
                and not any(is_live(own, between) for between in way[1:-1])
            }
            targets = view.targets(neighbour, unready)
            assert len(targets) == len(expected)
            assert set(targets) == expected


@given(SEEDS, SIZES)
def test_what_is_routed_by_the_tree_reaches_every_live_broker_exactly_once(seed: int, size: int) -> None:
    """D1-B5, recursively: from each broker that is up, to all that are reachable and ready, and to nobody else."""
    world = drawn(seed, size)
    live = [broker for broker in world.graph.brokers if broker not in world.down]
    views = {broker: world.view(broker) for broker in live}
    for source in live:
        reached: list[str] = []
        waiting = [(source, neighbour) for neighbour in world.tree.neighbours(source)]
        while waiting:
            at, neighbour = waiting.pop()
            for target in views[at].targets(neighbour):
                reached.append(target)
                came_from = world.tree.next_hop(target, at)
                waiting += [(target, near) for near in world.tree.neighbours(target) if near != came_from]
        expected = [broker for broker in world.graph.brokers if broker != source and world.is_live(source, broker)]
        assert sorted(reached) == sorted(expected)


def test_a_link_counts_if_both_ends_say_so() -> None:
    database = Database(BrokerGraph(["a", "b"], [("a", "b")]), "a")
    database.start(1)
    view = View(database, database.graph.spanning_tree())
    seen = [view.reachable("b")]
    database.set_up("b", True)
    seen.append(view.reachable("b"))
    database.merge("b", [LinkState("b", 1, 1, (), True)])
    seen.append(view.reachable("b"))
    database.merge("b", [LinkState("b", 1, 2, ("a",), True)])
    seen.append(view.reachable("b"))
    database.set_up("b", False)
    seen.append(view.reachable("b"))
    assert seen == [False, False, False, True, False]


def test_a_broker_that_is_not_ready_is_passed_by_for_events_and_not_for_what_makes_it_ready() -> None:
    """D1-B4.1 for bypassing: with an empty table it would lose what it is given."""
    world = World(BrokerGraph(["a", "b", "c"], [("a", "b"), ("b", "c")]), set(), set(), {"b"})
    view = world.view("a")
    assert (view.targets("b"), view.targets("b", unready=True)) == (("c",), ("b",))
    assert view.next_hop("c") == "b"


def test_targets_follow_every_change() -> None:
    graph = BrokerGraph(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])
    tree = BrokerGraph(["a", "b", "c"], [("a", "b"), ("b", "c")]).spanning_tree()
    database = Database(graph, "a")
    database.start(1)
    view = View(database, tree)
    seen = [view.targets("b")]
    for neighbour in ("b", "c"):
        database.set_up(neighbour, True)
        database.merge(neighbour, [LinkState(neighbour, 1, 1, ("a", "b") if neighbour == "c" else ("a",), True)])
        seen.append(view.targets("b"))
    database.merge("b", [LinkState("b", 1, 2, ("a",), False)])
    seen.append(view.targets("b"))
    database.set_up("c", False)
    seen.append(view.targets("b"))
    assert seen == [(), ("b",), ("b",), ("c",), ()]


def test_a_long_chain_of_failures_is_no_trouble() -> None:
    brokers = [f"b{number}" for number in range(3000)]
    graph = BrokerGraph(brokers, [*pairwise(brokers), (brokers[0], brokers[-1])])
    tree = BrokerGraph(brokers, list(pairwise(brokers))).spanning_tree()
    database = Database(graph, "b0")
    database.start(1)
    database.set_up(brokers[-1], True)
    database.merge("b1", [LinkState(brokers[-1], 1, 1, ("b0",), True)])
    assert View(database, tree).targets("b1") == (brokers[-1],)
