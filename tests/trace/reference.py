"""The promises as they are defined, over a whole run at once: slow, short, and without a look at the checkers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, permutations

from holdfast import Filter
from holdfast.trace.schema import (
    Accepted,
    Acknowledged,
    Confirmed,
    Delivered,
    Fault,
    Hop,
    Missed,
    Published,
    QueueLength,
    Refused,
    Row,
    Subscribed,
    Unsubscribed,
)

Rows = Sequence[Row]


def broken_promises(rows: Rows, broker: str) -> set[str]:
    """The names of all checkers that must find something."""
    clear = without_traversing(rows, broker)
    verdicts = {name: holds(rows) for name, holds in PROMISES.items()}
    verdicts["exactly-once"] = verdicts["at-most-once"] and verdicts["no-loss"]
    verdicts[f"weak-complete:{broker}"] = is_complete(clear)
    verdicts[f"weak-ordered:{broker}"] = is_ordered(clear)
    return {name for name, holds in verdicts.items() if not holds}


def without_traversing(rows: Rows, broker: str) -> list[Row]:
    hops = [row for row in rows if isinstance(row, Hop) and broker in {row.source, row.target}]
    traversing = {event for hop in hops for event in hop.events}
    return [row for row in rows if getattr(row, "event", None) not in traversing]


def is_only_matching(rows: Rows) -> bool:
    for place, row in enumerate(rows):
        if isinstance(row, Delivered):
            before = rows[:place]
            events = [p for p in before if isinstance(p, Published) and p.event == row.event]
            changes = [
                s for s in before if isinstance(s, Subscribed | Unsubscribed) and s.subscription == row.subscription
            ]
            if not events or not changes:
                return False
            last = changes[-1]
            if not isinstance(last, Subscribed) or last.subscriber != row.subscriber:
                return False
            of_name = [s for s in before if isinstance(s, Subscribed) and s.name and s.name == last.name]
            filters = [Filter(s.filter) for s in of_name or [last]]
            if not any(filter.matches(events[-1].attributes, events[-1].topic) for filter in filters):
                return False
    return True


def is_at_most_once(rows: Rows) -> bool:
    named = {row.subscription for row in rows if isinstance(row, Subscribed) and row.name}
    deliveries = [row for row in rows if isinstance(row, Delivered)]
    if any(row.attempt > 1 and row.subscription not in named for row in deliveries):
        return False
    return all(
        one.attempt < other.attempt
        for one, other in combinations(deliveries, 2)
        if (one.event, one.subscription) == (other.event, other.subscription)
    )


def first_deliveries(rows: Rows) -> dict[str, list[str]]:
    """Subscription → events, without declared redeliveries."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if isinstance(row, Delivered) and row.attempt == 1 and row.event not in found.setdefault(row.subscription, []):
            found[row.subscription].append(row.event)
    return found


def is_ordered(rows: Rows) -> bool:
    published: dict[str, Published] = {}
    known = []  # without deliveries of what was not published by then
    for row in rows:
        if isinstance(row, Published):
            published[row.event] = row
        if not isinstance(row, Delivered) or row.event in published:
            known.append(row)
    homes: dict[str, str] = {}
    for accepted in [row for row in rows if isinstance(row, Accepted)]:
        homes = dict.fromkeys(accepted.events, accepted.node) | homes
    return all(
        place(published[one]) < place(published[other])
        for events in first_deliveries(known).values()
        for one, other in combinations(events, 2)
        if publisher_of(published[one]) == publisher_of(published[other]) and homes.get(one) == homes.get(other)
    )


def publications(rows: Rows) -> list[tuple[int, Published]]:
    """Where and what; an event that an application derived counts from the first mention, as it was last described."""
    last = {row.event: row for row in rows if isinstance(row, Published)}
    found: list[tuple[int, Published]] = []
    for at, row in enumerate(rows):
        if isinstance(row, Published) and not (row.derived and any(p.event == row.event for _, p in found)):
            found.append((at, last[row.event] if row.derived else row))
    return found


def publisher_of(row: Published) -> tuple[str, int]:
    """A broker that forgot what its application derived is another publisher."""
    return row.publisher, row.incarnation if row.derived else 0


def place(row: Published) -> tuple[int, int]:
    return row.incarnation, row.sequence


def is_totally_ordered(rows: Rows) -> bool:
    for ones, others in combinations(first_deliveries(rows).values(), 2):
        common = [event for event in ones if event in others]
        if common != [event for event in others if event in ones]:
            return False
    return True


def known_from(rows: Rows, subscription: str, start: int | None) -> int | None:
    """Where in the rows the knowledge of a subscription begins; None if nothing is known of it."""
    known = start
    for at, row in enumerate(rows):
        if getattr(row, "subscription", None) == subscription:
            if isinstance(row, Missed) and row.count is None:
                known = None
            elif isinstance(row, Confirmed) and known is None:
                known = at
    return known


def is_excused(rows: Rows, subscription: str, lacking: list[int]) -> bool:
    """Whether counted notices excuse events published at these places: Hall's condition, for nested sets."""
    notices = [
        (at, row.count)
        for at, row in enumerate(rows)
        if isinstance(row, Missed) and row.count is not None and row.subscription == subscription
    ]
    return all(
        sum(other >= event for other in lacking) <= sum(count for at, count in notices if at > event)
        for event in lacking
    )


def is_without_loss(rows: Rows) -> bool:
    acknowledged = {row.event for row in rows if isinstance(row, Acknowledged)}
    reached = {row.event for row in rows if isinstance(row, Delivered)}
    acknowledged |= {row.event for _, row in publications(rows) if row.derived and row.event in reached}
    for at, row in enumerate(rows):
        if not isinstance(row, Subscribed):
            continue
        id, later = row.subscription, rows[at:]
        if any(isinstance(r, Unsubscribed) and r.subscription == id for r in later):
            continue
        if any(is_crash(r, row.subscriber) for r in later):
            continue
        known = known_from(rows, id, None)
        if known is None:
            continue
        got = {r.event for r in rows if isinstance(r, Delivered) and r.subscription == id}
        lacking = [
            place
            for place, p in publications(rows)
            if place > known and p.event in acknowledged and p.event not in got
            if p.lifetime == 0 and Filter(row.filter).matches(p.attributes, p.topic)
        ]
        if not is_excused(rows, id, lacking):
            return False
    return True


def is_complete(rows: Rows) -> bool:
    plain = [row for row in rows if isinstance(row, Subscribed) and not row.name]
    filters = {row.subscription: Filter(row.filter) for row in plain}
    published = publications(rows)
    got = {id: {row.event for row in rows if isinstance(row, Delivered) and row.subscription == id} for id in filters}
    for one, other in permutations(filters, 2):
        if filters[one] != filters[other]:
            continue
        for publisher in sorted({row.publisher for _, row in published}):
            mine = [(at, row) for at, row in published if row.publisher == publisher]
            both = [place(row) for _, row in mine if row.event in got[one] & got[other]]
            known = known_from(rows, one, 0)
            lacking = [
                at
                for at, row in mine
                if row.event in got[other] - got[one] and any(p < place(row) for p in both)
                if any(p > place(row) for p in both) and row.lifetime == 0 and known is not None and at >= known
            ]
            if not is_excused(rows, one, lacking):
                return False
    return True


def is_bounded(rows: Rows) -> bool:
    return all(row.limit == 0 or row.length <= row.limit for row in rows if isinstance(row, QueueLength))


def is_live(rows: Rows) -> bool:
    for at, row in enumerate(rows):
        later = rows[at:]
        if isinstance(row, Published) and not row.derived:
            owner = row.publisher
            is_done = any(isinstance(r, Acknowledged | Refused) and r.event == row.event for r in later)
        elif isinstance(row, Subscribed) or (
            isinstance(row, Missed) and row.count is None and is_in_place(rows, at, row)
        ):
            owner, id = row.subscriber, row.subscription
            is_done = any(isinstance(r, Confirmed | Unsubscribed) and r.subscription == id for r in later)
        else:
            continue
        if not is_done and not any(is_crash(r, owner) for r in later):
            return False
    return True


def is_in_place(rows: Rows, at: int, row: Missed) -> bool:
    """Whether the subscription of a row was asked for and has not ended by then."""
    state = False
    for other in rows[:at]:
        if isinstance(other, Subscribed | Unsubscribed) and other.subscription == row.subscription:
            state = isinstance(other, Subscribed)
        elif is_crash(other, row.subscriber):
            state = False
    return state


def is_crash(row: Row, component: str) -> bool:
    return isinstance(row, Fault) and row.component == component and row.state == "crashed"


def is_in_time(rows: Rows) -> bool:
    for at, row in enumerate(rows):
        if not isinstance(row, Delivered):
            continue
        for event in [p for p in rows[:at] if isinstance(p, Published) and p.event == row.event][-1:]:
            wrong = {r.component for r in rows[:at] if isinstance(r, Fault) and r.state.startswith("clock")}
            by_own = row.left is None or row.left > 0
            by_run = row.t < event.t + event.lifetime or not wrong.isdisjoint({event.publisher, row.subscriber})
            if event.lifetime and not (by_own and by_run):
                return False
    return True


PROMISES: dict[str, Callable[[Rows], bool]] = {
    "only-matching": is_only_matching,
    "at-most-once": is_at_most_once,
    "publisher-order": is_ordered,
    "total-order": is_totally_ordered,
    "no-loss": is_without_loss,
    "complete": is_complete,
    "bounded-queues": is_bounded,
    "liveness": is_live,
    "in-time": is_in_time,
}
