"""`endings`: a subscription ends as its owner asks, or for a reason that the run explains.

What has ended is owed nothing: a broker that ended subscriptions as it liked would keep every other promise. A client
that says goodbye (`goodbyes` in the header) ends what it has, whether its broker is there or not. Besides, there is one
reason: more waits for a subscription than its broker has room for, or publishers waited too long for room. That is
explained if its policy is to end it, and if more matching events were published by then than a broker keeps for it
(`backlog_events` in the header; without it, at least one). How many of them it had got does not count: its broker keeps
an event until it hears that, which takes time.

Named subscriptions are not looked at: another client takes a name over, an operator forgets it, retention overtakes it.
"""

from __future__ import annotations

from holdfast.trace.checkers.checker import Checker, Handlers
from holdfast.trace.filters import FilterCache
from holdfast.trace.schema import Header, Published, Subscribed, Unsubscribed

OVERFLOW = "overflow"
ENDED_BY_GOODBYE = ("the client was closed", "the broker was gone")
ENDED_BY_OVERFLOW = ("disconnect", "block", "")  # policies; empty if the trace does not tell


class Endings(Checker):
    """Keeps the events that were published so far."""

    def __init__(self, name: str = "endings") -> None:
        handlers: Handlers = {
            Published: self._on_published,
            Subscribed: self._on_subscribed,
            Unsubscribed: self._on_unsubscribed,
        }
        super().__init__(name, handlers)
        self._kept = 0
        self._goodbyes: frozenset[str] = frozenset()
        self._filters = FilterCache()
        self._events: list[Published] = []
        self._subscriptions: dict[str, Subscribed] = {}

    def begin(self, header: Header) -> None:
        self._kept = header.settings.get("backlog_events", 0)
        self._goodbyes = frozenset(header.settings.get("goodbyes", ()))

    def _on_published(self, row: Published) -> None:
        self._events.append(row)

    def _on_subscribed(self, row: Subscribed) -> None:
        self._subscriptions[row.subscription] = row

    def _on_unsubscribed(self, row: Unsubscribed) -> None:
        subscribed = self._subscriptions.pop(row.subscription, None)
        if not row.reason or subscribed is None or subscribed.name:
            return
        problem = self._unexplained(row.reason, subscribed)
        if problem:
            message = f"{row.subscription} ended ({row.reason}), {problem}"
            self.violate(row.t, message, subscriptions=(row.subscription,))

    def _unexplained(self, reason: str, subscribed: Subscribed) -> str:
        if reason in ENDED_BY_GOODBYE and subscribed.subscriber in self._goodbyes:
            return ""
        if not reason.startswith(OVERFLOW):
            return "and nothing in the run is a reason for that"
        if subscribed.overflow not in ENDED_BY_OVERFLOW:
            return f"and its policy is {subscribed.overflow}"
        filter = self._filters[subscribed.filter]
        matching = sum(filter.matches(event.attributes, event.topic) for event in self._events)
        if matching <= self._kept:
            return f"and {matching} events were published for it, where {self._kept} have room"
        return ""
