"""Runs that keep every promise, grown from bytes: one broker that accepts events in one order and a queue for each
subscription. Clients come, go and crash, queues overflow, the broker forgets subscriptions; and it says so each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from holdfast import Filter
from holdfast.trace.schema import (
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
from tests.filters.strategies import Choices

BROKER = "b2"
LONG = 10**6  # a lifetime that no run outlives
FILTERS = ("", "x > 1", "1 < x", "x = 2 OR topic = 'a'")


@dataclass
class Subscription:
    row: Subscribed
    queue: list[Published] = field(default_factory=list)
    got: list[str] = field(default_factory=list)
    attempts: dict[str, int] = field(default_factory=dict)
    is_known: bool = True  # to the broker
    is_confirmed: bool = False


class PerfectRun:
    """Makes `rows`, times ascending."""

    def __init__(self, source: bytes) -> None:
        self.choose = Choices(source)
        self.rows: list[Row] = []
        self.subscriptions: dict[str, Subscription] = {}
        self.unanswered: list[Published] = []
        self.counters: dict[str, list[int]] = {name: [1, 0] for name in ("p", "q", "s", "t", "u")}
        for _ in range(3):
            self.subscribe()
        for _ in range(len(source) // 3):
            step = self.choose.of(STEPS)
            step(self)
        self.settle()
        self.rows = in_order(self.rows)

    def add(self, row: Row) -> None:
        self.rows.append(row)

    def new_id(self, client: str) -> str:
        self.counters[client][1] += 1
        return f"{client}/{self.counters[client][0]}/{self.counters[client][1]}"

    def subscribe(self) -> None:
        subscriber, filter = self.choose.of("stu"), self.choose.of(FILTERS)
        name = "named" if self.choose.below(3) == 0 else ""
        row = Subscribed(t=0, subscription=self.new_id(subscriber), subscriber=subscriber, filter=filter, name=name)
        self.subscriptions[row.subscription] = Subscription(row)
        self.add(row)
        if self.choose.below(2):
            self.confirm(self.subscriptions[row.subscription])

    def confirm(self, subscription: Subscription) -> None:
        subscription.is_known = subscription.is_confirmed = True
        row = subscription.row
        self.add(Confirmed(t=0, subscription=row.subscription, subscriber=row.subscriber))

    def any_subscription(self) -> Subscription | None:
        return self.choose.of(list(self.subscriptions.values())) if self.subscriptions else None

    def publish(self) -> None:
        publisher = self.choose.of("pq")
        id = self.new_id(publisher)
        row = Published(
            t=0,
            event=id,
            publisher=publisher,
            incarnation=self.counters[publisher][0],
            sequence=self.counters[publisher][1],
            topic=self.choose.of(["", "a"]),
            attributes={"x": self.choose.below(4)},
            lifetime=LONG if self.choose.below(8) == 7 else 0,
        )
        self.add(row)
        self.add(Hop(t=0, message=len(self.rows), source=publisher, target="b1", what="Publish", events=[id]))
        if self.choose.below(3) == 0:
            self.add(Hop(t=0, message=len(self.rows), source="b1", target=BROKER, what="Forward", events=[id]))
        self.unanswered.append(row)
        for subscription in self.subscriptions.values():
            if subscription.is_known and Filter(subscription.row.filter).matches(row.attributes, row.topic):
                subscription.queue.append(row)

    def answer(self) -> None:
        if self.unanswered:
            row = self.unanswered.pop(self.choose.below(len(self.unanswered)))
            if self.choose.below(8) == 7:
                self.add(Refused(t=0, event=row.event, publisher=row.publisher, reason="not known"))
            else:
                self.add(Acknowledged(t=0, event=row.event, publisher=row.publisher))

    def deliver(self) -> None:
        waiting = [subscription for subscription in self.subscriptions.values() if subscription.queue]
        if not waiting:
            return
        subscription = self.choose.of(waiting)
        event = subscription.queue.pop(0)
        if not (event.lifetime and self.choose.below(2)):
            subscription.got.append(event.event)
            subscription.attempts[event.event] = 1
            self.hand_over(subscription, event.event, 1)

    def hand_over(self, subscription: Subscription, event: str, attempt: int) -> None:
        row = subscription.row
        id, subscriber = row.subscription, row.subscriber
        left = self.choose.below(3) or None  # by its own clock; some say nothing
        self.add(Delivered(t=0, event=event, subscription=id, subscriber=subscriber, attempt=attempt, left=left))

    def redeliver(self) -> None:
        subscription = self.any_subscription()
        if subscription and subscription.row.name and subscription.got:
            event = self.choose.of(subscription.got)
            subscription.attempts[event] += 1
            self.hand_over(subscription, event, subscription.attempts[event])

    def settle_one(self) -> None:
        unconfirmed = [s for s in self.subscriptions.values() if not s.is_confirmed]
        if unconfirmed:
            self.confirm(self.choose.of(unconfirmed))

    def unsubscribe(self) -> None:
        subscription = self.any_subscription()
        if subscription:
            row = subscription.row
            del self.subscriptions[row.subscription]
            self.add(Unsubscribed(t=0, subscription=row.subscription, subscriber=row.subscriber))

    def overflow(self) -> None:
        subscription = self.any_subscription()
        if subscription and subscription.queue:
            count = 1 + self.choose.below(len(subscription.queue))
            begin = self.choose.below(len(subscription.queue))
            gone = subscription.queue[begin : begin + count]
            del subscription.queue[begin : begin + count]
            self.miss(subscription, len(gone))

    def forget(self) -> None:
        subscription = self.any_subscription()
        if subscription and subscription.is_known:
            subscription.queue.clear()
            subscription.is_known = subscription.is_confirmed = False
            self.miss(subscription, None)

    def miss(self, subscription: Subscription, count: int | None) -> None:
        row = subscription.row
        self.add(Missed(t=0, subscription=row.subscription, subscriber=row.subscriber, reason="test", count=count))

    def crash(self) -> None:
        client = self.choose.of("pqstu")
        self.add(Fault(t=0, component=client, state="crashed"))
        self.add(Fault(t=0, component=client, state="up"))
        self.counters[client] = [self.counters[client][0] + 1, 0]
        self.subscriptions = {id: s for id, s in self.subscriptions.items() if s.row.subscriber != client}
        self.unanswered = [row for row in self.unanswered if row.publisher != client]

    def measure(self) -> None:
        limit = self.choose.below(4)
        length = self.choose.below(limit + 1) if limit else self.choose.below(9)
        self.add(QueueLength(t=0, node="b1", queue="b2", length=length, limit=limit))

    def disturb(self) -> None:
        self.add(Fault(t=0, component=self.choose.of("pqstu"), state="clock +5 ms"))

    def settle(self) -> None:
        for subscription in self.subscriptions.values():
            if not subscription.is_confirmed:
                self.confirm(subscription)
        while self.unanswered:
            self.answer()
        while any(subscription.queue for subscription in self.subscriptions.values()):
            self.deliver()


STEPS = (
    *[PerfectRun.publish] * 9,
    *[PerfectRun.deliver] * 12,
    *[PerfectRun.answer] * 5,
    *[PerfectRun.settle_one] * 2,
    PerfectRun.subscribe,
    PerfectRun.unsubscribe,
    PerfectRun.redeliver,
    PerfectRun.overflow,
    PerfectRun.forget,
    PerfectRun.crash,
    PerfectRun.measure,
    PerfectRun.disturb,
)


def in_order(rows: list[Row]) -> list[Row]:
    """The rows with times that tell their order."""
    return [msgspec.structs.replace(row, t=t) for t, row in enumerate(rows)]
