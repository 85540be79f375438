"""The reliability of a pair, publisher and subscriber, at each level: the paper's equations 3, 4, 12 and 13.

All are about one event, published at any time, and its publisher's and subscriber's home brokers. An event that is
published while its home broker is off is lost (D1-B4.4); the local links never fail unless the caller says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from holdfast.qos.graph import PartGraph
from holdfast.qos.waiting import Wait, hop, one_after_the_other, wait_for


def hop_wait(
    graph: PartGraph, here: str, following: str, known_on: frozenset[str] = frozenset()
) -> tuple[Wait, frozenset[str]]:
    """The wait of an event that is at a broker for the next hop, when some of what parts share is known to be on; and
    what of it is on when the hop is done."""
    shared = graph.shares(here) | graph.shares(frozenset((here, following))) | graph.shares(following)
    known = graph.shares(here) | (shared & known_on)
    link = graph.link(here, following)
    if not shared:
        return hop(graph.brokers[here], link, graph.brokers[following]), shared
    fresh = [graph.together[name].part for name in sorted(shared - known)]
    on = [graph.together[name].part for name in sorted(known)]
    return wait_for((*fresh, graph.brokers[following], link), now_on=(*on, graph.brokers[here])), shared


def path_delay(graph: PartGraph, path: Sequence[str]) -> Wait:
    """How long an event is under way that is stored wherever it has to wait; the last broker hands it on (Eq. 11, with
    the range that it must have: D1-D11). What parts share, if a hop of the path shares it with one that is not next to
    it, is taken to be as at any time."""
    waits = []
    known_on: frozenset[str] = frozenset()
    for here, following in pairwise(path):
        wait, known_on = hop_wait(graph, here, following, known_on)
        waits.append(wait)
    return one_after_the_other(waits)


def eq3_path_is_on(graph: PartGraph, path: Sequence[str]) -> float:
    """`periodic`: all of the path is on (D1-C2, D1-D3)."""
    return graph.path_availability(path)


def eq4_in_time(graph: PartGraph, path: Sequence[str], lifetime: float) -> float:
    """`buffered`: the first broker is on, and the delay is within the lifetime (D1-C3, D1-D4)."""
    return graph.broker_is_on(path[0]) * path_delay(graph, path).within(lifetime)


def eq13_printed(connected: float, delay: Wait, lifetime: float) -> float:
    """`bypass+buffered`, as the paper's text can be read: there is a way, or the delay is within the lifetime, given
    that it is above zero. It counts events that are published while their broker is off as deliverable (D1-D14.1), so
    that it comes to 1 for long lifetimes."""
    return connected + (1 - connected) * delay.within_if_positive(lifetime)


def eq13_corrected(connected: float, first: float, late: float) -> float:
    """The same with the weight that it must have: only what the first broker, which is on with the probability `first`,
    has accepted can be delivered late (D1-D14.1). `late`: that the delay is within the lifetime, if there is one."""
    return connected + (first - connected) * late


def eq13_as_fraction(connected: float, delay: Wait, lifetime: float) -> float:
    """Another reading of the same line, with a fraction bar. It is no probability: to show that (D1-D14)."""
    return connected + (1 - connected) * delay.within(lifetime) / (1 - delay.at_once)


def eq13_as_product(connected: float, delay: Wait, lifetime: float) -> float:
    """Another reading, as a product. It does not come to what `buffered` comes to for long lifetimes (D1-D14)."""
    return connected + (1 - connected) * delay.within(lifetime) * (1 - delay.at_once)
