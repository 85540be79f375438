"""Graphs to try things on."""

from __future__ import annotations

from random import Random

from holdfast.topology.graph import BrokerGraph


def random_graph(size: int, rng: Random) -> BrokerGraph:
    """Connected: a tree, and about half as many links more."""
    brokers = [f"b{number}" for number in range(size)]
    rng.shuffle(brokers)
    links = [(brokers[rng.randrange(place)], brokers[place]) for place in range(1, size)]
    for _ in range(rng.randrange(size)):
        one, other = rng.sample(brokers, 2)
        if (one, other) not in links and (other, one) not in links:
            links.append((one, other))
    return BrokerGraph(brokers, links)
