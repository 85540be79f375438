"""Which events from other brokers came before: part of the core, so that a restart does not deliver them again.

From a neighbour that buffers, events have the numbers of its log, and what is not above the last one is a repetition
(D1-B4). Where events may come by two ways, the last broker remembers ids, the newest so many of them (D1-A15, D1-B6):
a repetition that is older than all of them would pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from holdfast.model.event import Event


class ArrivalState(msgspec.Struct, frozen=True, array_like=True):
    arrived: dict[str, tuple[str, int]]
    remembered: list[tuple[str, int, int]]


class Arrivals:
    """What came from where, as far as it matters."""

    def __init__(self) -> None:
        self.remember_max = 0  # ids; 0: events come by one way only
        self._arrived: dict[str, tuple[str, int]] = {}  # neighbour → its log, and the last number of it
        self._remembered: set[tuple[str, int, int]] = set()
        self._in_order: deque[tuple[str, int, int]] = deque()
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
        if self.remember_max:
            rows = [row for row in rows if self._is_new(events[row])]
        self.repetitions += len(events) - len(rows)
        return rows

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
        if not self._arrived and not self._remembered:
            return None
        return ArrivalState(self._arrived, list(self._in_order))

    def set_state(self, state: ArrivalState | None) -> None:
        self._arrived = {} if state is None else dict(state.arrived)
        self._in_order = deque(() if state is None else state.remembered)
        self._remembered = set(self._in_order)
