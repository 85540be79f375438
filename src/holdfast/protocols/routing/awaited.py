"""Neighbours that are awaited: a broker that was restarted does not know yet what is wanted on their sides."""

from __future__ import annotations

from collections.abc import Iterable


class Awaited:
    """Those neighbours; the broker `is_ready` when there are none, or when they were waited for long enough."""

    def __init__(self) -> None:
        self.peers: dict[str, None] = {}
        self.is_ready = True

    def begin(self, peers: Iterable[str]) -> None:
        self.peers = dict.fromkeys(peers)
        self.is_ready = not self.peers

    def learn(self, peer: str) -> bool:
        """Everything is known that a neighbour can tell now. Whether it was awaited."""
        was_awaited = self.peers.pop(peer, peer) is None
        self.is_ready = self.is_ready or not self.peers
        return was_awaited

    def move(self, old: str, new: str) -> None:
        """What one neighbour was to tell, another one is to tell."""
        self.peers = {new if peer == old else peer: None for peer in self.peers}

    def await_too(self, peer: str) -> None:
        """Another neighbour has not told everything. Whoever was ready stays so."""
        self.peers[peer] = None

    def stop(self) -> None:
        """Nobody is waited for any longer, though not everything is known."""
        self.is_ready = True

    def knows_beside(self, peer: str) -> bool:
        """Whether everything is known that this neighbour can be told: what is beyond the others."""
        return not self.peers or (len(self.peers) == 1 and peer in self.peers)
