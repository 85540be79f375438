"""What a neighbour tells of its side, read and checked; and all of it from one who is about to be a neighbour."""

from __future__ import annotations

from typing import Final, Protocol

from holdfast.errors import ProtocolError
from holdfast.model import Filter
from holdfast.protocols.routing.local import broker_of
from holdfast.protocols.routing.messages import Routes, Told, checked_entry
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.tellings import Telling, parse

ENTRIES_MAX: Final = 1_000_000  # that one neighbour may tell


def read(roster: Roster, source: str, routes: Routes) -> Telling:
    return Telling(_parse(roster, source, routes.advertisements), _parse(roster, source, routes.subscriptions))


def _parse(roster: Roster, source: str, told: list[Told]) -> dict[str, Filter]:
    """What is told from the side of a neighbour. Entries are told apart by ids all over the network: one may only be
    told by the side that its broker is on, or the neighbours' entries would get in each other's way. What a broker
    wants that is gone is told until all have taken it back: it may hide what others want."""
    for entry, _ in told:
        broker = broker_of(entry)
        if not checked_entry(entry) and not roster.was_member(broker) and not roster.is_on_side(broker, source):
            raise ProtocolError(f"in Routes, {entry[:64]!r} is of no broker on the side of {source}")
    return parse(told)


def knows_all(roster: Roster, routes: Routes) -> bool:
    """Whether all entries are of members."""
    told = (*routes.advertisements, *routes.subscriptions)
    return all(roster.knows(broker_of(entry)) for entry, _ in told if not checked_entry(entry))


def check_room(peer: str, *tellings: Telling) -> None:
    if sum(len(table) for telling in tellings for table in telling) > 2 * ENTRIES_MAX:
        raise ProtocolError(f"{peer} tells more than {ENTRIES_MAX} entries, twice over")


class Aside(Protocol):
    """What is told by one who is no neighbour in the tree, and is kept apart from the tables."""

    telling: Telling

    def hear(self, routes: Routes, telling: Telling) -> None: ...

    def lose(self) -> None:
        """Its link is gone; it tells everything again on the next one."""


class Prospect:
    """All that a broker has told that is about to be a neighbour."""

    __slots__ = ("has_told", "is_complete", "telling", "tickets")

    def __init__(self) -> None:
        self.lose()

    def lose(self) -> None:
        self.telling = Telling({}, {})
        self.has_told = False  # everything that it has to tell
        self.is_complete = False  # that is all there is beyond it
        self.tickets: list[int] = []  # under which it asked

    def hear(self, routes: Routes, telling: Telling) -> None:
        if routes.full:
            self.telling = telling
            self.has_told, self.is_complete = True, routes.complete
        else:
            for table, told, gone in (
                (self.telling.advertisements, telling.advertisements, routes.unadvertised),
                (self.telling.subscriptions, telling.subscriptions, routes.unsubscribed),
            ):
                table.update(told)
                for entry in gone:
                    table.pop(entry, None)
        if routes.ticket:
            self.tickets.append(routes.ticket)
