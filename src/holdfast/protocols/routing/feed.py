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
PATIENCE_DOUBLED_MAX = 5  # how often, before something is sent again
CHECK_SHARE = 8  # invariants are looked at after every change of a feed with fewer batches, and more rarely with more


class Batch:
    """Events with numbers from `first` on. `deadlines` has 0 for an event that does not expire; None: none does."""

    __slots__ = ("_soonest", "bytes", "deadlines", "events", "first")

    def __init__(self, first: int, events: list[EventBytes], deadlines: list[int] | None) -> None:
        self.first = first
        self.events = events
        self.deadlines = deadlines
        self.bytes = sum(map(len, events))
        self._soonest = min((deadline for deadline in deadlines or () if deadline), default=0)

    @property
    def last(self) -> int:
        return self.first + len(self.events) - 1

    def after(self, number: int) -> Batch:
        """What comes behind a number that is in the batch."""
        skipped = number + 1 - self.first
        return Batch(number + 1, self.events[skipped:], None if self.deadlines is None else self.deadlines[skipped:])

    def has_expired(self, wall: int) -> bool:
        """Whether an event of it has no time left."""
        return 0 < self._soonest <= wall

    def alive(self, wall: int) -> list[Batch]:
        """What has time left, in runs of numbers without gaps."""
        runs: list[Batch] = []
        start = 0
        deadlines = self.deadlines or []
        for row, deadline in enumerate([*deadlines, wall]):  # one that is over ends the last run
            if 0 < deadline <= wall:
                if row > start:
                    runs.append(Batch(self.first + start, self.events[start:row], deadlines[start:row]))
                start = row + 1
        return runs


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
        "_progress_at",
        "_repeats",
        "_sent_bytes",
        "_unchecked",
        "_unsent",
        "acknowledged",
        "bytes",
        "expired",
        "following",
        "sent",
    )

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()  # not acknowledged; those from `_unsent` on are not sent either
        self._unsent = 0
        self._sent_bytes = 0
        self._unchecked = 1  # changes since the invariants were looked at
        self.following = 1  # the next event's number
        self.acknowledged = 0
        self.sent = 0  # the highest that ever was, also if it is to be sent again
        self.bytes = 0
        self.expired = 0  # how many events were given up since their time was over
        self._repeats = 0  # how often everything was sent again since then
        self._progress_at = 0  # when something was last acknowledged, or sent after all was

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
        self._unchecked += 1
        for start, end in in_batches(events):
            times = None if deadlines is None else list(deadlines[start:end])
            batch = Batch(self.following, list(events[start:end]), times)
            self._batches.append(batch)
            self.bytes += batch.bytes
            self.following += end - start

    def take(self, wall: int, now: int = 0) -> list[Batch]:
        """What may be sent now, and has time left; it counts as sent."""
        taken: list[Batch] = []
        if not self.is_under_way:
            self._progress_at = now
        self._unchecked += 1
        while self._unsent < len(self._batches) and self._sent_bytes < WINDOW_BYTES:
            batch = self._batches[self._unsent]
            if batch.has_expired(wall):
                del self._batches[self._unsent]
                for part in reversed(self._alive(batch, wall)):
                    self._batches.insert(self._unsent, part)
                continue
            self._unsent += 1
            self._sent_bytes += batch.bytes
            self.sent = max(self.sent, batch.last)
            taken.append(batch)
        return taken

    def _alive(self, batch: Batch, wall: int) -> list[Batch]:
        """What is left of a batch, counted."""
        parts = batch.alive(wall)
        self.bytes -= batch.bytes - sum(part.bytes for part in parts)
        self.expired += len(batch.events) - sum(len(part.events) for part in parts)
        return parts

    def acknowledge(self, number: int) -> bool:
        """The neighbour has everything up to a number. Whether that is news."""
        if number <= self.acknowledged:
            return False
        self._unchecked += 1
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

    def advance(self, number: int, now: int) -> bool:
        """The neighbour has acknowledged everything up to a number, on its link. Whether that is news."""
        if not self.acknowledge(number):
            return False
        self._progress_at, self._repeats = now, 0
        return True

    def _drop_first(self) -> Batch:
        batch = self._batches.popleft()
        self.bytes -= batch.bytes
        if self._unsent:
            self._unsent -= 1
            self._sent_bytes -= batch.bytes
        return batch

    def rewind(self) -> int:
        """Everything that is not acknowledged is to be sent again. How many events of that were sent."""
        self._unchecked += 1
        sent = sum(len(self._batches[place].events) for place in range(self._unsent))
        self._unsent = self._sent_bytes = 0
        return sent

    def resume(self) -> None:
        """There is a new link, on which everything that is not acknowledged is sent again."""
        self.rewind()
        self._repeats = 0

    def repeat(self, now: int, patience: int) -> int:
        """Sends again what was not acknowledged in time, ever more slowly: who does not acknowledge may have no room.
        How many events that are."""
        patience <<= min(self._repeats, PATIENCE_DOUBLED_MAX)
        if not self.is_under_way or now - self._progress_at < patience:
            return 0
        self._repeats += 1
        return self.rewind()

    def clear(self) -> int:
        """Gives everything up, and begins anew with number 1. How many events that were."""
        lost, expired = len(self), self.expired
        self.__init__()  # type: ignore[misc]
        self.expired = expired
        return lost

    def pending(self) -> list[Batch]:
        """Everything that is not acknowledged."""
        return list(self._batches)

    def replace(self, batches: list[Batch]) -> None:
        """Other contents, with numbers that were in it."""
        self._batches = deque(batches)
        self.bytes = sum(batch.bytes for batch in batches)
        self.rewind()

    def number_from(self, number: int) -> None:
        """The next event has this number, unless the feed is beyond it."""
        self.following = max(self.following, number)

    def begin(self) -> None:
        """The feed was filled from the disk: what is not in it is acknowledged."""
        self.acknowledged = self._batches[0].first - 1 if self._batches else self.following - 1
        self.sent = self.acknowledged
        self.rewind()

    def needs(self, through: int) -> bool:
        """Whether anything up to a number is still in it."""
        return bool(self._batches) and self._batches[0].first <= through

    def drop_expired(self, wall: int) -> None:
        """Gives up what has no time left and is not under way, wherever it stands."""
        self._unchecked += 1
        waiting = list(self._batches)[self._unsent :]
        if any(batch.has_expired(wall) for batch in waiting):
            under_way = list(self._batches)[: self._unsent]
            parts = [part for batch in waiting for part in self._alive_of(batch, wall)]
            self._batches = deque(under_way + parts)

    def _alive_of(self, batch: Batch, wall: int) -> list[Batch]:
        return self._alive(batch, wall) if batch.has_expired(wall) else [batch]

    def check_invariants(self) -> None:
        # What has not changed is sound; and a look at a long feed after every change would make a run quadratic.
        if self._unchecked <= len(self._batches) // CHECK_SHARE:
            return
        self._unchecked = 0
        require(self.bytes == sum(batch.bytes for batch in self._batches), "a feed's bytes are counted")
        sent = sum(batch.bytes for place, batch in enumerate(self._batches) if place < self._unsent)
        require(self._sent_bytes == sent, "what is under way is counted")
        last = self.acknowledged
        for batch in self._batches:
            require(batch.events and batch.first > last, "numbers rise", first=batch.first, last=last)
            last = batch.last
        require(last < self.following, "the next number is above all others", last=last, following=self.following)


class Feeds(dict[str, Feed]):
    """By neighbour."""

    def under_way_beside(self, source: str) -> dict[str, int]:
        """The last number of each feed that is not empty; what the source sent is in none that leads back to it."""
        return {peer: feed.following - 1 for peer, feed in self.items() if peer != source and not feed.is_idle}

    def has_passed(self, neighbour: str, number: int) -> bool:
        return not self[neighbour].needs(number)
