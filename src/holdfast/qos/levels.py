"""The reliability of a pair, publisher and subscriber, at each level: the paper's equations 3, 4, 12 and 13.

All are about one event, published at any time, and its publisher's and subscriber's home brokers. An event that is
published while its home broker is off is lost (D1-B4.4); the local links never fail unless the caller says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from holdfast.qos.graph import PartGraph
from holdfast.qos.waiting import Wait, hop, one_after_the_other


def path_delay(graph: PartGraph, path: Sequence[str]) -> Wait:
    """How long an event is under way that is stored wherever it has to wait; the last broker hands it on (Eq. 11, with
    the range that it must have: D1-D11)."""
    return one_after_the_other(
        [
            hop(graph.brokers[here], graph.link(here, following), graph.brokers[following])
            for here, following in pairwise(path)
        ]
    )


def eq3_path_is_on(graph: PartGraph, path: Sequence[str]) -> float:
    """`periodic`: all of the path is on (D1-C2, D1-D3)."""
    return graph.path_availability(path)


def eq4_in_time(graph: PartGraph, path: Sequence[str], lifetime: float) -> float:
    """`buffered`: the first broker is on, and the delay is within the lifetime (D1-C3, D1-D4)."""
    return graph.brokers[path[0]].availability * path_delay(graph, path).within(lifetime)


def eq13_printed(connected: float, delay: Wait, lifetime: float) -> float:
    """`bypass+buffered`, as the paper's text can be read: there is a way, or the delay is within the lifetime, given
    that it is above zero. It counts events that are published while their broker is off as deliverable (D1-D14.1), so
    that it comes to 1 for long lifetimes."""
    return connected + (1 - connected) * delay.within_if_positive(lifetime)


def eq13_corrected(connected: float, first: float, delay: Wait, lifetime: float) -> float:
    """The same with the weight that it must have: only what the first broker, which is on with the probability `first`,
    has accepted can be delivered late (D1-D14.1)."""
    return connected + (first - connected) * delay.within_if_positive(lifetime)


def eq13_as_fraction(connected: float, delay: Wait, lifetime: float) -> float:
    """Another reading of the same line, with a fraction bar. It is no probability: to show that (D1-D14)."""
    return connected + (1 - connected) * delay.within(lifetime) / (1 - delay.at_once)


def eq13_as_product(connected: float, delay: Wait, lifetime: float) -> float:
    """Another reading, as a product. It does not come to what `buffered` comes to for long lifetimes (D1-D14)."""
    return connected + (1 - connected) * delay.within(lifetime) * (1 - delay.at_once)
