"""`complete`: two subscriptions with the same filter have the same gaps (D0-C1, strong completeness).

Wherever both got two events of a publisher, everything that the publisher published between them reached both or
neither. That says nothing of what came before the first common event or after the last, so that subscriptions may
begin and end at any time. Filters are the same if their canonical forms are. Named subscriptions are not looked at: a
name may have had another filter before.

A lack is excused by what its owner was told (`excuses`): a `Missed` without a count excuses every lack of an event
published before the next `Confirmed`; one with a count, so many lacks of events published before it, in each
comparison. A lack of an event with a lifetime is excused too, since it may have expired on one way and not on the
other.
"""

from __future__ import annotations

from bisect import bisect
from itertools import combinations

from holdfast.model import Filter
from holdfast.trace.checkers.checker import Checker, Handlers
from holdfast.trace.checkers.excuses import Excuses
from holdfast.trace.filters import FilterCache
from holdfast.trace.schema import Confirmed, Delivered, Missed, Published, Subscribed


class Complete(Checker):
    """Keeps who got what, and compares at the end."""

    def __init__(self, name: str = "complete") -> None:
        handlers: Handlers = {
            Confirmed: self._on_confirmed,
            Delivered: self._on_delivered,
            Missed: self._on_missed,
            Published: self._on_published,
            Subscribed: self._on_subscribed,
        }
        super().__init__(name, handlers)
        self._filters = FilterCache()
        self._events: list[Published] = []
        self._derived: set[str] = set()
        self._texts: dict[str, str] = {}  # subscription → its filter
        self._excuses: dict[str, Excuses] = {}
        self._delivered: dict[str, set[str]] = {}

    def _on_published(self, row: Published) -> None:
        if row.derived:
            if row.event in self._derived:
                return  # another replica says so
            self._derived.add(row.event)
        self._events.append(row)

    def _on_subscribed(self, row: Subscribed) -> None:
        if not row.name:
            self._texts[row.subscription] = row.filter
            self._excuses[row.subscription] = Excuses(known_from=0)

    def _on_confirmed(self, row: Confirmed) -> None:
        if row.subscription in self._excuses:
            self._excuses[row.subscription].on_confirmed(len(self._events))

    def _on_missed(self, row: Missed) -> None:
        if row.subscription in self._excuses:
            self._excuses[row.subscription].on_missed(row, len(self._events))

    def _on_delivered(self, row: Delivered) -> None:
        delivered = self._delivered.get(row.subscription)
        if delivered is None:
            delivered = self._delivered[row.subscription] = set()
        delivered.add(row.event)

    def finish(self) -> None:
        alike: dict[Filter, list[str]] = {}
        for subscription, text in self._texts.items():
            alike.setdefault(self._filters[text], []).append(subscription)
        publishers: dict[str, list[int]] = {}
        for number, event in enumerate(self._events):
            publishers.setdefault(event.publisher, []).append(number)
        for numbers in publishers.values():
            numbers.sort(key=lambda number: (self._events[number].incarnation, self._events[number].sequence))
            for subscriptions in alike.values():
                if len(subscriptions) > 1:
                    self._check_publisher(numbers, subscriptions)

    def _check_publisher(self, order: list[int], subscriptions: list[str]) -> None:
        """Compares what subscriptions with one filter got of one publisher, whose events are given in their order."""
        # Of subscriptions that got the same and have the same excuses, one speaks for all.
        speakers: dict[object, tuple[str, set[int]]] = {}
        for subscription in subscriptions:
            delivered = self._delivered.get(subscription, set())
            places = {place for place, number in enumerate(order) if self._events[number].event in delivered}
            speakers.setdefault((frozenset(places), self._excuses[subscription].key), (subscription, places))
        for (one, ones), (other, others) in combinations(speakers.values(), 2):
            common = sorted(ones & others)
            if len(common) > 1:
                self._check_lacks(order, common, one, ones - others, other)
                self._check_lacks(order, common, other, others - ones, one)

    def _check_lacks(self, order: list[int], common: list[int], had: str, places: set[int], lacked: str) -> None:
        """Reports what `lacked` lacks of what `had` got, between two events that both got."""
        between = [order[place] for place in places if common[0] < place < common[-1]]
        lacking = sorted(number for number in between if self._events[number].lifetime == 0)
        unexcused = self._excuses[lacked].unexcused(lacking)
        if not unexcused:
            return
        first = self._events[unexcused[0]]
        after = bisect(common, order.index(unexcused[0]))
        before, behind = (self._events[order[common[place]]].event for place in (after - 1, after))
        more = f" (and {len(unexcused) - 1} more)" if len(unexcused) > 1 else ""
        message = (
            f"{first.event}{more} reached {had} and not {lacked}, which has the same filter; "
            f"both got {before}, published before it, and {behind}, published after it"
        )
        self.violate(first.t, message, tuple(self._events[number].event for number in unexcused), (had, lacked))
