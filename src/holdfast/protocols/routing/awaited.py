"""Neighbours that are awaited: a broker that was restarted does not know yet what is wanted on their sides."""

from __future__ import annotations

from collections.abc import Iterable


class Awaited:
    """Those neighbours, and whether they were waited for long enough."""

    def __init__(self) -> None:
        self.peers: dict[str, None] = {}
        self._was_enough = False

    @property
    def is_ready(self) -> bool:
        """Whether everything is known that neighbours can tell, or was waited for long enough."""
        return not self.peers or self._was_enough

    def knows_beside(self, peer: str) -> bool:
        """Whether everything is known that this neighbour can be told: what is beyond the others."""
        return not self.peers or (len(self.peers) == 1 and peer in self.peers)

    def begin(self, peers: Iterable[str]) -> None:
        self.peers = dict.fromkeys(peers)

    def learn(self, peer: str) -> bool:
        """Everything is known that a neighbour can tell now. Whether it was awaited."""
        return self.peers.pop(peer, peer) is None

    def stop(self) -> None:
        """It is gone on with what is known."""
        self._was_enough = True
