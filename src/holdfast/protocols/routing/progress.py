"""How far the feeds between this broker and its neighbours are, as others are told of it."""

from __future__ import annotations

from holdfast.protocols.routing.feeds import Feeds
from holdfast.protocols.routing.taken_in import TakenIn


class Progress:
    """Numbers of feeds. What is told of one at the end of a turn is told behind `Forwarding`."""

    def __init__(self, feeds: Feeds, taken: TakenIn) -> None:
        self._feeds = feeds
        self._taken = taken

    def taken_in(self, peer: str) -> int:
        """How far a neighbour's feed is taken in here."""
        return self._taken.through(peer)

    def heard_through(self, peer: str) -> int:
        """The last number of the feed to a neighbour that it may have heard of."""
        return self._feeds[peer].heard

    def sent_through(self, peer: str) -> int:
        """The number up to which a neighbour has to take our feed in before it has all that was sent to it; 0 if it has
        it, or what it lacks was given up: so it is to be told anew on every link."""
        return self._feeds[peer].promise_sent()

    def put_through(self, peer: str) -> int:
        """The same for all that was put into the feed so far, which is sent from now on whatever comes."""
        return self._feeds[peer].promise_all()
