"""`Relations`: which of many filters intersect with a filter, are covered by it, or cover it, without asking them all.

A filter becomes rows: the conjunctions that `plan` finds in it, as sets of values by attribute. An event has a value
for every attribute, so that one access for each row finds it; a filter leaves attributes open, and intersects with all
rows that bind none of its own. So rows stand in *groups*, those that bind the same attributes, and in a group each
attribute has its `Axis`. Of the attributes that a question and a group share, the one decides that leaves the fewest
candidates; where they share none, all of the group are. Candidates are compared by `Filter.intersects` and
`Filter.covers`, whose answers these are. ADR 15 says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeAlias

from holdfast.errors import DuplicateId, UnknownId
from holdfast.matching.axis import Axis
from holdfast.matching.engine import Id
from holdfast.matching.ordered import Found
from holdfast.matching.plan import alternatives
from holdfast.model.canonical import Membership, Opaque
from holdfast.model.covering import needed_names
from holdfast.model.domain import Domain
from holdfast.model.filter import Filter

FEW: Final = 4  # candidates: for so many no better access is looked for

Find: TypeAlias = Callable[[Axis, Domain], Found]


class Conditions(NamedTuple):
    """What one conjunction says: sets of values by attribute, and what else it may imply."""

    domains: Mapping[str, Domain]
    # Attributes that it may narrow further, by comparing expressions; None: any, since not all of it is said here.
    doubtful: tuple[str, ...] | None


def conditions_of(filter: Filter) -> list[Conditions]:
    """One of these holds for each event that matches; none, if nothing can match."""
    found = []
    for parts, is_complete in alternatives(filter.canonical_form):
        domains: dict[str, Domain] = {}
        needed: dict[str, None] = {}
        for part in parts:
            if isinstance(part, Membership):
                domains[part.name] = part.domain
            elif isinstance(part, Opaque):
                needed |= dict.fromkeys(needed_names(part.node))
        found.append(Conditions(domains, tuple(sorted(needed)) if is_complete else None))
    return found


class _Group:
    """Rows that bind the same attributes, and leave the same in doubt."""

    __slots__ = ("axes", "doubtful", "rows")

    def __init__(self, names: Iterable[str], doubtful: tuple[str, ...] | None) -> None:
        self.axes = {name: Axis() for name in names}
        self.doubtful = doubtful
        self.rows: dict[int, None] = {}


class _Entry(Generic[Id]):
    """A filter, and where its rows are."""

    __slots__ = ("filter", "id", "order", "rows")

    def __init__(self, id: Id, filter: Filter, order: int) -> None:
        self.id = id
        self.filter = filter
        self.order = order
        self.rows: list[tuple[int, Conditions]] = []


class Relations(Generic[Id]):
    """Filters under ids. Results name each id once, in the order of addition."""

    __slots__ = ("_compared", "_entries", "_groups", "_impossible", "_last", "_rows", "_searched")

    def __init__(self) -> None:
        self._entries: dict[Id, _Entry[Id]] = {}
        self._rows: dict[int, _Entry[Id]] = {}
        self._groups: dict[tuple[tuple[str, ...], tuple[str, ...] | None], _Group] = {}
        self._impossible: dict[int, _Entry[Id]] = {}  # by order: filters without rows, which nothing matches
        self._last = 0  # of the numbers of entries and rows
        self._searched = self._compared = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, id: Id, filter: Filter) -> None:
        """Adds a filter. An id that is present already raises DuplicateId."""
        found = conditions_of(filter)
        entry = _Entry(id, filter, self._next())
        if self._entries.setdefault(id, entry) is not entry:
            raise DuplicateId(f"there is a filter under the id {id!r} already; remove it first", id)
        if not found:
            self._impossible[entry.order] = entry
        for conditions in found:
            row = self._next()
            entry.rows.append((row, conditions))
            self._rows[row] = entry
            key = _key(conditions)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = _Group(key[0], conditions.doubtful)
            group.rows[row] = None
            for name, domain in conditions.domains.items():
                group.axes[name].add(domain, row)

    def remove(self, id: Id) -> None:
        """Removes the filter under this id, or raises UnknownId."""
        entry = self._entries.pop(id, None)
        if entry is None:
            raise UnknownId(f"there is no filter under the id {id!r}", id)
        self._impossible.pop(entry.order, None)
        for row, conditions in entry.rows:
            del self._rows[row]
            key = _key(conditions)
            group = self._groups[key]
            del group.rows[row]
            if not group.rows:
                del self._groups[key]
                continue
            for name, domain in conditions.domains.items():
                group.axes[name].remove(domain, row)

    def _next(self) -> int:
        self._last += 1
        return self._last

    def counters(self) -> dict[str, int]:
        """What is held, and how much work was done: groups that were searched, filters that were compared."""
        return {
            "rows": len(self._rows),
            "groups": len(self._groups),
            "groups_searched": self._searched,
            "filters_compared": self._compared,
        }

    # ---------------------------------------------------------------------------------------------------- questions
    def intersecting(self, filter: Filter) -> list[Id]:
        """The ids of the filters that some event may match together with `filter`."""
        return self._all(self._meeting(filter), filter.intersects)

    def intersects(self, filter: Filter) -> bool:
        """Whether there is any such filter. Looks no further than the first."""
        return self._any(self._meeting(filter), filter.intersects)

    def covered_by(self, filter: Filter) -> list[Id]:
        """The ids of the filters that `filter` covers."""
        return self._all(self._within(filter), filter.covers)

    def covering(self, filter: Filter) -> list[Id]:
        """The ids of the filters that cover `filter`."""
        return self._all(self._holding(filter), lambda candidate: candidate.covers(filter))

    def covers(self, filter: Filter) -> bool:
        """Whether there is any such filter. Looks no further than the first."""
        return self._any(self._holding(filter), lambda candidate: candidate.covers(filter))

    def _all(self, candidates: Iterator[_Entry[Id]], holds: Callable[[Filter], bool]) -> list[Id]:
        once = {entry.order: entry for entry in candidates}
        self._compared += len(once)
        return [once[order].id for order in sorted(once) if holds(once[order].filter)]

    def _any(self, candidates: Iterator[_Entry[Id]], holds: Callable[[Filter], bool]) -> bool:
        for entry in candidates:
            self._compared += 1
            if holds(entry.filter):
                return True
        return False

    # --------------------------------------------------------------------------------------------------- candidates
    def _meeting(self, filter: Filter) -> Iterator[_Entry[Id]]:
        """What shares no value with the question on one attribute intersects with it on none."""
        for domains, _ in conditions_of(filter):
            for group in self._groups.values():
                names = [name for name in group.axes if name in domains]
                yield from self._fewest(group, names, domains, Axis.meeting)

    def _within(self, filter: Filter) -> Iterator[_Entry[Id]]:
        """What is covered is bound where the question binds, and to a part; or nothing matches it."""
        yield from self._impossible.values()
        for domains, _ in conditions_of(filter):
            for group in self._groups.values():
                doubtful = group.doubtful
                if doubtful is None:
                    yield from self._fewest(group, [], domains, Axis.within)
                    continue
                names = [name for name in domains if name not in doubtful]
                if all(name in group.axes for name in names):
                    yield from self._fewest(group, names, domains, Axis.within)

    def _holding(self, filter: Filter) -> Iterator[_Entry[Id]]:
        """What covers the question covers each of its conjunctions: it binds nothing else, and to no less."""
        asked = next((found for found in conditions_of(filter) if found.doubtful is not None), None)
        if asked is None:
            yield from self._entries.values()
            return
        domains, doubtful = asked.domains, asked.doubtful or ()
        for group in self._groups.values():
            names = [name for name in group.axes if name not in doubtful]
            if all(name in domains for name in names):
                yield from self._fewest(group, names, domains, Axis.holding)

    def _fewest(
        self, group: _Group, names: Iterable[str], domains: Mapping[str, Domain], find: Find
    ) -> Iterator[_Entry[Id]]:
        """The rows of a group that one of these attributes leaves."""
        self._searched += 1
        best: Iterable[int] = group.rows
        size = len(group.rows)
        for name in names:
            if size <= FEW:
                break
            found = find(group.axes[name], domains[name])
            if found.size < size:
                best, size = found, found.size
        for row in best:
            yield self._rows[row]


def _key(conditions: Conditions) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    return tuple(sorted(conditions.domains)), conditions.doubtful
