"""Links to the neighbours in the graph: dialled again and again, and good for nothing before an introduction.

Of two neighbours the one that stands first in the site file dials. Neighbours may come and go while the broker runs.
Brokers that are none are refused, and those of other networks. What is said on a link behind the introduction is not
this part's affair: it tells others that there is one, and that it is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.links.link_set import Came, LinkSet
from holdfast.protocols.links.pauses import SteadyPauses
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
    """One link to each neighbour, the newest. Begins with the neighbours in the graph of the settings."""

    name: ClassVar[str] = "links"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Introduction: BROKERS}
    due = False  # nothing is left to the end of a turn

    def __init__(self, settings: RoutingSettings) -> None:
        self._settings = settings
        self._network = settings.network_id
        self.acquaintances: dict[str, None] = {}  # neighbours that are known to be of this network, over their links
        self._pauses = SteadyPauses(settings.dial_every)
        self._links = LinkSet(self.name)

    # --------------------------------------------------------------------------------------------------- neighbours
    def on_started(self, started: Started, out: Outbox) -> None:
        brokers, own, addresses = self._settings.graph.brokers, self._settings.name, self._settings.addresses
        for peer in self._settings.graph.neighbours(own):
            self.add(peer, addresses.get(peer, peer), brokers.index(own) < brokers.index(peer), out)

    def add(self, peer: str, address: str, dials: bool, out: Outbox) -> None:
        """The broker is a neighbour from now on, at this address; `dials`: it is we who dial. One that is a neighbour
        already is dialled there from now on."""
        self._links.want(peer, address, self._pauses if dials else None, out)

    def remove(self, peer: str, reason: str, out: Outbox) -> None:
        """The broker is no neighbour any more; a link that it has is closed."""
        self._links.unwant(peer, out)
        if self._links.close(peer, reason, out):
            self._unlinked(peer, out)

    def _unlinked(self, peer: str, out: Outbox) -> None:
        self.acquaintances.pop(peer, None)
        out.tell(NeighbourUnlinked(peer))

    # -------------------------------------------------------------------------------------------------------- links
    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._links.timer_fired(key, out)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        self._links.connect_failed(failed, out)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is not Role.BROKER:
            return
        came = self._links.link_up(up, out)
        if came is Came.REFUSED:
            out.disconnect(up.link, f"{up.peer} is no neighbour of {self._settings.name}")
            return
        if came is Came.REPLACED:
            out.drop_queue(up.peer)
            self._unlinked(up.peer, out)
        out.tell(NeighbourConnected(up.peer))

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if self._links.link_down(down, out):
            self._unlinked(down.peer, out)

    def on_introduction(self, peer: str, introduction: Introduction, out: Outbox) -> None:
        link = self._links.link_of(peer)
        if not link or peer in self.acquaintances:
            raise ProtocolError("an introduction is the first message of a neighbour, and comes once")
        if introduction.network != self._network:
            out.report("other-network", Level.WARNING, peer=peer)
            out.disconnect(link, f"{peer} belongs to another network, or has another site file")
            return
        self.acquaintances[peer] = None
        out.tell(NeighbourLinked(peer, introduction))
        out.tell(NeighbourAccepted(peer, self._links.incarnation_of(peer)))

    def measure(self) -> dict[str, int]:
        return {"neighbours_linked": len(self.acquaintances)}

    def check_invariants(self) -> None:
        self._links.check_invariants()
        for peer in self.acquaintances:
            require(self._links.link_of(peer), "who is known has a link", peer=peer)
