"""One table of a broker: entries by source and id, and which of a source's entries intersect with a filter.

How the entries of a source stand to filters is looked up in `Relations`, made when it is asked for the first time: it
never is for what the broker's own clients advertise, nor where nothing is advertised.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kernel.node import require
from holdfast.matching.relations import Relations
from holdfast.model import Filter


class RoutingTable:
    """Entries by source and id."""

    __slots__ = ("_relations", "by_source")

    def __init__(self, sources: Sequence[str]) -> None:
        self.by_source: dict[str, dict[str, Filter]] = {source: {} for source in sources}  # to be read by others
        self._relations: dict[str, Relations[str]] = {}

    def __len__(self) -> int:
        return sum(map(len, self.by_source.values()))

    def add(self, source: str, entry: str, filter: Filter) -> None:
        """Of an entry that the source does not have."""
        self.by_source[source][entry] = filter
        if source in self._relations:
            self._relations[source].add(entry, filter)

    def remove(self, source: str, entry: str) -> Filter | None:
        """The filter of what is gone now; None, if there was nothing."""
        filter = self.by_source[source].pop(entry, None)
        if filter is not None and source in self._relations:
            self._relations[source].remove(entry)
        return filter

    def open(self, source: str) -> None:
        """There is a source that has no entries yet."""
        self.by_source.setdefault(source, {})

    def close(self, source: str) -> None:
        """A source is gone, and has no entries any more."""
        require(not self.by_source.pop(source), "a source that is gone has no entries", source=source)
        self._relations.pop(source, None)

    def rename(self, old: str, new: str) -> None:
        """All entries of a source have another one, which has none so far."""
        require(not self.by_source.get(new), "entries are not mixed up", old=old, new=new)
        # In the place that the old one has among the sources.
        self.by_source = {
            new if source == old else source: of for source, of in self.by_source.items() if source != new
        }
        if old in self._relations:
            self._relations[new] = self._relations.pop(old)

    def intersects(self, source: str, filter: Filter) -> bool:
        """Whether any of a source's entries intersects with a filter."""
        return self._related(source).intersects(filter)

    def intersecting(self, source: str, filter: Filter) -> list[tuple[str, Filter]]:
        """A source's entries that intersect with a filter, in the order in which they came."""
        entries = self.by_source[source]
        return [(entry, entries[entry]) for entry in self._related(source).intersecting(filter)]

    def covers(self, source: str, filter: Filter) -> bool:
        """Whether any of a source's entries covers a filter."""
        return self._related(source).covers(filter)

    def _related(self, source: str) -> Relations[str]:
        relations = self._relations.get(source)
        if relations is None:
            relations = self._relations[source] = Relations()
            for entry, filter in self.by_source[source].items():
                relations.add(entry, filter)
        return relations

    def compared(self) -> int:
        """How many entries have been compared with filters so far."""
        return sum(relations.counters()["filters_compared"] for relations in self._relations.values())
