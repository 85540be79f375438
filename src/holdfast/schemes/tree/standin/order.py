"""Events that come by two ways, put in the order of each publisher (D0-B14).

A neighbour of a broker whose work a stand-in shares gets the events of one publisher from both, in turn. An event is
handed on when both ways have got as far: they have brought an event of that publisher with its number or a higher one,
or a signal that says so (D0-A23). Numbers are compared and never waited for one by one, since filters leave gaps
(D0-B14.1), and each publisher has its own (D0-B14.2).

What the broker brings before the first signal came through it is from before the work was shared, and is handed on at
once. What the stand-in brings before a signal came through it may be in any order, and says nothing of how far it is
(D0-B14.3).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Final, TypeAlias

from holdfast.model.batch import EventBatch

Number: TypeAlias = tuple[int, int]  # a publisher's life, and its events in it
_NONE: Final[Number] = (-1, -1)
_ALL: Final[Number] = (2**63, 0)


class _Way:
    """By which events come."""

    __slots__ = ("has_begun", "is_closed", "through")

    def __init__(self) -> None:
        self.has_begun = False  # a signal has come by it
        self.is_closed = False  # nothing comes by it for now
        self.through: dict[str, Number] = {}  # publisher → how far it has brought its events

    def begin(self) -> None:
        self.has_begun = True

    def close(self) -> None:
        self.is_closed = True

    def reach(self, publisher: str, number: Number) -> None:
        self.through[publisher] = max(self.through.get(publisher, _NONE), number)

    def reached(self, publisher: str) -> Number:
        return _ALL if self.is_closed else self.through.get(publisher, _NONE)


class Order:
    """Of one broker and its stand-in."""

    def __init__(self, faulty: str, stand_in: str) -> None:
        self._faulty, self._stand_in = faulty, stand_in
        self._over: dict[str, None] = {}  # those who give the stand-in nothing any more
        self._ways = {faulty: _Way(), stand_in: _Way()}
        self._held: dict[str, list[tuple[Number, EventBatch]]] = {}  # by publisher, in order

    def __len__(self) -> int:
        """How many events are held back."""
        return sum(map(len, self._held.values()))

    def came(self, way: str, batch: EventBatch) -> list[EventBatch]:
        """Events have come; gives those that are to be handed on now, in order."""
        by, row = self._ways[way], 0
        is_older = way == self._faulty and not by.has_begun and not by.is_closed
        moved: dict[str, None] = {}
        for publisher, incarnation, first, count in batch.publishers:
            for sequence in range(first, first + count):
                number = (incarnation, sequence)
                if not is_older:
                    held = self._held.setdefault(publisher, [])
                    insort(held, (number, batch.part(row, row + 1).apart()), key=itemgetter(0))
                    moved[publisher] = None
                if by.has_begun or way == self._faulty:
                    by.reach(publisher, number)
                row += 1
        return [batch] if is_older else self._release(moved)

    def signalled(self, way: str, through: Mapping[str, Number]) -> list[EventBatch]:
        """A signal has come by a way: all that was sent by it before has come."""
        by = self._ways[way]
        by.begin()
        for publisher, number in through.items():
            by.reach(publisher, number)
        return self._release(list(self._held))

    def ended(self, origin: str, origins: Iterable[str]) -> list[EventBatch]:
        """One of those who share events out gives the stand-in none any more, and all that it gave has come."""
        self._over[origin] = None
        return self.close(self._stand_in) if all(each in self._over for each in origins) else []

    @property
    def is_over(self) -> bool:
        """Whether nothing is held back, and nothing comes by the stand-in."""
        return not self._held and self._ways[self._stand_in].is_closed

    def close(self, way: str) -> list[EventBatch]:
        """Nothing more comes by a way for now: nothing waits for it."""
        self._ways[way].close()
        return self._release(list(self._held))

    def open(self, way: str) -> None:
        """Something may come by a way again, if nothing could."""
        if self._ways[way].is_closed:
            self._ways[way] = opened = _Way()
            if way == self._faulty:
                opened.begin()  # the work is shared all the time

    def flush(self) -> list[EventBatch]:
        """Everything, each publisher's in order."""
        held, self._held = self._held, {}
        return [event for events in held.values() for _, event in events]

    def _release(self, publishers: Iterable[str]) -> list[EventBatch]:
        released: list[EventBatch] = []
        for publisher in publishers:
            held = self._held.get(publisher)
            if not held:
                continue
            through = min(way.reached(publisher) for way in self._ways.values())
            count = 0
            while count < len(held) and held[count][0] <= through:
                count += 1
            released += [event for _, event in held[:count]]
            del held[:count]
            if not held:
                del self._held[publisher]
        return released
