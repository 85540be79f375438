"""Ways between two brokers: exact, against trying all states; and the bound of disjoint paths, which is one."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest

from holdfast.errors import PredictionError
from holdfast.qos.disjoint import best_bound, bound_of, disjoint_paths
from holdfast.qos.graph import PartGraph, Path
from holdfast.qos.parts import Part, part_of_availability
from holdfast.qos.two_terminal import two_terminal

HOUR = 3_600


def graph_of(brokers: dict[str, float], links: dict[tuple[str, str], float]) -> PartGraph:
    def part(availability: float) -> Part:
        return part_of_availability(availability, HOUR)

    return PartGraph({n: part(a) for n, a in brokers.items()}, {ends: part(a) for ends, a in links.items()})


def drawn(seed: int, count: int, degree: float = 2.6) -> PartGraph:
    rng = Random(seed)
    names = [f"b{n}" for n in range(1, count + 1)]
    links: dict[tuple[str, str], float] = {}
    for place in range(1, count):
        links[names[rng.randrange(place)], names[place]] = rng.uniform(0.5, 1)
    others = [pair for pair in combinations(names, 2) if pair not in links]
    for pair in rng.sample(others, min(len(others), max(0, round(count * degree / 2) - len(links)))):
        links[pair] = rng.choice([rng.uniform(0.5, 1), 1.0])
    return graph_of({name: rng.choice([rng.uniform(0.5, 1), 1.0]) for name in names}, links)


def enumerated(graph: PartGraph, source: str, target: str) -> float:
    """By all states of all parts."""
    parts: list[str | tuple[str, str]] = [*graph.brokers, *graph.links]
    likely = [graph.brokers[p].availability if isinstance(p, str) else graph.link(*p).availability for p in parts]
    total = 0.0
    for state in product((True, False), repeat=len(parts)):
        on = {part for part, is_on in zip(parts, state, strict=True) if is_on}
        probability = 1.0
        for availability, is_on in zip(likely, state, strict=True):
            probability *= availability if is_on else 1 - availability
        if not probability or source not in on or target not in on:
            continue
        reached = {source}
        for here in (queue := [source]):
            for one, other in graph.links:
                if (one, other) in on and here in (one, other):
                    near = other if here == one else one
                    if near in on and near not in reached:
                        reached.add(near)
                        queue.append(near)
        total += probability * (target in reached)
    return total


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_probability_is_that_of_all_states(seed: int) -> None:
    graph = drawn(seed, 5, 3.0)
    for source, target in [("b1", "b5"), ("b2", "b4"), ("b3", "b3")]:
        assert two_terminal(graph, source, target) == pytest.approx(enumerated(graph, source, target), abs=1e-12)


def test_a_bridge_that_can_be_crossed_both_ways() -> None:
    """The smallest graph that no series and no parallel makes smaller."""
    ends = dict.fromkeys(("s", "a", "b", "t"), 1.0)
    p = 0.9
    links = {("s", "a"): p, ("s", "b"): p, ("a", "b"): p, ("a", "t"): p, ("b", "t"): p}
    known = 2 * p**2 + 2 * p**3 - 5 * p**4 + 2 * p**5
    assert two_terminal(graph_of(ends, links), "s", "t") == pytest.approx(known, abs=1e-14)


def test_brokers_without_a_way_are_never_joined() -> None:
    graph = graph_of({"a": 0.9, "b": 0.9, "c": 0.9}, {("a", "b"): 0.9})
    assert two_terminal(graph, "a", "c") == 0
    assert best_bound(graph, "a", "c") == 0
    assert disjoint_paths(graph, "a", "c") == []


@pytest.mark.parametrize("seed", range(40))
def test_disjoint_paths_are_a_lower_bound(seed: int) -> None:
    """D1-C4"""
    graph = drawn(seed, 10, 3.0)
    for source, target in [("b1", "b10"), ("b4", "b7"), ("b5", "b5")]:
        exact = two_terminal(graph, source, target)
        for paths in disjoint_paths(graph, source, target):
            assert bound_of(graph, paths) <= exact + 1e-12
            between = [broker for path in paths for broker in path[1:-1]]
            assert len(between) == len(set(between))
            assert len({*paths}) == len(paths)
            assert all((path[0], path[-1]) == (source, target) for path in paths)
        assert best_bound(graph, source, target) <= exact + 1e-12


def _simple_paths(graph: PartGraph, source: str, target: str) -> list[Path]:
    found: list[Path] = []
    queue: list[Path] = [(source,)]
    for path in queue:
        if path[-1] == target:
            found.append(path)
            continue
        queue += [(*path, near) for near in graph.plain.neighbours(path[-1]) if near not in path]
    return found


@pytest.mark.parametrize("seed", range(15))
def test_each_family_is_the_likeliest_of_its_size(seed: int) -> None:
    graph = drawn(seed, 6, 3.2)

    def product_of(paths: list[Path] | tuple[Path, ...]) -> float:
        likely = 1.0
        for path in paths:
            likely *= graph.path_availability(path)
        return likely

    paths = _simple_paths(graph, "b1", "b6")
    for size, family in enumerate(disjoint_paths(graph, "b1", "b6"), start=1):
        others = [
            chosen
            for chosen in combinations(paths, size)
            if len({b for path in chosen for b in path[1:-1]}) == sum(len(path) - 2 for path in chosen)
        ]
        assert len(family) == size
        assert product_of(family) == pytest.approx(max(map(product_of, others)), rel=1e-9)


def test_more_paths_are_not_always_better() -> None:
    """The second path takes brokers from the first, and what is left of it is poor."""
    brokers = dict.fromkeys(("s", "a", "b", "t"), 1.0)
    links = {("s", "a"): 0.99, ("a", "b"): 0.99, ("b", "t"): 0.99, ("s", "b"): 0.1, ("a", "t"): 0.1}
    graph = graph_of(brokers, links)
    one, two = disjoint_paths(graph, "s", "t")
    assert bound_of(graph, one) > bound_of(graph, two)
    assert best_bound(graph, "s", "t") == bound_of(graph, one)


def test_a_direct_link_is_a_path_and_the_same_broker_one_of_its_own() -> None:
    """D1-D13"""
    graph = graph_of({"a": 0.9, "b": 0.8}, {("a", "b"): 0.7})
    assert best_bound(graph, "a", "b") == pytest.approx(0.9 * 0.8 * 0.7)
    assert best_bound(graph, "a", "a") == pytest.approx(0.9)
    assert two_terminal(graph, "a", "a") == pytest.approx(0.9)


def test_a_broker_that_is_not_there() -> None:
    graph = graph_of({"a": 0.9}, {})
    for ask in (two_terminal, disjoint_paths, best_bound):
        with pytest.raises(PredictionError, match="no broker 'x'"):
            ask(graph, "a", "x")


def test_parts_that_never_fail_change_nothing() -> None:
    graph = drawn(3, 6).mended("b2")
    assert two_terminal(graph, "b1", "b6") == pytest.approx(enumerated(graph, "b1", "b6"), abs=1e-12)
