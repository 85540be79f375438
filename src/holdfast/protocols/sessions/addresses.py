"""Where a client may find a broker: what it was given, and what brokers told it of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.kernel.node import require

if TYPE_CHECKING:
    from random import Random

REDIRECTS_MAX = 5
KNOWN_MAX = 32  # addresses: beyond that, older ones that brokers told of are forgotten


class Addresses:
    """Tried in turn, with a pause after each failure that grows when all have failed."""

    def __init__(self, given: tuple[str, ...], pause_min: int, pause_max: int, rng: Random) -> None:
        require(given, "a client has an address to connect to")
        self._known = list(given)
        self._given = len(self._known)
        self._next = 0
        self._failures = 0
        self._redirects = 0
        self._pause_min, self._pause_max = pause_min, pause_max
        self._rng = rng

    @property
    def current(self) -> str:
        return self._known[self._next % len(self._known)]

    @property
    def are_several(self) -> bool:
        return len(self._known) > 1

    def learn(self, addresses: tuple[str, ...]) -> None:
        """Those that were told of come and go with a group's members; the ones that were given stay."""
        self._known += [address for address in addresses if address not in self._known]
        while len(self._known) > max(KNOWN_MAX, self._given + len(addresses)):
            gone = next(n for n in range(self._given, len(self._known)) if self._known[n] not in addresses)
            del self._known[gone]
            self._next = self._next % len(self._known)

    def redirect(self, addresses: tuple[str, ...]) -> bool:
        """Turns to where a broker sent us. False if there is nowhere, or it has been too often."""
        self.learn(addresses)
        self._redirects += 1
        if not addresses or self._redirects > REDIRECTS_MAX:
            return False
        self._next = self._known.index(addresses[0])
        return True

    def succeeded(self) -> None:
        self._failures = self._redirects = 0

    def failed(self) -> int:
        """Turns to the next address; gives how long to wait before it is tried."""
        self._next += 1
        pause = min(self._pause_max, self._pause_min << min(self._failures // len(self._known), 30))
        self._failures += 1
        # Clients that lost the same broker do not come back at the same moment.
        return int(pause * (0.5 + self._rng.random() / 2))
