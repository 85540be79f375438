"""What could have been delivered, seen from outside: who was on when something was published, and soon after.

Times on the way are left out, and so are those in which the brokers find out what happened. What is measured comes
close to it, and a level that is far from it does not do what it says.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from experiments.d1.outages import Outage
from holdfast.protocols.routing.settings import Reliability
from holdfast.topology.graph import BrokerGraph


class _Times:
    """Whether a component is on at some time."""

    def __init__(self, found: Sequence[Outage]) -> None:
        self._edges = [edge for outage in found for edge in outage]

    def on(self, time: int) -> bool:
        return bisect_right(self._edges, time) % 2 == 0

    def on_from(self, time: int) -> int:
        """The first time from then on at which it is on."""
        place = bisect_right(self._edges, time)
        return time if place % 2 == 0 else self._edges[place]


def _joined(outages: Iterable[Sequence[Outage]]) -> list[Outage]:
    """When anything is off."""
    joined: list[Outage] = []
    for one in sorted(outage for found in outages for outage in found):
        if joined and one.begin <= joined[-1].end:
            joined[-1] = Outage(joined[-1].begin, max(joined[-1].end, one.end))
        else:
            joined.append(one)
    return joined


class Replay:
    """Asked about events that are published at one broker for a subscriber at another. Times are milliseconds."""

    def __init__(
        self,
        graph: BrokerGraph,
        broker_outages: Mapping[str, Sequence[Outage]],
        link_outages: Mapping[frozenset[str], Sequence[Outage]],
        lifetime_ms: int,
    ) -> None:
        """Links that are not named never fail."""
        self._graph = graph
        self._tree = graph.spanning_tree()
        self._brokers = {name: _Times(broker_outages[name]) for name in graph.brokers}
        self._links = {(ends := frozenset(link)): _Times(link_outages.get(ends, ())) for link in graph.links}
        self._everything = _Times(_joined([*broker_outages.values(), *link_outages.values()]))
        self._lifetime_ms = lifetime_ms

    def delivers(self, level: Reliability, first: str, last: str, time: int) -> bool:
        """Whether an event of that time could have been on time at a level."""
        if self._everything.on(time):
            return True  # as mostly: nothing has to be looked up
        if not self.accepts(first, time):
            return False
        match level:
            case Reliability.PERIODIC:
                return self.path_up(first, last, time)
            case Reliability.BUFFERED:
                return self.in_time(first, last, time)
            case Reliability.BYPASS:
                return self.connected(first, last, time)
            case Reliability.BYPASS_BUFFERED:
                # A detour is tried once, at publication.
                return self.connected(first, last, time) or self.in_time(first, last, time)
        raise ValueError(f"{level} promises nothing that could be replayed")

    def share(self, level: Reliability, first: str, last: str, times: Sequence[int]) -> float:
        """Of the events of these times, those that could have been on time."""
        return sum(self.delivers(level, first, last, time) for time in times) / len(times)

    def accepts(self, first: str, time: int) -> bool:
        """The publisher's home is on: else the event is lost (D1-B4.4)."""
        return self._brokers[first].on(time)

    def path_up(self, first: str, last: str, time: int) -> bool:
        """All of the tree's path behind the first broker is on (D1-C2)."""
        return all(self._usable(here, following, time) for here, following in pairwise(self._tree.path(first, last)))

    def connected(self, first: str, last: str, time: int) -> bool:
        """Some path of the graph is, likewise (D1-C4)."""
        reached = {first: None}
        for broker in (queue := [first]):
            for near in self._graph.neighbours(broker):
                if near not in reached and self._usable(broker, near, time):
                    reached[near] = None
                    queue.append(near)
        return last in reached

    def in_time(self, first: str, last: str, time: int) -> bool:
        """The tree's path is on within the lifetime, hop by hop: what is stored waits (D1-C3)."""
        late = time + self._lifetime_ms
        for here, following in pairwise(self._tree.path(first, last)):
            needed = (self._brokers[here], self._links[frozenset((here, following))], self._brokers[following])
            while time <= late and not all(one.on(time) for one in needed):
                time = max(one.on_from(time) for one in needed)
        return time <= late

    def _usable(self, one: str, other: str, time: int) -> bool:
        return self._brokers[other].on(time) and self._links[frozenset((one, other))].on(time)
