"""Routing tables and covering over whole trees (D0-B1, D2-B3, D2-B4)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from holdfast.model import Filter
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event
from holdfast.model.values import Value
from holdfast.protocols.routing.covered import Changes, Outlet
from holdfast.protocols.routing.router import Router
from holdfast.topology.graph import BrokerGraph
from tests.routing.tables import Tree

CHAIN = BrokerGraph(("a", "b", "c"), (("a", "b"), ("b", "c")))
TEXTS = (
    "",
    "price > 10",
    "price > 20",
    "price > 20 AND topic = 't'",
    "price BETWEEN 15 AND 25",
    "price < 15",
    "topic = 't'",
    "topic = 'u'",
    "topic = 't' AND symbol = 'A'",
    "symbol = 'A' OR price > 30",
    "symbol LIKE 'A%'",
    "NOT price > 20",
)
ATTRIBUTES: tuple[dict[str, Value], ...] = (
    {"price": 12},
    {"price": 22, "symbol": "A"},
    {"price": 33},
    {"symbol": "AB"},
    {},
)
EVENTS = tuple(Event("p", 1, 1, topic, attributes) for topic in ("t", "u") for attributes in ATTRIBUTES)


def event(topic: str = "", **attributes: Any) -> Event:
    return Event("p", 1, 1, topic, attributes)


def told(changes: Changes) -> tuple[list[str], list[str]]:
    return list(changes.told), list(changes.taken_back)


# ------------------------------------------------------------------------------------------------------------ covering
def test_what_is_covered_is_not_told_and_an_equal_one_counts_as_covered() -> None:
    """D2-B3, D2-B3.1"""
    outlet = Outlet(covering=True)
    outlet.add("broad", Filter("price > 10"))
    outlet.add("narrow", Filter("price > 20"))
    outlet.add("equal", Filter("10 < price"))
    assert told(outlet.take()) == (["broad"], [])
    assert (len(outlet), outlet.hidden) == (1, 2)


def test_without_covering_everything_is_told() -> None:
    outlet = Outlet(covering=False)
    outlet.add("broad", Filter("price > 10"))
    outlet.add("equal", Filter("price > 10"))
    assert told(outlet.take()) == (["broad", "equal"], [])
    outlet.remove("broad")
    assert told(outlet.take()) == ([], ["broad"])


def test_what_went_uncovers_exactly_what_it_hid_and_only_the_broadest_of_it() -> None:
    """D2-B4, D2-B4.1"""
    outlet = Outlet(covering=True)
    outlet.add("early", Filter("price > 50"))  # told before the broad one came, and so not told again
    outlet.add("broad", Filter("price > 10"))
    outlet.add("other", Filter("topic = 't'"))
    outlet.take()
    for entry, text in (
        ("narrowest", "price > 30 AND symbol = 'A'"),
        ("middle", "price > 20"),
        ("elsewhere", "price > 20 AND topic = 't'"),
        ("twin", "20 < price"),
        ("beyond", "price > 60"),
    ):
        outlet.add(entry, Filter(text))
    assert not outlet.take()
    outlet.remove("broad")
    # One of the twins; `elsewhere` is covered by `other`, or by it; `beyond` by `early`.
    assert told(outlet.take()) == (["middle"], ["broad"])
    outlet.check_invariants()
    outlet.remove("middle")
    assert told(outlet.take()) == (["twin"], ["middle"])
    outlet.remove("narrowest")
    outlet.remove("beyond")
    assert not outlet.take()


def test_what_comes_and_goes_before_anyone_is_told_is_never_told() -> None:
    outlet = Outlet(covering=True)
    outlet.add("one", Filter("price > 10"))
    outlet.remove("one")
    assert not outlet.take()
    outlet.add("one", Filter("price > 10"))
    outlet.take()
    outlet.remove("one")
    outlet.add("one", Filter("price > 10"))
    assert not outlet.take()


# ------------------------------------------------------------------------------------------------------------- routing
def test_a_subscription_follows_the_way_back_to_what_is_advertised() -> None:
    """D0-B1, D0-A3, D0-A4, D0-A6"""
    tree = Tree(BrokerGraph(("a", "b", "c", "d"), (("a", "b"), ("b", "c"), ("b", "d"))))
    tree.advertise("a", "advertisement", Filter("topic = 't' AND price > 0"))
    tree.settle()
    tree.subscribe("c", "subscription", Filter("topic = 't'"))
    tree.subscribe("c", "in vain", Filter("topic = 'u'"))
    tree.settle()
    tables = {name: list(router.subscriptions.by_source.items()) for name, router in tree.routers.items()}
    entries = {name: [(source, list(table)) for source, table in found if table] for name, found in tables.items()}
    assert entries == {
        "a": [("b", ["subscription"])],
        "b": [("c", ["subscription"])],
        "c": [("", ["subscription", "in vain"])],
        "d": [],
    }
    assert tree.publish("a", event("t", price=1)) == (["subscription"], [("a", "b"), ("b", "c")])


def test_an_advertisement_that_comes_later_pulls_the_subscriptions_that_are_there() -> None:
    """D0-B1.1"""
    tree = Tree(CHAIN)
    tree.subscribe("c", "subscription", Filter("topic = 't'"))
    tree.settle()
    assert len(tree.routers["b"].subscriptions) == 0
    tree.advertise("a", "advertisement", Filter("topic = 't'"))
    tree.settle()
    assert tree.publish("a", event("t"))[0] == ["subscription"]
    tree.unadvertise("a", "advertisement")
    tree.settle()
    assert len(tree.routers["a"].subscriptions) == len(tree.routers["b"].subscriptions) == 0
    assert len(tree.routers["b"].advertisements) == len(tree.routers["c"].advertisements) == 0


def test_an_advertisement_that_comes_later_pulls_what_is_expected_too() -> None:
    """D1-B4: a neighbour that has not answered counts as wanting it, also towards who advertises it later: events that
    nobody there has asked for yet are kept for it."""
    router = Router(["left", "right"])
    router.expect("right", "b2.1.1", Filter("topic = 't'"))
    assert "b2.1.1" not in router.subscription_outlets["left"].wanted
    router.advertise("left", "left.1.1", Filter("topic = 't'"))
    assert "b2.1.1" in router.subscription_outlets["left"].wanted


@pytest.mark.parametrize("source", ["", "left"])
def test_an_advertisement_is_taken_back_when_what_was_published_under_it_has_passed(source: str) -> None:
    """D1-B4: also one that a neighbour takes back. Those who want it take their subscriptions back with it, and an
    event that comes behind would find nobody."""
    passed: list[str] = []

    class UnderWay:
        def under_way_beside(self, asked: str) -> dict[str, int]:
            return {"right": 3} if asked == source else {}

        def has_passed(self, neighbour: str, number: int) -> bool:
            return (neighbour, number) == ("right", 3) and bool(passed)

    router = Router(["left", "right"], under_way=UnderWay())
    router.advertise(source, "entry", Filter("topic = 't'"))
    router.unadvertise(source, "entry")
    router.release()
    assert (list(router.advertisements.by_source[source]), len(router.postponed)) == (["entry"], 1)
    passed.append("it")
    router.release()
    assert (list(router.advertisements.by_source[source]), len(router.postponed)) == ([], 0)


def test_a_subscription_stays_while_another_advertisement_leads_to_the_same_neighbour() -> None:
    """D0-B1"""
    tree = Tree(CHAIN)
    tree.advertise("a", "one", Filter("topic = 't'"))
    tree.advertise("a", "other", Filter("price > 10"))
    tree.subscribe("c", "subscription", Filter(""))
    tree.settle()
    tree.unadvertise("a", "one")
    tree.settle()
    assert tree.publish("a", event("u", price=11))[0] == ["subscription"]


def test_without_advertisements_subscriptions_go_everywhere() -> None:
    """D1-B1"""
    tree = Tree(CHAIN, advertisements=False)
    tree.subscribe("c", "subscription", Filter("topic = 't'"))
    tree.settle()
    assert [len(router.subscriptions) for router in tree.routers.values()] == [1, 1, 1]
    assert tree.publish("a", event("t")) == (["subscription"], [("a", "b"), ("b", "c")])


def test_an_event_goes_once_to_each_neighbour_and_never_back() -> None:
    """D1-B2, D0-C20"""
    tree = Tree(CHAIN, advertisements=False, covering=False)
    for number in range(3):
        for broker in "abc":
            tree.subscribe(broker, f"{broker}{number}", Filter("price > 1"))
    tree.settle()
    delivered, hops = tree.publish("b", event(price=2))
    assert sorted(delivered) == sorted(f"{broker}{n}" for broker in "abc" for n in range(3))
    assert sorted(hops) == [("b", "a"), ("b", "c")]


# ------------------------------------------------------------------------------------------------------ any sequence
def drawn(seed: int) -> tuple[BrokerGraph, list[tuple[str, int, str]]]:
    """A tree and operations; some of the messages of each operation are under way when the next one comes."""
    rng = Random(seed)
    names = tuple(f"b{place}" for place in range(rng.randint(1, 7)))
    graph = BrokerGraph(names, [(names[rng.randrange(place)], names[place]) for place in range(1, len(names))])
    kinds = ("subscribe", "subscribe", "unsubscribe", "advertise", "unadvertise", "step", "step", "step")
    texts = rng.sample(TEXTS, rng.randint(2, len(TEXTS)))
    count = rng.randint(5, 60)
    return graph, [(rng.choice(kinds), rng.randrange(100), rng.choice(texts)) for _ in range(count)]


def run(tree: Tree, graph: BrokerGraph, operations: list[tuple[str, int, str]], advertised: bool) -> None:
    """After any sequence of operations, and some of their messages on the way, each client receives what brute force
    over all filters says that it wants, and no router contradicts itself."""
    subscriptions: dict[str, str] = {}
    advertisements: dict[str, tuple[str, Filter]] = {}
    for number, (what, place, text) in enumerate(operations):
        broker = graph.brokers[place % len(graph.brokers)]
        match what:
            case "subscribe":
                subscriptions[f"s{number}"] = broker
                tree.subscribe(broker, f"s{number}", Filter(text))
            case "unsubscribe" if subscriptions:
                entry = list(subscriptions)[place % len(subscriptions)]
                tree.unsubscribe(subscriptions.pop(entry), entry)
            case "advertise":
                advertisements[f"a{number}"] = (broker, Filter(text))
                tree.advertise(broker, f"a{number}", Filter(text))
            case "unadvertise" if advertisements:
                entry = list(advertisements)[place % len(advertisements)]
                tree.unadvertise(advertisements.pop(entry)[0], entry)
            case "step" if tree.links:
                tree.step()
    tree.settle()
    tree.check()
    for broker in graph.brokers:
        theirs = [filter for owner, filter in advertisements.values() if owner == broker]
        for candidate in EVENTS:
            if advertised and not any(f.matches(candidate.attributes, candidate.topic) for f in theirs):
                continue
            wanted = [
                entry
                for local in tree.local.values()
                for entry, filter in local.items()
                if filter.matches(candidate.attributes, candidate.topic)
            ]
            delivered, _ = tree.publish(broker, candidate)
            assert sorted(delivered) == sorted(wanted), (broker, candidate)


@pytest.mark.parametrize("advertised", [True, False])
@pytest.mark.parametrize("covering", [True, False])
def test_clients_receive_what_brute_force_says_after_any_sequence(advertised: bool, covering: bool) -> None:
    """D2-B4.1, D0-B1"""
    for seed in range(250):
        graph, operations = drawn(seed)
        run(Tree(graph, advertised, covering), graph, operations, advertised)


# ------------------------------------------------------------------------------------------------------------- mutants
class _ForgetsToUncover(Outlet):
    def _uncover(self, entries: list[str]) -> None:
        for entry in entries:
            del self.wanted[entry]


class _DoesNotPull(Router):
    def intersecting_beside(self, source: str, filter: Filter) -> list[tuple[str, Filter]]:
        return []


class _ForwardsBack(Router):
    def match(self, source: str, batch: EventBatch) -> dict[str, Sequence[int]]:
        return super().match("nobody", batch)


def _with_outlet(neighbours: Any, advertisements: bool, covering: bool) -> Router:
    router = Router(neighbours, advertisements, covering)
    router.subscription_outlets = {neighbour: _ForgetsToUncover(covering) for neighbour in router.neighbours}
    return router


def run_all(make: Any, advertised: bool) -> None:
    for seed in range(250):
        graph, operations = drawn(seed)
        run(Tree(graph, advertised, True, make), graph, operations, advertised)


@pytest.mark.parametrize(("make", "advertised"), [(_with_outlet, False), (_DoesNotPull, True), (_ForwardsBack, False)])
def test_mutants_are_caught(make: Any, advertised: bool) -> None:
    with pytest.raises(AssertionError):
        run_all(make, advertised)
