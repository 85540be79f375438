"""Neighbours that are known to be of this network, over the links that they have now."""

from __future__ import annotations

from holdfast.errors import ProtocolError


class Acquaintances(dict[str, None]):
    """In the order in which they were made. Who was one on the link that it still has, and is no neighbour any more,
    may not know that yet: what it says does not count, and is no mistake."""

    def __init__(self, peers: tuple[str, ...] = ()) -> None:
        super().__init__(dict.fromkeys(peers))
        self._parted: dict[str, None] = {}

    def make(self, peer: str) -> None:
        self[peer] = None
        self._parted.pop(peer, None)

    def part(self, peer: str) -> None:
        """It is no neighbour any more, and has its link for a while."""
        if self.pop(peer, peer) is None:
            self._parted[peer] = None

    def lose(self, peer: str) -> None:
        """Its link is gone."""
        self.pop(peer, None)
        self._parted.pop(peer, None)

    def hears(self, peer: str, problem: str) -> bool:
        """Whether what a peer says counts; ProtocolError if it may not say it at all."""
        if peer in self:
            return True
        if peer in self._parted:
            return False
        raise ProtocolError(problem)
