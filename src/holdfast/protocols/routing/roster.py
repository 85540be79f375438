"""The network as one broker knows it now: its map, taken apart, and the neighbours that events are routed to.

While a link of the tree moves, the brokers at its ends are each at a stage of that of their own: which neighbours a
broker routes to is its own affair, and follows from the map only when nothing is under way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.protocols.routing.network_map import Learn, Move, NetworkMap, done
from holdfast.topology.graph import BrokerGraph, SpanningTree

_NOBODY: tuple[str, ...] = ()


class Roster:
    """Changed by the part that keeps the map, and by the one that carries moves out; read by all others."""

    def __init__(self, name: str, network: NetworkMap, addresses: Mapping[str, str]) -> None:
        """`addresses` are those of the site file, which are newer than those that the network wrote down."""
        self.name = name
        self._addresses = addresses
        self.made = 0  # the number of the last map that was made here, in this life
        self.adopt(network)

    def make(self, network: NetworkMap) -> None:
        """Adopts a map that nobody else has yet."""
        self.made = network.number
        self.adopt(network)

    def adopt(self, network: NetworkMap) -> None:
        self.map = network
        self.graph: BrokerGraph = _graph_of(network)  # with the link that is about to be one of the tree's
        self.tree: SpanningTree = network.seen_by(self.name)
        self.routed = self.tree  # the one that events go along here
        # Which sides brokers are on now, and, while a link moves, which ones they are about to be on.
        self._trees = (self.tree, done(network).spanning_tree) if isinstance(network.step, Move) else (self.tree,)
        self.is_member = network.find(self.name) is not None
        self._places = {member.name: place for place, member in enumerate(network.members)}
        # Who shares the work of a neighbour in the tree, and that one; whose work this broker shares.
        near = self.tree.neighbours(self.name) if self.is_member else _NOBODY
        self.besides = {beside.name: beside for beside in network.besides if beside.faulty in near}
        self.shares = network.shares(self.name)
        self._apart = {beside.name for beside in network.besides if beside.name != self.name}
        if self.shares is not None:
            self._apart.add(self.shares.faulty)

    def move_on(self) -> None:
        """For this broker, the link that moves has moved."""
        self.routed = self._trees[-1]

    @property
    def member_since(self) -> int:
        """The number of the map by which this broker came to the network, or came back; 0: it was always there, or is
        no member."""
        member = self.map.find(self.name)
        return 0 if member is None else member.since

    @property
    def near(self) -> tuple[str, ...]:
        """The neighbours in the tree of the map."""
        return self.tree.neighbours(self.name) if self.is_member else _NOBODY

    @property
    def linked(self) -> tuple[str, ...]:
        """Those that a link is kept to: neighbours in the graph, and whoever becomes one."""
        if not self.is_member:
            return _NOBODY
        return self.graph.neighbours(self.name)

    def moves_with(self, peer: str) -> bool:
        """Whether this broker and the other are two of the three that a link moves between."""
        match self.map.step:
            case Move(broker, old, new):
                return {self.name, peer} <= {broker, old, new}
            case _:
                return False

    @property
    def is_learning(self) -> bool:
        """Whether this broker stands in for another, and learns what that one knew."""
        step = self.map.step
        return isinstance(step, Learn) and step.broker == self.name

    def side(self, peer: str) -> str:
        """The neighbour in the tree beside whom another one stands; or just that one."""
        return self.besides[peer].faulty if peer in self.besides else peer

    @property
    def is_replaced(self) -> bool:
        """Whether another broker stands where this one was, and may give its place back."""
        return not self.is_member and self.map.stand_in(self.name) != ""

    def dials(self, peer: str) -> bool:
        """Of two neighbours the one that comes first among the members dials the other."""
        return self._places.get(self.name, len(self._places)) < self._places.get(peer, -1)

    def knows(self, broker: str) -> bool:
        return broker in self._places

    def remembers(self, broker: str) -> bool:
        """Whether it is a member, or may be one again."""
        return self.knows(broker) or self.map.rests(broker)

    def was_member(self, broker: str) -> bool:
        return broker in self.map.former or self.map.rests(broker)

    def is_on_side(self, broker: str, neighbour: str) -> bool:
        """Whether a broker may be on the side of a neighbour: that one is on the way there."""
        if broker == self.name or not self.is_member:
            return False
        if broker in self.besides:
            return self.side(broker) == neighbour
        return any(self._leads(tree, broker) == neighbour for tree in self._trees)

    def will_be_beyond(self, broker: str, neighbour: str) -> bool:
        """Whether a broker is on the side of a neighbour when the link that moves has moved."""
        return broker != self.name and self.knows(broker) and self._leads(self._trees[-1], broker) == neighbour

    def side_of(self, broker: str) -> str:
        """The neighbour in the tree on the way to another member; empty if there is none."""
        return self._leads(self.tree, broker) if broker != self.name and self.is_member else ""

    def _leads(self, tree: SpanningTree, broker: str) -> str:
        return tree.next_hop(self.name, broker) if broker in self._places and broker not in self._apart else ""

    def peer_address(self, peer: str) -> str:
        member = self.map.find(peer)
        return self._addresses.get(peer) or ("" if member is None else member.peer_address) or peer

    def client_addresses(self, peers: Sequence[str]) -> tuple[str, ...]:
        found = [self.map.find(peer) for peer in peers]
        return tuple(member.client_address for member in found if member is not None and member.client_address)


def _graph_of(network: NetworkMap) -> BrokerGraph:
    graph = network.graph
    match network.step:
        case Move(broker, _, new) if new not in graph.neighbours(broker):
            return BrokerGraph(graph.brokers, (*graph.links, (broker, new)))
        case _:
            return graph
