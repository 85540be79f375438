"""Says which name keeps a log from shrinking: one that nobody reads any more costs disk until someone hears of it."""

from __future__ import annotations

from typing import Final

from holdfast.kernel.outbox import Level, Outbox
from holdfast.protocols.core.cursor import Cursor
from holdfast.protocols.core.log_state import LogState

HELD_BYTES: Final = 128 * 1024**2  # of a log whose size is not limited: from here on it is said who holds it
NEVER: Final = 1 << 62


class HeldLog:
    """Speaks up when a name has doubled the log, with every doubling since, and when the alarm begins."""

    def __init__(self, bytes_wanted: int, bytes_hard: int) -> None:
        """How large the log is to be, and how large it may be for the sake of names; 0 is no limit."""
        self._bytes_hard = bytes_hard
        # Near the hard limit: at 80% of it.
        self.alarm_bytes = bytes_hard * 8 // 10 + 1 if bytes_hard else NEVER
        self._first = min(2 * bytes_wanted or HELD_BYTES, self.alarm_bytes)
        self._next = self._first

    def look(self, log: LogState, holder: Cursor | None, expendable: int, out: Outbox) -> None:
        """`holder` needs the oldest event; those before `expendable` would go but for names."""
        if holder is None or holder.acknowledged + 1 >= expendable:
            self._next = self._first
        elif log.kept_bytes >= self._next:
            doubled = 2 * log.kept_bytes
            self._next = min(doubled, self.alarm_bytes) if log.kept_bytes < self.alarm_bytes else doubled
            out.report(
                "log-held",
                Level.WARNING,
                name=holder.name,
                owner="" if holder.owner is None else holder.owner[0],
                behind_events=log.head - holder.acknowledged,
                log_bytes=log.kept_bytes,
                bytes_hard=self._bytes_hard,
                remedy="read it, or let it go with `holdfast names forget`",
            )
