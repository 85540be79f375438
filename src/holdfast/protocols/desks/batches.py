"""What a broker sends one client of its subscriptions in one turn, put into messages of bounded size."""

from __future__ import annotations

from holdfast.kernel.messages import Message
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.backlog import Run
from holdfast.protocols.sessions.messages import Deliver


class Batch:
    """What one client is sent of its subscriptions in one turn: events, in messages of bounded size. Most often that is
    one event, for one of them."""

    __slots__ = ("_bytes", "_bytes_max", "_count", "_events_max", "_messages", "_waiting", "weight")

    def __init__(self, events_max: int, bytes_max: int) -> None:
        self.weight = 0
        self._events_max = events_max  # in one message
        self._bytes_max = bytes_max
        self._messages: list[Message] = []
        # For the next message: which subscription they are for, the number of the first, and events in a run.
        self._waiting: list[tuple[int, int, Run]] = []
        self._count = self._bytes = 0  # of these

    def add(self, subscription: int, after: int, run: Run) -> None:
        """Events of a subscription, behind number `after` of it."""
        batch, start = run.batch, 0
        if self._count + batch.count <= self._events_max and self._bytes + batch.bytes <= self._bytes_max:
            self._put(subscription, after + 1, run)
            return
        while start < batch.count:
            room = self._events_max - self._count
            end = min(start + room, batch.rows_within(start, self._bytes_max - self._bytes))
            if end <= start:
                if self._count:
                    self._flush()
                    continue
                end = start + 1  # one that is larger than a message of its own is to be
            self._put(subscription, after + start + 1, run.part(start, end))
            start = end

    def _put(self, subscription: int, first: int, run: Run) -> None:
        size = run.batch.bytes
        self._waiting.append((subscription, first, run))
        self._count += run.batch.count
        self._bytes += size
        self.weight += size

    def say(self, message: Message) -> None:
        self._flush()
        self._messages.append(message)
        self.weight += message.weight()

    def _flush(self) -> None:
        if self._waiting:
            self._messages.append(_deliver(self._waiting))
            self._waiting = []
            self._count = self._bytes = 0

    def take(self) -> list[Message]:
        if self._messages or not self._waiting:
            self._flush()
            return self._messages
        return [_deliver(self._waiting)]


def _deliver(waiting: list[tuple[int, int, Run]]) -> Deliver:
    if len(waiting) == 1:
        subscription, first, run = waiting[0]
        return Deliver([(subscription, first, run.batch.count)], run.batch.encoded, _positions(waiting))
    runs: list[tuple[int, int, int]] = []
    for subscription, first, run in waiting:
        count = run.batch.count
        if runs and runs[-1][0] == subscription and sum(runs[-1][1:]) == first:
            first, count = runs[-1][1], runs.pop()[2] + count
        runs.append((subscription, first, count))
    return Deliver(runs, EventBatch.joined([run.batch for _, _, run in waiting]).encoded, _positions(waiting))


def _positions(waiting: list[tuple[int, int, Run]]) -> list[tuple[int, int]]:
    """Of all their events: the first and how many follow without a gap, again and again."""
    found: list[tuple[int, int]] = []
    for _, _, run in waiting:
        positions = run.positions
        if not positions:
            continue
        without_gap = positions[-1] - positions[0] == len(positions) - 1
        for first, count in [(positions[0], len(positions))] if without_gap else [(one, 1) for one in positions]:
            if found and sum(found[-1]) == first:
                found[-1] = (found[-1][0], found[-1][1] + count)
            else:
                found.append((first, count))
    return found
