"""The real-time reliability of each subscriber of a network, at any level: r'_s (D1-A17, D1-B7, Eq. 1 and 2).

A subscriber gets its events from some publishers, each with a rate; its reliability is the mean of the pairs', weighted
by the rates. One that no publisher publishes for has none: None, not 0 and not 1 (D1-D2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.errors import PredictionError
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.disjoint import DisjointPaths
from holdfast.qos.graph import PartGraph
from holdfast.qos.inversion import later_than, points
from holdfast.qos.levels import eq13_corrected, path_delay
from holdfast.qos.two_terminal import two_terminal
from holdfast.qos.waiting import hop

EXACT_BROKERS_MAX = 30  # of a graph in which ways are counted exactly; in larger ones, Eq. 12's bound is taken


class Publisher(msgspec.Struct, frozen=True):
    """At home at a broker. `rate` is its share among those of a topic; events per second, or anything proportional."""

    home: str
    topic: str = ""
    rate: float = 1.0


class Subscriber(msgspec.Struct, frozen=True):
    """One, or several with the same home and topic. `name` is for people."""

    home: str
    topic: str = ""
    name: str = ""
    count: int = 1


class Predicted(msgspec.Struct, frozen=True):
    """Of one subscriber: the probability that it gets an event on time, at each level; None if it gets none at all."""

    subscriber: Subscriber
    reliability: dict[Reliability, float | None]


class Model:
    """A network, and questions about it. What was computed once is kept."""

    def __init__(self, graph: PartGraph, lifetime: float) -> None:
        if not lifetime >= 0:
            raise PredictionError(f"the lifetime is {lifetime:g} s, and has to be 0 or more")
        self.graph = graph
        self.lifetime = lifetime
        self.tree = graph.overlay.spanning_tree()
        self._disjoint = DisjointPaths(graph)
        self._ways: dict[frozenset[str], float] = {}
        self._hops: dict[tuple[str, str], NDArray[np.complex128]] = {}
        self._in_time: dict[str, dict[str, float]] = {}  # first broker → last → P[delay ≤ lifetime]

    # ------------------------------------------------------------------------------------------------------ of a pair
    def pair(self, level: Reliability, source: str, target: str) -> float:
        """r'_ps: of an event published at one broker, for a subscriber at another (D1-B7)."""
        self.graph.check(source)
        self.graph.check(target)
        match level:
            case Reliability.NONE:
                return 0.0  # in the long run every broker has forgotten every subscription (D1-C1)
            case Reliability.PERIODIC:
                return self.graph.path_availability(self.tree.path(source, target))
            case Reliability.BUFFERED:
                return self.graph.brokers[source].availability * self._delays_from(source)[target]
            case Reliability.BYPASS:
                return self.connected(source, target)
            case Reliability.BYPASS_BUFFERED:
                first = self.graph.brokers[source].availability
                at_once = self._at_once(source, target)
                if at_once >= 1:
                    return first
                late = (self._delays_from(source)[target] - at_once) / (1 - at_once)
                connected = self.connected(source, target)
                return connected + (first - connected) * late

    def connected(self, source: str, target: str) -> float:
        """There is a way: exactly, or where that would take too long, by the bound of Eq. 12."""
        key = frozenset((source, target))
        if key not in self._ways:
            is_small = len(self.graph.brokers) <= EXACT_BROKERS_MAX
            way = two_terminal(self.graph, source, target) if is_small else self.bound(source, target)
            self._ways[key] = way
        return self._ways[key]

    def bound(self, source: str, target: str) -> float:
        """Eq. 12."""
        return self._disjoint.best_bound(source, target)

    def block_form(self, level: Reliability, source: str, target: str) -> float:
        """The same as `pair` at the levels that buffer, from the block matrix of the pair's path: what the faster way
        is held against."""
        delay = path_delay(self.graph, self.tree.path(source, target))
        first = self.graph.brokers[source].availability
        if level is Reliability.BUFFERED:
            return first * delay.within(self.lifetime)
        return eq13_corrected(self.connected(source, target), first, delay, self.lifetime)

    def _at_once(self, source: str, target: str) -> float:
        return self.graph.path_availability(self.tree.path(source, target)) / self.graph.brokers[source].availability

    def _delays_from(self, source: str) -> Mapping[str, float]:
        """P[delay ≤ lifetime] from a broker to every other: hops in common are looked at once."""
        found = self._in_time.get(source)
        if found is not None:
            return found
        if self.lifetime == 0:
            found = {target: self._at_once(source, target) for target in self.graph.brokers}
        else:
            at = points(self.lifetime)
            transforms: dict[str, NDArray[np.complex128]] = {source: np.ones(len(at), dtype=complex)}
            for here in (queue := [source]):
                for near in self.tree.neighbours(here):
                    if near not in transforms:
                        transforms[near] = transforms[here] * self._hop(here, near)
                        queue.append(near)
            late = later_than(self.lifetime, np.stack(list(transforms.values())))
            found = {target: 1 - float(late[place]) for place, target in enumerate(transforms)}
        self._in_time[source] = found
        return found

    def _hop(self, here: str, following: str) -> NDArray[np.complex128]:
        if (here, following) not in self._hops:
            graph = self.graph
            wait = hop(graph.brokers[here], graph.link(here, following), graph.brokers[following])
            self._hops[here, following] = wait.transform(points(self.lifetime))
        return self._hops[here, following]

    # ------------------------------------------------------------------------------------------------- of subscribers
    def predict(
        self, publishers: Sequence[Publisher], subscribers: Iterable[Subscriber], levels: Sequence[Reliability]
    ) -> list[Predicted]:
        """Of each subscriber, at each level."""
        for one in publishers:
            self.graph.check(one.home)
            if not one.rate >= 0:
                raise PredictionError(f"a publisher at {one.home!r} has the rate {one.rate:g}, and it is 0 or more")
        flows: dict[str, list[tuple[str, float]]] = {}  # topic → homes of its publishers, and their rates (Eq. 1)
        for one in publishers:
            if one.rate > 0:
                flows.setdefault(one.topic, []).append((one.home, one.rate))
        known: dict[tuple[str, str], dict[Reliability, float | None]] = {}
        predicted = []
        for subscriber in subscribers:
            self.graph.check(subscriber.home)
            key = (subscriber.home, subscriber.topic)
            if key not in known:
                its = flows.get(subscriber.topic, [])
                known[key] = {level: self._weighted(level, its, subscriber.home) for level in levels}
            predicted.append(Predicted(subscriber, known[key]))
        return predicted

    def _weighted(self, level: Reliability, flows: Sequence[tuple[str, float]], home: str) -> float | None:
        """Eq. 2."""
        total = sum(rate for _, rate in flows)
        if not total:
            return None
        return sum(rate * self.pair(level, source, home) for source, rate in flows) / total


def mean_reliability(predicted: Iterable[Predicted], level: Reliability) -> float | None:
    """Of all subscribers that get anything."""
    values = [(one.reliability[level], one.subscriber.count) for one in predicted]
    known = [(value, count) for value, count in values if value is not None]
    return sum(value * count for value, count in known) / sum(count for _, count in known) if known else None
