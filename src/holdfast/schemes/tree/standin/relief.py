"""What a neighbour of a broker and its stand-in knows of the one that stands beside: the tables of a second way.

Events go along the tree, in which the stand-in is not: what the neighbour's own tables say is what the broker tells.
The stand-in tells the same of the other sides, and what it has named it can be given events for. It is told what the
broker is told; so the two are alike but for what is under way, and for clients of the broker's own.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.protocols.routing.covered import Changes, Outlet
from holdfast.protocols.routing.messages import Routes
from holdfast.protocols.routing.network_map import Beside
from holdfast.protocols.routing.router import ADVERTISEMENTS, Router, TableChange
from holdfast.protocols.routing.table import RoutingTable
from holdfast.protocols.routing.tellings import Telling

_ITS = ""  # the only source of what the stand-in advertises


class Relief:
    """One stand-in beside its broker, a neighbour."""

    def __init__(self, router: Router, beside: Beside, covering: bool) -> None:
        self.name = beside.name
        self.side = beside.faulty
        self.mode = beside.mode
        self._router = router
        self._advertised = RoutingTable((_ITS,))
        self.telling = Telling(self._advertised.by_source[_ITS], {})  # what it has told
        self._named: FilterIndex[str] = FilterIndex()  # of that, the subscriptions
        self._is_known: dict[str, bool] = {}  # of subscriptions of the broker that were asked about since then
        self._covering = covering
        self.advertisements = Outlet(covering)  # what it is told
        self.subscriptions = Outlet(covering)
        self.tickets: list[int] = []  # under which it asked
        self.is_synced = False  # it was told everything on this link
        for source, entries in router.advertisements.by_source.items():
            for entry, filter in entries.items() if source != self.side else ():
                self.advertisements.add(entry, filter)
        if not router.is_advertised:
            for entry, filter in router.beside(self.side):
                self.subscriptions.add(entry, filter)

    def _leads_to(self, filter: Filter) -> bool:
        return not self._router.is_advertised or self._advertised.intersects(_ITS, filter)

    def follow(self, changes: Iterable[TableChange]) -> None:
        """The neighbour's own tables have changed."""
        for change in changes:
            if change.source == self.side:
                continue
            outlet = self.advertisements if change.table == ADVERTISEMENTS else self.subscriptions
            if not change.present:
                if not self._router.has_beside(self.side, change.entry, change.table):
                    outlet.remove(change.entry)
            elif outlet is self.advertisements or self._leads_to(change.filter):
                outlet.add(change.entry, change.filter)

    def hear(self, routes: Routes, telling: Telling) -> None:
        """The stand-in tells of the other sides."""
        gone, unwanted = list(routes.unadvertised), list(routes.unsubscribed)
        if routes.full and routes.complete:
            gone = [entry for entry in self.telling.advertisements if entry not in telling.advertisements]
            unwanted = [entry for entry in self.telling.subscriptions if entry not in telling.subscriptions]
        for entry, filter in telling.advertisements.items():
            self._advertise(entry, filter)
        for entry in gone:
            self._unadvertise(entry)
        self._is_known = {}
        for entry, filter in telling.subscriptions.items():
            if entry not in self.telling.subscriptions:
                self.telling.subscriptions[entry] = filter
                self._named.add(entry, filter)
        for entry in unwanted:
            if self.telling.subscriptions.pop(entry, None) is not None:
                self._named.remove(entry)
        if routes.ticket:
            self.tickets.append(routes.ticket)

    def _advertise(self, entry: str, filter: Filter) -> None:
        if entry not in self.telling.advertisements:
            self._advertised.add(_ITS, entry, filter)
            for subscription, wanted in self._router.intersecting_beside(self.side, filter):
                self.subscriptions.add(subscription, wanted)

    def _unadvertise(self, entry: str) -> None:
        if self._advertised.remove(_ITS, entry) is not None:
            for subscription, wanted in list(self.subscriptions.wanted.items()):
                if not self._leads_to(wanted):
                    self.subscriptions.remove(subscription)

    def sync(self) -> None:
        """All that there is to tell is told otherwise, or is about to be: what changes from now on is to be told."""
        self.is_synced = True
        self.take()

    def take(self) -> tuple[Changes, Changes]:
        """What it is to be told of what has changed."""
        return self.advertisements.take(), self.subscriptions.take()

    def take_tickets(self) -> list[int]:
        tickets, self.tickets = self.tickets, []
        return tickets

    def lose(self) -> None:
        """Its link is gone: it names what it knows anew, and is told everything. What was advertised beyond it stays
        known: else it would be told that nobody wants it."""
        self.is_synced = False
        self.tickets = []
        self.telling.subscriptions.clear()
        self._named, self._is_known = FilterIndex(), {}

    def knows(self, entry: str) -> bool:
        """Whether the stand-in has named a subscription that the broker told; or, with covering, one that is broader:
        of two that are alike, each of them may name the other one."""
        if entry in self.telling.subscriptions:
            return True
        if not self._covering:
            return False
        if entry not in self._is_known:
            filter = self._router.subscriptions.by_source[self.side].get(entry)
            self._is_known[entry] = filter is not None and self._named.first_covering(filter) is not None
        return self._is_known[entry]
