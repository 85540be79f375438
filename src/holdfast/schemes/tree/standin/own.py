"""At a broker whose work is shared: what its own clients want, which the stand-in can't give them.

What a neighbour's tables say of the broker's side does not tell that: with covering, a broader subscription from beyond
hides what the broker's own clients want. So its neighbours are told by the broker itself, all of it, and give the
stand-in nothing before they know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.model import Filter
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.notices import MapChanged, NeighbourAccepted, TablesChanged
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.router import LOCAL, SUBSCRIPTIONS
from holdfast.protocols.routing.tellings import texts
from holdfast.schemes.tree.standin.messages import StandInOwn
from holdfast.schemes.tree.standin.pieces import in_pieces


class OwnInterests(Part):
    """Behind `Neighbours`."""

    name: ClassVar[str] = "own-interests"
    notices: ClassVar[tuple[type[Notice], ...]] = (MapChanged, NeighbourAccepted, TablesChanged)
    due = False

    def __init__(self, roster: Roster, acquaintances: Acquaintances, neighbours: Neighbours) -> None:
        self._roster = roster
        self._acquaintances = acquaintances
        self._neighbours = neighbours
        self._told: dict[str, None] = {}  # neighbours that know, on the links that they have

    @property
    def _is_shared(self) -> bool:
        return self._roster.map.beside_of(self._roster.name) is not None

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        self._told.clear()

    def on_neighbour_accepted(self, accepted: NeighbourAccepted, out: Outbox) -> None:
        """It has this map, or a later one: it knows that it is to hear this."""
        peer = accepted.peer
        if self._is_shared and peer in self._roster.near:
            self._told[peer] = None
            own = self._neighbours.router.subscriptions.by_source[LOCAL]
            pieces = list(in_pieces(texts(own)))
            for place, piece in enumerate(pieces):
                message = StandInOwn(self._roster.name, piece, (), place == 0, place == len(pieces) - 1)
                out.send(peer, message, after=self._neighbours.teller.after)

    def on_tables_changed(self, changed: TablesChanged, out: Outbox) -> None:
        if not self._told or not self._is_shared:
            return
        come: dict[str, Filter] = {}
        gone: dict[str, None] = {}
        for change in changed.changes:
            if change.source == LOCAL and change.table == SUBSCRIPTIONS:
                come.pop(change.entry, None)
                gone.pop(change.entry, None)
                if change.present:
                    come[change.entry] = change.filter
                else:
                    gone[change.entry] = None
        if come or gone:
            self._say(come, tuple(gone), out)

    def _say(self, come: Mapping[str, Filter], gone: Sequence[str], out: Outbox) -> None:
        for peer in self._told:
            if peer in self._acquaintances:
                for piece in in_pieces(texts(come)):
                    message = StandInOwn(self._roster.name, piece, tuple(gone), False, False)
                    out.send(peer, message, after=self._neighbours.teller.after)
