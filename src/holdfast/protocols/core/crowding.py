"""Which subscriptions are nearly full, of those whose publishers wait for room: part of the core.

There may be thousands of subscriptions that block, and every publication has to find room in all that want it. So those
with half of their room taken are listed, and a small batch needs a look at these alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.kernel.node import require
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.core.subscriptions import Ledger, Subscription
from holdfast.protocols.sessions.messages import Overflow


class Crowding:
    def __init__(self, limits: CoreLimits) -> None:
        self.limits = limits
        self.blocking: dict[Subscription, None] = {}  # those whose publishers wait
        self._crowded: dict[Subscription, None] = {}  # of those, the ones with half of their room taken
        # Ledgers of sessions with half of their room taken, and with some that block.
        self._crowded_ledgers: dict[Ledger, None] = {}

    def clear(self) -> None:
        self.blocking, self._crowded, self._crowded_ledgers = {}, {}, {}

    def add(self, subscription: Subscription) -> None:
        """A subscription is there, and in its session's ledger."""
        if subscription.overflow is Overflow.BLOCK:
            self.blocking[subscription] = None
        self.look(subscription)

    def remove(self, subscription: Subscription) -> None:
        """A subscription is gone from its session's ledger."""
        if subscription.overflow is Overflow.BLOCK:
            del self.blocking[subscription]
            self._crowded.pop(subscription, None)
        self._look_at_ledger(subscription.ledger)

    def look(self, subscription: Subscription) -> None:
        """What the subscription keeps has changed."""
        if subscription.overflow is Overflow.BLOCK:
            if subscription.is_crowded(self.limits.backlog_events, self.limits.backlog_bytes):
                self._crowded[subscription] = None
            elif self._crowded:
                self._crowded.pop(subscription, None)
        self._look_at_ledger(subscription.ledger)

    def _look_at_ledger(self, ledger: Ledger) -> None:
        if ledger.makes_wait:
            self._crowded_ledgers[ledger] = None
        elif self._crowded_ledgers:
            self._crowded_ledgers.pop(ledger, None)

    def possibly_full(self, events: int, size: int) -> dict[Subscription, None]:
        """The blocking subscriptions that may not have room for so many events of that size in all.

        A batch that fits into half of the room needs a look at the crowded ones only.
        """
        bytes_max = min(self.limits.backlog_bytes, self.limits.backlog_bytes_per_session)
        if 2 * events > self.limits.backlog_events or 2 * size > bytes_max:
            return self.blocking
        if not self._crowded_ledgers:
            return self._crowded
        found = dict(self._crowded)
        for ledger in self._crowded_ledgers:
            found |= ledger.blocking
        return found

    def check_invariants(self, client: str, ledger: Ledger, subscriptions: Iterable[Subscription]) -> None:
        """Of one session."""
        kept = 0
        for subscription in subscriptions:
            number, kept = subscription.number, kept + subscription.bytes
            blocks = subscription.overflow is Overflow.BLOCK
            require((subscription in self.blocking) == blocks, "blocking subscriptions are listed", number=number)
            crowded = blocks and subscription.is_crowded(self.limits.backlog_events, self.limits.backlog_bytes)
            require((subscription in self._crowded) == crowded, "crowded subscriptions are listed", number=number)
            require((subscription in ledger.blocking) == blocks, "a ledger knows who blocks", number=number)
        require(ledger.bytes == kept, "a session's backlog is counted", client=client, bytes=kept)
        require((ledger in self._crowded_ledgers) == ledger.makes_wait, "crowded sessions are listed", client=client)
