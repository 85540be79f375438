"""Shortest path delays in an undirected graph, by Dijkstra's algorithm, one source at a time and only when asked.

A source's delays to all nodes are kept as one array of 64-bit integers: 20 KB for 2,500 nodes. Rows are never dropped,
so asking from every node of a graph of n nodes takes 8 n² bytes in the end. Delays are whole numbers (nanoseconds
everywhere in Holdfast), added exactly, hence a path is as long in one direction as in the other.

It never says which way a path goes, and it never changes: a graph with other links is another `ShortestPaths`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from heapq import heappop, heappush

from holdfast.errors import TopologyError

UNREACHABLE = -1
# Sums of delays must fit a row's 64 bits; no path visits a node twice.
_SUM_LIMIT = 2**63


class ShortestPaths:
    """The delays of shortest paths between the nodes 0 … nodes - 1."""

    __slots__ = ("_neighbours", "_rows")

    def __init__(self, nodes: int, links: Iterable[tuple[int, int, int]]) -> None:
        """Each link is (one end, other end, delay), and is crossed in both directions."""
        self._neighbours: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
        self._rows: dict[int, memoryview] = {}
        for one, other, delay in links:
            if not (0 <= one < nodes and 0 <= other < nodes):
                raise TopologyError(f"the link {one} – {other} ends outside the nodes 0 … {nodes - 1}", "links")
            if not 0 <= delay * nodes < _SUM_LIMIT:
                raise TopologyError(f"the link {one} – {other} has the delay {delay}: negative or too large", "links")
            self._neighbours[one].append((other, delay))
            self._neighbours[other].append((one, delay))

    def delay(self, source: int, target: int) -> int:
        """The delay of the shortest path, 0 from a node to itself, UNREACHABLE where there is no path."""
        # The row of either end serves; the one that is there already saves a search.
        if source not in self._rows and target in self._rows:
            source, target = target, source
        return self.delays_from(source)[target]

    def delays_from(self, source: int) -> memoryview:
        """The delays from source to every node, read-only."""
        row = self._rows.get(source)
        if row is None:
            row = self._rows[source] = memoryview(self._search(source)).toreadonly()
        return row

    def _search(self, source: int) -> array[int]:
        if not 0 <= source < len(self._neighbours):
            raise TopologyError(f"there is no node {source} among 0 … {len(self._neighbours) - 1}", "source")
        neighbours = self._neighbours
        delays = array("q", [UNREACHABLE]) * len(neighbours)
        heap = [(0, source)]
        while heap:
            delay, node = heappop(heap)
            if delays[node] != UNREACHABLE:
                continue
            delays[node] = delay
            for neighbour, further in neighbours[node]:
                if delays[neighbour] == UNREACHABLE:
                    heappush(heap, (delay + further, neighbour))
        return delays
