"""Links to the neighbours in the graph: dialled again and again, and good for nothing before an introduction.

Of two neighbours the one that stands first in the site file dials. Brokers of other networks are refused. What is said
on a link behind the introduction is not this part's affair: it tells others that there is one, and that it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.routing.messages import Introduction
from holdfast.protocols.routing.notices import (
    NeighbourAccepted,
    NeighbourConnected,
    NeighbourLinked,
    NeighbourUnlinked,
)
from holdfast.protocols.routing.settings import RoutingSettings

BROKERS: Final = frozenset({Role.BROKER})


class Links(Part):
    """One link to each neighbour, the newest."""

    name: ClassVar[str] = "links"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Introduction: BROKERS}
    due = False  # nothing is left to the end of a turn

    def __init__(self, settings: RoutingSettings) -> None:
        self._settings = settings
        self._network = settings.network_id
        self.acquaintances: dict[str, None] = {}  # neighbours that are known to be of this network, over their links
        brokers, own = settings.graph.brokers, settings.name
        self._neighbours = settings.graph.neighbours(own)
        self._dialled = {peer for peer in self._neighbours if brokers.index(own) < brokers.index(peer)}
        self._links: dict[str, LinkUp] = {}

    def on_started(self, started: Started, out: Outbox) -> None:
        for peer in self._neighbours:
            self._dial(peer, out)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._dial(key[2], out)

    def _dial(self, peer: str, out: Outbox) -> None:
        if peer in self._dialled and peer not in self._links:
            out.connect(peer, self._settings.addresses.get(peer, peer))

    def _dial_later(self, peer: str, out: Outbox) -> None:
        out.set_timer((self.name, "dial", peer), self._settings.dial_every)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        if failed.peer in self._neighbours:
            self._dial_later(failed.peer, out)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is not Role.BROKER:
            return
        if up.peer not in self._neighbours:
            out.disconnect(up.link, f"{up.peer} is no neighbour of {self._settings.name}")
            return
        if up.peer in self._links:
            self._drop(up.peer, out)
        self._links[up.peer] = up
        out.tell(NeighbourConnected(up.peer))

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        up = self._links.get(down.peer)
        if up is None or up.link != down.link:
            return  # no neighbour, or a newer link has taken its place
        self._drop(down.peer, out)
        if down.peer in self._dialled:
            self._dial_later(down.peer, out)

    def _drop(self, peer: str, out: Outbox) -> None:
        del self._links[peer]
        out.drop_queue(peer)
        self.acquaintances.pop(peer, None)
        out.tell(NeighbourUnlinked(peer))

    def on_introduction(self, peer: str, introduction: Introduction, out: Outbox) -> None:
        up = self._links.get(peer)
        if up is None or peer in self.acquaintances:
            raise ProtocolError("an introduction is the first message of a neighbour, and comes once")
        if introduction.network != self._network:
            out.report("other-network", Level.WARNING, peer=peer)
            out.disconnect(up.link, f"{peer} belongs to another network, or has another site file")
            return
        self.acquaintances[peer] = None
        out.tell(NeighbourLinked(peer, introduction))
        out.tell(NeighbourAccepted(peer, up.incarnation))

    def measure(self) -> dict[str, int]:
        return {"neighbours_linked": len(self.acquaintances)}
