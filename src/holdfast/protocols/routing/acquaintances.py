"""Neighbours that are known to be of this network, over the links that they have now."""

from __future__ import annotations

from holdfast.errors import ProtocolError


class Acquaintances(dict[str, None]):
    """In the order in which they were made. Who was invited on the link that it still has, and is no neighbour any
    more, may not know that yet: what it says behind its introduction does not count, and is no mistake."""

    def __init__(self, peers: tuple[str, ...] = ()) -> None:
        super().__init__(dict.fromkeys(peers))
        self.greeted = dict.fromkeys(peers)  # those that have our map: they know of whom we speak
        self._invited: dict[str, None] = {}  # those that were told that they are neighbours
        self._introduced: dict[str, None] = {}  # those that have said who they are
        self._closed = ""  # whose link was given up last: more that it said may come in that turn

    def invite(self, peer: str) -> None:
        self._invited[peer] = None

    def introduce(self, peer: str) -> None:
        self._introduced[peer] = None

    def make(self, peer: str) -> None:
        self[peer] = None

    def greet(self, peer: str) -> None:
        self.greeted[peer] = None

    def part(self, peer: str) -> None:
        """It is no neighbour any more, and has its link for a while."""
        self.pop(peer, None)
        self.greeted.pop(peer, None)

    def close(self, peer: str) -> None:
        """Its link is given up."""
        self.lose(peer)
        self._closed = peer

    def connect(self, peer: str) -> None:
        """It has a new link, on which nothing has been said."""
        self.lose(peer)
        if peer == self._closed:
            self._closed = ""

    def lose(self, peer: str) -> None:
        """Its link is gone."""
        self.part(peer)
        self._invited.pop(peer, None)
        self._introduced.pop(peer, None)

    def hears(self, peer: str, problem: str) -> bool:
        """Whether what a peer says counts; ProtocolError if it may not say it at all."""
        if peer in self:
            return True
        if peer == self._closed or (peer in self._invited and peer in self._introduced):
            return False
        raise ProtocolError(problem)
