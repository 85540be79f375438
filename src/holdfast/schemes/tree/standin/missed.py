"""Events that a stand-in has passed on before it knew of all who want them (D0-A29, D0-A30, D0-B12).

They came with the subscriptions that want them. Of those that the stand-in does not know yet, it keeps the event: when
one comes, the event goes to where it came from, unless it went there before (`sentTo`). So a subscription that comes
late is served from here, one hop away, and nobody gets an event twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.model.batch import EventBatch


class _Kept:
    """One event."""

    __slots__ = ("event", "sent_to")

    def __init__(self, event: EventBatch, sent_to: dict[str, None]) -> None:
        self.event = event
        self.sent_to = sent_to  # the neighbour that it came from, too: nothing goes back


class Missed:
    """`matches` and `sentTo` of the paper; empty when nobody learns."""

    def __init__(self) -> None:
        self._matches: dict[str, list[_Kept]] = {}  # by subscriptions that are not known yet

    def __len__(self) -> int:
        return sum(map(len, self._matches.values()))

    def passed(
        self,
        source: str,
        batch: EventBatch,
        sent: Mapping[str, Sequence[int]],
        unknown: Sequence[Sequence[str]],
    ) -> None:
        """Events of a neighbour went on to others, by row; each is wanted by subscriptions, too, that are not known."""
        for row, entries in enumerate(unknown):
            if entries:
                sent_to = {source: None, **{peer: None for peer, rows in sent.items() if row in rows}}
                kept = _Kept(batch.part(row, row + 1).apart(), sent_to)
                for entry in entries:
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

    def clear(self) -> None:
        self._matches = {}
