"""News of links, told to everyone who can be reached (D1-A11, D1-B5): the part that carries the database around."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Protocol

from holdfast.kernel.inputs import LinkDown, LinkUp, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.failure.notices import NeighbourSuspected, NeighbourTrusted
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.notices import (
    BecameReady,
    LinkMoved,
    MapChanged,
    NeighbourAccepted,
    ViewChanged,
)
from holdfast.protocols.routing.roster import Roster
from holdfast.schemes.tree.bypass.database import Database
from holdfast.schemes.tree.bypass.messages import LinkStates
from holdfast.schemes.tree.bypass.view import View

BROKERS: Final = frozenset({Role.BROKER})


class Detector(Protocol):
    def trusts(self, peer: str) -> bool: ...


class LinkStateNews(Part):
    """A neighbour is up when the detector trusts it and it is known to be of this network, whichever comes later. Tells
    when the view may be another.

    News of a turn go out at its end, and wait for no disk: they claim nothing of it.
    """

    name: ClassVar[str] = "link_state"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {LinkStates: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (
        NeighbourSuspected,
        NeighbourTrusted,
        NeighbourAccepted,
        BecameReady,
        MapChanged,
        LinkMoved,
    )

    def __init__(
        self, roster: Roster, database: Database, view: View, detector: Detector, acquaintances: Acquaintances
    ) -> None:
        self.database = database
        self._roster = roster
        self._view = view
        self._detector = detector
        self._acquaintances = acquaintances
        self._links: dict[str, LinkUp] = {}  # to brokers, neighbours or not
        self._told = self._heard = 0

    # ----------------------------------------------------------------------------------------------------- our own
    def on_neighbour_suspected(self, suspected: NeighbourSuspected, out: Outbox) -> None:
        if self.database.set_up(suspected.peer, False):
            out.tell(ViewChanged())

    def on_neighbour_trusted(self, trusted: NeighbourTrusted, out: Outbox) -> None:
        self._look_at(trusted.peer, out)

    def on_neighbour_accepted(self, accepted: NeighbourAccepted, out: Outbox) -> None:
        self._look_at(accepted.peer, out)

    def _look_at(self, peer: str, out: Outbox) -> None:
        near = peer in self._roster.linked
        is_up = near and peer in self._acquaintances and self._detector.trusts(peer)
        if is_up and self.database.set_up(peer, True):
            out.tell(ViewChanged())

    def on_became_ready(self, ready: BecameReady, out: Outbox) -> None:
        """This broker has its routing table."""
        if self.database.set_ready(True):
            out.tell(ViewChanged())

    # ------------------------------------------------------------------------------------------------------- links
    def on_started(self, started: Started, out: Outbox) -> None:
        self.database.start(started.incarnation)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is Role.BROKER:
            self._links[up.peer] = up
            self._meet(up, out)

    def _meet(self, up: LinkUp, out: Outbox) -> None:
        if up.peer in self._roster.linked and self.database.link_up(up.peer, up.incarnation):
            out.tell(ViewChanged())

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        """Other brokers, other links, another tree."""
        before = self.database.near
        self.database.change(self._roster.graph)
        self._view.change(self._roster.routed)
        for peer, up in list(self._links.items()):
            if peer not in before:
                self._meet(up, out)
                self._look_at(peer, out)
        out.tell(ViewChanged())

    def on_link_moved(self, moved: LinkMoved, out: Outbox) -> None:
        """Whoever stands in for a neighbour is behind it as events go here."""
        self._view.change(self._roster.routed)
        out.tell(ViewChanged())

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        up = self._links.get(down.peer)
        if up is not None and up.link == down.link:
            del self._links[down.peer]
            self.database.link_down(down.peer)

    def on_link_states(self, peer: str, message: LinkStates, out: Outbox) -> None:
        if not self._acquaintances.hears(peer, "news of links come behind an introduction"):
            return
        news = self.database.merge(peer, message.states)
        self._heard += 1
        if news:
            out.tell(ViewChanged())

    def finish(self, out: Outbox) -> None:
        # Behind the map, which may wait for the disk: who has an older one may not know yet that we are neighbours.
        for neighbour, states in self.database.take_owed(self._acquaintances.greeted):
            out.send(neighbour, LinkStates(states), after=NOW)
            self._told += 1

    # ---------------------------------------------------------------------------------------------------- operators
    def measure(self) -> dict[str, int]:
        return {"link_states_sent_total": self._told, "link_states_received_total": self._heard}

    def check_invariants(self) -> None:
        self.database.check_invariants()
