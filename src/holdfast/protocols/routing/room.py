"""How much room there is for events on their way to neighbours, and so who has to wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.protocols.routing.feed import Feed
from holdfast.protocols.routing.settings import RoutingSettings


class Room:
    """Of one broker. `opened` are the neighbours whose link can be used, `ended` those of before → who took their
    place."""

    def __init__(
        self,
        settings: RoutingSettings,
        feeds: Mapping[str, Feed],
        opened: Mapping[str, None],
        ended: Mapping[str, str],
        stores: bool,
    ) -> None:
        self._settings = settings
        self._feeds = feeds
        self._opened = opened
        self._ended = ended
        self._stores = stores

    @property
    def bytes_taken(self) -> int:
        return sum([feed.bytes for feed in self._feeds.values()])

    def is_congested(self) -> bool:
        """Whether publishers here have to wait."""
        return self._are_full(list(self._feeds))

    def _are_full(self, peers: Sequence[str]) -> bool:
        """Whether what goes to these neighbours has to wait."""
        feeds = self._feeds
        if self._stores and sum([feeds[peer].bytes for peer in peers]) > self._settings.store_bytes:
            return True
        return any(peer in self._opened and feeds[peer].bytes > self._allowed(feeds[peer]) for peer in peers)

    def _allowed(self, feed: Feed) -> int:
        """A feed that is suspended grows while a change is under way, as one to a neighbour that is not there."""
        return self._settings.store_bytes if feed.is_suspended else self._settings.queue_bytes

    def is_left_beside(self, peer: str) -> bool:
        """Whether there is room for what this neighbour sends, which goes to the others.

        What waits for the neighbour itself does not count: if it did, two that are full of what they have for each
        other would each wait for the other's word for ever. So waiting leads away from a neighbour, and ends. Nor does
        what waits for its taker, to whom nothing goes that comes from there: it waits until the move is done.
        """
        apart = (peer, self._ended.get(peer, peer))
        return not self._are_full([other for other in self._feeds if other not in apart])
