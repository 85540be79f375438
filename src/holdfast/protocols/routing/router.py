"""The tables of one broker, and what follows from them for its neighbours. No links, no time, no messages.

Entries have a source: a neighbour in the tree, or the broker's own clients (`LOCAL`). Advertisements are told to every
neighbour but their source (D0-A6); subscriptions to the sources of advertisements that they intersect, never back to
their own; an advertisement that comes later pulls the subscriptions that are there (D0-B1, D0-B1.1). Without
advertisements, subscriptions are told to every neighbour (D1-B1). Events go to the sources of matching subscriptions,
once to each, never back (D1-B2). What is not told since something broader is, `Outlet` knows.

Neighbours come, go, and take each other's places. An entry may have two sources for a while: its broker moves from the
side of one to that of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from holdfast.kernel.node import require
from holdfast.model import Filter
from holdfast.model.batch import EventBatch
from holdfast.protocols.routing.covered import Changes, Outlet
from holdfast.protocols.routing.table import RoutingTable
from holdfast.protocols.routing.targets import Targets

LOCAL: Final = ""  # the source of what the broker's own clients want and advertise
SUBSCRIPTIONS: Final = "subscriptions"
ADVERTISEMENTS: Final = "advertisements"

# Filters are values: the same text is told by many neighbours, and parsed once.
parse_filter = lru_cache(maxsize=16_384)(Filter)


class TableChange(NamedTuple):
    """An entry came or went, for traces and for the disk."""

    table: str
    entry: str
    source: str
    filter: Filter
    present: bool


class Follows(Protocol):
    def follow(self, router: Router, neighbour: str) -> None:
        """What the neighbour is to be told of advertisements has changed."""


class UnderWay(Protocol):
    def under_way_beside(self, source: str) -> dict[str, int]:
        """What is on its way to neighbours beside a source: the last number for each."""

    def has_passed(self, neighbour: str, number: int) -> bool:
        """Whether a neighbour has it."""


class Router:
    """One broker's place in the tree."""

    def __init__(
        self,
        neighbours: Sequence[str],
        advertisements: bool = True,
        covering: bool = True,
        answers: Follows | None = None,
        under_way: UnderWay | None = None,
    ) -> None:
        """`answers`, of a level that buffers, follows which advertisements neighbours are told; `under_way` is what is
        on its way to them, and gets there before the advertisements that it falls under go."""
        self.neighbours = tuple(neighbours)  # to be read by others; `add_neighbour` and its like change it
        self.is_advertised = advertisements
        self._covering = covering
        sources = (LOCAL, *neighbours)
        self.subscriptions = RoutingTable(sources)  # D0-A4: they route events
        self.advertisements = RoutingTable(sources)  # D0-A3: they route subscriptions
        # What neighbours count as wanting, since they have not answered advertisements that they were told.
        self.expected = RoutingTable(neighbours)
        self.subscription_outlets = {neighbour: Outlet(covering) for neighbour in neighbours}
        self.advertisement_outlets = {neighbour: Outlet(covering) for neighbour in neighbours}
        self.targets = Targets()  # of subscriptions that neighbours told, or count as having
        self._answers = answers
        self._under_way = under_way
        self.postponed: dict[tuple[str, str], dict[str, int]] = {}  # advertisements that are to go → what they wait for
        self.changed: list[TableChange] = []  # since the last look
        self._version = self._checked = 0  # how often it was changed; and when it was last found sound

    # ---------------------------------------------------------------------------------------------- subscriptions
    def subscribe(self, source: str, entry: str, filter: Filter) -> None:
        if entry not in self.subscriptions.by_source[source]:
            self._want(self.subscriptions, source, entry, filter)

    def _want(self, table: RoutingTable, source: str, entry: str, filter: Filter) -> None:
        table.add(source, entry, filter)
        self._note(SUBSCRIPTIONS, entry, source, filter, True)
        if source != LOCAL:
            self.targets.add(source, entry, filter)
        for neighbour, outlet in self.subscription_outlets.items():
            if neighbour != source and self._leads_to(neighbour, filter):
                outlet.add(entry, filter)

    def unsubscribe(self, source: str, entry: str) -> None:
        self._want_no_longer(self.subscriptions, source, entry)

    def expect(self, neighbour: str, entry: str, filter: Filter) -> None:
        """The neighbour has not said what it wants of this: it counts as wanting all of it."""
        self._want(self.expected, neighbour, entry, filter)

    def forget_expected(self, neighbour: str, entry: str) -> None:
        self._want_no_longer(self.expected, neighbour, entry)

    def _want_no_longer(self, table: RoutingTable, source: str, entry: str) -> None:
        filter = table.remove(source, entry)
        if filter is None:
            return
        self._note(SUBSCRIPTIONS, entry, source, filter, False)
        if source != LOCAL:
            self.targets.remove(source, entry)
        for neighbour, outlet in self.subscription_outlets.items():
            if neighbour != source and not self._has_beside(neighbour, entry, self.subscriptions, self.expected):
                outlet.remove(entry)

    def _note(self, table: str, entry: str, source: str, filter: Filter, present: bool) -> None:
        self._version += 1
        self.changed.append(TableChange(table, entry, source, filter, present))

    def _leads_to(self, neighbour: str, filter: Filter) -> bool:
        """Whether something that the filter may match is advertised on the other side of a neighbour."""
        return not self.is_advertised or self.advertisements.intersects(neighbour, filter)

    # --------------------------------------------------------------------------------------------- advertisements
    def advertise(self, source: str, entry: str, filter: Filter) -> None:
        if not self.is_advertised:
            return
        if entry in self.advertisements.by_source[source]:
            self.postponed.pop((source, entry), None)
            return
        # What another of the source's advertisements covers pulls nothing that is not pulled already.
        pulls = source != LOCAL and not self.advertisements.covers(source, filter)
        self.advertisements.add(source, entry, filter)
        self._note(ADVERTISEMENTS, entry, source, filter, True)
        for neighbour, outlet in self.advertisement_outlets.items():
            if neighbour != source:
                outlet.add(entry, filter)
                self._advertisements_moved(neighbour)
        if pulls:
            pulled = self.subscription_outlets[source]
            for other, wanted in self.intersecting_beside(source, filter):
                pulled.add(other, wanted)

    def unadvertise(self, source: str, entry: str) -> None:
        """Not before what was published under it is taken in by the neighbours that it goes to (D1-B4): those who want
        it take their subscriptions back when the advertisement goes, and an event that comes behind finds nobody."""
        waits = {} if self._under_way is None else self._under_way.under_way_beside(source)
        if self._has_beside(source, entry, self.advertisements):
            waits = {}  # it stays, from another side
        if entry in self.advertisements.by_source[source] and waits:
            self.postponed.setdefault((source, entry), waits)
        else:
            self._unadvertise(source, entry)

    def release(self) -> None:
        """Takes back the advertisements that waited, and need not any more."""
        for (source, entry), waits in list(self.postponed.items()):
            feeds = self._under_way
            if feeds is None or all(feeds.has_passed(neighbour, number) for neighbour, number in waits.items()):
                del self.postponed[source, entry]
                self._unadvertise(source, entry)

    def _unadvertise(self, source: str, entry: str) -> None:
        if not self.is_advertised:
            return
        filter = self.advertisements.remove(source, entry)
        if filter is None:
            return
        self._note(ADVERTISEMENTS, entry, source, filter, False)
        for neighbour, outlet in self.advertisement_outlets.items():
            if neighbour != source and not self._has_beside(neighbour, entry, self.advertisements):
                outlet.remove(entry)
                self._advertisements_moved(neighbour)
        if source != LOCAL and not self.advertisements.covers(source, filter):
            left = self.subscription_outlets[source]
            for other, wanted in left.in_order(self.intersecting_beside(source, filter)):
                if not self._leads_to(source, wanted):
                    left.remove(other)

    def has_beside(self, neighbour: str, entry: str, table: str) -> bool:
        """Whether another source than the neighbour has an entry of one of the tables."""
        is_advertised = table == ADVERTISEMENTS
        tables = (self.advertisements,) if is_advertised else (self.subscriptions, self.expected)
        return self._has_beside(neighbour, entry, *tables)

    @staticmethod
    def _has_beside(neighbour: str, entry: str, *tables: RoutingTable) -> bool:
        """Whether another source than the neighbour has an entry: two have it while its broker moves from one side to
        the other."""
        return any(entry in of for table in tables for source, of in table.by_source.items() if source != neighbour)

    def _advertisements_moved(self, neighbour: str) -> None:
        if self._answers is not None:
            self._answers.follow(self, neighbour)

    def intersecting_beside(self, source: str, filter: Filter) -> list[tuple[str, Filter]]:
        """What intersects with a filter, but for what the source told itself, or counts as wanting."""
        return [
            item
            for table in (self.subscriptions, self.expected)
            for other in table.by_source
            if other != source
            for item in table.intersecting(other, filter)
        ]

    def beside(self, source: str) -> list[tuple[str, Filter]]:
        """All that others than the source want, or count as wanting."""
        return [
            item
            for table in (self.subscriptions, self.expected)
            for other, entries in table.by_source.items()
            if other != source
            for item in entries.items()
        ]

    # ------------------------------------------------------------------------------------- neighbours that change
    def add_neighbour(self, neighbour: str) -> None:
        """One that has told nothing yet. What it is to be told can be taken."""
        for table in (self.subscriptions, self.advertisements, self.expected):
            table.open(neighbour)
        self.neighbours = (*self.neighbours, neighbour)
        advertised = self.advertisement_outlets[neighbour] = Outlet(self._covering)
        wanted = self.subscription_outlets[neighbour] = Outlet(self._covering)
        for source, entries in self.advertisements.by_source.items():
            for entry, filter in entries.items() if source != neighbour else ():
                advertised.add(entry, filter)
        for table in (self.subscriptions, self.expected) if not self.is_advertised else ():
            for source, entries in table.by_source.items():
                for entry, filter in entries.items() if source != neighbour else ():
                    wanted.add(entry, filter)

    def remove_neighbour(self, neighbour: str) -> None:
        """One that advertises and wants nothing here any more."""
        for key in [key for key in self.postponed if key[0] == neighbour]:
            del self.postponed[key]
        for entry in list(self.advertisements.by_source[neighbour]):
            self._unadvertise(neighbour, entry)
        for entry in list(self.subscriptions.by_source[neighbour]):
            self.unsubscribe(neighbour, entry)
        for entry in list(self.expected.by_source[neighbour]):
            self.forget_expected(neighbour, entry)
        self._drop_neighbour(neighbour)

    def _drop_neighbour(self, neighbour: str) -> None:
        for table in (self.subscriptions, self.advertisements, self.expected):
            if neighbour in table.by_source:
                table.close(neighbour)
        self.targets.forget(neighbour)
        self.neighbours = tuple(other for other in self.neighbours if other != neighbour)
        del self.subscription_outlets[neighbour], self.advertisement_outlets[neighbour]

    def rewrite(self, old: str, new: str) -> None:
        """Everything beyond one neighbour is beyond the other from now on: all of it, or nothing, for each batch of
        events (D0-B1). The other one may be a neighbour already."""
        self._note_rewritten(old, new)
        self.targets.rewrite(old, new)
        if new in self.neighbours:
            self._merge_neighbours(old, new)
        else:
            for table in (self.subscriptions, self.advertisements, self.expected):
                table.rename(old, new)
            self.neighbours = tuple(new if other == old else other for other in self.neighbours)
            for outlets in (self.subscription_outlets, self.advertisement_outlets):
                outlets[new] = outlets.pop(old)
        for key, waits in list(self.postponed.items()):
            source = new if key[0] == old else key[0]
            if key[0] == old:
                del self.postponed[key]
            if key[0] == old or old in waits:
                # What was on its way there is on its way here, under other numbers.
                waits = {} if self._under_way is None else self._under_way.under_way_beside(source)
                self.postponed[source, key[1]] = waits

    def _note_rewritten(self, old: str, new: str) -> None:
        self._version += 1
        for name, table in ((SUBSCRIPTIONS, self.subscriptions), (SUBSCRIPTIONS, self.expected)):
            for entry, filter in table.by_source[old].items():
                self.changed += (
                    TableChange(name, entry, old, filter, False),
                    TableChange(name, entry, new, filter, True),
                )
        for entry, filter in self.advertisements.by_source[old].items():
            self.changed.append(TableChange(ADVERTISEMENTS, entry, old, filter, False))
            self.changed.append(TableChange(ADVERTISEMENTS, entry, new, filter, True))

    def _merge_neighbours(self, old: str, new: str) -> None:
        """What both told is there once. It is not told back to where it comes from now."""
        for table in (self.subscriptions, self.expected):
            for entry, filter in list(table.by_source[old].items()):
                table.remove(old, entry)
                if entry in table.by_source[new]:
                    self.targets.remove(new, entry)  # of the two in the index
                else:
                    table.add(new, entry, filter)
                if not self._has_beside(new, entry, self.subscriptions, self.expected):
                    self.subscription_outlets[new].remove(entry)
        advertised = self.advertisements.by_source
        for entry, filter in list(advertised[old].items()):
            self.advertisements.remove(old, entry)
            if entry not in advertised[new]:
                self.advertisements.add(new, entry, filter)
            if not self._has_beside(new, entry, self.advertisements):
                self.advertisement_outlets[new].remove(entry)
                self._advertisements_moved(new)
        for entry, filter in self.subscription_outlets[old].wanted.items():  # those that its advertisements pulled
            if self._has_beside(new, entry, self.subscriptions, self.expected):
                self.subscription_outlets[new].add(entry, filter)
        self._drop_neighbour(old)

    # ------------------------------------------------------------------------------------------------- neighbours
    def replace(self, source: str, advertisements: Mapping[str, Filter], subscriptions: Mapping[str, Filter]) -> None:
        """The source has told everything: what it did not name it does not advertise or want any more."""
        self.merge(source, advertisements, subscriptions)
        for entry in [entry for entry in self.advertisements.by_source[source] if entry not in advertisements]:
            self.unadvertise(source, entry)
        for entry in [entry for entry in self.subscriptions.by_source[source] if entry not in subscriptions]:
            self.unsubscribe(source, entry)

    def merge(self, source: str, advertisements: Mapping[str, Filter], subscriptions: Mapping[str, Filter]) -> None:
        """The source has told something more."""
        for entry, filter in advertisements.items():
            self.advertise(source, entry, filter)
        for entry, filter in subscriptions.items():
            self.subscribe(source, entry, filter)

    def take(self, neighbour: str) -> tuple[Changes, Changes]:
        """What the neighbour is to be told now: advertisements and subscriptions."""
        return self.advertisement_outlets[neighbour].take(), self.subscription_outlets[neighbour].take()

    def take_changed(self) -> list[TableChange]:
        changed, self.changed = self.changed, []
        return changed

    # ----------------------------------------------------------------------------------------------------- events
    def match(self, source: str, batch: EventBatch) -> dict[str, Sequence[int]]:
        """Which of the events go to which neighbours, by row; in order, once to each, never back."""
        rows = self.targets.resolve(self.targets.match(batch))
        rows.pop(source, None)
        return rows

    def check_invariants(self) -> None:
        if self._checked == self._version:
            return  # nothing has changed since
        self._checked = self._version
        counted = sum(len(table) for source, table in self.subscriptions.by_source.items() if source != LOCAL)
        require(len(self.targets) == counted + len(self.expected), "the index holds what neighbours want")
        for neighbour in self.neighbours:
            self.subscription_outlets[neighbour].check_invariants()
            self.advertisement_outlets[neighbour].check_invariants()
            tables = (self.subscriptions.by_source, self.expected.by_source)
            beside = {entry for table in tables for source in table if source != neighbour for entry in table[source]}
            told = self.subscription_outlets[neighbour].wanted.keys()
            require(told <= beside, "nothing is told back", neighbour=neighbour)
