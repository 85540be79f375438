"""How far the feeds of neighbours are taken in at a broker, and how far its disk has that."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

NOTHING = ("", 0)


class TakenIn:
    """By neighbour: the name of its feed, and the last number of it."""

    def __init__(self) -> None:
        self._now: dict[str, tuple[str, int]] = {}
        # As far as the disk has it; and what the disk is about to have, by the token of its record.
        self._durable: dict[str, tuple[str, int]] = {}
        self._written: deque[tuple[int, dict[str, tuple[str, int]]]] = deque()

    @property
    def peers(self) -> tuple[str, ...]:
        return tuple(self._now)

    def recover(self, stored: Mapping[str, tuple[str, int]]) -> None:
        self._now, self._durable = dict(stored), dict(stored)

    def of(self, peer: str) -> tuple[str, int]:
        """The feed of a neighbour that has introduced itself, and its number."""
        return self._now[peer]

    def through(self, peer: str) -> int:
        return self._now.get(peer, NOTHING)[1]

    def durably(self, peer: str) -> tuple[str, int]:
        """What may be claimed: the neighbour forgets so much (D1-A11)."""
        return self._durable.get(peer, NOTHING)

    def has_been_told(self, peer: str, feed: str) -> bool:
        """Whether something of this feed was taken in, or could have been."""
        return self._now.get(peer, ("?", 0))[0] == feed

    def meet(self, peer: str, feed: str) -> None:
        """It has introduced itself. Of a feed that is another one than before nothing is taken in."""
        if self._now.get(peer, NOTHING)[0] != feed:
            self._now[peer] = (feed, 0)

    def begin_anew(self, peer: str) -> None:
        """On each link, where nothing is kept."""
        self._now[peer] = NOTHING

    def take(self, peer: str, number: int) -> None:
        self._now[peer] = (self._now[peer][0], number)

    def forget(self, peer: str) -> None:
        """It has left the network for good."""
        self._now.pop(peer, None)

    def write(self, token: int) -> None:
        """The state as it is now is in the record with this token."""
        self._written.append((token, dict(self._now)))

    def become_durable(self, token: int) -> None:
        while self._written and self._written[0][0] <= token:
            self._durable = self._written.popleft()[1]
