"""Events on their way to one neighbour, numbered without gaps as they are put in.

What was sent stays until the neighbour has acknowledged it; at most `window` bytes are under way. A feed that is kept
outlives the link: everything that is not acknowledged is sent again on the next one (D1-B4). One that is not kept is
emptied when its link is gone.

A feed can be suspended, moved to another neighbour, and closed. What that has to know is how far anyone has *heard* of
its numbers: those that were sent, acknowledged or promised stand for the same events for ever. What waits above them
is nobody's yet: it can be taken out, and its numbers are given again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NoReturn, Protocol

from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.model.batch import EMPTY, EventBatch
from holdfast.protocols.routing.batches import FeedBatch, joined, numbered
from holdfast.protocols.routing.messages import Forward

WINDOW_BYTES = 4 * 1024 * 1024  # sent and not acknowledged
PATIENCE_DOUBLED_MAX = 5  # how often, before something is sent again
CHECK_SHARE = 8  # invariants are looked at after every change of a feed with fewer batches, and more rarely with more


class Discipline(Protocol):
    """In which order events leave a feed that have no numbers yet. The usual one is none: first in, first out."""

    def put(self, events: EventBatch) -> None: ...

    def take(self, bytes_max: int) -> EventBatch:
        """Removes and gives what may leave now, and not much more than `bytes_max`."""
        ...

    def drain(self) -> EventBatch:
        """Removes and gives everything, in the order in which it would leave."""
        ...

    def in_message(self, first: int, events: EventBatch) -> Message:
        """Events that were taken, as they are said to the neighbour."""
        return Forward(first, events.encoded)

    def __len__(self) -> int: ...


class _Closed:
    """The discipline of a feed that is closed."""

    def put(self, events: EventBatch) -> NoReturn:
        broken("nothing is put into a closed feed")

    def take(self, bytes_max: int) -> EventBatch:
        return EMPTY

    def drain(self) -> EventBatch:
        return EMPTY

    def in_message(self, first: int, events: EventBatch) -> NoReturn:
        broken("nothing leaves a closed feed")

    def __len__(self) -> int:
        return 0


class Feed:
    """To one neighbour."""

    __slots__ = (
        "_batches",
        "_discipline",
        "_progress_at",
        "_promised",
        "_repeats",
        "_sent_bytes",
        "_through",
        "_unchecked",
        "_unsent",
        "_words",
        "acknowledged",
        "bytes",
        "expired",
        "following",
        "sent",
    )

    def __init__(self) -> None:
        self._batches: deque[FeedBatch] = deque()  # not acknowledged; those from `_unsent` on are not sent either
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
        self._through: int | None = None  # while the feed is suspended: the last number that may be sent
        self._promised = 0  # somebody waits for everything up to this number
        self._discipline: Discipline | None = None  # of what has no number yet
        self._words: deque[tuple[int, Message]] = deque()  # each is said behind the event with that number

    def __len__(self) -> int:
        """How many events are not acknowledged."""
        waiting = 0 if self._discipline is None else len(self._discipline)
        return sum([len(batch.events) for batch in self._batches]) + waiting

    @property
    def put_total(self) -> int:
        """How many events were ever put into it; it may begin anew."""
        return self.following - 1 + (0 if self._discipline is None else len(self._discipline))

    @property
    def is_idle(self) -> bool:
        return not self._batches and not self._discipline

    @property
    def has_unsent(self) -> bool:
        return self._unsent < len(self._batches) or bool(self._discipline) or bool(self._words)

    @property
    def is_under_way(self) -> bool:
        return self._sent_bytes > 0

    @property
    def is_suspended(self) -> bool:
        return self._through is not None

    @property
    def is_numbered(self) -> bool:
        """Whether all that is in it has numbers."""
        return not self._discipline

    @property
    def heard(self) -> int:
        """The last number that anyone may have heard of: it and those before it are never given again."""
        return max(self.sent, self.acknowledged, self._promised)

    @property
    def promised(self) -> int:
        """The last number that somebody waits for: what has it, and those before it, is not given up."""
        return self._promised

    def put(self, events: EventBatch) -> None:
        self._unchecked += 1
        self.bytes += events.bytes
        if self._discipline is not None:
            self._discipline.put(events)
            return
        self._batches += numbered(self.following, events)
        self.following += len(events)

    def _append(self, batch: FeedBatch) -> None:
        self._batches.append(batch)
        self.bytes += batch.bytes

    def say(self, word: Message) -> None:
        """Something is to be said to the neighbour behind all that was put in so far, and before anything else. It is
        lost with the link."""
        self._words.append((self.following - 1, word))

    def leaving(self, wall: int, now: int = 0, window: int = WINDOW_BYTES) -> Iterator[tuple[int, Message]]:
        """What may be sent now, as messages, each with how many events it has."""
        while self._words:
            number = self._words[0][0]
            yield from self._in_messages(self.take(wall, now, window, number))
            if max(self.sent, self.acknowledged) < number:
                return
            yield 0, self._words.popleft()[1]
        yield from self._in_messages(self.take(wall, now, window))

    def _in_messages(self, taken: list[FeedBatch]) -> Iterator[tuple[int, Message]]:
        for first, events in joined(taken):
            yield len(events), self.in_message(first, events)

    def in_message(self, first: int, events: EventBatch) -> Message:
        """Events that were taken, as they are said to the neighbour."""
        discipline = self._discipline
        return Forward(first, events.encoded) if discipline is None else discipline.in_message(first, events)

    def take(self, wall: int, now: int = 0, window: int = WINDOW_BYTES, limit: int | None = None) -> list[FeedBatch]:
        """What may be sent now, and has time left; it counts as sent. Nothing above the `limit`."""
        taken: list[FeedBatch] = []
        if not self.is_under_way:
            self._progress_at = now
        self._unchecked += 1
        through = limit if self._through is None else self._through if limit is None else min(self._through, limit)
        if self._discipline and through is None:
            self._number_what_may_leave(window)
        while self._unsent < len(self._batches) and self._sent_bytes < window:
            batch = self._batches[self._unsent]
            if through is not None and batch.last > through:
                if batch.first > through:
                    break
                self._cut_at(through)
                continue
            if self._is_over(batch, wall):
                del self._batches[self._unsent]
                for part in reversed(self._alive(batch, wall)):
                    self._batches.insert(self._unsent, part)
                continue
            self._unsent += 1
            self._sent_bytes += batch.bytes
            self.sent = max(self.sent, batch.last)
            taken.append(batch)
        return taken

    def _number_what_may_leave(self, window: int) -> None:
        """As much as there is room for: what has a number is not put in order any more."""
        room = window - sum([batch.bytes for batch in self._batches])
        while room > 0 and self._discipline:
            events = self._discipline.take(room)
            if not events:
                break
            self._batches += numbered(self.following, events)  # whose bytes are counted
            self.following += len(events)
            room -= events.bytes

    def _is_over(self, batch: FeedBatch, wall: int) -> bool:
        """Whether an event of it has no time left; what somebody waits for is sent nevertheless."""
        return batch.has_expired(wall) and batch.first > self._promised

    def _alive(self, batch: FeedBatch, wall: int) -> list[FeedBatch]:
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

    def _drop_first(self) -> FeedBatch:
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

    def lose_sent(self) -> int:
        """Gives up what was sent, and begins anew with number 1. What was not sent is kept. How many are lost."""
        kept = [batch.events for batch in list(self._batches)[self._unsent :]]
        discipline, expired, is_suspended = self._discipline, self.expired, self.is_suspended
        waiting = 0 if discipline is None else self.bytes - sum([batch.bytes for batch in self._batches])
        lost = sum([len(batch.events) for batch in self._batches]) - sum(map(len, kept))
        self.__init__()  # type: ignore[misc]
        self.expired, self._discipline, self.bytes = expired, discipline, waiting
        for events in kept:
            self.put(events)
        if is_suspended:
            self._through = 0
        return lost

    def clear(self) -> int:
        """Gives everything up, and begins anew with number 1. How many events that were."""
        lost, expired, discipline, is_suspended = len(self), self.expired, self._discipline, self.is_suspended
        if discipline is not None:
            discipline.drain()
        self.__init__()  # type: ignore[misc]
        self.expired, self._discipline = expired, discipline
        if is_suspended:
            self._through = 0
        return lost

    # ------------------------------------------------------------------------------------------------ what it waits for
    def suspend(self, through: int | None = None) -> None:
        """Until `go_on` nothing is sent above a number; where none is said, nothing that nobody has heard of. What was
        sent before is sent again when it has to be: the neighbour waits for it. Events may still be put."""
        self._through = self.heard if through is None else min(through, self.following - 1)
        self._promised = max(self._promised, self._through)

    def stay_suspended(self, through: int) -> None:
        """`suspend` again, after a restart that has forgotten how far anyone has heard: nobody has above a number."""
        self.sent = max(self.acknowledged, min(self.sent, through))
        self.suspend(through)

    def go_on(self) -> None:
        self._through = None

    def promise_sent(self) -> int:
        """The last number that the neighbour still has to get of what it was sent, and may be sent before the feed goes
        on; 0 if there is none. Somebody waits for it: it is not given up when its time is over."""
        return self._promise(self.heard if self._through is None else min(self.heard, self._through))

    def promise_all(self) -> int:
        """The same of all that is in the feed and has a number."""
        return self._promise(self.following - 1)

    def _promise(self, through: int) -> int:
        last = max((min(batch.last, through) for batch in self._batches if batch.first <= through), default=0)
        self._promised = max(self._promised, last)
        return last

    def use(self, discipline: Discipline | None) -> None:
        """The order in which leaves what was never sent; None: the usual one, first in, first out.

        With a discipline an event gets its number when it leaves, and no record on a disk knows what has none. So where
        numbers are stored with the events (D1-A12), feeds have the usual order.
        """
        waiting = self.cut()
        self._discipline = discipline
        for batch in waiting:
            self.put(batch.events)

    # ----------------------------------------------------------------------------------------------------------- moving
    def cut(self) -> list[FeedBatch]:
        """Takes out what nobody has heard of, in the order in which it would be sent. What is left ends there, and the
        next event has the number that follows. Where numbers are stored, the disk has to be told."""
        return self._take_out(self.heard)[0]

    def move_to(self, other: Feed) -> tuple[int, int, int]:
        """What nobody has heard of goes to another neighbour, in order: behind what that one has been sent, or is
        promised; and behind all that is there, unless the other feed is suspended: what waits there was published
        later. Gives what `insert` takes for it."""
        return self._hand_over(self.heard, other)

    def move_all_to(self, other: Feed) -> tuple[int, int, int]:
        """The same with what was sent and not acknowledged, of a neighbour that is lost for good: it may have come
        there, so that it may come twice."""
        return self._hand_over(self.acknowledged, other)

    def close(self) -> int:
        """Gives everything up, for good; how many events that were. A feed to the same neighbour goes on with
        `following`: no number stands for two events."""
        lost = len(self)
        self._take_out(0)
        self._discipline = _Closed()
        return lost

    def _hand_over(self, through: int, other: Feed) -> tuple[int, int, int]:
        require(other is not self, "a feed is not moved to itself")
        batches, count = self._take_out(through)
        if other._discipline is not None:
            later = other.cut() if other.is_suspended else []
            for batch in (*batches, *later):
                other.put(batch.events)
            return through, other.following, 0
        at = other.heard + 1 if other.is_suspended else other.following
        other.insert(batches, through, at, count)
        return through, at, count

    def _take_out(self, through: int) -> tuple[list[FeedBatch], int]:
        """What has numbers above one, or none yet; and how many numbers that takes. The next event has the first one
        that nobody has heard of."""
        batches = self.take_above(through)
        if self._discipline is not None:
            waiting = numbered(self.following, self._discipline.drain())
            self.bytes -= sum(batch.bytes for batch in waiting)
            batches += waiting
        end = batches[-1].last if batches else through
        count = max(self.following - 1, end) - through
        self.following = self.heard + 1
        self._words = deque([(min(behind, self.heard), word) for behind, word in self._words])
        return batches, count

    def take_above(self, number: int) -> list[FeedBatch]:
        """Takes out what has higher numbers."""
        self._unchecked += 1
        place = self._cut_at(number)
        taken = [self._batches.pop() for _ in range(len(self._batches) - place)][::-1]
        self.bytes -= sum(batch.bytes for batch in taken)
        if self._unsent > place:
            self._sent_bytes -= sum(batch.bytes for batch in taken[: self._unsent - place])
            self._unsent = place
        return taken

    def end_at(self, number: int) -> list[FeedBatch]:
        """Takes out what has higher numbers, which are given anew: `number_from` says if one of them is not."""
        batches = self.take_above(number)
        self.following = number + 1
        return batches

    def insert(self, batches: list[FeedBatch], through: int, at: int, count: int) -> None:
        """Events whose numbers were above `through` get those from `at` on; what had them comes `count` later."""
        self.number_from(at)
        later = self.take_above(at - 1)
        for batch in batches:
            self._append(batch.shifted(at - through - 1))
        for batch in later:
            self._append(batch.shifted(count))
        self.following += count

    def _cut_at(self, number: int) -> int:
        """Where the first batch is with higher numbers; one that has both kinds is cut."""
        for place, batch in enumerate(self._batches):
            if batch.first > number:
                return place
            if batch.last > number:
                del self._batches[place]
                for part in reversed(batch.split(number)):
                    self._batches.insert(place, part)
                if place < self._unsent:
                    self._unsent += 1
                return place + 1
        return len(self._batches)

    # --------------------------------------------------------------------------------------------------------- the disk
    def pending(self) -> list[FeedBatch]:
        """Everything that is not acknowledged."""
        return list(self._batches)

    def replace(self, batches: list[FeedBatch]) -> None:
        """Other contents, with numbers that were in it."""
        self._batches = deque(batches)
        self.bytes = sum(batch.bytes for batch in batches)
        self.rewind()

    def number_from(self, number: int) -> None:
        """The next event has this number, unless the feed is beyond it."""
        self.following = max(self.following, number)

    def begin(self) -> None:
        """The feed was filled from the disk: what is not in it is acknowledged, and all that is in it may have been
        sent before."""
        self.acknowledged = self._batches[0].first - 1 if self._batches else self.following - 1
        self.sent = self.following - 1
        self.rewind()

    def needs(self, through: int) -> bool:
        """Whether anything up to a number is still in it."""
        return bool(self._batches) and self._batches[0].first <= through

    def drop_expired(self, wall: int) -> None:
        """Gives up what has no time left and is not under way, wherever it stands."""
        self._unchecked += 1
        waiting = list(self._batches)[self._unsent :]
        if any(self._is_over(batch, wall) for batch in waiting):
            under_way = list(self._batches)[: self._unsent]
            parts = [part for batch in waiting for part in self._alive_of(batch, wall)]
            self._batches = deque(under_way + parts)

    def _alive_of(self, batch: FeedBatch, wall: int) -> list[FeedBatch]:
        return self._alive(batch, wall) if self._is_over(batch, wall) else [batch]

    def check_invariants(self) -> None:
        # What has not changed is sound; and a look at a long feed after every change would make a run quadratic.
        if self._unchecked <= len(self._batches) // CHECK_SHARE:
            return
        self._unchecked = 0
        counted = sum(batch.bytes for batch in self._batches)
        require(self.bytes == counted if self._discipline is None else self.bytes >= counted, "bytes are counted")
        sent = sum(batch.bytes for place, batch in enumerate(self._batches) if place < self._unsent)
        require(self._sent_bytes == sent, "what is under way is counted")
        last = self.acknowledged
        for batch in self._batches:
            require(batch.events and batch.first > last, "numbers rise", first=batch.first, last=last)
            last = batch.last
        require(last < self.following, "the next number is above all others", last=last, following=self.following)
