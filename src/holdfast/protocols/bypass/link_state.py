"""News of links, told to everyone who can be reached (D1-A11, D1-B5): the part that carries the database around."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import LinkDown, LinkUp, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.protocols.bypass.database import Database
from holdfast.protocols.bypass.messages import LinkStates

BROKERS: Final = frozenset({Role.BROKER})


class LinkStateNews:
    """A part of a broker's node. A failure detector says who is up; `changed` is called when the view may be another.

    News of a turn go out at its end, and wait for no disk: they claim nothing of it.
    """

    name: ClassVar[str] = "link_state"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {LinkStates: BROKERS}

    def __init__(self, database: Database) -> None:
        self.database = database
        self.changed: Callable[[Outbox], None] = lambda out: None
        self.is_introduced: Callable[[str], bool] = lambda peer: True  # whether it is known to be of this network
        self._neighbours = frozenset(database.overlay.neighbours(database.own))
        self._links: dict[str, int] = {}
        self._told = self._heard = 0

    # ----------------------------------------------------------------------------------------------------- our own
    def suspected(self, neighbour: str, reason: str, out: Outbox) -> None:
        """From the failure detector."""
        if self.database.set_up(neighbour, False):
            self.changed(out)

    def trusted(self, neighbour: str, out: Outbox) -> None:
        """From the failure detector."""
        if self.database.set_up(neighbour, True):
            self.changed(out)

    def set_ready(self, ready: bool, out: Outbox) -> None:
        """Whether this broker has its routing table."""
        if self.database.set_ready(ready):
            self.changed(out)

    # ------------------------------------------------------------------------------------------------------- links
    def on_started(self, started: Started, out: Outbox) -> None:
        self.database.start(started.incarnation)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is Role.BROKER and up.peer in self._neighbours:
            self._links[up.peer] = up.link
            if self.database.link_up(up.peer, up.incarnation):
                self.changed(out)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if self._links.get(down.peer) == down.link:
            del self._links[down.peer]
            self.database.link_down(down.peer)

    def on_link_states(self, peer: str, message: LinkStates, out: Outbox) -> None:
        if not self.is_introduced(peer):
            raise ProtocolError("news of links come behind an introduction")
        news = self.database.merge(peer, message.states)
        self._heard += 1
        if news:
            self.changed(out)

    def finish(self, out: Outbox) -> None:
        for neighbour, states in self.database.take_owed():
            out.send(neighbour, LinkStates(states), after=NOW)
            self._told += 1

    # ---------------------------------------------------------------------------------------------------- operators
    def measure(self) -> dict[str, int]:
        return {"link_states_sent_total": self._told, "link_states_received_total": self._heard}

    def check_invariants(self) -> None:
        self.database.check_invariants()
