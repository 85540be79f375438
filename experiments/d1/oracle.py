"""What could have been delivered in a world, seen from outside: who was up when something was published.

Times on the way are left out, and so are those in which the brokers find out what happened. What is measured comes
close to it, and a level that is far from it does not do what it says.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise

from experiments.d1.outages import Outage
from experiments.d1.world import WARM_UP_S, Setup, World, scenario_of, tree_of
from holdfast.sim.scenario import Publish
from holdfast.topology.overlay import Overlay

Holds = Callable[[str, str, int], bool]  # from one broker to another, at a time


class _Times:
    """Whether a component is on at some time."""

    def __init__(self, found: list[Outage]) -> None:
        self._edges = [edge for outage in found for edge in outage]

    def on(self, time: int) -> bool:
        return bisect_right(self._edges, time) % 2 == 0

    def on_from(self, time: int) -> int:
        """The first time from then on at which it is on."""
        place = bisect_right(self._edges, time)
        return time if place % 2 == 0 else self._edges[place]


class Oracle:
    """Asked about one world."""

    def __init__(self, setup: Setup, world: World) -> None:
        self._world = world
        self._brokers = {name: _Times(found) for name, found in world.broker_outages.items()}
        self._links = {frozenset(name.split()): _Times(found) for name, found in world.link_outages.items()}
        self._tree = Overlay(list(world.availabilities), tree_of(world)).spanning_tree()
        self._graph = Overlay(list(world.availabilities), world.links)
        self._lifetime_ms = setup.lifetime_s * 1_000
        begin, decided = WARM_UP_S * 1_000, setup.end_ms - setup.lifetime_s * 1_000
        self._published: dict[str, list[int]] = {}  # what is not decided in the end is left out
        for action in scenario_of(setup, world).actions:
            if isinstance(action, Publish) and action.at_ms <= decided:
                self._published.setdefault(action.client, []).append(action.at_ms - begin)

    def _usable(self, one: str, other: str, time: int) -> bool:
        return self._brokers[other].on(time) and self._links[frozenset((one, other))].on(time)

    def accepted(self, subscriber: str) -> float:
        """The share of the events of interest at whose publication the publisher's home was up (D1-C3)."""
        return self._share(subscriber, lambda first, last, time: True)

    def path_up(self, subscriber: str) -> float:
        """… at which the whole path was (D1-C2)."""

        def is_up(first: str, last: str, time: int) -> bool:
            path = self._tree.path(first, last)
            return all(self._usable(path[place], path[place + 1], time) for place in range(len(path) - 1))

        return self._share(subscriber, is_up)

    def connected(self, subscriber: str) -> float:
        """… at which some path of the graph was (D1-C4)."""

        return self._share(subscriber, self._is_reached)

    def _is_reached(self, first: str, last: str, time: int) -> bool:
        reached = {first: None}
        for broker in (queue := [first]):
            for near in self._graph.neighbours(broker):
                if near not in reached and self._usable(broker, near, time):
                    reached[near] = None
                    queue.append(near)
        return last in reached

    def in_time(self, subscriber: str) -> float:
        """… from which on the path was up within the lifetime, hop by hop: what is stored waits (D1-C3)."""
        return self._share(subscriber, self._gets_there)

    def connected_or_in_time(self, subscriber: str) -> float:
        """… at which some path of the graph was up, or from which on the tree's was within the lifetime (D1-C5). A
        detour is tried once, at publication."""

        def holds(first: str, last: str, time: int) -> bool:
            return self._is_reached(first, last, time) or self._gets_there(first, last, time)

        return self._share(subscriber, holds)

    def _gets_there(self, first: str, last: str, time: int) -> bool:
        path = self._tree.path(first, last)
        late = time + self._lifetime_ms
        for here, following in pairwise(path):
            needed = (self._brokers[here], self._links[frozenset((here, following))], self._brokers[following])
            while time <= late and not all(one.on(time) for one in needed):
                time = max(one.on_from(time) for one in needed)
        return time <= late

    def _share(self, subscriber: str, holds: Holds) -> float:
        publisher = self._world.topics[subscriber]
        first, last = self._world.homes[publisher], self._world.homes[subscriber]
        times = self._published[publisher]
        return sum(self._brokers[first].on(time) and holds(first, last, time) for time in times) / len(times)
