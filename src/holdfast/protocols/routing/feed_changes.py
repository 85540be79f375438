"""Neighbours that come and go, as far as events on their way are concerned: in the feeds, and in the store.

What was put into feeds before a change and what is put in after it are told apart in the store, also within a turn. The
disk knows of a change when the turn's records are on it; who tells others of one says so behind the turn's end.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.protocols.routing.feeds import Feeds
from holdfast.protocols.routing.store import EventStore
from holdfast.protocols.routing.taken_in import TakenIn


class FeedChanges:
    """Each of them as one step, in memory and in what is to be written."""

    def __init__(self, feeds: Feeds, store: EventStore | None) -> None:
        self._feeds = feeds
        self._store = store

    def add(self, peer: str) -> None:
        self._begin()
        was_aside = self._feeds.add(peer)
        if self._store is not None:
            self._store.add_peer(peer, was_aside)

    def move(self, old: str, new: str, all_of_it: bool = False) -> None:
        """What nobody has heard of, or all that is not acknowledged."""
        self._begin()
        moved = self._feeds.move(old, new, all_of_it)
        if self._store is not None:
            self._store.moved(moved)

    def copy(self, old: str, new: str) -> None:
        """All that is not acknowledged of one neighbour goes to another one, too."""
        feed = self._feeds.find(old)
        for batch in () if feed is None else feed.pending():
            if self._store is not None:
                self._store.put(batch.events, {new: range(len(batch.events))})
            self._feeds[new].put(batch.events)

    def drop(self, peer: str) -> int:
        """How many events for it are given up."""
        self._begin()
        lost = self._feeds.drop(peer)
        if self._store is not None:
            self._store.drop_peer(peer)
        return lost

    def forget(self, taken: TakenIn, knows: Callable[[str], bool]) -> None:
        """What is remembered of feeds to and from brokers that the network does not know any more: it would be in every
        record of the store, for each that ever was a neighbour."""
        for peer in [peer for peer in self._feeds.former if not knows(peer)]:
            self._feeds.forget(peer)
        for peer in [peer for peer in taken.peers if peer not in self._feeds and not knows(peer)]:
            taken.forget(peer)
            if self._store is not None:
                self._store.forget(peer)

    def _begin(self) -> None:
        if self._store is not None:
            self._store.before_change(self._feeds)
