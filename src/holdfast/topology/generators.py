"""Links between brokers that are described rather than listed: a kind of graph, and a seed.

- `star`: all are joined with the first.
- `chain`: each is joined with the one before it.
- `random-tree`: any tree over these brokers, each as likely, from a random Prüfer sequence.
- `random-graph`: such a tree, and random links beside it up to a mean degree; each missing link is as likely.
- `transit-stub`: brokers hang on random routers of a transit-stub graph, D2-E1's by default. The links are those of a
  minimum spanning tree, by the delays of the shortest paths between brokers. A degree adds to it: again and again, the
  broker with the fewest links is joined with the nearest that it is not joined with. (The shortest links that are left
  would all lie in the same few stub domains, and most leaves would still be cut off by one failure.)

Every graph is connected (D1-A7), and depends on the brokers' order, the parameters and the random numbers alone. Only
`Random.random` is drawn from, whose sequence Python promises to keep: a seed's graph is the same everywhere.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from math import isfinite, isqrt
from typing import TYPE_CHECKING

from holdfast.errors import TopologyError
from holdfast.topology.shortest_paths import ShortestPaths
from holdfast.topology.transit_stub import TransitStubShape, generate

if TYPE_CHECKING:
    from random import Random

DEGREE = 3.0  # of a random graph, on average, or as much as so few brokers can have
BROKERS_MAX = 10_000
LINKS_MAX = 1_000_000
TRANSIT_STUB_BROKERS_MAX = 1_000  # the delays between all pairs are looked at: 3.5 s for 500 brokers


class Kind(enum.Enum):
    """How a graph is made."""

    STAR = "star"
    CHAIN = "chain"
    RANDOM_TREE = "random-tree"
    RANDOM_GRAPH = "random-graph"
    TRANSIT_STUB = "transit-stub"

    @property
    def takes_degree(self) -> bool:
        """Whether its brokers may have more links than those of a tree."""
        return self in (Kind.RANDOM_GRAPH, Kind.TRANSIT_STUB)


def links_of(
    kind: Kind,
    brokers: Sequence[str],
    rng: Random,
    degree: float | None = None,
    shape: TransitStubShape | None = None,
) -> tuple[tuple[str, str], ...]:
    """The links of such a graph between these brokers; TopologyError if there is none.

    `degree` is how many links a broker has on average. Without it a random graph has DEGREE, and the others are trees.
    """
    count = len(brokers)
    limit = TRANSIT_STUB_BROKERS_MAX if kind is Kind.TRANSIT_STUB else BROKERS_MAX
    if not 1 <= count <= limit:
        raise TopologyError(f"a {kind.value} has 1 to {limit} brokers, not {count}", "brokers")
    wanted = _links_wanted(kind, count, degree)
    if shape is not None and kind is not Kind.TRANSIT_STUB:
        raise TopologyError(f"a {kind.value} hangs on no routers: it has no shape to choose", "shape")
    match kind:
        case Kind.STAR:
            pairs = [(0, place) for place in range(1, count)]
        case Kind.CHAIN:
            pairs = [(place - 1, place) for place in range(1, count)]
        case Kind.RANDOM_TREE:
            pairs = _random_tree(count, rng)
        case Kind.RANDOM_GRAPH:
            pairs = _random_graph(count, wanted, rng)
        case Kind.TRANSIT_STUB:
            pairs = _transit_stub(count, wanted, shape or TransitStubShape(), rng)
    return tuple((brokers[one], brokers[other]) for one, other in pairs)


def _links_wanted(kind: Kind, count: int, degree: float | None) -> int:
    tree, all_pairs = count - 1, count * (count - 1) // 2
    if degree is None:
        return min(max(round(DEGREE * count / 2), tree), all_pairs) if kind is Kind.RANDOM_GRAPH else tree
    if not kind.takes_degree:
        raise TopologyError(f"a {kind.value} has no degree to choose", "degree")
    # Who reads it from a file may hand in anything.
    wanted = round(degree * count / 2) if type(degree) in (int, float) and isfinite(degree) else -1
    if not tree <= wanted <= all_pairs:
        bounds = f"from {2 * tree / count:g}, a tree's, to {tree}, where each is joined with all others"
        raise TopologyError(f"the degree of {count} brokers is {bounds}; not {degree!r}", "degree")
    if wanted > LINKS_MAX:
        raise TopologyError(f"the graph would have {wanted} links; at most {LINKS_MAX} are possible", "degree")
    return wanted


def _random_tree(count: int, rng: Random) -> list[tuple[int, int]]:
    """Every sequence of count - 2 nodes stands for one tree, and every tree for one sequence (Prüfer)."""
    if count < 2:
        return []
    sequence = [_below(count, rng) for _ in range(count - 2)]
    missing = [1] * count  # links that a node still gets
    for node in sequence:
        missing[node] += 1
    leaves = [node for node in range(count) if missing[node] == 1]
    heapify(leaves)
    links = []
    for node in sequence:
        links.append(_pair(heappop(leaves), node))
        missing[node] -= 1
        if missing[node] == 1:
            heappush(leaves, node)
    links.append(_pair(heappop(leaves), heappop(leaves)))
    return links


def _random_graph(count: int, wanted: int, rng: Random) -> list[tuple[int, int]]:
    links = dict.fromkeys(_random_tree(count, rng))
    for pair in _pairs_in_random_order(count, rng):
        if len(links) >= wanted:
            break
        links[pair] = None
    return list(links)


def _pairs_in_random_order(count: int, rng: Random) -> Iterator[tuple[int, int]]:
    """All pairs of nodes, shuffled only as far as they are taken: dense graphs cost no more draws than links."""
    pairs = count * (count - 1) // 2
    moved: dict[int, int] = {}
    for place in range(pairs):
        drawn = place + _below(pairs - place, rng)
        number = moved.get(drawn, drawn)
        moved[drawn] = moved.pop(place, place)
        larger = (1 + isqrt(1 + 8 * number)) // 2
        yield number - larger * (larger - 1) // 2, larger


def _transit_stub(count: int, wanted: int, shape: TransitStubShape, rng: Random) -> list[tuple[int, int]]:
    graph = generate(shape, rng)
    hosts = [graph.attach(rng) for _ in range(count)]
    paths = ShortestPaths(graph.routers, graph.links)

    def delays_of(one: int) -> list[int]:
        row, here = paths.delays_from(hosts[one].router), hosts[one].delay_ns
        return [here + row[host.router] + host.delay_ns for host in hosts]

    delays = [delays_of(one) for one in range(count)]
    links = dict.fromkeys(_minimum_spanning_tree(delays))
    joined: list[set[int]] = [{place} for place in range(count)]
    for one, other in links:
        joined[one].add(other)
        joined[other].add(one)
    while len(links) < wanted:
        one = min(range(count), key=lambda place: len(joined[place]))
        other = min((place for place in range(count) if place not in joined[one]), key=delays[one].__getitem__)
        links[_pair(one, other)] = None
        joined[one].add(other)
        joined[other].add(one)
    return list(links)


def _minimum_spanning_tree(delays: list[list[int]]) -> list[tuple[int, int]]:
    """By Prim's algorithm, from the first node; of links that are equally long, that of the first node is taken."""
    nearest = {node: (delays[0][node], 0) for node in range(1, len(delays))}
    links = []
    while nearest:
        node = min(nearest, key=lambda node: (*nearest[node], node))
        links.append(_pair(node, nearest.pop(node)[1]))
        for other, known in nearest.items():
            nearest[other] = min(known, (delays[node][other], node))
    return links


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _below(limit: int, rng: Random) -> int:
    return int(rng.random() * limit)
