"""The wait-ready queue: events for a stand-in that is still learning, each of which leaves when it knows of a
subscription that wants the event (D0-A27, D0-B11).

An event is there once for each subscription that it matches: in its wait queue until that has come from the
stand-in, then in its ready queue. Ready queues are served in turn. What has left by one queue is in the log, and is
skipped in the others (D0-A28). What the stand-in is told otherwise does not pass here, and so never waits behind
events: links have a lane for it.

Its memory is Θ(f·|P|), the events times the subscriptions that each matches (D0-C24), and is given back when it is
drained.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from holdfast.kernel.messages import Message
from holdfast.model.batch import EMPTY, EventBatch
from holdfast.protocols.routing.feed import Discipline
from holdfast.protocols.routing.targets import Targets
from holdfast.schemes.tree.standin.messages import StandInForward

Place: TypeAlias = int  # an event's, in the order in which they were put


class WaitReady(Discipline):
    """Of one stand-in, beyond which the targets know subscriptions."""

    def __init__(self, targets: Targets, stand_in: str) -> None:
        self._targets = targets
        self._stand_in = stand_in
        self._events: dict[Place, EventBatch] = {}  # that are still to leave: the log is what is not in it any more
        self._wanted: dict[Place, list[str]] = {}
        self._last = 0
        self._wait: dict[str, deque[Place]] = {}
        self._ready: dict[str, deque[Place]] = {}  # in the order in which they are served
        self._known: dict[str, None] = {}  # subscriptions that have come from the stand-in
        self._labels: dict[str, list[str]] = {}  # of events that were taken: by id, who wants them

    def __len__(self) -> int:
        return len(self._events)

    @property
    def indexed(self) -> int:
        """How many places in queues there are."""
        return sum(len(queue) for queues in (self._wait, self._ready) for queue in queues.values())

    def put(self, events: EventBatch) -> None:
        first = self._last + 1
        for row in range(len(events)):
            self._last += 1
            self._events[self._last] = events.part(row, row + 1).apart()
            self._wanted[self._last] = []
        for entry, rows in self._targets.match_entries(self._stand_in, events).items():
            queues = self._ready if entry in self._known else self._wait
            queue = queues.setdefault(entry, deque())
            for row in rows:
                queue.append(first + row)
                self._wanted[first + row].append(entry)

    def arrived(self, entries: Iterable[str]) -> None:
        """These subscriptions have come from the stand-in: what waits for them may leave."""
        for entry in entries:
            self._known[entry] = None
            waiting = self._wait.pop(entry, None)
            if waiting is not None:
                self._ready.setdefault(entry, deque()).extend(waiting)

    def take(self, bytes_max: int) -> EventBatch:
        """One of each ready queue in turn, until there is no room."""
        taken: list[EventBatch] = []
        size = 0
        while self._ready and size < bytes_max:
            entry, queue = next(iter(self._ready.items()))
            del self._ready[entry]
            event = self._next(queue)
            if queue:
                self._ready[entry] = queue  # behind the others
            if event is not None:
                taken.append(event)
                size += event.bytes
        return EventBatch.joined(taken) if taken else EMPTY

    def _next(self, queue: deque[Place]) -> EventBatch | None:
        """The first event of a queue that has not left by another one."""
        while queue:
            place = queue.popleft()
            event = self._events.pop(place, None)
            if event is not None:
                self._labels[event.ids[0]] = self._wanted.pop(place)
                return event
        return None

    def in_message(self, first: int, events: EventBatch) -> Message:
        """With the subscriptions that want each of them."""
        return StandInForward(first, events.encoded, [self._labels.pop(event, []) for event in events.ids])

    def drain(self) -> EventBatch:
        """What is left, in the order in which it came: nothing is stranded (D0-B11.2)."""
        left = list(self._events.values())
        self._events, self._wanted, self._wait, self._ready, self._labels = {}, {}, {}, {}, {}
        return EventBatch.joined(left) if left else EMPTY
