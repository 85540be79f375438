"""The router when neighbours come, go, and take each other's places: against routers that were built like that."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.model import Filter
from holdfast.model.event import Event
from holdfast.protocols.routing.router import LOCAL, Router
from holdfast.protocols.routing.targets import Targets
from tests.routing.events import batch_of

TOPICS = ("a", "b", "c")


def filters(rng: Random) -> Filter:
    topic, price = rng.choice(TOPICS), rng.randint(0, 4)
    return Filter(rng.choice((f"topic = '{topic}'", f"topic = '{topic}' AND price > {price}", f"price > {price}", "")))


def event(rng: Random) -> Event:
    return Event(
        publisher="p",
        incarnation=1,
        sequence=1,
        published_at=0,
        topic=rng.choice(TOPICS),
        attributes={"price": rng.randint(0, 5)},
        payload=b"",
    )


def wanted_of(router: Router, neighbour: str) -> dict[str, str]:
    """All that a neighbour should know, told or hidden."""
    return {entry: str(filter) for entry, filter in router.subscription_outlets[neighbour].wanted.items()}


def advertised_to(router: Router, neighbour: str) -> dict[str, str]:
    return {entry: str(filter) for entry, filter in router.advertisement_outlets[neighbour].wanted.items()}


class Told:
    """What was told, by source: from which a router can be built anew."""

    def __init__(self, neighbours: list[str]) -> None:
        self.tables: dict[str, tuple[dict[str, Filter], dict[str, Filter]]] = {
            source: ({}, {}) for source in (LOCAL, *neighbours)
        }

    def build(self, advertisements: bool, covering: bool) -> Router:
        router = Router([source for source in self.tables if source != LOCAL], advertisements, covering)
        for source, tables in self.tables.items():
            router.merge(source, *tables)
        return router


def check_alike(router: Router, other: Router, rng: Random) -> None:
    router.check_invariants()
    assert set(router.neighbours) == set(other.neighbours)
    for neighbour in router.neighbours:
        assert wanted_of(router, neighbour) == wanted_of(other, neighbour)
        assert advertised_to(router, neighbour) == advertised_to(other, neighbour)
    events = batch_of(event(rng) for _ in range(6))
    for source in (LOCAL, *router.neighbours):
        found, expected = router.match(source, events), other.match(source, events)
        assert {peer: list(rows) for peer, rows in found.items()} == {
            peer: list(rows) for peer, rows in expected.items()
        }


@pytest.mark.parametrize("seed", range(120))
def test_a_router_whose_neighbours_changed_is_as_one_that_was_made_so(seed: int) -> None:
    rng = Random(f"changing/{seed}")
    advertisements, covering = rng.random() < 0.7, rng.random() < 0.7
    told = Told(["n1", "n2", "n3"])
    router = told.build(advertisements, covering)
    last = 3
    for number in range(40):
        near = list(router.neighbours)
        source = rng.choice([LOCAL, *near])
        what, entry = (
            rng.choice(("say", "say", "say", "unsay", "add", "remove", "rewrite", "merge", "twice")),
            f"e{number}",
        )
        if what == "say":
            table = rng.choice((0, 1))
            told.tables[source][table][entry] = filter = filters(rng)
            (router.advertise if table == 0 else router.subscribe)(source, entry, filter)
        elif what == "twice" and len(near) > 1:  # an entry that moves from one side to the other has two sources
            table = rng.choice((0, 1))
            filter = filters(rng)
            for side in rng.sample(near, 2):
                told.tables[side][table][entry] = filter
                (router.advertise if table == 0 else router.subscribe)(side, entry, filter)
        elif what == "unsay":
            table = rng.choice((0, 1))
            if told.tables[source][table]:
                gone = rng.choice(list(told.tables[source][table]))
                del told.tables[source][table][gone]
                (router.unadvertise if table == 0 else router.unsubscribe)(source, gone)
        elif what == "add" and len(near) < 5:
            last += 1
            told.tables[f"n{last}"] = ({}, {})
            router.add_neighbour(f"n{last}")
        elif what == "remove" and len(near) > 1:
            gone = rng.choice(near)
            del told.tables[gone]
            router.remove_neighbour(gone)
        elif what == "rewrite":
            last += 1
            old, new = rng.choice(near), f"n{last}"
            told.tables[new] = told.tables.pop(old)
            router.rewrite(old, new)
        elif what == "merge" and len(near) > 1:
            old, new = rng.sample(near, 2)
            gone_tables = told.tables.pop(old)
            for mine, theirs in zip(told.tables[new], gone_tables, strict=True):
                mine |= theirs
            router.rewrite(old, new)
        check_alike(router, told.build(advertisements, covering), rng)


def test_a_rewrite_costs_nothing_for_the_entries_in_the_index() -> None:
    targets = Targets()
    for number in range(100):
        targets.add("old", f"e{number}", Filter(f"price > {number}"))
    targets.rewrite("old", "new")
    rng = Random(1)
    found = targets.match(batch_of([event(rng)]))
    assert list(targets.resolve(found)) in (["new"], [])
    assert len(targets) == 100


def test_a_target_is_reached_by_the_alternative_that_is_chosen() -> None:
    targets = Targets()
    targets.add("faulty", "e1", Filter(""))
    targets.lead("faulty", ("faulty", "stand-in"))
    found = targets.match(batch_of([event(Random(1))]))
    assert targets.resolve(found) == {"faulty": range(1)}
    assert targets.resolve(found, lambda alternatives: alternatives[-1]) == {"stand-in": range(1)}
    targets.rewrite("faulty", "stand-in")
    assert targets.alternatives("stand-in") == ("stand-in",)
    assert targets.resolve(found) == {"stand-in": range(1)}


def test_two_targets_behind_one_link_give_it_each_event_once_in_order() -> None:
    targets = Targets()
    targets.add("a", "e1", Filter("price > 1"))
    targets.add("b", "e2", Filter("price > 0"))
    targets.rewrite("a", "b")
    events = [
        Event(publisher="p", incarnation=1, sequence=n, published_at=0, topic="", attributes={"price": n}, payload=b"")
        for n in (1, 2, 3)
    ]
    assert targets.resolve(targets.match(batch_of(events))) == {"b": [0, 1, 2]}
