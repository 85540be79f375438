"""Which events from other brokers came before: part of the core, so that a restart does not deliver them again.

From a neighbour that buffers, events have the numbers of its log, and what is not above the last one is a repetition
(D1-B4). Where events may come by two ways, the last broker remembers ids, the newest so many of them (D1-A15, D1-B6):
a repetition that is older than all of them would pass.

A client that goes from one broker to another says there again what was not answered. So what entered here is known,
too, as runs of each publisher's numbers: it does not count again when it arrives from the other broker, and does not
enter when it has arrived before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.model.event import Event

PUBLISHERS_MAX: Final = 10_000  # whose numbers are known; then the one that was silent for longest is forgotten
RUNS_MAX: Final = 32  # of numbers without a gap, of one publisher; then the oldest is forgotten

_Publisher = tuple[str, int]  # its name and its life


class ArrivalState(msgspec.Struct, frozen=True, array_like=True):
    arrived: dict[str, tuple[str, int]]
    remembered: list[tuple[str, int, int]]
    entered: list[tuple[str, int, list[tuple[int, int]]]] = []


class Arrivals:
    """What came from where, as far as it matters."""

    def __init__(self) -> None:
        self.remember_max = 0  # ids; 0: events come by one way only
        self._arrived: dict[str, tuple[str, int]] = {}  # neighbour → its log, and the last number of it
        self._remembered: set[tuple[str, int, int]] = set()
        self._in_order: deque[tuple[str, int, int]] = deque()
        self._entered: dict[_Publisher, list[tuple[int, int]]] = {}  # → first and last of each run, oldest first
        self.repetitions = 0  # since the start

    def fresh(self, source: str, feed: str, numbers: Sequence[int], events: Sequence[Event]) -> list[int]:
        """The rows of events that did not come before; they count as come from now on."""
        rows = list(range(len(events)))
        if feed and len(numbers) == len(events):
            known, last = self._arrived.get(source, (feed, 0))
            if known == feed:
                rows = [row for row in rows if numbers[row] > last]
            if numbers:
                self._arrived[source] = (feed, max(numbers[-1], last if known == feed else 0))
        if self._entered:
            rows = [row for row in rows if not self._has_entered(events[row])]
        if self.remember_max:
            rows = [row for row in rows if self._is_new(events[row])]
        self.repetitions += len(events) - len(rows)
        return rows

    def enter(self, events: Sequence[Event]) -> list[int]:
        """The rows of events, published here, that did not arrive from another broker before."""
        rows = list(range(len(events)))
        if self._remembered:
            ids = [(event.publisher, event.incarnation, event.sequence) for event in events]
            rows = [row for row in rows if ids[row] not in self._remembered]
            self.repetitions += len(events) - len(rows)
        entered: dict[_Publisher, list[int]] = {}  # of one publisher, as a rule
        for row in rows:
            event = events[row]
            entered.setdefault((event.publisher, event.incarnation), []).append(event.sequence)
        for publisher, numbers in entered.items():
            self._add_entered(publisher, numbers)
        return rows

    def _add_entered(self, publisher: _Publisher, numbers: list[int]) -> None:
        runs = self._entered.pop(publisher, None) or []
        if runs and runs[-1][1] + 1 == numbers[0] and numbers[-1] - numbers[0] == len(numbers) - 1:
            runs[-1] = (runs[-1][0], numbers[-1])  # as it nearly always is: they rise
        else:
            for number in numbers:
                if runs and runs[-1][1] + 1 == number:
                    runs[-1] = (runs[-1][0], number)
                else:
                    runs.append((number, number))
            del runs[:-RUNS_MAX]
        self._entered[publisher] = runs  # as the one that spoke last
        if len(self._entered) > PUBLISHERS_MAX:
            del self._entered[next(iter(self._entered))]

    def _has_entered(self, event: Event) -> bool:
        runs = self._entered.get((event.publisher, event.incarnation), ())
        return any(first <= event.sequence <= last for first, last in runs)

    def _is_new(self, event: Event) -> bool:
        id = (event.publisher, event.incarnation, event.sequence)
        if id in self._remembered:
            return False
        self._remembered.add(id)
        self._in_order.append(id)
        if len(self._in_order) > self.remember_max:
            self._remembered.remove(self._in_order.popleft())
        return True

    def get_state(self) -> ArrivalState | None:
        if not self._arrived and not self._remembered and not self._entered:
            return None
        entered = [(name, life, list(runs)) for (name, life), runs in self._entered.items()]
        return ArrivalState(self._arrived, list(self._in_order), entered)

    def set_state(self, state: ArrivalState | None) -> None:
        self._arrived = {} if state is None else dict(state.arrived)
        self._in_order = deque(() if state is None else state.remembered)
        self._remembered = set(self._in_order)
        self._entered = {} if state is None else {(name, life): list(runs) for name, life, runs in state.entered}
