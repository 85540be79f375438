"""The store of events that neighbours have not acknowledged, on the disk (D1-A12, D1-B4).

One record a turn: the events that were taken in, each with the neighbours that it goes to; how far the neighbours'
own feeds are stored here, so that what they send again counts once; and up to which command the events that were
published here are in it. The journal of commands is written before: what it has and the store lacks, since the disk's
end was torn in between, is routed again at the next start.

Records go when all of their events are acknowledged, oldest first. The last one stays: it knows the numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.storage import FEEDS, StoredStreams
from holdfast.model.batch import EventBatch
from holdfast.model.event import EventBytes, encode_batch
from holdfast.protocols.core.outputs import Entered
from holdfast.protocols.routing.feed import Feed
from holdfast.protocols.routing.messages import RECORD_FORMAT, EventsStored

STREAM: Final = FEEDS


class EventStore:
    """What a turn adds, until it is written; and which records are still needed."""

    def __init__(self, peers: Sequence[str], streams: StoredStreams, recovered: Sequence[Entered]) -> None:
        self._peers = tuple(peers)
        self._records: list[EventsStored] = []
        for record in streams.get(STREAM, ()):
            if not isinstance(record, EventsStored):
                broken("the feeds on the disk are known records", record=type(record).__name__)
            require(record.format == RECORD_FORMAT, "the feeds' format is known", format=record.format)
            self._records.append(record)
        last = self._records[-1] if self._records else None
        self._number = 0 if last is None else last.number
        self._entered = 0 if last is None else last.entered
        self._received: dict[str, tuple[str, int]] = {} if last is None else dict(last.stored)
        # What the journal says was published here, and did not get into the store.
        self._not_stored = [output for output in recovered if output.number > self._entered]
        self._topics: dict[str, None] = {}  # of the events in the records, after recovery
        self._kept: deque[tuple[int, dict[str, int]]] = deque()  # records → the last number of each feed in them
        # Of this turn:
        self._events: list[EventBytes] = []
        self._places: list[tuple[int, ...]] = []
        self._changed = False

    def recover_into(self, feeds: Mapping[str, Feed]) -> dict[str, tuple[str, int]]:
        """Fills the feeds, and gives how far neighbours' own are stored here."""
        for record in self._records:
            for peer, following in record.following.items():
                if peer in feeds:
                    feeds[peer].number_from(following)
            batch = EventBatch.decoded(record.events)
            self._topics |= dict.fromkeys([event.topic for event in batch.events])
            # In the order that the neighbours had then: the site file may be another now.
            for place, peer in enumerate(record.following):
                rows = [row for row, places in enumerate(record.places) if place in places]
                if rows and peer in feeds:
                    part = batch.take(rows)
                    feeds[peer].put(part.slices, part.deadlines)
            self._kept.append((record.number, {peer: feeds[peer].following - 1 for peer in self._peers}))
        for feed in feeds.values():
            feed.begin()
        self._records = []
        return dict(self._received)

    def take_recovered(self) -> tuple[list[Entered], list[str]]:
        """What was published here and is to be routed again; and the topics of that and of all that the feeds were
        filled with."""
        entered, self._not_stored = self._not_stored, []
        topics, self._topics = self._topics, {}
        for output in entered:
            topics |= dict.fromkeys([event.topic for event in output.batch.events])
        return entered, list(topics)

    # ------------------------------------------------------------------------------------------------- of the turn
    def entered(self, number: int) -> None:
        self._entered = number
        self._changed = True

    def received(self, peer: str, feed: str, number: int) -> None:
        self._received[peer] = (feed, number)
        self._changed = True

    def put(self, batch: EventBatch, rows: Mapping[str, list[int]]) -> None:
        if not rows:
            return
        places: dict[int, list[int]] = {}
        for place, peer in enumerate(self._peers):
            for row in rows.get(peer, ()):
                places.setdefault(row, []).append(place)
        for row in sorted(places):
            self._events.append(batch.slices[row])
            self._places.append(tuple(places[row]))

    def finish(self, feeds: Mapping[str, Feed], out: Outbox) -> bool:
        """Writes the turn, before anyone is told of it; gives up records that nobody needs. Whether it wrote."""
        writes = self._changed or bool(self._events)
        if writes:
            self._number += 1
            counts = dict.fromkeys(self._peers, 0)
            for places in self._places:
                for place in places:
                    counts[self._peers[place]] += 1
            following = {peer: feeds[peer].following - counts[peer] for peer in self._peers}
            record = EventsStored(
                self._number, self._entered, following, self._received, encode_batch(self._events), self._places
            )
            out.append(STREAM, record)
            self._kept.append((self._number, {peer: feeds[peer].following - 1 for peer in self._peers}))
            self._events, self._places, self._received = [], [], dict(self._received)
            self._changed = False
        self._truncate(feeds, out)
        return writes

    def _truncate(self, feeds: Mapping[str, Feed], out: Outbox) -> None:
        before = 0
        while len(self._kept) > 1:
            number, last = self._kept[0]
            if any(feeds[peer].needs(through) for peer, through in last.items()):
                break
            self._kept.popleft()
            before = number + 1
        if before:
            out.truncate(STREAM, before)
