"""The wait-ready queue: events for a stand-in that is still learning, each of which leaves when it knows of a
subscription that wants the event (D0-A27, D0-B11).

Each subscription has a queue, which waits until that subscription has come from the stand-in, and is ready then. Ready
queues are served in turn, each in the order in which its events came. What has left by one queue is gone from the
others (D0-A28). What the stand-in is told otherwise does not pass here, and so never waits behind events: links have a
lane for it.

Events that the same subscriptions want are a *group*, and what stands in the queues are groups: so the memory is that
of the events, and of the sizes of the sets that differ (D0-F1). Where all events match all subscriptions, there is one
group (D0-B11.3); where no two events match the same ones, it is the paper's, the events times the subscriptions that
each matches (D0-C24). A group goes with its last event, and everything when the queue is drained.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from operator import itemgetter
from typing import TypeAlias

from holdfast.kernel.messages import Message
from holdfast.model.batch import EMPTY, EventBatch
from holdfast.protocols.routing.feed import Discipline
from holdfast.protocols.routing.settings import SubscriptionOrder
from holdfast.protocols.routing.targets import Targets
from holdfast.schemes.tree.standin.messages import StandInForward

Place: TypeAlias = int  # an event's, in the order in which they were put


class _Group:
    """Events that are still to leave, and that the same subscriptions want, in their order."""

    __slots__ = ("entries", "events")

    def __init__(self, entries: tuple[str, ...]) -> None:
        self.entries = entries
        self.events: deque[tuple[Place, EventBatch]] = deque()

    @property
    def first(self) -> Place:
        return self.events[0][0]


# Groups by the place of the first event of each: at most that, since events may have left by other queues.
_Ready: TypeAlias = list[tuple[Place, _Group]]


class WaitReady(Discipline):
    """Of one stand-in, beyond which the targets know subscriptions."""

    def __init__(self, targets: Targets, stand_in: str) -> None:
        self._targets = targets
        self._stand_in = stand_in
        self._groups: dict[tuple[str, ...], _Group] = {}
        self._waiting = 0
        self._references = 0  # from queues to groups
        self._last = 0
        self._wait: dict[str, dict[_Group, None]] = {}
        self._ready: dict[str, _Ready] = {}  # in the order in which they are served
        self._known: dict[str, None] = {}  # subscriptions that have come from the stand-in
        self._labels: dict[str, tuple[str, ...]] = {}  # of events that were taken: by id, who wants them
        self.waiting_peak = 0
        self.indexed_peak = 0

    def __len__(self) -> int:
        return self._waiting

    @property
    def indexed(self) -> int:
        """How many places there are: of events in groups, and of groups in queues."""
        return self._waiting + self._references

    def put(self, events: EventBatch) -> None:
        wanted: list[list[str]] = [[] for _ in range(len(events))]
        matched = self._targets.match_entries(self._stand_in, events)
        for entry in sorted(matched):  # the same set is the same tuple
            for row in matched[entry]:
                wanted[row].append(entry)
        for row, entries in enumerate(wanted):
            self._last += 1
            group = self._groups.get(tuple(entries))
            if group is None:
                group = self._add_group(tuple(entries))
            group.events.append((self._last, events.part(row, row + 1).apart()))
        self._waiting += len(events)
        self.waiting_peak = max(self.waiting_peak, self._waiting)
        self.indexed_peak = max(self.indexed_peak, self.indexed)

    def _add_group(self, entries: tuple[str, ...]) -> _Group:
        group = self._groups[entries] = _Group(entries)
        self._references += len(entries)
        for entry in entries:
            if entry in self._known:
                heappush(self._ready.setdefault(entry, []), (self._last, group))
            else:
                self._wait.setdefault(entry, {})[group] = None
        return group

    def _remove_group(self, group: _Group) -> None:
        """The last of its events has left. Ready queues find that out when it is their turn."""
        del self._groups[group.entries]
        for entry in group.entries:
            waiting = self._wait.get(entry)
            if waiting is not None:
                del waiting[group]
                self._references -= 1
                if not waiting:
                    del self._wait[entry]

    def arrived(self, entries: Iterable[str]) -> None:
        """These subscriptions have come from the stand-in: what waits for them may leave."""
        for entry in entries:
            self._known[entry] = None
            for group in self._wait.pop(entry, ()):
                heappush(self._ready.setdefault(entry, []), (group.first, group))

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
        self._waiting -= len(taken)
        return EventBatch.joined(taken) if taken else EMPTY

    def _next(self, queue: _Ready) -> EventBatch | None:
        """The first event of a queue that has not left by another one."""
        while queue:
            place, group = heappop(queue)
            if not group.events:
                self._references -= 1
            elif place < group.first:
                heappush(queue, (group.first, group))
            else:
                _, event = group.events.popleft()
                if group.events:
                    heappush(queue, (group.first, group))
                else:
                    self._references -= 1
                    self._remove_group(group)
                self._labels[event.ids[0]] = group.entries
                return event
        return None

    def in_message(self, first: int, events: EventBatch) -> Message:
        """With the subscriptions that want each of them."""
        return StandInForward(first, events.encoded, [list(self._labels.pop(event, ())) for event in events.ids])

    def drain(self) -> EventBatch:
        """What is left, in the order in which it came: nothing is stranded (D0-B11.2)."""
        left = sorted((each for group in self._groups.values() for each in group.events), key=itemgetter(0))
        self._groups, self._wait, self._ready, self._labels = {}, {}, {}, {}
        self._waiting = self._references = 0
        return EventBatch.joined([event for _, event in left]) if left else EMPTY

    def preferred(self, order: SubscriptionOrder) -> list[str]:
        """Subscriptions that events wait for, in the order in which they had best come (D0-F2); none by `table`."""
        if order is SubscriptionOrder.TABLE:
            return []
        first: dict[str, Place] = {}
        matches: dict[str, int] = {}
        for group in self._groups.values():
            for entry in group.entries if self._known.keys().isdisjoint(group.entries) else ():
                first[entry] = min(first.get(entry, group.first), group.first)
                matches[entry] = matches.get(entry, 0) + len(group.events)
        if order is SubscriptionOrder.PENDING:
            return sorted(first, key=lambda entry: (first[entry], -matches[entry], entry))
        return sorted(first, key=lambda entry: (-matches[entry], first[entry], entry))
