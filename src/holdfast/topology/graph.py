"""The graph of brokers that a site describes, and the tree in it along which events are routed (D0-A1, D1-A7, D1-A8).

Every broker has the same graph, from the site file, and derives the same tree from it: a tree of shortest paths from
the broker that is nearest to all others, ties being broken by the order of the brokers in the file. A graph that is a
tree is its own tree, whatever the root.

Brokers are names. Nothing here changes, and nothing here knows who is alive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.errors import TopologyError


class BrokerGraph:
    """Brokers, in the order of the site file, and the links between them."""

    __slots__ = ("_neighbours", "brokers", "links")

    def __init__(self, brokers: Sequence[str], links: Sequence[tuple[str, str]]) -> None:
        self.brokers = tuple(brokers)
        self.links = tuple(links)
        places = {broker: place for place, broker in enumerate(self.brokers)}
        neighbours: dict[str, set[str]] = {broker: set() for broker in self.brokers}
        for one, other in self.links:
            for end in (one, other):
                if end not in places:
                    raise TopologyError(f"a link ends at {end!r}, and there is no such broker", "links")
            if one == other:
                raise TopologyError(f"a link joins {one!r} and itself", "links")
            if other in neighbours[one]:
                raise TopologyError(f"two links join {one!r} and {other!r}", "links")
            neighbours[one].add(other)
            neighbours[other].add(one)
        self._neighbours = {broker: tuple(sorted(near, key=places.__getitem__)) for broker, near in neighbours.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerGraph) and (self.brokers, self.links) == (other.brokers, other.links)

    def __hash__(self) -> int:
        return hash((self.brokers, self.links))

    def __repr__(self) -> str:
        return f"BrokerGraph({len(self.brokers)} brokers, {len(self.links)} links)"

    def neighbours(self, broker: str) -> tuple[str, ...]:
        """Those that a link joins the broker with, in the order of the brokers."""
        return self._neighbours[broker]

    @property
    def is_connected(self) -> bool:
        return len(self._distances(self.brokers[0])) == len(self.brokers) if self.brokers else True

    @property
    def has_cycle(self) -> bool:
        """Whether there are two ways between some brokers. Asked of connected graphs."""
        return len(self.links) >= len(self.brokers) > 0

    def _distances(self, source: str) -> dict[str, int]:
        """Hops to every broker that can be reached, nearest first."""
        distances = {source: 0}
        for broker in (queue := [source]):
            for near in self._neighbours[broker]:
                if near not in distances:
                    distances[near] = distances[broker] + 1
                    queue.append(near)
        return distances

    def spanning_tree(self) -> SpanningTree:
        """The tree that all brokers derive alike; TopologyError if the graph falls apart."""
        if not self.is_connected:
            reached = self._distances(self.brokers[0])
            lost = next(broker for broker in self.brokers if broker not in reached)
            raise TopologyError(f"no links lead from {self.brokers[0]!r} to {lost!r}", "links")
        if not self.has_cycle:
            return SpanningTree(self._neighbours)
        tree: dict[str, list[str]] = {broker: [] for broker in self.brokers}
        # Large graphs are not searched from everywhere: any broker that all agree on is a root.
        candidates = self.brokers[:ROOTS_TRIED]
        root = min(candidates, key=lambda broker: sum(self._distances(broker).values()))
        seen = {root}
        for broker in (queue := [root]):
            for near in self._neighbours[broker]:
                if near not in seen:
                    seen.add(near)
                    queue.append(near)
                    tree[broker].append(near)
                    tree[near].append(broker)
        return SpanningTree({broker: tuple(near) for broker, near in tree.items()})


ROOTS_TRIED = 64


class SpanningTree:
    """A tree over all brokers: there is one way between any two."""

    __slots__ = ("_neighbours", "_ways")

    def __init__(self, neighbours: Mapping[str, tuple[str, ...]]) -> None:
        self._neighbours = dict(neighbours)
        self._ways: dict[str, dict[str, str]] = {}  # broker → every other → the neighbour on the way there

    def neighbours(self, broker: str) -> tuple[str, ...]:
        return self._neighbours[broker]

    def children(self, broker: str, parent: str) -> tuple[str, ...]:
        """The broker's neighbours but for the one that is nearest to `parent`, which is another broker."""
        above = self.next_hop(broker, parent)
        return tuple(near for near in self._neighbours[broker] if near != above)

    def next_hop(self, source: str, target: str) -> str:
        """The neighbour of `source` on the way to another broker."""
        ways = self._ways.get(source)
        if ways is None:
            ways = self._ways[source] = {}
            for near in self._neighbours[source]:
                ways[near] = near
                for broker in (queue := [near]):
                    for beyond in self._neighbours[broker]:
                        if beyond != source and beyond not in ways:
                            ways[beyond] = near
                            queue.append(beyond)
        return ways[target]

    def path(self, source: str, target: str) -> list[str]:
        """All brokers from one to the other, with both."""
        way = [source]
        while way[-1] != target:
            way.append(self.next_hop(way[-1], target))
        return way
