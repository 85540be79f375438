"""The store of events that neighbours have not acknowledged, on the disk (D1-A12, D1-B4).

One record a turn: the events that were taken in, each with the neighbours that it goes to; how far the neighbours'
own feeds are stored here, so that what they send again counts once; and up to which command the events that were
published here are in it. The journal of commands is written before: what it has and the store lacks, since the disk's
end was torn in between, is routed again at the next start.

Records go when all of their events are acknowledged, oldest first. The last one stays: it knows the numbers.

What is moved from one neighbour to another is not written again: a record says which numbers of older records are whose
from now on. So a move is on the disk or it is not, however much is moved; and it is repeated at the next start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.storage import FEEDS, StoredStreams
from holdfast.model.batch import EventBatch
from holdfast.model.event import NO_EVENTS
from holdfast.protocols.core.outputs import Entered
from holdfast.protocols.routing.feed import Feed
from holdfast.protocols.routing.feeds import NOBODY, Feeds, follow, replay
from holdfast.protocols.routing.messages import RECORD_FORMAT, EventsStored, FeedMoved

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
        self._made: list[EventsStored] = []  # records of what came before feeds were moved
        self._moves: list[FeedMoved] = []
        self._batches: list[EventBatch] = []
        self._places: list[tuple[int, ...]] = []
        self._counts: dict[str, int] = {}  # of events by neighbour
        self._changed = False

    def recover_into(self, feeds: Feeds) -> dict[str, tuple[str, int]]:
        """Fills the feeds, and gives how far neighbours' own are stored here."""
        filled: dict[str, Feed] = dict(feeds)  # and those to whom was a neighbour when a record was written
        for record in self._records:
            for peer in (*record.following, *[peer for moved in record.moves for peer in (moved.old, moved.new)]):
                if peer != NOBODY and peer not in filled:
                    filled[peer] = Feed()
            for moved in record.moves:
                replay(filled, moved)
                self._follow(moved)
            for peer, following in record.following.items():
                filled[peer].number_from(following)
            batch = EventBatch.read(record.events, bounded=False)
            self._topics |= dict.fromkeys(batch.topics())
            # In the order that the neighbours had then: the site file may be another now.
            for place, peer in enumerate(record.following):
                rows = [row for row, places in enumerate(record.places) if place in places]
                if rows:
                    filled[peer].put(batch.take(rows))
            self._kept.append((record.number, {peer: feed.following - 1 for peer, feed in filled.items()}))
        for feed in filled.values():
            feed.begin()
        feeds.set_aside({peer: feed for peer, feed in filled.items() if peer not in feeds})
        self._records = []
        return dict(self._received)

    def take_recovered(self) -> tuple[list[Entered], list[str]]:
        """What was published here and is to be routed again; and the topics of that and of all that the feeds were
        filled with."""
        entered, self._not_stored = self._not_stored, []
        topics, self._topics = self._topics, {}
        for output in entered:
            topics |= dict.fromkeys(output.batch.topics())
        return entered, list(topics)

    # ------------------------------------------------------------------------------------------------- of the turn
    def entered(self, number: int) -> None:
        self._entered = number
        self._changed = True

    def received(self, peer: str, feed: str, number: int) -> None:
        self._received[peer] = (feed, number)
        self._changed = True

    def forget(self, peer: str) -> None:
        """It sends nothing any more."""
        if self._received.pop(peer, None) is not None:
            self._changed = True

    def put(self, batch: EventBatch, rows: Mapping[str, Sequence[int]]) -> None:
        """Events, and for whom they are: those that are for somebody are stored."""
        wanted = [(place, rows[peer]) for place, peer in enumerate(self._peers) if peer in rows]
        for place, of in wanted:
            peer = self._peers[place]
            self._counts[peer] = self._counts.get(peer, 0) + len(of)
        if all(len(of) == len(batch) for _, of in wanted):
            places = [tuple([place for place, _ in wanted])] * len(batch) if wanted else []
        else:
            by_row: dict[int, tuple[int, ...]] = {}
            for place, of in wanted:
                for row in of:
                    by_row[row] = (*by_row.get(row, ()), place)
            chosen = sorted(by_row)
            batch, places = batch.take(chosen), [by_row[row] for row in chosen]
        if places:
            self._batches.append(batch)
            self._places += places

    # ------------------------------------------------------------------------------------------------------- changes
    def before_change(self, feeds: Feeds) -> None:
        """Feeds are about to be moved, added or dropped: what came before is a record of its own."""
        if self._batches:
            self._made.append(self._record(feeds))

    def add_peer(self, peer: str, was_aside: bool) -> None:
        """A new neighbour. What older records have for it is nobody's, unless its feed was filled with that."""
        self._peers = (*self._peers, peer)
        if not was_aside:
            self.moved(FeedMoved(peer, NOBODY, 0, 0, 0))

    def drop_peer(self, peer: str) -> None:
        self._peers = tuple(other for other in self._peers if other != peer)
        self.moved(FeedMoved(peer, NOBODY, 0, 0, 0))

    def moved(self, moved: FeedMoved) -> None:
        self._moves.append(moved)
        self._changed = True
        self._follow(moved)

    def _follow(self, moved: FeedMoved) -> None:
        for _, last in self._kept:
            follow(last, moved)

    # ------------------------------------------------------------------------------------------------------ the disk
    def finish(self, feeds: Feeds, out: Outbox) -> bool:
        """Writes the turn, before anyone is told of it; gives up records that nobody needs. Whether it wrote."""
        if self._changed or self._batches:
            self._made.append(self._record(feeds))
        made, self._made = self._made, []
        for record in made:
            out.append(STREAM, record)
        self._truncate(feeds, out)
        return bool(made)

    def _record(self, feeds: Feeds) -> EventsStored:
        """What came since the last one."""
        self._number += 1
        counts, self._counts = self._counts, {}
        following = {peer: feeds[peer].following - counts.get(peer, 0) for peer in self._peers} | feeds.numbers()
        events = EventBatch.joined(self._batches).encoded if self._batches else NO_EVENTS
        record = EventsStored(
            self._number, self._entered, following, self._received, events, self._places, moves=self._moves
        )
        self._kept.append((self._number, {peer: feeds[peer].following - 1 for peer in self._peers}))
        self._batches, self._places, self._moves, self._received = [], [], [], dict(self._received)
        self._changed = False
        return record

    def _truncate(self, feeds: Feeds, out: Outbox) -> None:
        before = 0
        while len(self._kept) > 1:
            number, last = self._kept[0]
            if any(feeds.needs(peer, through) for peer, through in last.items()):
                break
            self._kept.popleft()
            before = number + 1
        if before:
            out.truncate(STREAM, before)
