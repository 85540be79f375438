"""What peers did that they may not: counted by reason, and logged so that nobody can fill a disk with it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from holdfast.wire.handshake import Reason

REASONS: Final = tuple(reason.value for reason in Reason if reason is not Reason.CLOSING)  # that are counted

LOG_EVERY_S = 1.0  # a line for each reason
LINE_CHARACTERS_MAX = 300

log = logging.getLogger("holdfast")


class Refusals:
    """One node's. Lines name who and why; nothing that a peer sent is quoted beyond what an error says of it."""

    def __init__(self, node: str, clock: Callable[[], float]) -> None:
        self.counts: Counter[str] = Counter()
        self._node = node
        self._clock = clock
        self._logged_at: dict[Reason, float] = {}
        self._unlogged: Counter[Reason] = Counter()

    def add(self, reason: Reason, who: str, problem: str) -> None:
        self.counts[reason.value] += 1
        now = self._clock()
        if now - self._logged_at.get(reason, -LOG_EVERY_S) < LOG_EVERY_S:
            self._unlogged[reason] += 1
            return
        self._logged_at[reason] = now
        more = self._unlogged.pop(reason, 0)
        others = f" (and {more} more like it since the last line)" if more else ""
        log.warning("%s refused %s, %s: %s%s", self._node, who, reason.value, problem[:LINE_CHARACTERS_MAX], others)
