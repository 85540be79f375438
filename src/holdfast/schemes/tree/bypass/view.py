"""What one broker makes of the link states: who can be reached, by which way, and who stands in for whom (D1-A13).

A link is usable if both its ends say so. What a broker said that nobody can reach any more is old, and does no harm:
its neighbours say that it is gone.

Pure, and computed anew only when the database has changed.
"""

from __future__ import annotations

from holdfast.schemes.tree.bypass.database import Database
from holdfast.topology.graph import SpanningTree


class View:
    """One broker's, on its database."""

    def __init__(self, database: Database, tree: SpanningTree) -> None:
        self.own = database.own
        self.tree = tree
        self._database = database
        self._seen = -1  # the database's changes that the rest was computed from
        self._first_hops: dict[str, str] = {}  # everyone who can be reached → our neighbour on the way there
        self._targets: dict[tuple[str, bool], tuple[str, ...]] = {}

    def change(self, tree: SpanningTree) -> None:
        """The network has another tree."""
        self.tree = tree
        self._seen = -1

    def is_usable(self, one: str, other: str) -> bool:
        """Whether the link between two neighbours in the graph can be used."""
        near, far = self._database.state(one), self._database.state(other)
        return near is not None and far is not None and other in near.up and one in far.up

    def reachable(self, broker: str) -> bool:
        """Whether usable links lead to the broker, from here."""
        return broker == self.own or broker in self._hops()

    def next_hop(self, target: str) -> str | None:
        """The neighbour on a shortest way to another broker, of several the first in the order of brokers."""
        return self._hops().get(target)

    @property
    def unreachable(self) -> int:
        """How many brokers there is no way to."""
        return len(self._database.graph.brokers) - 1 - len(self._hops())

    @property
    def unready(self) -> int:
        """How many brokers can be reached, and do not have their tables yet."""
        return sum(not self._database.is_ready(broker) for broker in self._hops())

    def targets(self, neighbour: str, unready: bool = False) -> tuple[str, ...]:
        """Where a message for a neighbour in the tree goes now (D1-B5): to itself; or, if it failed, to its immediately
        reachable children as seen from here (D1-A14), and theirs where a child failed too.

        Who is not ready counts as failed, but for what makes it ready: with `unready`, being reachable is enough.
        """
        self._hops()  # which forgets what is old
        found = self._targets.get((neighbour, unready))
        if found is None:
            found = self._targets[neighbour, unready] = tuple(self._search(neighbour, unready))
        return found

    def _search(self, neighbour: str, unready: bool) -> list[str]:
        found: list[str] = []
        # With the one before, on a stack, the first on top: a chain of failures may be as long as the network.
        waiting = [(neighbour, self.own)]
        while waiting:
            broker, parent = waiting.pop()
            if broker in self._first_hops and (unready or self._database.is_ready(broker)):
                found.append(broker)
            else:
                waiting += [(near, broker) for near in reversed(self.tree.neighbours(broker)) if near != parent]
        return found

    def _hops(self) -> dict[str, str]:
        if self._seen == self._database.changes:
            return self._first_hops
        graph = self._database.graph
        hops: dict[str, str] = {}
        for broker in (queue := [self.own] if self.own in graph.brokers else []):
            for near in graph.neighbours(broker):
                if near not in hops and near != self.own and self.is_usable(broker, near):
                    hops[near] = hops.get(broker, near)
                    queue.append(near)
        self._first_hops, self._targets, self._seen = hops, {}, self._database.changes
        return hops
