"""Where events go, in two steps: which targets want them, and which link leads to each of those.

A target is a set of entries that are wanted on one side, with the links by which it is reached, as ordered
alternatives: as a rule the one to the neighbour that told them. `match` looks at events and entries, `resolve` at
links, now; so what is reached by another link from now on is rewritten in one stroke, however many entries it has, and
no batch is matched against one half of the old and one half of the new (D0-B1, D0-A6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from holdfast.kernel.node import require
from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.model.batch import EventBatch

Target: TypeAlias = int
Choose: TypeAlias = Callable[[tuple[str, ...]], str]  # one of the alternatives


def first(alternatives: tuple[str, ...]) -> str:
    return alternatives[0]


_NONE: Final[tuple[Target, ...]] = ()


class Targets:
    """Entries by neighbour and id; an entry may be wanted by several neighbours."""

    __slots__ = ("_alternatives", "_index", "_last", "_of")

    def __init__(self) -> None:
        self._index: FilterIndex[tuple[Target, str]] = FilterIndex()
        self._of: dict[str, tuple[Target, ...]] = {}  # neighbour → its targets; what comes is added to the last
        self._alternatives: dict[Target, tuple[str, ...]] = {}
        self._last = 0

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._index)

    def add(self, neighbour: str, entry: str, filter: Filter) -> None:
        """Of an entry that the neighbour does not have."""
        targets = self._of.get(neighbour, _NONE)
        if not targets:
            self._last += 1
            targets = self._of[neighbour] = (self._last,)
            self._alternatives[self._last] = (neighbour,)
        self._index.add((targets[-1], entry), filter)

    def remove(self, neighbour: str, entry: str) -> None:
        for target in self._of[neighbour]:
            if (target, entry) in self._index:
                self._index.remove((target, entry))
                return
        require(False, "an entry that goes was there", neighbour=neighbour, entry=entry)

    # ------------------------------------------------------------------------------------------------------- events
    def match(self, batch: EventBatch) -> dict[Target, Sequence[int]]:
        """Which targets want which of the events, by row; rows rise."""
        if not len(self._index):
            return {}
        wanted: dict[Target, list[Sequence[int]]] = {}
        for (target, _), rows in self._index.match_encoded(batch).items():
            wanted.setdefault(target, []).append(rows)
        return {target: batch.rows_in(lists) for target, lists in wanted.items()}

    def match_entries(self, neighbour: str, batch: EventBatch) -> dict[str, Sequence[int]]:
        """Which entries of one neighbour want which of the events, by row."""
        targets = self._of.get(neighbour, _NONE)
        matched = self._index.match_encoded(batch) if targets else {}
        return {entry: rows for (target, entry), rows in matched.items() if target in targets}

    def resolve(self, wanted: Mapping[Target, Sequence[int]], choose: Choose = first) -> dict[str, Sequence[int]]:
        """By which links those rows go now: each event once by each."""
        links: dict[str, Sequence[int]] = {}
        for target, rows in wanted.items():
            link = choose(self._alternatives[target])
            before = links.get(link)
            links[link] = rows if before is None else sorted({*before, *rows})
        return links

    # ------------------------------------------------------------------------------------------------------- changes
    def alternatives(self, neighbour: str) -> tuple[str, ...]:
        """By which links what a neighbour wants is reached, the usual one first."""
        targets = self._of.get(neighbour, _NONE)
        return self._alternatives[targets[-1]] if targets else (neighbour,)

    def lead(self, neighbour: str, alternatives: tuple[str, ...]) -> None:
        """What a neighbour wants is reached by these links from now on, the usual one first."""
        require(bool(alternatives), "a target is reached somehow", neighbour=neighbour)
        for target in self._of.get(neighbour, _NONE):
            self._alternatives[target] = alternatives

    def rewrite(self, old: str, new: str) -> None:
        """What was wanted by one neighbour is wanted by the other from now on, and reached by the link to that one."""
        moved = self._of.pop(old, _NONE)
        for target in moved:
            links = [new if link == old else link for link in self._alternatives[target]]
            self._alternatives[target] = tuple(dict.fromkeys(links))
        if moved:
            self._of[new] = (*moved, *self._of.get(new, _NONE))

    def forget(self, neighbour: str) -> None:
        """Of a neighbour that wants nothing any more, and is gone."""
        for target in self._of.pop(neighbour, _NONE):
            del self._alternatives[target]
