"""Which events from other brokers came before: part of the core, so that a restart does not deliver them again.

From a neighbour that buffers, events have the numbers of its log, and what is not above the last one is a repetition
(D1-B4). Where events may come by two ways, the last broker remembers ids (D1-A15, D1-B6):

- of an event that came around a failure, where brokers buffer, until the copy that is stored for the tree has come: so
  as many as are stored. No count would do: a queue of ids that all come again in the same order has forgotten each of
  them just before it comes;
- of any other, among the newest so many: the way around is not much slower than the tree.

All of that is asked and noted by runs of a publisher's numbers, and event by event only where some of a run are known.

A client that goes from one broker to another says there again what was not answered. So what entered here is known,
too, as runs of each publisher's numbers: it does not count again when it arrives from the other broker, and does not
enter when it has arrived before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from holdfast.model.batch import EventBatch
from holdfast.protocols.core.recent_ids import IdRun, Publisher, RecentIds

PUBLISHERS_MAX: Final = 10_000  # whose numbers are known; then the one that was silent for longest is forgotten
RUNS_MAX: Final = 32  # of numbers without a gap, of one publisher; then the oldest is forgotten
# Events that came around, and wait for what is stored of them, which does not come if nobody wants it any more. Of more
# than so many every second one is forgotten, and counted: it may come twice.
AROUND_MAX: Final = 1_000_000


class ArrivalState(msgspec.Struct, frozen=True, array_like=True):
    arrived: dict[str, tuple[str, int]]
    remembered: list[tuple[str, int, int]]  # of an older state: the ids of `recent` one by one
    entered: list[tuple[str, int, list[tuple[int, int]]]] = []
    around: list[tuple[str, int, int, int]] = []  # an event's id, and its deadline
    recent: list[IdRun] = []


class Arrivals:
    """What came from where, as far as it matters."""

    def __init__(self, remember_max: int = 0, are_stored: bool = False) -> None:
        """`remember_max`: ids; 0: events come by one way. `are_stored`: what comes around comes by the tree, too."""
        self._remembers = remember_max > 0
        self.are_stored = are_stored
        self.forgotten = 0  # events that came around, and of which a repetition would pass; since the start
        # Events that came around, and are still to come on the tree: publisher → number → deadline, 0 for none.
        self._around: dict[Publisher, dict[int, int]] = {}
        self._around_count = 0
        self._arrived: dict[str, tuple[str, int]] = {}  # neighbour → its log, and the last number of it
        self._recent = RecentIds(remember_max)
        self._entered: dict[Publisher, list[tuple[int, int]]] = {}  # → first and last of each run, oldest first
        self.repetitions = 0  # since the start

    def fresh(self, source: str, feed: str, numbers: Sequence[int], batch: EventBatch, wall: int = 0) -> Sequence[int]:
        """The rows of events that did not come before; they count as come from now on.

        `numbers` are those in the feed of the source; of the first event alone, if they have no gap.
        """
        is_stored = bool(feed and numbers) and len(numbers) in (1, len(batch))
        skipped = self._repeated(source, feed, numbers, len(batch)) if is_stored else 0
        came_around = self.are_stored and not is_stored
        deadlines = batch.deadlines if came_around else None
        found: list[range] = []
        row = 0
        for name, life, first, count in batch.publishers:
            publisher, begin = (name, life), first + max(0, skipped - row)
            for start, last in self._new(publisher, begin, first + count - 1, came_around):
                rows = range(row + start - first, row + last - first + 1)
                found.append(rows)
                if came_around:
                    times = [0] * len(rows) if deadlines is None else deadlines[rows.start : rows.stop]
                    self._note_around(publisher, start, times, wall)
                elif self._remembers:
                    self._recent.add(publisher, start, last)
            row += count
        return self._counted(batch, found)

    def _repeated(self, source: str, feed: str, numbers: Sequence[int], count: int) -> int:
        """How many of the first events the source has sent before; from now on all of them."""
        known, last = self._arrived.get(source, (feed, 0))
        if known != feed:
            last = 0
        newest = numbers[-1] if len(numbers) == count else numbers[0] + count - 1
        self._arrived[source] = (feed, max(newest, last))
        return bisect_right(numbers, last) if len(numbers) == count else min(max(0, last + 1 - numbers[0]), count)

    def _counted(self, batch: EventBatch, found: Sequence[range]) -> Sequence[int]:
        count = sum(map(len, found))
        self.repetitions += len(batch) - count
        return range(count) if count == len(batch) else [row for rows in found for row in rows]

    def _new(self, publisher: Publisher, first: int, last: int, came_around: bool) -> Iterator[tuple[int, int]]:
        """Runs of numbers that are not known. To be noted before one asks for the next one."""
        if first > last:
            return
        entered = [run for run in self._entered.get(publisher, ()) if first <= run[1] and run[0] <= last]
        if not entered and not self._has_arrived(publisher, first, last):
            yield first, last
            return
        for number in range(first, last + 1):
            if any(begin <= number <= end for begin, end in entered):
                continue
            if not self._has_arrived(publisher, number, number):
                yield number, number
            elif not came_around and number in self._around.get(publisher, ()):
                self._forget_around(publisher, number)  # it may still come around, for a while
                self._recent.add(publisher, number, number)

    def _has_arrived(self, publisher: Publisher, first: int, last: int) -> bool:
        """Whether any of these numbers has, as far as is known."""
        around = self._around.get(publisher)
        if around is not None and any(number in around for number in range(first, last + 1)):
            return True
        return self._recent.has(publisher, first, last)

    def enter(self, batch: EventBatch) -> Sequence[int]:
        """The rows of events, published here, that did not arrive from another broker before."""
        found: list[range] = []
        row = 0
        for name, life, first, count in batch.publishers:
            publisher, last = (name, life), first + count - 1
            step = 1 if self._has_arrived(publisher, first, last) else count
            for number in range(first, last + 1, step):
                if step > 1 or not self._has_arrived(publisher, number, number):
                    found.append(range(row + number - first, row + number - first + step))
                    self._add_entered(publisher, number, number + step - 1)
            row += count
        return self._counted(batch, found)

    def _add_entered(self, publisher: Publisher, first: int, last: int) -> None:
        runs = self._entered.pop(publisher, None) or []
        if runs and runs[-1][1] + 1 == first:
            runs[-1] = (runs[-1][0], last)  # as it nearly always is: they rise
        else:
            runs.append((first, last))
            del runs[:-RUNS_MAX]
        self._entered[publisher] = runs  # as the one that spoke last
        if len(self._entered) > PUBLISHERS_MAX:
            del self._entered[next(iter(self._entered))]

    # ---------------------------------------------------------------------------------------------- around a failure
    def _note_around(self, publisher: Publisher, first: int, deadlines: Sequence[int], wall: int) -> None:
        if not self._remembers:
            return
        for number, deadline in enumerate(deadlines, first):
            self._around.setdefault(publisher, {})[number] = deadline
            self._around_count += 1
            if self._around_count > AROUND_MAX:
                self._make_room(wall)

    def _forget_around(self, publisher: Publisher, number: int) -> None:
        around = self._around[publisher]
        del around[number]
        self._around_count -= 1
        if not around:
            del self._around[publisher]

    def _make_room(self, wall: int) -> None:
        """What is over is handed on by nobody."""
        left = [item for item in self._listed() if not 0 < item[3] <= wall]
        if len(left) > AROUND_MAX // 2:
            self.forgotten += (len(left) + 1) // 2
            left = left[1::2]
        self._set_around(left)

    def _listed(self) -> list[tuple[str, int, int, int]]:
        return [(*publisher, *item) for publisher, around in self._around.items() for item in around.items()]

    def _set_around(self, listed: Sequence[tuple[str, int, int, int]]) -> None:
        self._around, self._around_count = {}, len(listed)
        for name, life, number, deadline in listed:
            self._around.setdefault((name, life), {})[number] = deadline

    # ---------------------------------------------------------------------------------------------------------- state
    def get_state(self) -> ArrivalState | None:
        if not self._arrived and not self._recent and not self._entered and not self._around:
            return None
        entered = [(name, life, list(runs)) for (name, life), runs in self._entered.items()]
        return ArrivalState(self._arrived, [], entered, self._listed(), self._recent.get_state())

    def set_state(self, state: ArrivalState | None) -> None:
        state = state or ArrivalState({}, [])
        self._arrived = dict(state.arrived)
        self._recent.set_state([(*id, 1) for id in state.remembered] + state.recent)
        self._entered = {(name, life): list(runs) for name, life, runs in state.entered}
        self._set_around(state.around)
