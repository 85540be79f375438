"""`at-most-once`: no subscription gets an event twice (D0-C20).

A named subscription may get an event again if the delivery says so: its `attempt` is larger than that of every earlier
delivery of the event there. Other subscriptions never may. An event that matches two subscriptions of one subscriber is
delivered to each of them; a subscriber that was started again has new subscriptions.
"""

from __future__ import annotations

from holdfast.trace.checkers.checker import Checker
from holdfast.trace.schema import Delivered, Subscribed


class AtMostOnce(Checker):
    """Remembers the last attempt of every delivery."""

    def __init__(self, name: str = "at-most-once") -> None:
        super().__init__(name, {Delivered: self._on_delivered, Subscribed: self._on_subscribed})
        self._named: dict[str, bool] = {}
        self._attempts: dict[str, dict[str, int]] = {}  # subscription → event → the last attempt

    def _on_subscribed(self, row: Subscribed) -> None:
        self._named[row.subscription] = row.name != ""

    def _on_delivered(self, row: Delivered) -> None:
        attempts = self._attempts.get(row.subscription)
        if attempts is None:
            attempts = self._attempts[row.subscription] = {}
        before = attempts.get(row.event, 0)
        attempts[row.event] = max(before, row.attempt)
        if row.attempt > 1 and not self._named.get(row.subscription, False):
            problem = f"as attempt {row.attempt}, and the subscription has no name under which it could be redelivered"
        elif row.attempt <= before:
            problem = "a second time" if before == 1 else f"again as attempt {row.attempt}, after attempt {before}"
        else:
            return
        self.violate(row.t, f"{row.subscription} got {row.event} {problem}", (row.event,), (row.subscription,))
