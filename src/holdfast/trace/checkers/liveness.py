"""`liveness`: by the end of the run every question has its answer.

Every published event was acknowledged or refused; every subscription that was asked for was confirmed or has ended, and
confirmed again after a `Missed` without a count, which says that it has to be made anew. Who crashed waits for nothing
that it asked for before. Some brokers may be down to the end: whoever has no other one (`homeless` in the header) waits
rightly, and everyone else gets its answers while they are down.
"""

from __future__ import annotations

from holdfast.trace.checkers.checker import Checker, Handlers
from holdfast.trace.schema import (
    Acknowledged,
    Confirmed,
    Fault,
    Header,
    Missed,
    Published,
    Refused,
    Subscribed,
    Unsubscribed,
)


class Liveness(Checker):
    """Keeps what each client waits for."""

    def __init__(self, name: str = "liveness") -> None:
        handlers: Handlers = {
            Acknowledged: self._on_answered,
            Confirmed: self._on_confirmed,
            Fault: self._on_fault,
            Missed: self._on_missed,
            Published: self._on_published,
            Refused: self._on_answered,
            Subscribed: self._on_subscribed,
            Unsubscribed: self._on_unsubscribed,
        }
        super().__init__(name, handlers)
        self._homeless: frozenset[str] = frozenset()
        self._events: dict[str, dict[str, int]] = {}  # publisher → event → since when it waits
        self._subscriptions: dict[str, dict[str, int | None]] = {}  # subscriber → subscription → the same, or None

    def begin(self, header: Header) -> None:
        self._homeless = frozenset(header.settings.get("homeless", ()))

    def _on_published(self, row: Published) -> None:
        if row.derived:
            return  # nobody waits for an answer
        self._events.setdefault(row.publisher, {})[row.event] = row.t

    def _on_answered(self, row: Acknowledged | Refused) -> None:
        self._events.get(row.publisher, {}).pop(row.event, None)

    def _on_subscribed(self, row: Subscribed) -> None:
        self._subscriptions.setdefault(row.subscriber, {})[row.subscription] = row.t

    def _on_confirmed(self, row: Confirmed) -> None:
        self._wait(row, None)

    def _on_missed(self, row: Missed) -> None:
        if row.count is None:
            self._wait(row, row.t)

    def _wait(self, row: Confirmed | Missed, since: int | None) -> None:
        subscriptions = self._subscriptions.get(row.subscriber, {})
        if row.subscription in subscriptions:  # one that has ended waits for nothing
            subscriptions[row.subscription] = since

    def _on_unsubscribed(self, row: Unsubscribed) -> None:
        self._subscriptions.get(row.subscriber, {}).pop(row.subscription, None)

    def _on_fault(self, row: Fault) -> None:
        if row.state == "crashed":
            self._events.pop(row.component, None)
            self._subscriptions.pop(row.component, None)

    def finish(self) -> None:
        for publisher, events in self._events.items():
            if publisher in self._homeless:
                continue
            for event, t in events.items():
                self.violate(t, f"{publisher} never learned whether {event} was accepted", (event,))
        for subscriber, subscriptions in self._subscriptions.items():
            if subscriber in self._homeless:
                continue
            for subscription, since in subscriptions.items():
                if since is not None:
                    message = f"{subscriber} was never told that {subscription} is in place"
                    self.violate(since, message, (), (subscription,))
