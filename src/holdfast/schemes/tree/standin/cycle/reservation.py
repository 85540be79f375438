"""A broker that is no member says whether it is free to stand in for another, and is kept for who asks first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.flaws import is_name
from holdfast.protocols.routing.notices import MapChanged
from holdfast.protocols.routing.roster import Roster
from holdfast.schemes.tree.standin.cycle.messages import Reserve, Reserved

BROKERS: Final = frozenset({Role.BROKER})
KEPT_FOR: Final = 20 * SECOND  # by who asked last; it asks again while it is at it


class Reservation(Part):
    name: ClassVar[str] = "reservation"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Reserve: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (MapChanged,)
    due = False

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._for = ("", "")  # who asked, and for whom
        self._until = 0

    def on_reserve(self, peer: str, reserve: Reserve, out: Outbox) -> None:
        if not is_name(reserve.faulty):
            raise ProtocolError("nobody can be stood in for who has such a name")
        problem = self._against(peer, out.now)
        if not problem:
            self._for, self._until = (peer, reserve.faulty), out.now + KEPT_FOR
        out.send(peer, Reserved(reserve.faulty, problem), after=NOW)

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        """It was kept to become a member; when it rests again, it is free."""
        if self._roster.is_member:
            self._until = out.now

    def _against(self, peer: str, now: int) -> str:
        roster = self._roster
        if roster.is_member:
            return f"{roster.name} is a member already"
        if roster.name in roster.map.former:
            return f"{roster.name} was declared lost, and can't be a member again: give it a new id and an empty folder"
        if roster.is_replaced:
            return f"{roster.name} waits for its own place"
        if now < self._until and self._for[0] != peer:  # who asks sees to one broker at a time
            return f"{roster.name} is kept for {self._for[1]}, as {self._for[0]} asked"
        return ""
