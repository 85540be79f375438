"""Paths between two brokers that share no other broker, the likeliest together (D1-B8), and what they promise (Eq. 12).

Some paths are on with a probability that can be written down, since they share nothing but their ends: at least so
likely is it that there is a way at all (D1-C4, D1-D13). Which paths are taken matters. For each number of them, those
whose availabilities have the largest product, by a flow of least cost (Suurballe's way, with cost −log availability);
and of all numbers the one with the best bound, since one more path may cost the others more than it brings. The largest
set of paths, or the best path first and the next among what is left, can be worse.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf, log

from holdfast.qos.graph import Case, PartGraph, Path


class DisjointPaths:
    """Of one graph. The first paths from a broker to all others are a tree, which is made once.

    A broker has two nodes, its way in and its way out, 2n and 2n + 1, so that an arc between them can hold one path.
    Arcs come in twos: 2a leads there, and 2a + 1 back over it when it is used.
    """

    def __init__(self, graph: PartGraph) -> None:
        self.graph = graph
        self._names = list(graph.brokers)
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._targets: list[int] = []
        self._costs: list[float] = []
        self._arcs: list[list[int]] = [[] for _ in range(2 * len(self._names))]
        for number, part in enumerate(graph.brokers.values()):
            self._join(2 * number, 2 * number + 1, -log(part.availability))
        for (one, other), part in graph.links.items():
            for here, following in ((one, other), (other, one)):
                self._join(2 * self._numbers[here] + 1, 2 * self._numbers[following], -log(part.availability))
        self._trees: dict[int, tuple[list[float], list[int]]] = {}

    def _join(self, source: int, target: int, cost: float) -> None:
        for here, there, price in ((source, target, cost), (target, source, -cost)):
            self._arcs[here].append(len(self._targets))
            self._targets.append(there)
            self._costs.append(price)

    def families(self, source: str, target: str) -> list[list[Path]]:
        """For one path, two, and so on: the likeliest such set of paths that share only their ends."""
        self.graph.check(source)
        self.graph.check(target)
        if source == target:
            return [[(source,)]]
        begin, end = 2 * self._numbers[source] + 1, 2 * self._numbers[target]
        if begin not in self._trees:
            self._trees[begin] = self._search(begin, -1, bytearray([1, 0] * (len(self._targets) // 2)), None)
        distances, came = self._trees[begin]
        potentials = list(distances)
        room = bytearray([1, 0] * (len(self._targets) // 2))
        most = min(len(self.graph.plain.neighbours(name)) for name in (source, target))
        families = []
        while distances[end] < inf:
            self._use(begin, end, came, room)
            families.append(self._paths(begin, end, room))
            if len(families) == most:
                break
            distances, came = self._search(begin, end, room, potentials)
            # Behind the end nothing was looked at: it is at least as far.
            for node, distance in enumerate(distances):
                if potentials[node] < inf:
                    potentials[node] += min(distance, distances[end])
        return families

    def _search(
        self, begin: int, end: int, room: bytearray, potentials: list[float] | None
    ) -> tuple[list[float], list[int]]:
        """Distances by the costs that these potentials leave, and the arcs by which nodes are reached; up to an end, or
        everywhere."""
        distances, came = [inf] * len(self._arcs), [-1] * len(self._arcs)
        targets, costs = self._targets, self._costs
        distances[begin] = 0.0
        queue = [(0.0, begin)]
        done = bytearray(len(self._arcs))
        while queue:
            distance, node = heappop(queue)
            if done[node]:
                continue
            done[node] = 1
            if node == end:
                break
            lift = 0.0 if potentials is None else potentials[node]
            for arc in self._arcs[node]:
                if room[arc]:
                    near = targets[arc]
                    if not done[near]:
                        price = costs[arc] if potentials is None else max(0.0, costs[arc] + lift - potentials[near])
                        if distance + price < distances[near]:
                            distances[near], came[near] = distance + price, arc
                            heappush(queue, (distance + price, near))
        for node, is_done in enumerate(done):
            if not is_done:
                distances[node] = inf
        return distances, came

    def _use(self, begin: int, end: int, came: list[int], room: bytearray) -> None:
        node = end
        while node != begin:
            arc = came[node]
            room[arc] -= 1
            room[arc ^ 1] += 1
            node = self._targets[arc ^ 1]

    def _paths(self, begin: int, end: int, room: bytearray) -> list[Path]:
        found = []
        for first in self._arcs[begin]:
            if first % 2 or room[first]:
                continue
            path, node = [self._names[begin // 2]], self._targets[first]
            while node != end:
                path.append(self._names[node // 2])
                leaving = next(arc for arc in self._arcs[node + 1] if not arc % 2 and not room[arc])
                node = self._targets[leaving]
            found.append((*path, self._names[end // 2]))
        return found

    def best_bound(self, source: str, target: str) -> float:
        """The best of Eq. 12 over all families; 0 if no links lead from one to the other."""
        return max((bound_of(self.graph, paths) for paths in self.families(source, target)), default=0.0)


def bound_of(graph: PartGraph, paths: list[Path]) -> float:
    """Eq. 12: at least so likely is it that there is a way between the ends of some disjoint paths (D1-D13)."""
    return sum(case.probability * _bound_in(graph, paths, case) for case in graph.cases())


def _bound_in(graph: PartGraph, paths: list[Path], case: Case) -> float:
    first, last = paths[0][0], paths[0][-1]
    if first == last:
        return graph.own_availability((first,), case)
    ends = graph.brokers[first].availability * graph.brokers[last].availability
    none = 1.0
    for path in paths:
        none *= 1 - graph.own_availability(path, case) / ends
    return ends * (1 - none)


def disjoint_paths(graph: PartGraph, source: str, target: str) -> list[list[Path]]:
    """For one pair: see `DisjointPaths.families`."""
    return DisjointPaths(graph).families(source, target)


def best_bound(graph: PartGraph, source: str, target: str) -> float:
    return DisjointPaths(graph).best_bound(source, target)
