"""Events that a stand-in has passed on before it knew of all who want them (D0-A29, D0-A30, D0-B12).

They came with the subscriptions that want them. Of those that the stand-in does not know yet, it keeps the event: when
one comes, the event goes to where it came from, unless it went there before (`sentTo`). So a subscription that comes
late is served from here, one hop away, and nobody gets an event twice.

With covering, whoever sent the event may know of none but a broader subscription, from another side: then all events
are kept, and what comes late is looked up by its filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.model.batch import EventBatch


class _Kept:
    """One event."""

    __slots__ = ("event", "sent_to")

    def __init__(self, event: EventBatch, sent_to: dict[str, None]) -> None:
        self.event = event
        self.sent_to = sent_to  # the neighbour that it came from, too: nothing goes back


class Missed:
    """`matches` and `sentTo` of the paper; empty when nobody learns."""

    def __init__(self, covering: bool = False) -> None:
        self._covering = covering
        self._matches: dict[str, list[_Kept]] = {}  # by subscriptions that are not known yet
        self._all: list[_Kept] = []  # with covering: in the order in which they came

    def __len__(self) -> int:
        return len(self._all) + sum(map(len, self._matches.values()))

    def passed(
        self,
        source: str,
        batch: EventBatch,
        sent: Mapping[str, Sequence[int]],
        unknown: Sequence[Sequence[str]],
    ) -> None:
        """Events of a neighbour went on to others, by row; each is wanted by subscriptions, too, that are not known."""
        for row, entries in enumerate(unknown):
            if entries or self._covering:
                sent_to = {source: None, **{peer: None for peer, rows in sent.items() if row in rows}}
                kept = _Kept(batch.part(row, row + 1).apart(), sent_to)
                if self._covering:
                    self._all.append(kept)
                for entry in () if self._covering else entries:
                    self._matches.setdefault(entry, []).append(kept)

    def awaited(self) -> list[str]:
        """The subscriptions that events are kept for."""
        return list(self._matches)

    def take(self, entry: str, neighbour: str) -> list[EventBatch]:
        """A subscription has come from a neighbour: the events that are to go there, in their order."""
        found = []
        for kept in self._matches.pop(entry, ()):
            if neighbour not in kept.sent_to:
                kept.sent_to[neighbour] = None
                found.append(kept.event)
        return found

    def matching(self, filters: Mapping[str, Filter], neighbour: str) -> list[EventBatch]:
        """Subscriptions have come from a neighbour, where others may be hidden: the same by their filters."""
        candidates = [kept for kept in self._all if neighbour not in kept.sent_to]
        if not candidates or not filters:
            return []
        index = FilterIndex[str]()
        for entry, filter in filters.items():
            index.add(entry, filter)
        events = EventBatch.joined([kept.event for kept in candidates])
        matched = index.match_encoded(events)
        found = []
        for row in events.rows_in(list(matched.values())) if matched else ():
            candidates[row].sent_to[neighbour] = None
            found.append(candidates[row].event)
        return found

    def clear(self) -> None:
        self._matches, self._all = {}, []
