"""Generated links join all brokers (D1-A7), as many as were asked for, and depend on the seed only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import TopologyError
from holdfast.topology.generators import BROKERS_MAX, TRANSIT_STUB_BROKERS_MAX, Kind, links_of
from holdfast.topology.graph import BrokerGraph
from holdfast.topology.transit_stub import TransitStubShape, generate

# Large enough for several domains, small enough for hundreds of examples.
SMALL = TransitStubShape(transit_domains=3, routers_per_transit_domain=2, stub_domains_per_transit_router=2)

kinds = st.sampled_from(Kind)
seeds = st.integers(0, 10_000)


def names(count: int) -> list[str]:
    return [f"b{number}" for number in range(1, count + 1)]


def made(kind: Kind, count: int, seed: int, degree: float | None = None) -> tuple[tuple[str, str], ...]:
    shape = SMALL if kind is Kind.TRANSIT_STUB else None
    return links_of(kind, names(count), Random(seed), degree, shape)


@given(kinds, st.integers(1, 30), seeds)
@settings(max_examples=150)
def test_all_brokers_are_joined_and_by_a_tree_unless_a_graph_is_wanted(kind: Kind, count: int, seed: int) -> None:
    """D1-A7, D0-A1: `BrokerGraph` refuses double links and links of a broker with itself."""
    overlay = BrokerGraph(names(count), made(kind, count, seed))
    assert overlay.is_connected
    wanted = min(max(round(1.5 * count), count - 1), count * (count - 1) // 2)
    assert len(overlay.links) == (wanted if kind is Kind.RANDOM_GRAPH else count - 1)


@given(st.sampled_from([kind for kind in Kind if kind.takes_degree]), st.integers(2, 16), seeds, st.floats(0, 1))
@settings(max_examples=150)
def test_a_degree_says_how_many_links_a_broker_has_on_average(kind: Kind, count: int, seed: int, share: float) -> None:
    low, high = 2 * (count - 1) / count, count - 1
    degree = low + share * (high - low)
    overlay = BrokerGraph(names(count), made(kind, count, seed, degree))
    assert overlay.is_connected
    assert len(overlay.links) == round(degree * count / 2)


def test_a_star_and_a_chain_are_what_they_are_called() -> None:
    assert made(Kind.STAR, 4, 1) == (("b1", "b2"), ("b1", "b3"), ("b1", "b4"))
    assert made(Kind.CHAIN, 4, 1) == (("b1", "b2"), ("b2", "b3"), ("b3", "b4"))


@pytest.mark.parametrize("kind", Kind)
def test_one_broker_has_no_links_and_is_fine(kind: Kind) -> None:
    assert made(kind, 1, 1) == ()


def test_every_tree_over_four_brokers_is_as_likely() -> None:
    """There are 4² = 16 (Cayley): 12 chains and 4 stars. Random attachment would give each star less often."""
    counts = Counter(tuple(sorted(made(Kind.RANDOM_TREE, 4, seed))) for seed in range(8_000))
    assert len(counts) == 16
    assert min(counts.values()) > 400  # 500 on average; the deviation is 22
    assert max(counts.values()) < 600


def test_the_links_beside_the_tree_of_a_random_graph_are_any() -> None:
    """Of five brokers with five links each of the ten links is in every second graph."""
    counts = Counter(link for seed in range(4_000) for link in made(Kind.RANDOM_GRAPH, 5, seed, degree=2.0))
    assert sorted(counts) == sorted(combinations(names(5), 2))
    assert min(counts.values()) > 1_850
    assert max(counts.values()) < 2_150


def test_transit_stub_links_are_short() -> None:
    """The tree is a minimum spanning one: hosts of the same stub domain are joined below it, not across the world."""
    slow = TransitStubShape(
        transit_domains=2, routers_per_transit_domain=1, stub_domains_per_transit_router=1, routers_per_stub_domain=4,
        transit_low_ms=1_000, transit_high_ms=1_000, access_low_ms=1, access_high_ms=1,
    )  # fmt: skip
    for seed in range(30):
        overlay = BrokerGraph(names(20), links_of(Kind.TRANSIT_STUB, names(20), Random(seed), None, slow))
        halves = [BrokerGraph(names(20), overlay.links[:cut] + overlay.links[cut + 1 :]) for cut in range(19)]
        # One link of the tree crosses between the two domains; in the two halves that it leaves all the others lie.
        assert sum(not half.is_connected for half in halves) == 19
        assert _crossings(seed, slow, overlay) == 1


def _crossings(seed: int, shape: TransitStubShape, overlay: BrokerGraph) -> int:
    """How many links join hosts of different transit domains; the placement is drawn again from the seed."""
    rng = Random(seed)
    graph = generate(shape, rng)
    # Routers 0 and 1 are the transit domains, 2–5 and 6–9 their stubs.
    side = {name: router in (0, 2, 3, 4, 5) for name in overlay.brokers for router in (graph.attach(rng).router,)}
    return sum(side[one] != side[other] for one, other in overlay.links)


def test_links_beside_a_transit_stub_tree_go_to_its_leaves_first() -> None:
    """There are fewer leaves than the 21 links beside the tree: none of them is left."""
    for seed in range(20):
        overlay = BrokerGraph(names(20), made(Kind.TRANSIT_STUB, 20, seed, degree=4.0))
        assert min(len(overlay.neighbours(broker)) for broker in overlay.brokers) >= 2


@given(kinds, st.integers(1, 20), seeds)
@settings(max_examples=60)
def test_the_same_seed_gives_the_same_links(kind: Kind, count: int, seed: int) -> None:
    assert made(kind, count, seed) == made(kind, count, seed)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind.value.startswith(("random", "transit"))])
def test_another_seed_gives_other_links(kind: Kind) -> None:
    assert len({made(kind, 12, seed) for seed in range(20)}) == 20


def test_a_seed_gives_the_same_links_for_ever() -> None:
    """Written down: a site file that names a seed describes the same network after an update."""
    assert made(Kind.RANDOM_TREE, 5, 7) == TREE_OF_SEED_7
    assert made(Kind.RANDOM_GRAPH, 5, 7, degree=2.4) == GRAPH_OF_SEED_7
    assert links_of(Kind.TRANSIT_STUB, names(5), Random(7), 2.4) == TRANSIT_STUB_OF_SEED_7


TREE_OF_SEED_7 = (("b2", "b3"), ("b1", "b2"), ("b1", "b4"), ("b4", "b5"))
GRAPH_OF_SEED_7 = (("b2", "b3"), ("b1", "b2"), ("b1", "b4"), ("b4", "b5"), ("b3", "b4"), ("b2", "b4"))
TRANSIT_STUB_OF_SEED_7 = (("b1", "b5"), ("b2", "b5"), ("b4", "b5"), ("b3", "b5"), ("b1", "b2"), ("b1", "b3"))


def test_links_do_not_depend_on_how_python_hashes() -> None:
    program = (
        "from random import Random\n"
        "from holdfast.topology.generators import Kind, links_of\n"
        "names = [f'b{n}' for n in range(12)]\n"
        "degrees = {kind: 3.0 if kind.takes_degree else None for kind in Kind}\n"
        "print([links_of(kind, names, Random(5), degrees[kind]) for kind in Kind])\n"
    )
    said = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        result = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        said.add(result.stdout)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("kind", "count", "degree", "parameter", "problem"),
    [
        (Kind.STAR, 0, None, "brokers", "a star has 1 to 10000 brokers, not 0"),
        (Kind.CHAIN, BROKERS_MAX + 1, None, "brokers", "a chain has 1 to 10000 brokers, not 10001"),
        (Kind.TRANSIT_STUB, TRANSIT_STUB_BROKERS_MAX + 1, None, "brokers", "a transit-stub has 1 to 1000 brokers"),
        (Kind.STAR, 3, 2.0, "degree", "a star has no degree to choose"),
        (Kind.RANDOM_TREE, 3, 2.0, "degree", "a random-tree has no degree to choose"),
        (Kind.RANDOM_GRAPH, 4, 3.5, "degree", "the degree of 4 brokers is from 1.5, a tree's, to 3, where each is"),
        (Kind.RANDOM_GRAPH, 4, 1.0, "degree", "the degree of 4 brokers is from 1.5"),
        (Kind.RANDOM_GRAPH, 4, float("nan"), "degree", "the degree of 4 brokers"),
        (Kind.RANDOM_GRAPH, 4, float("inf"), "degree", "the degree of 4 brokers"),
        (Kind.RANDOM_GRAPH, 4, True, "degree", "the degree of 4 brokers"),
        (Kind.RANDOM_GRAPH, 4, "3", "degree", "the degree of 4 brokers"),
        (Kind.TRANSIT_STUB, 1, 2.0, "degree", "the degree of 1 brokers is from 0"),
        (Kind.RANDOM_GRAPH, 10_000, 300.0, "degree", "the graph would have 1500000 links; at most 1000000"),
    ],
)
def test_a_graph_that_can_not_be_made_is_refused_by_name(
    kind: Kind, count: int, degree: Any, parameter: str, problem: str
) -> None:
    with pytest.raises(TopologyError) as refused:
        links_of(kind, names(count), Random(1), degree)
    assert refused.value.parameter == parameter
    assert str(refused.value).startswith(problem)


def test_only_a_transit_stub_graph_has_a_shape() -> None:
    with pytest.raises(TopologyError, match="a chain hangs on no routers"):
        links_of(Kind.CHAIN, names(2), Random(1), None, SMALL)
