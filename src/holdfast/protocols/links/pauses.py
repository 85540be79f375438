"""How long to wait before a peer that has no link is dialled again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from random import Random

DOUBLINGS_MAX: Final = 30  # beyond that a pause is longer than anyone waits


class Pauses(Protocol):
    """Asked after each attempt that failed, and after each link that went."""

    def after(self, failures: int) -> int:
        """How long to wait; `failures`: how often that was necessary before, since there was a link."""
        ...


class SteadyPauses:
    """Always as long: for brokers, of which there are few."""

    def __init__(self, pause: int) -> None:
        self._pause = pause

    def after(self, failures: int) -> int:
        return self._pause


class GrowingPauses:
    """Twice as long each time, up to a limit, and shortened at random: clients that lost the same broker do not come
    back at the same moment."""

    def __init__(self, pause_min: int, pause_max: int, rng: Random) -> None:
        self._pause_min, self._pause_max = pause_min, pause_max
        self._rng = rng

    def after(self, failures: int) -> int:
        pause = min(self._pause_max, self._pause_min << min(failures, DOUBLINGS_MAX))
        return self._rng.randint(pause // 2, pause)
