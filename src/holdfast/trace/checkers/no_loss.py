"""`no-loss`: every acknowledged event reaches every subscription that it is owed to.

It is owed if the filter matches, and if it was published after the `Confirmed` since which the subscription has been in
place. A subscription that is confirmed again stays in place: who lost something in between has to say so, by `Missed`.
Nothing is owed

- to a subscription that has ended by the end of the run, or whose owner crashed: what the owner subscribes to after its
  restart has a new id;
- of what the owner was told that it missed (`excuses`): everything published before the next `Confirmed`, or so many
  events as a count says;
- of events with a lifetime: they may have expired, and the trace does not tell.

Nobody acknowledges an event that a hosted application made; it counts as acknowledged when it has reached someone, and
as published when the first replica made it.

Decided when the run ends, after healing: what is late is no loss.
"""

from __future__ import annotations

from holdfast.trace.checkers.checker import Checker, Handlers
from holdfast.trace.checkers.excuses import NOTHING_KNOWN, Excuses
from holdfast.trace.filters import FilterCache
from holdfast.trace.schema import (
    Acknowledged,
    Confirmed,
    Delivered,
    Fault,
    Missed,
    Published,
    Subscribed,
    Unsubscribed,
)


class NoLoss(Checker):
    """Numbers the events as they are published, and compares with what was delivered at the end."""

    def __init__(self, name: str = "no-loss") -> None:
        handlers: Handlers = {
            Acknowledged: self._on_acknowledged,
            Confirmed: self._on_confirmed,
            Delivered: self._on_delivered,
            Fault: self._on_fault,
            Missed: self._on_missed,
            Published: self._on_published,
            Subscribed: self._on_subscribed,
            Unsubscribed: self._on_unsubscribed,
        }
        super().__init__(name, handlers)
        self._filters = FilterCache()
        self._events: list[Published] = []
        self._numbers: dict[str, int] = {}
        self._derived: dict[str, int] = {}  # the numbers of derived events
        self._acknowledged: set[int] = set()
        self._in_place: dict[str, Subscribed] = {}
        self._excuses: dict[str, Excuses] = {}
        self._delivered: dict[str, set[str]] = {}

    def _on_published(self, row: Published) -> None:
        if row.derived:
            if row.event in self._derived:
                self._events[self._derived[row.event]] = row
                return
            self._derived[row.event] = len(self._events)
        self._numbers[row.event] = len(self._events)
        self._events.append(row)

    def _on_acknowledged(self, row: Acknowledged) -> None:
        number = self._numbers.get(row.event)
        if number is not None:
            self._acknowledged.add(number)

    def _on_subscribed(self, row: Subscribed) -> None:
        self._in_place[row.subscription] = row
        self._excuses[row.subscription] = Excuses(NOTHING_KNOWN)

    def _on_confirmed(self, row: Confirmed) -> None:
        if row.subscription in self._in_place:
            self._excuses[row.subscription].on_confirmed(len(self._events))

    def _on_missed(self, row: Missed) -> None:
        if row.subscription in self._in_place:
            self._excuses[row.subscription].on_missed(row, len(self._events))

    def _on_unsubscribed(self, row: Unsubscribed) -> None:
        self._in_place.pop(row.subscription, None)

    def _on_fault(self, row: Fault) -> None:
        if row.state == "crashed":
            gone = [id for id, subscribed in self._in_place.items() if subscribed.subscriber == row.component]
            for subscription in gone:
                del self._in_place[subscription]

    def _on_delivered(self, row: Delivered) -> None:
        delivered = self._delivered.get(row.subscription)
        if delivered is None:
            delivered = self._delivered[row.subscription] = set()
        delivered.add(row.event)
        if row.event in self._derived:
            self._acknowledged.add(self._derived[row.event])

    def finish(self) -> None:
        owed = [number for number in sorted(self._acknowledged) if self._events[number].lifetime == 0]
        memory: dict[str, dict[int, bool]] = {}
        for subscription, subscribed in self._in_place.items():
            known_from = self._excuses[subscription].known_from
            delivered = self._delivered.get(subscription, set())
            lacking = [
                number for number in owed if number >= known_from and self._events[number].event not in delivered
            ]
            matches = memory.setdefault(subscribed.filter, {})
            wanted = [number for number in lacking if self._is_wanted(number, subscribed.filter, matches)]
            for number in self._excuses[subscription].unexcused(wanted):
                self._report(self._events[number], subscribed)

    def _is_wanted(self, number: int, text: str, matches: dict[int, bool]) -> bool:
        """Whether a filter matches an event; asked once for all subscriptions with one text."""
        answer = matches.get(number)
        if answer is None:
            event = self._events[number]
            answer = matches[number] = self._filters[text].matches(event.attributes, event.topic)
        return answer

    def _report(self, event: Published, subscribed: Subscribed) -> None:
        message = (
            f"{event.event} was acknowledged and never reached {subscribed.subscription}, "
            f"which was in place and wants {subscribed.filter or 'every event'}"
        )
        self.violate(event.t, message, (event.event,), (subscribed.subscription,))
