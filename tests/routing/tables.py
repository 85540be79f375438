"""Routers of a whole tree, joined by queues: what nodes do with them, without nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from holdfast.model import Filter
from holdfast.model.event import Event
from holdfast.protocols.routing.covered import Changes
from holdfast.protocols.routing.router import LOCAL, Router
from holdfast.topology.graph import BrokerGraph
from tests.routing.events import batch_of

MakeRouter = Callable[[Sequence[str], bool, bool], Router]


class Tree:
    """Changes travel when `settle` is called; `messages` counts them."""

    def __init__(
        self, graph: BrokerGraph, advertisements: bool = True, covering: bool = True, make: MakeRouter = Router
    ) -> None:
        self.tree = graph.spanning_tree()
        self.routers = {b: make(self.tree.neighbours(b), advertisements, covering) for b in graph.brokers}
        self.links: deque[tuple[str, str, tuple[Changes, Changes]]] = deque()
        self.messages = 0
        self.local: dict[str, dict[str, Filter]] = {broker: {} for broker in graph.brokers}

    def subscribe(self, broker: str, entry: str, filter: Filter) -> None:
        self.local[broker][entry] = filter
        self.routers[broker].subscribe(LOCAL, entry, filter)
        self.tell(broker)

    def unsubscribe(self, broker: str, entry: str) -> None:
        self.local[broker].pop(entry, None)
        self.routers[broker].unsubscribe(LOCAL, entry)
        self.tell(broker)

    def advertise(self, broker: str, entry: str, filter: Filter) -> None:
        self.routers[broker].advertise(LOCAL, entry, filter)
        self.tell(broker)

    def unadvertise(self, broker: str, entry: str) -> None:
        self.routers[broker].unadvertise(LOCAL, entry)
        self.tell(broker)

    def tell(self, broker: str) -> None:
        for neighbour in self.tree.neighbours(broker):
            changes = self.routers[broker].take(neighbour)
            if any(changes):
                self.messages += 1
                self.links.append((broker, neighbour, changes))

    def step(self) -> None:
        source, target, (advertisements, subscriptions) = self.links.popleft()
        router = self.routers[target]
        router.merge(source, advertisements.told, subscriptions.told)
        for entry in advertisements.taken_back:
            router.unadvertise(source, entry)
        for entry in subscriptions.taken_back:
            router.unsubscribe(source, entry)
        self.tell(target)

    def settle(self) -> None:
        while self.links:
            self.step()

    def publish(self, broker: str, event: Event) -> tuple[list[str], list[tuple[str, str]]]:
        """Which local subscriptions get it, in which order of brokers; and the hops that it makes."""
        delivered: list[str] = []
        hops: list[tuple[str, str]] = []
        waiting = [(LOCAL, broker)]
        for source, here in waiting:
            found = [e for e, f in self.local[here].items() if f.matches(event.attributes, event.topic)]
            delivered += found
            for neighbour in self.routers[here].match(source, batch_of([event])):
                hops.append((here, neighbour))
                waiting.append((here, neighbour))
            assert len(hops) <= len(self.routers), "an event goes round in circles"
        return delivered, hops

    def check(self) -> None:
        for router in self.routers.values():
            router.check_invariants()
