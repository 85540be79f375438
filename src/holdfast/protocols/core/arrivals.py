"""Which events from other brokers came before: part of the core, so that a restart does not deliver them again.

From a neighbour that buffers, events have the numbers of its log, and what is not above the last one is a repetition
(D1-B4). Where events may come by two ways, the last broker remembers ids (D1-A15, D1-B6):

- of an event that came around a failure, where brokers buffer, until the copy that is stored for the tree has come: so
  as many as are stored. No count would do: a queue of ids that all come again in the same order has forgotten each of
  them just before it comes;
- of any other, among the newest so many: the way around is not much slower than the tree.

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
# Events that came around, and wait for what is stored of them, which does not come if nobody wants it any more. Of more
# than so many every second one is forgotten, and counted: it may come twice.
AROUND_MAX: Final = 1_000_000

_Publisher = tuple[str, int]  # its name and its life
_Id = tuple[str, int, int]  # of an event: its publisher's, and its number


class ArrivalState(msgspec.Struct, frozen=True, array_like=True):
    arrived: dict[str, tuple[str, int]]
    remembered: list[tuple[str, int, int]]
    entered: list[tuple[str, int, list[tuple[int, int]]]] = []
    around: list[tuple[str, int, int, int]] = []  # an event's id, and its deadline


class Arrivals:
    """What came from where, as far as it matters."""

    def __init__(self, remember_max: int = 0, are_stored: bool = False) -> None:
        """`remember_max`: ids; 0: events come by one way. `are_stored`: what comes around comes by the tree, too."""
        self.remember_max = remember_max
        self.are_stored = are_stored
        self.forgotten = 0  # events that came around, and of which a repetition would pass; since the start
        self._around: dict[_Id, int] = {}  # events that came around, and are still to come on the tree → deadline
        self._arrived: dict[str, tuple[str, int]] = {}  # neighbour → its log, and the last number of it
        self._remembered: set[_Id] = set()
        self._in_order: deque[_Id] = deque()
        self._entered: dict[_Publisher, list[tuple[int, int]]] = {}  # → first and last of each run, oldest first
        self.repetitions = 0  # since the start

    def fresh(
        self, source: str, feed: str, numbers: Sequence[int], events: Sequence[Event], wall: int = 0
    ) -> list[int]:
        """The rows of events that did not come before; they count as come from now on."""
        rows = list(range(len(events)))
        is_stored = bool(feed) and len(numbers) == len(events)
        if is_stored:
            known, last = self._arrived.get(source, (feed, 0))
            if known == feed:
                rows = [row for row in rows if numbers[row] > last]
            if numbers:
                self._arrived[source] = (feed, max(numbers[-1], last if known == feed else 0))
        if self._entered:
            rows = [row for row in rows if not self._has_entered(events[row])]
        if self.remember_max:
            rows = [row for row in rows if self._is_new(events[row], self.are_stored and not is_stored, wall)]
        self.repetitions += len(events) - len(rows)
        return rows

    def enter(self, events: Sequence[Event]) -> list[int]:
        """The rows of events, published here, that did not arrive from another broker before."""
        rows = list(range(len(events)))
        if self._remembered or self._around:
            ids = [(event.publisher, event.incarnation, event.sequence) for event in events]
            rows = [row for row in rows if ids[row] not in self._remembered and ids[row] not in self._around]
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

    def _is_new(self, event: Event, came_around: bool, wall: int) -> bool:
        id = (event.publisher, event.incarnation, event.sequence)
        if id in self._around:
            if not came_around:  # it may still come around, for a while
                del self._around[id]
                self._remember(id)
            return False
        if id in self._remembered:
            return False
        if came_around:
            self._around[id] = event.deadline if event.lifetime else 0
            if len(self._around) > AROUND_MAX:
                self._make_room(wall)
        else:
            self._remember(id)
        return True

    def _make_room(self, wall: int) -> None:
        """What is over is handed on by nobody."""
        left = [item for item in self._around.items() if not 0 < item[1] <= wall]
        if len(left) > AROUND_MAX // 2:
            self.forgotten += (len(left) + 1) // 2
            left = left[1::2]
        self._around = dict(left)

    def _remember(self, id: _Id) -> None:
        self._remembered.add(id)
        self._in_order.append(id)
        if len(self._in_order) > self.remember_max:
            self._remembered.remove(self._in_order.popleft())

    def get_state(self) -> ArrivalState | None:
        if not self._arrived and not self._remembered and not self._entered and not self._around:
            return None
        entered = [(name, life, list(runs)) for (name, life), runs in self._entered.items()]
        around = [(*id, deadline) for id, deadline in self._around.items()]
        return ArrivalState(self._arrived, list(self._in_order), entered, around)

    def set_state(self, state: ArrivalState | None) -> None:
        self._arrived = {} if state is None else dict(state.arrived)
        self._in_order = deque(() if state is None else state.remembered)
        self._remembered = set(self._in_order)
        self._entered = {} if state is None else {(name, life): list(runs) for name, life, runs in state.entered}
        self._around = {} if state is None else {(name, life, n): deadline for name, life, n, deadline in state.around}
