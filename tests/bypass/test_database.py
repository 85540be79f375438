"""Link states: the newest wins, what is new is told once and never back, and all who can reach each other come to know
the same (D1-A11, D1-A13)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ProtocolError
from holdfast.schemes.tree.bypass.database import Database
from holdfast.schemes.tree.bypass.messages import LinkState
from holdfast.topology.graph import BrokerGraph
from tests.bypass.graphs import random_graph

TRIANGLE = BrokerGraph(["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")])


def started(graph: BrokerGraph = TRIANGLE, own: str = "a", incarnation: int = 1) -> Database:
    database = Database(graph, own)
    database.start(incarnation)
    return database


def joined(*neighbours: str) -> Database:
    """A database of `a` with links, on which nothing is owed."""
    database = started()
    for neighbour in neighbours:
        database.link_up(neighbour, 1)
    database.take_owed(neighbours)
    return database


def owed(database: Database) -> dict[str, list[str]]:
    return {neighbour: [state.origin for state in states] for neighbour, states in database.take_owed(database.near)}


# ------------------------------------------------------------------------------------------------------- one database
def test_the_newest_of_the_newest_life_wins() -> None:
    database = started()
    assert database.merge("b", [LinkState("b", 5, 2, ("a",), True)])
    for older in (LinkState("b", 5, 1), LinkState("b", 4, 9, ("c",)), LinkState("b", 5, 2)):
        changes = database.changes
        assert not database.merge("c", [older])
        assert (database.state("b"), database.changes) == (LinkState("b", 5, 2, ("a",), True), changes)
    assert database.merge("c", [LinkState("b", 6, 0)])
    assert database.state("b") == LinkState("b", 6, 0)


def test_what_is_new_is_told_to_all_others_once_and_never_back() -> None:
    database = joined("b", "c")
    database.merge("b", [LinkState("b", 1, 1, ("c",))])
    assert owed(database) == {"c": ["b"]}
    assert owed(database) == {}
    # What both say before either could be told is told to neither.
    news = LinkState("b", 1, 2, ("a", "c"))
    database.merge("b", [news])
    database.merge("c", [news])
    assert owed(database) == {}


def test_who_says_something_old_is_still_told_what_is_new() -> None:
    database = joined("b", "c")
    database.merge("c", [LinkState("c", 1, 2, ("a",))])
    database.merge("b", [LinkState("c", 1, 1)])
    assert owed(database) == {"b": ["c"]}


def test_who_knows_more_is_not_told_what_was_to_be_told() -> None:
    database = joined("b", "c")
    database.merge("c", [LinkState("c", 1, 1, ("a",))])
    database.merge("b", [LinkState("c", 1, 2)])
    assert owed(database) == {"c": ["c"]}


def test_on_a_new_link_all_that_is_known_is_told() -> None:
    database = joined("b")
    database.merge("b", [LinkState("b", 1, 1, ("a",)), LinkState("c", 1, 4)])
    database.link_up("c", 1)
    assert owed(database) == {"c": ["a", "b"]}  # and not what it knows best
    database.link_down("c")
    database.set_up("b", True)
    assert owed(database) == {"b": ["a"]}
    database.link_up("c", 1)
    assert owed(database) == {"c": ["a", "b"]}


def test_our_own_number_grows_with_every_change_and_only_then() -> None:
    database = started(incarnation=7)
    said = [database.state("a")]
    changes: list[Callable[[], bool]] = [
        lambda: database.set_up("c", True),
        lambda: database.set_up("b", True),
        lambda: not database.set_up("b", True),
        lambda: database.set_ready(True),
        lambda: not database.set_ready(True),
        lambda: database.set_up("c", False),
    ]
    for change in changes:
        assert change()
        said.append(database.state("a"))
        database.check_invariants()
    assert said == [
        LinkState("a", 7, 1),
        LinkState("a", 7, 2, ("c",)),
        LinkState("a", 7, 3, ("b", "c")),
        LinkState("a", 7, 3, ("b", "c")),
        LinkState("a", 7, 4, ("b", "c"), True),
        LinkState("a", 7, 4, ("b", "c"), True),
        LinkState("a", 7, 5, ("b",), True),
    ]


def test_what_a_neighbour_said_in_an_earlier_life_holds_no_more() -> None:
    """D1-B4.1 for bypassing: a broker that was restarted is not ready because it was before."""
    database = joined("b", "c")
    database.merge("b", [LinkState("b", 1, 9, ("a", "c"), True)])
    owed(database)
    assert database.is_ready("b")
    assert database.link_up("b", 2)
    assert not database.is_ready("b")
    assert owed(database) == {"b": ["a", "c"], "c": ["b"]}  # c is told that b lives anew
    assert database.merge("b", [LinkState("b", 2, 1)])  # which its own first word supersedes


def test_a_broker_whose_clock_was_put_back_goes_on_from_what_others_remember() -> None:
    database = joined("b")
    database.set_up("b", True)
    owed(database)
    assert database.merge("b", [LinkState("a", 8, 3, ("b", "c"), True)])
    assert database.state("a") == LinkState("a", 8, 4, ("b",), False)
    assert owed(database) == {"b": ["a"]}
    # The neighbour tells it so, since the life that it met is older than the one that it knows.
    other = started(own="b")
    other.merge("c", [LinkState("a", 8, 3)])
    assert not other.link_up("a", 2)
    assert owed(other)["a"] == ["a", "b"]


# --------------------------------------------------------------------------------------------------------- bad input
@pytest.mark.parametrize(
    ("source", "states", "problem"),
    [
        ("x", [LinkState("b", 1, 1)], "no link joins"),
        ("b", [LinkState("b", 1, 1)] * 7, "of 7 brokers"),
        ("b", [LinkState("c", 1, 1), LinkState("y" * 999, 1, 1, ("a", "a"))], "links that no map can have"),
        ("b", [LinkState("c", 1, 1), LinkState("b", 1, 1, tuple("bcdefgh"))], "links that no map can have"),
        ("b", [LinkState("c", 1, 1), LinkState("b", 1, 1, ("a", "a"))], "links that no map can have"),
        ("b", [LinkState("c", 1, 1), LinkState("b", 1, 1, ("b",))], "links that no map can have"),
        ("b", [LinkState("c", 1, 1), LinkState("a", 1, 2**62)], "can't have come to"),
    ],
)
def test_what_no_broker_could_have_said_changes_nothing(source: str, states: list[LinkState], problem: str) -> None:
    database = joined("b", "c")
    before = (database.states, database.changes)
    with pytest.raises(ProtocolError, match=problem) as raised:
        database.merge(source, states)
    assert len(str(raised.value)) < 200
    assert (database.states, database.changes, owed(database)) == (*before, {})


def test_what_is_said_of_a_broker_that_this_one_does_not_know_is_left_out() -> None:
    """Whoever says it may have a newer map, or an older one; and it is said anew when both have the same."""
    database = joined("b", "c")
    assert database.merge("b", [LinkState("y" * 999, 1, 1), LinkState("c", 3, 1)])
    assert database.state("y" * 999) is None
    assert [state.origin for state in database.states] == ["a", "b", "c"]
    assert owed(database) == {"c": ["c"]}


# -------------------------------------------------------------------------------------------------------- convergence
class Net:
    """Databases joined by links that keep order, lose what is under way when they go down, and are never slow for ever.

    Links go up and down by chance, and brokers forget everything and come back.
    """

    def __init__(self, graph: BrokerGraph, rng: Random) -> None:
        self.graph, self.rng = graph, rng
        self.incarnations = dict.fromkeys(graph.brokers, 1)
        self.databases = {broker: started(graph, broker) for broker in graph.brokers}
        self.alive = dict.fromkeys(graph.brokers, True)
        self.wires: dict[tuple[str, str], deque[tuple[LinkState, ...]]] = {}  # links that are up, each way
        self.sent = 0
        self.told: dict[tuple[str, str], list[LinkState]] = {}  # on each link since it came up

    def flush(self, broker: str) -> None:
        for neighbour, states in self.databases[broker].take_owed(self.graph.brokers):
            if (broker, neighbour) in self.wires:
                self.wires[broker, neighbour].append(states)
                self.sent += 1
                self.told[broker, neighbour] += states

    def receive(self, wire: tuple[str, str]) -> None:
        source, target = wire
        self.databases[target].merge(source, self.wires[wire].popleft())
        self.databases[target].check_invariants()
        if self.rng.random() < 0.7:  # or later, with what comes next
            self.flush(target)

    def link(self, one: str, other: str) -> None:
        for near, far in ((one, other), (other, one)):
            self.wires[near, far] = deque()
            self.told[near, far] = []
        for near, far in ((one, other), (other, one)):
            self.databases[near].link_up(far, self.incarnations[far])
            self.databases[near].set_up(far, True)
            self.flush(near)

    def cut(self, one: str, other: str) -> None:
        for near, far in ((one, other), (other, one)):
            del self.wires[near, far]
            if self.alive[near]:
                self.databases[near].link_down(far)
                self.databases[near].set_up(far, False)
                self.flush(near)

    def crash(self, broker: str) -> None:
        self.alive[broker] = False
        for near in self.graph.neighbours(broker):
            if (broker, near) in self.wires:
                self.cut(broker, near)

    def restart(self, broker: str) -> None:
        self.alive[broker] = True
        self.incarnations[broker] += 1
        self.databases[broker] = started(self.graph, broker, self.incarnations[broker])

    def step(self) -> None:
        if self.wires and self.rng.random() < 0.7:
            busy = [wire for wire, waiting in self.wires.items() if waiting]
            if busy:
                self.receive(self.rng.choice(busy))
            return
        match self.rng.randrange(4):
            case 0:
                broker = self.rng.choice(self.graph.brokers)
                self.crash(broker) if self.alive[broker] else self.restart(broker)
            case 1:
                broker = self.rng.choice(self.graph.brokers)
                if self.alive[broker]:
                    self.databases[broker].set_ready(self.rng.random() < 0.5)
                    self.flush(broker)
            case _:
                one, other = self.rng.choice(self.graph.links)
                if (one, other) in self.wires:
                    self.cut(one, other)
                elif self.alive[one] and self.alive[other]:
                    self.link(one, other)

    def settle(self) -> None:
        """Until nothing is under way any more."""
        for broker in self.graph.brokers:
            if self.alive[broker]:
                self.flush(broker)
        while busy := [wire for wire, waiting in self.wires.items() if waiting]:
            self.receive(self.rng.choice(busy))
            for broker in self.graph.brokers if all(not waiting for waiting in self.wires.values()) else ():
                if self.alive[broker]:
                    self.flush(broker)

    def component(self, broker: str) -> list[str]:
        found = [broker]
        for near in found:
            found += [far for far in self.graph.neighbours(near) if (near, far) in self.wires and far not in found]
        return found


@given(st.integers(0, 2**32), st.integers(2, 9), st.integers(0, 120))
def test_after_quiet_all_who_can_reach_each_other_know_the_same_of_everyone(seed: int, size: int, steps: int) -> None:
    rng = Random(seed)
    net = Net(random_graph(size, rng), rng)
    for _ in range(steps):
        net.step()
    net.settle()
    for broker in net.graph.brokers:
        if not net.alive[broker]:
            continue
        for other in net.component(broker):
            assert net.databases[other].states == net.databases[broker].states
            # … and of those that are there, the truth.
            said = net.databases[broker].state(other)
            assert said is not None
            assert said == net.databases[other].state(other)
            assert said.incarnation == net.incarnations[other]
            assert said.up == tuple(near for near in net.graph.neighbours(other) if (other, near) in net.wires)
    for told in net.told.values():  # nothing twice, and nothing old after something newer
        for origin in net.graph.brokers:
            versions = [state.version for state in told if state.origin == origin]
            assert versions == sorted(set(versions))


@pytest.mark.parametrize("size", [5, 20, 50])
def test_a_change_costs_at_most_two_messages_a_link(size: int) -> None:
    rng = Random(size)
    net = Net(random_graph(size, rng), rng)
    for one, other in net.graph.links:
        net.link(one, other)
    net.settle()
    net.sent = 0
    net.databases[net.graph.brokers[0]].set_ready(True)
    net.settle()
    assert len(net.graph.brokers) - 1 <= net.sent <= 2 * len(net.graph.links)
    assert all(database.is_ready(net.graph.brokers[0]) for database in net.databases.values())
