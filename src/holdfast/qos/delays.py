"""How long events are under way to a subscriber, at the levels that store them: P[delay ≤ t], percentiles (D1-D12).

Of the events that their brokers accept; the others never come.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.interest import Flow, Subscriber
from holdfast.qos.prediction import Model
from holdfast.qos.waiting import Wait

HALVINGS = 100  # of an interval in which a percentile lies


class _Source(msgspec.Struct, frozen=True):
    """With the share of a publisher among what is accepted: at once with a probability, or else after a wait that is
    above zero."""

    share: float
    at_once: float
    wait: Wait

    def within(self, time: float) -> float:
        return self.at_once + (1 - self.at_once) * self.wait.within_if_positive(time)


class Delay(msgspec.Struct, frozen=True):
    """`accepted` is the share of all events that get into the network at all."""

    accepted: float
    sources: tuple[_Source, ...]

    def within(self, time: float) -> float:
        """P[delay ≤ time]."""
        return sum(source.share * source.within(time) for source in self.sources)

    def percentile(self, share: float) -> float:
        """The time within which that share of them comes."""
        if share <= self.within(0):
            return 0.0
        high = max(1.0, *(source.wait.mean for source in self.sources))
        while self.within(high) < share:
            high *= 2
        low = 0.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.within(middle) < share else (low, middle)
            if high - low < 1e-9 * high:
                break
        return high


def delay_of(model: Model, level: Reliability, flows: Sequence[Flow], subscriber: Subscriber) -> Delay | None:
    """None if the level stores nothing, or if nobody publishes for the subscriber. `flows` are those to it."""
    total = sum(flow.rate for flow in flows)
    if not level.buffers or not total:
        return None
    accepted = [flow.rate * flow.enters * model.graph.broker_is_on(flow.home) for flow in flows]
    sources = []
    for flow, its in zip(flows, accepted, strict=True):
        first = model.graph.broker_is_on(flow.home)
        wait = model.delay(flow.home, subscriber.home, subscriber.local)
        at_once = wait.at_once
        if level.detours:
            at_once = model.connected(flow.home, subscriber.home) * subscriber.local.availability / first
        sources.append(_Source(its / sum(accepted), at_once, wait))
    return Delay(sum(accepted) / total, tuple(sources))
