"""When fast rounds pay off, as far as a leader can tell: it opens them, and gives them up for a while (D4-B4).

They need more voters than classic ones, and every collision costs what was to be saved. While they are closed the group
works in classic rounds, which need a majority; each time that fast rounds did not last, the pause is longer.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from holdfast.schemes.paxos.settings import PaxosSettings

LOOKED_AT: Final = 64  # slots
COLLISIONS_MAX: Final = LOOKED_AT // 2  # of those


class Fallback:
    """The pauses between fast rounds, of a replica while it leads; times are the node's."""

    def __init__(self, settings: PaxosSettings) -> None:
        self._settings = settings
        self._recovered: deque[bool] = deque(maxlen=LOOKED_AT)  # of the last fast slots: whether they needed help
        self._pause = 0
        self._opened_at = 0
        self._closed_until = 0

    def begin(self) -> None:
        """A new leadership."""
        self._recovered.clear()
        self._pause = self._closed_until = 0

    def may_open(self, voters: int, needed: int, now: int) -> bool:
        return voters >= needed and now >= self._closed_until

    def opened(self, now: int) -> None:
        self._opened_at = now
        self._recovered.clear()

    def decided(self, recovered: bool) -> None:
        """A slot of a fast round is executed."""
        self._recovered.append(recovered)

    def reason_to_close(self, voters: int, needed: int) -> str:
        if voters < needed:
            return f"{voters} replicas answer, and {needed} would have to"
        if sum(self._recovered) > COLLISIONS_MAX:
            return f"{sum(self._recovered)} of {len(self._recovered)} slots needed recovery"
        return ""

    def closed(self, now: int) -> None:
        """They were given up. What lasted longer than the pause before it was worth it."""
        lasted = now - self._opened_at
        base, longest = self._settings.fast_pause, self._settings.fast_pause_max
        self._pause = min(2 * self._pause, longest) if self._pause and lasted < self._pause else base
        self._closed_until = now + self._pause
