"""What one neighbour is told of one table: everything that it should know, less what something broader says already.

An entry that one already told covers is not told (D2-B3); an equal one counts as covered, and an entry is not compared
with itself (D2-B3.1). When an entry that was told goes, exactly what it hid and nothing else tells is told in its
place, and of that only the broadest (D2-B4, D2-B4.1). What was told stays told while it is wanted, also when something
broader comes later.

Changes are collected until they are taken, so that what comes and goes within a turn is never told at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from holdfast.kernel.node import require
from holdfast.matching import FilterIndex
from holdfast.model import Filter


class Changes(NamedTuple):
    """Entries to be told, with their filters, and those to be taken back."""

    told: Mapping[str, Filter]
    taken_back: Mapping[str, Filter]

    def __bool__(self) -> bool:
        return bool(self.told or self.taken_back)


NOTHING: Final = Changes(MappingProxyType({}), MappingProxyType({}))


# Entries, and behind one that covered others, those: a list that is put into another costs nothing, however long.
_Tree: TypeAlias = list["str | _Tree"]


def _flattened(tree: _Tree) -> Iterator[str]:
    pending = tree[::-1]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            yield one
        else:
            pending += reversed(one)


class Outlet:
    """Entries by id. Ids are never used again for another filter."""

    __slots__ = (
        "_covering",
        "_hidden_by",
        "_hides",
        "_last_place",
        "_moves",
        "_places",
        "_told",
        "_told_now",
        "_untold_now",
        "wanted",
    )

    def __init__(self, covering: bool) -> None:
        self._covering = covering
        self.wanted: dict[str, Filter] = {}
        self._places: dict[str, int] = {}  # of what is wanted, in the order in which it came
        self._last_place = 0
        self._told: FilterIndex[str] = FilterIndex()
        self._hidden_by: dict[str, str] = {}
        self._hides: dict[str, dict[str, None]] = {}
        self._told_now: dict[str, Filter] = {}
        self._untold_now: dict[str, Filter] = {}
        self._moves: list[tuple[str, Filter, bool]] | None = None  # for who follows what is told

    def __len__(self) -> int:
        """How many entries are told."""
        return len(self._told)

    @property
    def hidden(self) -> int:
        return len(self._hidden_by)

    def told(self) -> dict[str, Filter]:
        """All that the neighbour is told, with what it is about to be told."""
        return dict(self._told.items())

    def told_as(self, entry: str) -> str:
        """The entry that says an entry to the neighbour: itself, or what hides it; empty if it is not wanted."""
        return self._hidden_by.get(entry, entry) if entry in self.wanted else ""

    def said_by(self, entry: str) -> dict[str, Filter]:
        """All that an entry which is told says: itself, and what it hides."""
        return {one: self.wanted[one] for one in (entry, *self._hides.get(entry, ()))}

    def add(self, entry: str, filter: Filter) -> None:
        if entry in self.wanted:
            return
        self.wanted[entry] = filter
        self._last_place += 1
        self._places[entry] = self._last_place
        above = self._told.first_covering(filter) if self._covering else None
        if above is None:
            self._tell(entry, filter)
        else:
            self._hide(entry, above)

    def in_order(self, entries: Iterable[tuple[str, Filter]]) -> list[tuple[str, Filter]]:
        """Those of the entries that are wanted, in the order in which they came to be."""
        wanted = [(self._places[entry], entry, filter) for entry, filter in entries if entry in self.wanted]
        return [(entry, filter) for _, entry, filter in sorted(wanted, key=itemgetter(0))]

    def remove(self, entry: str) -> None:
        filter = self.wanted.pop(entry, None)
        if filter is None:
            return
        del self._places[entry]
        above = self._hidden_by.pop(entry, None)
        if above is not None:
            del self._hides[above][entry]
            return
        self._untell(entry, filter)
        hidden = list(self._hides.pop(entry, ()))
        for one in hidden:
            del self._hidden_by[one]
        self._uncover(hidden)

    def _uncover(self, entries: list[str]) -> None:
        """What hid these is gone: tells the broadest of those that nothing else covers."""
        if not entries:
            return
        broadest: FilterIndex[str] = FilterIndex()
        below: dict[str, _Tree] = {}  # of the broadest, with what they cover
        for entry in entries:
            filter = self.wanted[entry]
            above = self._told.first_covering(filter)
            if above is not None:
                self._hide(entry, above)
                continue
            over = broadest.first_covering(filter)
            if over is not None:
                below[over].append(entry)
                continue
            covered: _Tree = []
            for other in broadest.covered_by(filter):
                broadest.remove(other)
                covered += [other, below.pop(other)]
            broadest.add(entry, filter)
            below[entry] = covered
        for entry, covered in below.items():
            self._tell(entry, self.wanted[entry])
            for other in _flattened(covered):
                self._hide(other, entry)

    def _hide(self, entry: str, above: str) -> None:
        self._hidden_by[entry] = above
        self._hides.setdefault(above, {})[entry] = None

    def _tell(self, entry: str, filter: Filter) -> None:
        self._told.add(entry, filter)
        if entry in self._untold_now:
            del self._untold_now[entry]  # the neighbour still has it
        else:
            self._told_now[entry] = filter
        if self._moves is not None:
            self._moves.append((entry, filter, True))

    def _untell(self, entry: str, filter: Filter) -> None:
        self._told.remove(entry)
        if self._told_now.pop(entry, None) is None:
            self._untold_now[entry] = filter
        if self._moves is not None:
            self._moves.append((entry, filter, False))

    def track(self) -> None:
        """From now on each entry that comes to be told, or not any more, can be taken by `take_moves`; as the first,
        those that are told now."""
        self._moves = [(entry, filter, True) for entry, filter in self._told.items()]

    def take_moves(self) -> list[tuple[str, Filter, bool]]:
        """Entries, and whether they are told now; in order."""
        moves, self._moves = self._moves or [], []
        return moves

    def take(self) -> Changes:
        """What has changed since the last time."""
        if not self._told_now and not self._untold_now:
            return NOTHING  # as in nearly all turns
        changes = Changes(self._told_now, self._untold_now)
        self._told_now, self._untold_now = {}, {}
        return changes

    def check_invariants(self) -> None:
        told = self.told()
        require(told.keys() | self._hidden_by.keys() == self.wanted.keys(), "what is wanted is told or hidden")
        require(not told.keys() & self._hidden_by.keys(), "what is told is not hidden")
        for entry, above in self._hidden_by.items():
            require(above in told, "what hides an entry is told", entry=entry, above=above)
            require(told[above].covers(self.wanted[entry]), "what hides an entry covers it", entry=entry, above=above)
            require(entry in self._hides[above], "who hides what is known", entry=entry, above=above)


def broadest(entries: Mapping[str, Filter]) -> list[Filter]:
    """Filters without those that others before them cover."""
    index = FilterIndex[str]()
    for entry, filter in entries.items():
        if index.first_covering(filter) is None:
            index.add(entry, filter)
    return [filter for _, filter in index.items()]
