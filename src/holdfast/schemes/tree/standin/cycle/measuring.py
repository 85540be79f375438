"""What a broker can tell of a neighbour by its own queue for it: how much waits, for how long, and how fast it goes.

It is looked at now and then, and nothing is written down when events come or go: a network in which all is well pays
for no more than that (D0-C17). So ages are known to within two looks.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple, Protocol

from holdfast.kernel.time import SECOND

LOOKS_MAX: Final = 256  # that are remembered of one neighbour; then every other one is forgotten


class Feed(Protocol):
    """The queue of events for one neighbour."""

    @property
    def put_total(self) -> int:
        """How many were ever put into it; what is given up at once with a link begins it anew."""
        ...

    def __len__(self) -> int: ...


class Measured(NamedTuple):
    """Of one neighbour, now. `rate`: events that it took in a second, while others waited; -1: none did all the
    time."""

    waiting: int = 0
    oldest: int = 0
    rate: float = -1.0


class Gauge:
    """Of one neighbour, over time."""

    __slots__ = ("_gone", "_looked_at", "_looks", "_waited", "now")

    def __init__(self) -> None:
        self.now = Measured()
        self._looks: deque[tuple[int, int]] = deque()  # when, and how many had been put into the queue by then
        self._gone = 0
        self._looked_at = 0
        self._waited = False

    def excuse(self, late: int) -> None:
        """The broker that looks stood still for so long."""
        self._looks = deque((at + late, put) for at, put in self._looks)
        self._looked_at += late

    def look(self, feed: Feed, now: int) -> Measured:
        waiting, put = len(feed), feed.put_total
        gone = put - waiting
        if gone < self._gone or (self._looks and put < self._looks[-1][1]):
            self._looks.clear()  # the queue began anew
            self._waited = False
        while self._looks and self._looks[0][1] <= gone:
            self._looks.popleft()
        if waiting and (not self._looks or self._looks[-1][1] < put):
            self._looks.append((now, put))
            if len(self._looks) > LOOKS_MAX:
                self._looks = deque(look for place, look in enumerate(self._looks) if place % 2 == 0)
        passed = now - self._looked_at
        rate = (gone - self._gone) * SECOND / passed if self._waited and waiting and passed > 0 else -1.0
        oldest = now - self._looks[0][0] if self._looks else 0
        self._gone, self._looked_at, self._waited = gone, now, waiting > 0
        self.now = Measured(waiting, oldest, rate)
        return self.now
