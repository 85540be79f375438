"""A router that compares with every entry, as the paper's rules read: the oracle of the one that looks things up."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model import Filter
from holdfast.protocols.routing.covered import Outlet
from holdfast.protocols.routing.router import ADVERTISEMENTS, LOCAL, Router


class PlainOutlet(Outlet):
    def add(self, entry: str, filter: Filter) -> None:
        if entry in self.wanted:
            return
        self.wanted[entry] = filter
        self._places[entry] = len(self._places)
        above = [other for other, told in self._told.items() if self._covering and told.covers(filter)]
        if above:
            self._hide(entry, above[0])
        else:
            self._tell(entry, filter)

    def _uncover(self, entries: list[str]) -> None:
        broadest: dict[str, dict[str, None]] = {}  # entry → those that it covers
        for entry in entries:
            filter = self.wanted[entry]
            above = [other for other, told in self._told.items() if told.covers(filter)]
            if above:
                self._hide(entry, above[0])
                continue
            over = next((other for other in broadest if self.wanted[other].covers(filter)), None)
            if over is not None:
                broadest[over][entry] = None
                continue
            below = {entry: None}
            for other in [other for other in broadest if filter.covers(self.wanted[other])]:
                below |= broadest.pop(other)
            broadest[entry] = below
        for entry, below in broadest.items():
            self._tell(entry, self.wanted[entry])
            for other in below:
                if other != entry:
                    self._hide(other, entry)


class PlainRouter(Router):
    def __init__(self, neighbours: Sequence[str], advertisements: bool = True, covering: bool = True) -> None:
        super().__init__(neighbours, advertisements, covering)
        self.subscription_outlets = {neighbour: PlainOutlet(covering) for neighbour in neighbours}
        self.advertisement_outlets = {neighbour: PlainOutlet(covering) for neighbour in neighbours}

    def _leads_to(self, neighbour: str, filter: Filter) -> bool:
        advertisements = self.advertisements.by_source[neighbour].values()
        return not self.is_advertised or any(one.intersects(filter) for one in advertisements)

    def advertise(self, source: str, entry: str, filter: Filter) -> None:
        if not self.is_advertised or entry in self.advertisements.by_source[source]:
            return
        self.advertisements.add(source, entry, filter)
        self._note(ADVERTISEMENTS, entry, source, filter, True)
        for neighbour, outlet in self.advertisement_outlets.items():
            if neighbour != source:
                outlet.add(entry, filter)
        if source != LOCAL:
            pulled = self.subscription_outlets[source]
            for other, wanted in self._beside(source):
                if other not in pulled.wanted and wanted.intersects(filter):
                    pulled.add(other, wanted)

    def _unadvertise(self, source: str, entry: str) -> None:
        filter = self.advertisements.remove(source, entry)
        if filter is None:
            return
        self._note(ADVERTISEMENTS, entry, source, filter, False)
        for neighbour, outlet in self.advertisement_outlets.items():
            if neighbour != source:
                outlet.remove(entry)
        if source != LOCAL:
            left = self.subscription_outlets[source]
            for other, wanted in list(left.wanted.items()):
                if wanted.intersects(filter) and not self._leads_to(source, wanted):
                    left.remove(other)

    def _beside(self, source: str) -> list[tuple[str, Filter]]:
        return [
            item
            for table in (self.subscriptions, self.expected)
            for other, entries in table.by_source.items()
            if other != source
            for item in entries.items()
        ]
