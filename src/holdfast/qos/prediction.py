"""The real-time reliability of each subscriber of a network, at any level: r'_s (D1-A17, D1-B7, Eq. 1 and 2).

A subscriber gets its events from some publishers, each with a rate; its reliability is the mean of the pairs', weighted
by the rates. One that no publisher publishes for has none: None, not 0 and not 1 (D1-D2).

Beyond the paper (D1-F4): events may have lifetimes of their own, local links may fail, and brokers and links may fail
together. The local link of a subscriber is one more hop, for which levels that buffer wait; that of a publisher has to
be on when an event is published, as its broker has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.errors import PredictionError
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.disjoint import DisjointPaths
from holdfast.qos.graph import PartGraph
from holdfast.qos.interest import Flow, Interests, Publisher, Subscriber
from holdfast.qos.inversion import later_than, points
from holdfast.qos.levels import eq13_corrected, hop_wait, path_delay
from holdfast.qos.parts import NEVER_FAILS, Part
from holdfast.qos.two_terminal import two_terminal
from holdfast.qos.waiting import Wait, hop, one_after_the_other, wait_for

EXACT_BROKERS_MAX = 30  # of a graph in which ways are counted exactly; in larger ones, Eq. 12's bound is taken

_Transforms = NDArray[np.complex128]


class Predicted(msgspec.Struct, frozen=True):
    """Of one subscriber: the probability that it gets an event on time, at each level; None if it gets none at all."""

    subscriber: Subscriber
    reliability: dict[Reliability, float | None]


class Model:
    """A network, and questions about it. What was computed once is kept."""

    def __init__(self, graph: PartGraph, lifetime: float) -> None:
        if not (lifetime >= 0 and isfinite(lifetime)):
            raise PredictionError(f"the lifetime is {lifetime:g} s, and has to be 0 or more, and finite")
        self.graph = graph
        self.lifetime = lifetime
        self.tree = graph.plain.spanning_tree()
        self._disjoint = DisjointPaths(graph)
        self._places = {name: place for place, name in enumerate(graph.brokers)}
        self._ways: dict[tuple[str, str], float] = {}
        self._hops: dict[tuple[float, str, str, frozenset[str]], tuple[_Transforms, frozenset[str]]] = {}
        # First broker, lifetime and local link → last broker → P[delay ≤ lifetime].
        self._in_time: dict[tuple[str, float, Part], dict[str, float]] = {}

    # ------------------------------------------------------------------------------------------------------ of a pair
    def pair(
        self,
        level: Reliability,
        source: str,
        target: str,
        *,
        lifetime: float | None = None,
        local: Part = NEVER_FAILS,
    ) -> float:
        """r'_ps: of an event published at one broker, for a subscriber at another, with its local link (D1-B7)."""
        self.graph.check(source)
        self.graph.check(target)
        lifetime = self.lifetime if lifetime is None else lifetime
        match level:
            case Reliability.NONE:
                return 0.0  # in the long run every broker has forgotten every subscription (D1-C1)
            case Reliability.PERIODIC:
                return self.graph.path_availability(self.tree.path(source, target)) * local.availability
            case Reliability.BUFFERED:
                return self.graph.broker_is_on(source) * self._delays_from(source, lifetime, local)[target]
            case Reliability.BYPASS:
                return self.connected(source, target) * local.availability
            case Reliability.BYPASS_BUFFERED:
                first = self.graph.broker_is_on(source)
                at_once = self._at_once(source, target) * local.availability
                if at_once >= 1:
                    return first
                late = (self._delays_from(source, lifetime, local)[target] - at_once) / (1 - at_once)
                return eq13_corrected(self.connected(source, target) * local.availability, first, late)

    def delay(self, source: str, target: str, local: Part = NEVER_FAILS) -> Wait:
        """How long an event is under way that waits wherever it has to (D1-D11), as one distribution."""
        path = path_delay(self.graph, self.tree.path(source, target))
        return path if local.never_fails else one_after_the_other([path, self._last_hop(target, local)])

    def connected(self, source: str, target: str) -> float:
        """There is a way: exactly, or where that would take too long, by the bound of Eq. 12."""
        ends = self._in_order(source, target)
        if ends not in self._ways:
            is_small = len(self.graph.brokers) <= EXACT_BROKERS_MAX
            self._ways[ends] = two_terminal(self.graph, *ends) if is_small else self._disjoint.best_bound(*ends)
        return self._ways[ends]

    def bound(self, source: str, target: str) -> float:
        """Eq. 12."""
        return self._disjoint.best_bound(*self._in_order(source, target))

    def _in_order(self, source: str, target: str) -> tuple[str, str]:
        """Both ends as the graph lists them. Of paths that are as likely as each other, others may be found from the
        other end: the answer must not depend on who asked first."""
        self.graph.check(source)
        self.graph.check(target)
        return (source, target) if self._places[source] <= self._places[target] else (target, source)

    def block_form(
        self,
        level: Reliability,
        source: str,
        target: str,
        *,
        lifetime: float | None = None,
        local: Part = NEVER_FAILS,
    ) -> float:
        """The same as `pair` at the levels that buffer, from the block matrix of the pair's path: what the faster way
        is held against."""
        delay = self.delay(source, target, local)
        lifetime = self.lifetime if lifetime is None else lifetime
        first = self.graph.broker_is_on(source)
        if level is Reliability.BUFFERED:
            return first * delay.within(lifetime)
        late = delay.within_if_positive(lifetime)
        return eq13_corrected(self.connected(source, target) * local.availability, first, late)

    def _at_once(self, source: str, target: str) -> float:
        return self.graph.path_availability(self.tree.path(source, target)) / self.graph.broker_is_on(source)

    def _last_hop(self, target: str, local: Part) -> Wait:
        """From the last broker to its client, which never fails."""
        shared = [self.graph.together[name].part for name in sorted(self.graph.shares(target))]
        if shared:
            return wait_for((local,), now_on=(*shared, self.graph.brokers[target]))
        return hop(self.graph.brokers[target], local, NEVER_FAILS)

    def _delays_from(self, source: str, lifetime: float, local: Part) -> Mapping[str, float]:
        """P[delay ≤ lifetime] from a broker to every other: hops in common are looked at once."""
        found = self._in_time.get((source, lifetime, local))
        if found is not None:
            return found
        if lifetime == 0:
            found = {target: self._at_once(source, target) * local.availability for target in self.graph.brokers}
        else:
            transforms = self._transforms_from(source, lifetime)
            if not local.never_fails:
                at = points(lifetime)
                transforms = {
                    target: known * self._last_hop(target, local).transform(at) for target, known in transforms.items()
                }
            late = later_than(lifetime, np.stack(list(transforms.values())))
            found = {target: 1 - float(late[place]) for place, target in enumerate(transforms)}
        self._in_time[source, lifetime, local] = found
        return found

    def _transforms_from(self, source: str, lifetime: float) -> dict[str, _Transforms]:
        transforms: dict[str, _Transforms] = {source: np.ones(len(points(lifetime)), dtype=complex)}
        known_on = {source: self.graph.shares(source)}
        for here in (queue := [source]):
            for near in self.tree.neighbours(here):
                if near not in transforms:
                    its, known_on[near] = self._hop(here, near, lifetime, known_on[here])
                    transforms[near] = transforms[here] * its
                    queue.append(near)
        return transforms

    def _hop(
        self, here: str, following: str, lifetime: float, known_on: frozenset[str]
    ) -> tuple[_Transforms, frozenset[str]]:
        key = (lifetime, here, following, known_on)
        if key not in self._hops:
            wait, shared = hop_wait(self.graph, here, following, known_on)
            self._hops[key] = wait.transform(points(lifetime)), shared
        return self._hops[key]

    # ------------------------------------------------------------------------------------------------- of subscribers
    def check(self, publisher: Publisher) -> None:
        """PredictionError if it is at home nowhere, or says what can't be."""
        self.graph.check(publisher.home)
        publisher.check()

    def predict(
        self,
        publishers: Sequence[Publisher],
        subscribers: Iterable[Subscriber],
        levels: Sequence[Reliability],
        interests: Interests | None = None,
    ) -> list[Predicted]:
        """Of each subscriber, at each level. `interests` are those of the same clients, if they are known already."""
        for one in publishers:
            self.check(one)
        subscribers = list(subscribers)
        interests = interests or Interests(publishers, subscribers)
        known: dict[tuple[str, tuple[str, str], Part], dict[Reliability, float | None]] = {}
        predicted = []
        for subscriber in subscribers:
            self.graph.check(subscriber.home)
            key = (subscriber.home, subscriber.interest, subscriber.local)
            if key not in known:
                flows = interests.flows(subscriber)
                known[key] = {level: self._weighted(level, flows, subscriber) for level in levels}
            predicted.append(Predicted(subscriber, known[key]))
        return predicted

    def _weighted(self, level: Reliability, flows: Sequence[Flow], subscriber: Subscriber) -> float | None:
        """Eq. 2."""
        total = sum(flow.rate for flow in flows)
        if not total:
            return None
        on_time = 0.0
        for flow in flows:
            pair = self.pair(level, flow.home, subscriber.home, lifetime=flow.lifetime, local=subscriber.local)
            on_time += flow.rate * flow.enters * pair
        return on_time / total


def mean_reliability(predicted: Iterable[Predicted], level: Reliability) -> float | None:
    """Of all subscribers that get anything."""
    values = [(one.reliability[level], one.subscriber.count) for one in predicted]
    known = [(value, count) for value, count in values if value is not None]
    return sum(value * count for value, count in known) / sum(count for _, count in known) if known else None
