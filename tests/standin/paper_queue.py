"""The wait-ready queue as the paper has it (D0-A27, D0-B11, D0-C24): an event is in it once for each subscription that
it matches. What Holdfast's is compared with."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from holdfast.model.batch import EMPTY, EventBatch
from holdfast.protocols.routing.targets import Targets

Place = int


class PaperQueue:
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
            waiting = [place for place in self._wait.pop(entry, ()) if place in self._events]
            if waiting:  # a queue of what has left by others takes no turn
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
                del self._wanted[place]
                return event
        return None

    def drain(self) -> EventBatch:
        """What is left, in the order in which it came: nothing is stranded (D0-B11.2)."""
        left = list(self._events.values())
        self._events, self._wanted, self._wait, self._ready = {}, {}, {}, {}
        return EventBatch.joined(left) if left else EMPTY
