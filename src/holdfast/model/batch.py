"""Events that travel together: the bytes of all of them, where each lies, and what is asked of all at once.

A batch is made by the publisher's client, looked through once where it comes in, and passed on whole; it is cut only
where some of its events go another way than the others. Nobody changes one.

What reads the bytes is compiled where it can be (`_events`), and in Python where not (`portable_events`); both give the
same answers, and what is no batch of events is refused by msgspec, in its words.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from holdfast.errors import EventError
from holdfast.model import portable_events
from holdfast.model.event import (
    UNENCODABLE,
    Contents,
    Event,
    EventBytes,
    check_event,
    decode_all,
    decode_event,
    encode_batch,
    encode_event,
)
from holdfast.model.portable_events import Encoded

try:
    # By their names: without the compiled module, `_events` is the folder of its sources, and can be imported.
    from holdfast.model._events import deadlines, encode, join, publishers, scan, take, topics

    READ_BY: Literal["compiled", "portable"] = "compiled"
except ImportError:
    from holdfast.model.portable_events import deadlines, encode, join, publishers, scan, take, topics

    READ_BY = "portable"

# Whose events they are: publisher, its incarnation, the sequence of the first, and how many follow without a gap.
PublisherRun: TypeAlias = tuple[str, int, int, int]


class EventBatch(msgspec.Struct, eq=False, gc=False):
    """Some events in their order. Made by those who know all of its fields; others `read`.

    `offsets` say where in `data` each of them begins, and where the last one ends; what lies around is of no interest.
    `expires`: whether some may have a lifetime. `doubtful`: the rows of those that break a rule (`problem`).
    """

    # A broker keeps one for every event that comes alone: they hold nothing that holds them, and so are none of the
    # collector's business.
    data: Encoded
    offsets: tuple[int, ...]
    expires: bool
    doubtful: tuple[int, ...] = ()
    _publishers: list[PublisherRun] | None = None
    _encoded: EventBytes | None = None  # the events alone, as a msgpack array
    _soonest: int = 0
    # How many, and of how many bytes together: asked again and again of a batch that goes to many.
    count: int = 0
    bytes: int = 0

    def __post_init__(self) -> None:
        offsets = self.offsets
        self.count = len(offsets) - 1
        self.bytes = offsets[-1] - offsets[0]
        if self.expires:
            self._soonest = -1  # not looked for yet

    @classmethod
    def read(cls, encoded: EventBytes, bounded: bool = True) -> EventBatch:
        """From a msgpack array of events; EventError if the bytes are none. `bounded`: nor if they are more than a
        stranger may send at once; what was made or kept here may be more."""
        try:
            offsets, expires, doubtful, runs = scan(encoded, bounded)
        except ValueError:
            # Which says in so many words what is wrong.
            offsets, expires, doubtful, runs = portable_events.scan(encoded, bounded)
        return cls(encoded, offsets, expires, doubtful, runs, encoded)

    @classmethod
    def made(
        cls, publisher: str, incarnation: int, first: int, contents: Sequence[Contents], published_at: int
    ) -> EventBatch | None:
        """Of what a publisher says from sequence `first` on. None if some of it breaks a rule or is of an unusual type:
        then it has to be looked at singly."""
        made = encode(publisher, incarnation, first, contents, published_at)
        if made is None:
            return None
        encoded = EventBytes(made[0])
        runs = [(publisher, incarnation, first, len(contents))] if contents else []
        return cls(encoded, made[1], made[2], (), runs, encoded)

    @classmethod
    def of_one(cls, event: Event) -> EventBatch:
        """Of an event as a publisher says it, whatever its fields hold; EventError if it breaks a rule."""
        try:
            data = encode_event(event)
            check_event(event, len(data))
        except EventError:
            raise
        except UNENCODABLE as error:
            raise EventError(str(error)) from error
        return cls.of([data])

    @classmethod
    def of(cls, events: Iterable[EventBytes]) -> EventBatch:
        """Of events one by one; EventError if one is none."""
        return cls.read(encode_batch(list(events)), bounded=False)

    @classmethod
    def joined(cls, batches: Sequence[EventBatch]) -> EventBatch:
        """All of these, one behind the other."""
        if len(batches) == 1:
            return batches[0]
        encoded, offsets = join([(batch.data, batch.offsets) for batch in batches])
        expires = any(batch.expires for batch in batches)
        doubtful: list[int] = []
        count = 0
        for batch in batches:
            if batch.doubtful:
                doubtful += [count + row for row in batch.doubtful]
            count += len(batch)
        whole = EventBytes(encoded)
        return cls(whole, offsets, expires, tuple(doubtful), None, whole)

    def __len__(self) -> int:
        return self.count

    def __eq__(self, other: object) -> bool:
        return self.encoded == other.encoded if isinstance(other, EventBatch) else NotImplemented

    def __repr__(self) -> str:
        return f"EventBatch({self.ids})"

    @property
    def encoded(self) -> EventBytes:
        """These events alone, as a msgpack array, as messages and records carry them."""
        if self._encoded is None:
            self._encoded = EventBytes(join([(self.data, self.offsets)])[0])
        return self._encoded

    def bytes_of(self, start: int, end: int) -> int:
        """Of the events of these rows together."""
        return self.offsets[end] - self.offsets[start]

    def rows_within(self, start: int, bytes_max: int) -> int:
        """The first row, from `start` on, with which events have more bytes than that; the end if they never do."""
        limit = self.offsets[start] + bytes_max
        if self.offsets[-1] <= limit:
            return len(self)
        return bisect_right(self.offsets, limit, lo=start + 1) - 1

    # --------------------------------------------------------------------------------------------------------- parts
    def take(self, rows: Sequence[int]) -> EventBatch:
        """Those of rising rows, copied; the batch itself if these are all."""
        if len(rows) == self.count:
            return self
        encoded, offsets = take(self.data, self.offsets, rows)
        doubtful = self.doubtful
        if doubtful:
            broken = set(doubtful)  # a stranger may send thousands
            doubtful = tuple([place for place, row in enumerate(rows) if row in broken])
        whole = EventBytes(encoded)
        return EventBatch(whole, offsets, self.expires, doubtful, None, whole)

    def part(self, start: int, end: int) -> EventBatch:
        """Those of a range of rows, which keep the bytes of all alive; the batch itself if these are all."""
        if start <= 0 and end >= self.count:
            return self
        doubtful = tuple([row - start for row in self.doubtful if start <= row < end]) if self.doubtful else ()
        return EventBatch(self.data, self.offsets[start : end + 1] or (0,), self.expires, doubtful)

    def apart(self) -> EventBatch:
        """The same events, which keep nothing else in memory, such as the message in which they came."""
        encoded, offsets = join([(self.data, self.offsets)])
        whole = EventBytes(encoded)
        return EventBatch(whole, offsets, self.expires, self.doubtful, self._publishers, whole)

    def behind(self, count: int) -> EventBatch:
        """All but the first so many; the batch itself if that is none."""
        return self.part(min(count, len(self)), len(self)) if count > 0 else self

    def rows_in(self, lists: Sequence[Sequence[int]]) -> Sequence[int]:
        """The rows that are in one of some lists, rising; in each list they rise, too."""
        if len(lists) == 1:
            return lists[0]
        for rows in lists:
            if len(rows) == len(self):
                return rows
        found = sorted(set().union(*lists))
        return found if len(found) < len(self) else range(len(self))

    def slice(self, row: int) -> EventBytes:
        """The bytes of one event; they keep those of the whole batch alive."""
        return EventBytes(memoryview(self.data)[self.offsets[row] : self.offsets[row + 1]])

    # -------------------------------------------------------------------------------- looked at, once somebody has to
    @property
    def events(self) -> list[Event]:
        """As values, for who has to look at them singly. They are not kept, as the batch may be for long."""
        return decode_all(self.encoded)

    def event(self, row: int) -> Event:
        return decode_event(self.slice(row))

    @property
    def slices(self) -> list[EventBytes]:
        """The bytes of each event; they keep those of the whole batch alive."""
        return [self.slice(row) for row in range(len(self))]

    def problem(self, row: int) -> EventError | None:
        """Which rule an event breaks, if it does."""
        try:
            check_event(self.event(row), self.bytes_of(row, row + 1))
        except EventError as error:
            return error
        return None

    @property
    def deadlines(self) -> list[int] | None:
        """When each is over, 0 for one that never is; None if that is all of them."""
        if not self.expires:
            return None
        found = deadlines(self.data, self.offsets)
        return found if any(found) else None

    @property
    def soonest(self) -> int:
        """When the first of them is over; 0 if none ever is. Looked at once: the batch may be asked again and again."""
        if self._soonest < 0:
            self._soonest = min([deadline for deadline in self.deadlines or () if deadline], default=0)
        return self._soonest

    @property
    def publishers(self) -> list[PublisherRun]:
        """Whose events they are, in order."""
        if self._publishers is None:
            self._publishers = publishers(self.data, self.offsets)
        return self._publishers

    @property
    def ids(self) -> list[str]:
        """As traces show them."""
        return [
            f"{publisher}/{incarnation}/{sequence}"
            for publisher, incarnation, first, count in self.publishers
            for sequence in range(first, first + count)
        ]

    def topics(self) -> list[str]:
        """Each once, in the order in which they come."""
        return topics(self.data, self.offsets)


EMPTY: Final = EventBatch.of(())


def read_or_none(encoded: EventBytes) -> EventBatch | None:
    """The batch of these bytes, or None if they are none."""
    try:
        return EventBatch.read(encoded)
    except EventError:
        return None
