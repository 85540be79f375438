"""`total-order`: any two subscriptions get the events that both get in the same order (pairwise total order).

First deliveries count, and declared redeliveries (`attempt` > 1) do not. Decided when the run ends, in two steps. If
all deliveries fit into one order of all events, no pair can disagree: that takes time linear in the deliveries, and is
all that a good run needs. Otherwise the events that fit nowhere are compared, pair by pair. A circle through three or
more subscriptions of which no two disagree is no violation: the promise is about pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from holdfast.trace.checkers.checker import Checker
from holdfast.trace.schema import Delivered


class TotalOrder(Checker):
    """Keeps what each subscription got, in order."""

    def __init__(self, name: str = "total-order") -> None:
        super().__init__(name, {Delivered: self._on_delivered})
        self._orders: dict[str, dict[str, int]] = {}  # subscription → event → time; dicts keep their order

    def _on_delivered(self, row: Delivered) -> None:
        if row.attempt > 1:
            return
        order = self._orders.get(row.subscription)
        if order is None:
            order = self._orders[row.subscription] = {}
        if row.event not in order:
            order[row.event] = row.t

    def finish(self) -> None:
        unplaced = unplaced_events(self._orders.values())
        if not unplaced:
            return
        disputed = {
            subscription: [event for event in order if event in unplaced]
            for subscription, order in self._orders.items()
        }
        for one, other in combinations(disputed, 2):
            self._compare(one, disputed[one], other, disputed[other])

    def _compare(self, one: str, ones: list[str], other: str, others: list[str]) -> None:
        """Reports the first two events on which a pair of subscriptions disagrees."""
        places = {event: place for place, event in enumerate(others)}
        last = -1
        for event in ones:
            place = places.get(event, last)
            if place < last:
                earlier = others[last]
                message = f"{one} got {earlier} before {event}, {other} got {event} before {earlier}"
                t = max(self._orders[one][event], self._orders[other][earlier])
                self.violate(t, message, (earlier, event), (one, other))
                return
            last = place


def unplaced_events(orders: Iterable[Iterable[str]]) -> set[str]:
    """The events on circles, and between circles, of the union of some orders; none if the orders agree."""
    followers: dict[str, list[str]] = {}
    leaders: dict[str, list[str]] = {}
    for order in orders:
        before = None
        for event in order:
            followers.setdefault(event, [])
            leaders.setdefault(event, [])
            if before is not None:
                followers[before].append(event)
                leaders[event].append(before)
            before = event
    # No circle goes through an event that nothing comes before, or that nothing comes after.
    left = _without_starts(set(followers), followers, leaders)
    return _without_starts(left, leaders, followers)


def _without_starts(events: set[str], followers: dict[str, list[str]], leaders: dict[str, list[str]]) -> set[str]:
    """What is left after taking away, again and again, the events that have no leader."""
    counts = {event: sum(leader in events for leader in leaders[event]) for event in followers if event in events}
    starts = [event for event, count in counts.items() if count == 0]
    while starts:
        event = starts.pop()
        del counts[event]
        for follower in followers[event]:
            if follower in counts:
                counts[follower] -= 1
                if counts[follower] == 0:
                    starts.append(follower)
    return set(counts)
