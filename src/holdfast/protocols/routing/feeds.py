"""The feeds to all neighbours, which come and go.

A neighbour that comes back gets a feed that goes on with the numbers of the one before, since whoever counts what came
from here by numbers may have kept its count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.kernel.node import broken, require
from holdfast.protocols.routing.feed import Feed
from holdfast.protocols.routing.messages import FeedMoved

NOBODY: Final = ""  # to whom goes what is given up


class Feeds(dict[str, Feed]):
    """By neighbour."""

    def __init__(self, feeds: Mapping[str, Feed] | None = None) -> None:
        super().__init__(feeds or {})
        self.former: dict[str, int] = {}  # those that were neighbours → the next number of a feed to them
        # What was found on the disk for brokers that are no neighbours. It is there until the first turn ends: a broker
        # may have stopped before its disk knew who its neighbours are.
        self.aside: dict[str, Feed] = {}
        self._moves: list[FeedMoved] = []  # whose events have not all passed

    def under_way_beside(self, source: str) -> dict[str, int]:
        """The last number of each feed that is not empty; what the source sent is in none that leads back to it."""
        return {peer: feed.following - 1 for peer, feed in self.items() if peer != source and not feed.is_idle}

    def has_passed(self, neighbour: str, number: int) -> bool:
        """Whether a neighbour has everything up to a number, wherever it was moved meanwhile."""
        while self._moves and self._has_passed(self._moves[0].new, self._moves[0].last, self._moves[1:]):
            del self._moves[0]
        return self._has_passed(neighbour, number, self._moves)

    def _has_passed(self, neighbour: str, number: int, moves: Sequence[FeedMoved]) -> bool:
        waits = {neighbour: number}
        for moved in moves:
            follow(waits, moved)
        return not any(self.needs(peer, last) for peer, last in waits.items())

    def needs(self, peer: str, through: int) -> bool:
        """Whether anything up to a number is still in the feed to a peer."""
        feed = self.find(peer)
        return feed is not None and feed.needs(through)

    def find(self, peer: str) -> Feed | None:
        return self[peer] if peer in self else self.aside.get(peer)

    # ---------------------------------------------------------------------------------------------------------- changes
    def add(self, peer: str) -> bool:
        """A new neighbour; whether its feed is one that was found on the disk."""
        require(peer not in self, "a new neighbour was none before", peer=peer)
        feed = self.aside.pop(peer, None)
        was_aside = feed is not None
        if feed is None:
            feed = Feed()
            feed.number_from(self.former.get(peer, 1))
            feed.begin()
        self.former.pop(peer, None)
        self[peer] = feed
        return was_aside

    def drop(self, peer: str) -> int:
        """A neighbour is none any more. How many events for it are given up."""
        feed = self.pop(peer) if peer in self else self.aside.pop(peer)
        lost = feed.close()
        self.former[peer] = feed.following
        return lost

    def move(self, old: str, new: str, all_of_it: bool = False) -> FeedMoved:
        """What waits for one neighbour goes to another: all that is not acknowledged, or what nobody has heard of."""
        feed = self.find(old)
        if feed is None:
            broken("only neighbours have feeds that can be moved", peer=old)
        other = self[new]
        moved = FeedMoved(old, new, *(feed.move_all_to(other) if all_of_it else feed.move_to(other)))
        if moved.count:
            self._moves.append(moved)
        return moved

    def numbers(self) -> dict[str, int]:
        """The next number of each feed to someone who is no neighbour."""
        return {**self.former, **{peer: feed.following for peer, feed in self.aside.items()}}

    def set_aside(self, feeds: Mapping[str, Feed]) -> None:
        """Feeds to others than neighbours were found on the disk."""
        for peer, feed in feeds.items():
            if feed.is_idle:
                self.former[peer] = feed.following
            else:
                self.aside[peer] = feed

    def forget(self, peer: str) -> None:
        """It will never be a neighbour again."""
        self.former.pop(peer, None)

    def forget_aside(self) -> None:
        """Nobody has asked for what is there for others than neighbours."""
        self.former = self.numbers()
        self.aside = {}


def follow(last: dict[str, int], moved: FeedMoved) -> None:
    """Numbers up to which something is in feeds, by the feeds' peers: where that is after a move."""
    before = last.get(moved.old, 0)
    if moved.new != NOBODY and last.get(moved.new, 0) >= moved.at:
        last[moved.new] += moved.count
    if before > moved.through:
        last[moved.old] = moved.through
        if moved.new != NOBODY:
            last[moved.new] = max(last.get(moved.new, 0), before - moved.through - 1 + moved.at)


def replay(feeds: Mapping[str, Feed], moved: FeedMoved) -> None:
    """The same again, as it was written down, with feeds that are filled from the disk."""
    batches = feeds[moved.old].end_at(moved.through)
    if moved.new != NOBODY:
        feeds[moved.new].insert(batches, moved.through, moved.at, moved.count)
