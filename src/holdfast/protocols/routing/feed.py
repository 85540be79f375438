"""Events on their way to one neighbour, numbered without gaps as they are put in.

What was sent stays until the neighbour has acknowledged it; at most `window` bytes are under way. A feed that is kept
outlives the link: everything that is not acknowledged is sent again on the next one (D1-B4). One that is not kept is
emptied when its link is gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from holdfast.kernel.node import require
from holdfast.model.event import EventBytes

WINDOW_BYTES = 4 * 1024 * 1024  # sent and not acknowledged
BATCH_EVENTS = 1_024
BATCH_BYTES = 256 * 1024


class Batch:
    """Events with numbers from `first` on. `deadlines` has 0 for an event that does not expire; None: none does."""

    __slots__ = ("bytes", "deadlines", "events", "first")

    def __init__(self, first: int, events: list[EventBytes], deadlines: list[int] | None) -> None:
        self.first = first
        self.events = events
        self.deadlines = deadlines
        self.bytes = sum(map(len, events))

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1

    def after(self, number: int) -> Batch:
        """What comes behind a number that is in the batch."""
        skipped = number + 1 - self.first
        return Batch(number + 1, self.events[skipped:], None if self.deadlines is None else self.deadlines[skipped:])


def in_batches(events: Sequence[EventBytes]) -> list[tuple[int, int]]:
    """Where to cut events so that each part fits into a message."""
    cuts, start, size = [], 0, 0
    for row, event in enumerate(events):
        if row - start == BATCH_EVENTS or (size and size + len(event) > BATCH_BYTES):
            cuts.append((start, row))
            start, size = row, 0
        size += len(event)
    if len(events) > start:
        cuts.append((start, len(events)))
    return cuts


class Feed:
    """To one neighbour."""

    __slots__ = (
        "_batches",
        "_sent_bytes",
        "_unsent",
        "acknowledged",
        "bytes",
        "following",
        "progress_at",
        "repeats",
        "sent",
    )

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()  # not acknowledged; those from `_unsent` on are not sent either
        self._unsent = 0
        self._sent_bytes = 0
        self.following = 1  # the next event's number
        self.acknowledged = 0
        self.sent = 0
        self.bytes = 0
        self.repeats = 0  # how often everything was sent again since then
        self.progress_at = 0  # when something was last acknowledged, or sent after all was

    def __len__(self) -> int:
        """How many events are not acknowledged."""
        return sum([len(batch.events) for batch in self._batches])

    @property
    def is_idle(self) -> bool:
        return not self._batches

    @property
    def has_unsent(self) -> bool:
        return self._unsent < len(self._batches)

    @property
    def is_under_way(self) -> bool:
        return self._sent_bytes > 0

    def put(self, events: Sequence[EventBytes], deadlines: Sequence[int] | None = None) -> None:
        for start, end in in_batches(events):
            times = None if deadlines is None else list(deadlines[start:end])
            batch = Batch(self.following, list(events[start:end]), times)
            self._batches.append(batch)
            self.bytes += batch.bytes
            self.following += end - start

    def take(self) -> list[Batch]:
        """What may be sent now; it counts as sent."""
        taken: list[Batch] = []
        while self._unsent < len(self._batches) and self._sent_bytes < WINDOW_BYTES:
            batch = self._batches[self._unsent]
            self._unsent += 1
            self._sent_bytes += batch.bytes
            self.sent = batch.last
            taken.append(batch)
        return taken

    def acknowledge(self, number: int) -> bool:
        """The neighbour has everything up to a number. Whether that is news."""
        if number <= self.acknowledged:
            return False
        self.acknowledged = number
        while self._batches and self._batches[0].last <= number:
            self._drop_first()
        if self._batches and self._batches[0].first <= number:
            rest = self._batches[0].after(number)
            was_sent = self._unsent > 0
            self._drop_first()
            self._batches.appendleft(rest)
            self.bytes += rest.bytes
            if was_sent:
                self._unsent += 1
                self._sent_bytes += rest.bytes
        return True

    def _drop_first(self) -> Batch:
        batch = self._batches.popleft()
        self.bytes -= batch.bytes
        if self._unsent:
            self._unsent -= 1
            self._sent_bytes -= batch.bytes
        return batch

    def rewind(self) -> None:
        """Everything that is not acknowledged is to be sent again."""
        self._unsent = self._sent_bytes = 0
        self.sent = self.acknowledged

    def clear(self) -> int:
        """Gives everything up, and begins anew with number 1. How many events that were."""
        lost = len(self)
        self.__init__()  # type: ignore[misc]
        return lost

    def pending(self) -> list[Batch]:
        """Everything that is not acknowledged."""
        return list(self._batches)

    def replace(self, batches: list[Batch]) -> None:
        """Other contents, with numbers that were in it."""
        self._batches = deque(batches)
        self.bytes = sum(batch.bytes for batch in batches)
        self.rewind()

    def begin(self) -> None:
        """The feed was filled from the disk: what is not in it is acknowledged."""
        self.acknowledged = self._batches[0].first - 1 if self._batches else self.following - 1
        self.rewind()

    def needs(self, through: int) -> bool:
        """Whether anything up to a number is still in it."""
        return bool(self._batches) and self._batches[0].first <= through

    def drop_expired(self, wall: int) -> int:
        """Gives up batches of which nothing has time left, from the oldest on, and that are not under way."""
        dropped = 0
        while self._batches and not self._unsent and self._batches[0].deadlines is not None:
            if any(not deadline or deadline > wall for deadline in self._batches[0].deadlines):
                break
            batch = self._drop_first()
            self.acknowledged = self.sent = batch.last
            dropped += len(batch.events)
        return dropped

    def check_invariants(self) -> None:
        require(self.bytes == sum(batch.bytes for batch in self._batches), "a feed's bytes are counted")
        sent = sum(batch.bytes for place, batch in enumerate(self._batches) if place < self._unsent)
        require(self._sent_bytes == sent, "what is under way is counted")
        last = self.acknowledged
        for batch in self._batches:
            require(batch.events and batch.first > last, "numbers rise", first=batch.first, last=last)
            last = batch.last
        require(last < self.following, "the next number is above all others", last=last, following=self.following)
