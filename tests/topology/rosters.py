"""The network as one broker knows it, from a graph: no site file is needed."""

from __future__ import annotations

from holdfast.protocols.routing.network_map import NetworkMap, NetworkMember, founding_map
from holdfast.protocols.routing.roster import Roster
from holdfast.topology.graph import BrokerGraph, SpanningTree


def map_of(graph: BrokerGraph, tree: SpanningTree | None = None) -> NetworkMap:
    """The map that a network begins with; with `tree` another one than its links say."""
    members = [NetworkMember(name, f"{name}:c", f"{name}:p") for name in graph.brokers]
    if tree is None:
        return founding_map(members, graph.links)
    routed = [link for link in graph.links if link[1] in tree.neighbours(link[0])]
    beside = [link for link in graph.links if link not in routed]
    return NetworkMap(0, tuple(members), tuple(routed), tuple(beside))


def roster_of(name: str, graph: BrokerGraph, tree: SpanningTree | None = None) -> Roster:
    return Roster(name, map_of(graph, tree), {})
