"""Parts that fail together (D1-F4): against all states, and against one chain of everything."""

from __future__ import annotations

from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from scipy.linalg import expm

from holdfast.errors import PredictionError
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.contributions import contributions
from holdfast.qos.disjoint import best_bound
from holdfast.qos.graph import CASES_MAX, Ends, PartGraph, Together
from holdfast.qos.interest import Publisher, Subscriber
from holdfast.qos.levels import path_delay
from holdfast.qos.parts import Part, chain_of, part_of_availability
from holdfast.qos.prediction import Model
from holdfast.qos.two_terminal import two_terminal

BROKER, LINK = part_of_availability(0.9, 60_000), part_of_availability(0.97, 20_000)
RACK, CABLE = part_of_availability(0.95, 90_000), part_of_availability(0.93, 40_000)
LINKS: list[Ends] = [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")]


def diamond(*together: Together) -> PartGraph:
    return PartGraph(dict.fromkeys("abcd", BROKER), dict.fromkeys(LINKS, LINK), together)


RACK_OF_TWO = Together("rack", RACK, brokers=("b", "c"))
CABLE_OF_TWO = Together("cable", CABLE, links=(("d", "b"), ("a", "c")))
RACK_OF_AN_END = Together("room", RACK, brokers=("a", "b"))
ALL = (RACK_OF_TWO, CABLE_OF_TWO, RACK_OF_AN_END)


def enumerated(graph: PartGraph, source: str, target: str, only: list[Ends]) -> float:
    """There is a way over these links, by all states of all parts and of all that they share."""
    shared = list(graph.together.values())
    parts = [*graph.brokers.values(), *graph.links.values(), *(one.part for one in shared)]
    names: list[str | frozenset[str]] = [*graph.brokers, *map(frozenset, graph.links)]
    total = 0.0
    for state in product((True, False), repeat=len(parts)):
        likely = prod(p.availability if on else 1 - p.availability for p, on in zip(parts, state, strict=True))
        on = {name for name, is_on in zip(names, state, strict=False) if is_on}
        for one, is_on in zip(shared, state[len(names) :], strict=True):
            if not is_on:
                on -= {*one.brokers, *map(frozenset, one.links)}
        reached = {source} & on
        while True:
            more = {
                end
                for ends in only
                if frozenset(ends) in on and reached & set(ends)
                for end in ends
                if end in on and end not in reached
            }
            if not more:
                break
            reached |= more
        total += likely * (target in reached)
    return total


@pytest.mark.parametrize("together", [(one,) for one in ALL] + [ALL], ids=lambda found: "+".join(t.name for t in found))
def test_ways_and_paths_are_those_of_all_states(together: tuple[Together, ...]) -> None:
    """D1-C2, D1-C4: and parts that fail together make another difference than parts that fail alone."""
    graph = diamond(*together)
    path: list[Ends] = [("a", "b"), ("b", "d")]
    assert two_terminal(graph, "a", "d") == pytest.approx(enumerated(graph, "a", "d", LINKS), abs=1e-12)
    assert graph.path_availability(("a", "b", "d")) == pytest.approx(enumerated(graph, "a", "d", path), abs=1e-12)
    assert two_terminal(graph, "a", "a") == pytest.approx(enumerated(graph, "a", "a", LINKS), abs=1e-12)
    # Both ways of a diamond are disjoint: the bound is exact here.
    assert best_bound(graph, "a", "d") == pytest.approx(two_terminal(graph, "a", "d"), abs=1e-12)


def test_two_ways_through_one_rack_are_worth_less_than_through_two() -> None:
    alone = PartGraph(
        {"a": BROKER, "b": _both(BROKER, RACK), "c": _both(BROKER, RACK), "d": BROKER}, dict.fromkeys(LINKS, LINK)
    )
    assert two_terminal(diamond(RACK_OF_TWO), "a", "d") < two_terminal(alone, "a", "d") - 0.01


def _both(one: Part, other: Part) -> Part:
    return part_of_availability(one.availability * other.availability, 60_000)


def joint(graph: PartGraph, path: str, time: float) -> float:
    """P[an event that the first broker has is at the last within the time], by one chain of everything."""
    shared = list(graph.together.values())
    names: list[str | frozenset[str]] = [*path, *(frozenset(ends) for ends in pairwise(path))]
    parts = [graph.brokers[name] if isinstance(name, str) else graph.link(*name) for name in names]
    chains = [chain_of(part) for part in (*parts, *(one.part for one in shared))]
    index = {key: place for place, key in enumerate(product(product((0, 1), repeat=len(chains)), range(len(path))))}

    def is_on(state: tuple[int, ...], name: str | frozenset[str]) -> bool:
        own = bool(state[names.index(name)])
        return own and all(state[len(names) + n] for n, one in enumerate(shared) if one.name in graph.shares(name))

    def move(state: tuple[int, ...], at: int) -> int:
        while at + 1 < len(path) and all(
            is_on(state, name) for name in (path[at], frozenset(path[at : at + 2]), path[at + 1])
        ):
            at += 1
        return at

    rates = np.zeros((len(index), len(index)))
    begin = np.zeros(len(index))
    for (state, at), place in index.items():
        for number, chain in enumerate(chains):
            other = (*state[:number], 1 - state[number], *state[number + 1 :])
            rates[place, index[other, move(other, at)]] += chain.rates[state[number], 1 - state[number]]
        if at == 0 and is_on(state, path[0]):
            likely = prod(chain.stationary[value] for chain, value in zip(chains, state, strict=True))
            begin[index[state, move(state, 0)]] += likely
    np.fill_diagonal(rates, rates.diagonal() - rates.sum(axis=1))
    reached = np.array([at == len(path) - 1 for _, at in index])
    return float((begin / begin.sum() @ expm(rates * time))[reached].sum())


@pytest.mark.parametrize(
    "together",
    [
        (Together("rack", RACK, brokers=("a", "b")),),
        (Together("rack", RACK, brokers=("b", "c")),),
        (Together("cable", CABLE, links=(("a", "b"), ("b", "c"))),),
        (Together("rack", RACK, brokers=("a", "b", "c"), links=(("b", "c"),)), Together("cable", CABLE, ("c",))),
    ],
)
@pytest.mark.parametrize("time", [0.0, 600.0, 7_200.0])
def test_the_delay_of_a_path_is_that_of_one_chain(together: tuple[Together, ...], time: float) -> None:
    """D1-C9 still holds: whatever the next hop shares with the one before was on when that was done."""
    graph = PartGraph(dict.fromkeys("abc", BROKER), {("a", "b"): LINK, ("b", "c"): LINK}, together)
    expected = joint(graph, "abc", time)
    assert path_delay(graph, "abc").within(time) == pytest.approx(expected, abs=1e-10)
    model = Model(graph, time)
    first = graph.broker_is_on("a")
    assert model.pair(Reliability.BUFFERED, "a", "c") == pytest.approx(first * expected, abs=1e-9)


def test_what_distant_hops_share_is_taken_as_at_any_time() -> None:
    """As the documentation says: a little less is promised than is so."""
    rack = Together("rack", RACK, brokers=("a", "d"))
    links: list[Ends] = [("a", "b"), ("b", "c"), ("c", "d")]
    graph = PartGraph(dict.fromkeys("abcd", BROKER), dict.fromkeys(links, LINK), [rack])
    promised, so = path_delay(graph, "abcd").within(3_600), joint(graph, "abcd", 3_600)
    assert so - 0.06 < promised < so


def test_something_shared_is_among_what_would_help() -> None:
    model = Model(diamond(RACK_OF_TWO), 600)
    found = contributions(model, [Publisher("a")], [Subscriber("d")], Reliability.BYPASS)
    gains = {one.part: one.gain for one in found}
    assert gains["rack"] == pytest.approx(
        two_terminal(diamond(), "a", "d") - two_terminal(diamond(RACK_OF_TWO), "a", "d"), abs=1e-12
    )


def test_what_is_shared_has_to_be_there() -> None:
    with pytest.raises(PredictionError, match="no broker 'x'"):
        diamond(Together("rack", RACK, brokers=("x",)))
    with pytest.raises(PredictionError, match="no link a – d, which 'cable'"):
        diamond(Together("cable", RACK, links=(("a", "d"),)))


def test_too_much_that_is_shared_is_refused_where_detours_count() -> None:
    many = [Together(f"rack {n}", RACK, brokers=("b",)) for n in range(CASES_MAX.bit_length())]
    graph = diamond(*many)
    assert graph.path_availability(("a", "b", "d")) > 0
    with pytest.raises(PredictionError, match="CASES_MAX"):
        two_terminal(graph, "a", "d")
