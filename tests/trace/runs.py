"""Runs written by hand, a line a step; and one row of every kind."""

from __future__ import annotations

from holdfast.trace.schema import (
    Accepted,
    Acknowledged,
    Confirmed,
    Control,
    Delivered,
    Expired,
    Fault,
    Header,
    Hop,
    Missed,
    Published,
    QueueLength,
    Refused,
    Routed,
    Row,
    Subscribed,
    TableSize,
    Unsubscribed,
)

MS = 1_000_000
HEADER = Header(run="hand/1", system="tree")

# Every kind twice: as short as it can be, and with everything that it can have.
EVERY_KIND: list[Row] = [
    Published(t=0, event="p/1/1", publisher="p", incarnation=1, sequence=1),
    Published(
        t=1,
        event="p/1/2",
        publisher="p",
        incarnation=1,
        sequence=2,
        topic="stöck",
        attributes={"price": 101.5, "size": 7, "symbol": 'I"BM', "late": False, "big": 2**63 - 1, "one": 1.0},
        lifetime=5_000,
    ),
    Acknowledged(t=2, event="p/1/1", publisher="p"),
    Acknowledged(t=3, event="p/1/2", publisher="p"),
    Refused(t=4, event="p/1/3", publisher="p", reason="timeout"),
    Subscribed(t=5, subscription="s/1/1", subscriber="s", filter=""),
    Subscribed(t=6, subscription="s/1/2", subscriber="s", filter="price > 1", overflow="drop-oldest", name="risk"),
    Confirmed(t=7, subscription="s/1/1", subscriber="s"),
    Unsubscribed(t=8, subscription="s/1/1", subscriber="s"),
    Unsubscribed(t=9, subscription="s/1/2", subscriber="s", reason="told so"),
    Delivered(t=10, event="p/1/1", subscription="s/1/1", subscriber="s"),
    Delivered(
        t=11,
        event="p/1/2",
        subscription="s/1/2",
        subscriber="s",
        via="b2",
        attempt=2,
        position=("log-1", 17),
    ),
    Missed(t=12, subscription="s/1/1", subscriber="s", reason="forgotten"),
    Missed(t=13, subscription="s/1/1", subscriber="s", reason="overflow", count=0),
    Hop(t=14, message=1, source="p", target="b1", what="Publish"),
    Hop(t=15, message=2, source="b1", target="b2", what="Forward", size=120, events=["p/1/1", "p/1/2"]),
    Fault(t=16, component="b1>b2", state="cut"),
    Control(t=17, node="b1", what="elected"),
    Control(t=18, node="b1", what="elected", detail={"round": 3, "of": ["b1", None]}),
    TableSize(t=19, node="b1", table="subscriptions", entries=12),
    QueueLength(t=20, node="b1", queue="b2", length=5),
    QueueLength(t=21, node="b1", queue="b2", length=5, limit=100, bytes=4096),
    Published(t=22, event="@a/1/1", publisher="@a", incarnation=1, sequence=1, derived=True),
    Accepted(t=30, node="b1", events=["p/1/1", "p/1/2"]),
    Routed(t=31, node="b1", table="subscriptions", entry="b2.1.7"),
    Routed(
        t=32,
        node="b1",
        table="advertisements",
        entry="b2.1.8",
        source="b2",
        filter="topic = 't'",
        owner="s/1/1",
        present=False,
    ),
    Delivered(t=40, event="p/1/2", subscription="s/1/1", subscriber="s", left=4_000),
    Expired(t=41, event="p/1/2", subscription="s/1/1", subscriber="s", node="b1"),
    Confirmed(t=42, subscription="s/1/1", subscriber="s", via="b1"),
]


class Run:
    """Rows with a clock that goes on by a millisecond a row. Owners are read off the ids."""

    def __init__(self, header: Header = HEADER) -> None:
        self.header = header
        self.rows: list[Row] = []

    @property
    def t(self) -> int:
        return len(self.rows) * MS

    def add(self, row: Row) -> Run:
        self.rows.append(row)
        return self

    def subscribe(self, *subscriptions: str, filter: str = "", name: str = "", confirm: bool = True) -> Run:
        for id in subscriptions:
            self.add(Subscribed(t=self.t, subscription=id, subscriber=owner(id), filter=filter, name=name))
            if confirm:
                self.confirm(id)
        return self

    def confirm(self, id: str) -> Run:
        return self.add(Confirmed(t=self.t, subscription=id, subscriber=owner(id)))

    def unsubscribe(self, id: str) -> Run:
        return self.add(Unsubscribed(t=self.t, subscription=id, subscriber=owner(id)))

    def publish(
        self,
        *events: str,
        acknowledge: bool = True,
        topic: str = "",
        lifetime: int = 0,
        **attributes: int | float | str,
    ) -> Run:
        for id in events:
            publisher, incarnation, sequence = id.split("/")
            self.add(
                Published(
                    t=self.t,
                    event=id,
                    publisher=publisher,
                    incarnation=int(incarnation),
                    sequence=int(sequence),
                    topic=topic,
                    attributes=dict(attributes),
                    lifetime=lifetime,
                )
            )
            if acknowledge:
                self.acknowledge(id)
        return self

    def acknowledge(self, event: str) -> Run:
        return self.add(Acknowledged(t=self.t, event=event, publisher=owner(event)))

    def deliver(self, subscription: str, *events: str, attempt: int = 1, subscriber: str = "", via: str = "") -> Run:
        for event in events:
            self.add(
                Delivered(
                    t=self.t,
                    event=event,
                    subscription=subscription,
                    subscriber=subscriber or owner(subscription),
                    attempt=attempt,
                    via=via,
                )
            )
        return self

    def miss(self, id: str, count: int | None = None, reason: str = "forgotten") -> Run:
        return self.add(Missed(t=self.t, subscription=id, subscriber=owner(id), reason=reason, count=count))

    def hop(self, source: str, target: str, *events: str, what: str = "Forward") -> Run:
        row = Hop(t=self.t, message=len(self.rows), source=source, target=target, what=what, events=list(events))
        return self.add(row)

    def fault(self, component: str, state: str = "crashed") -> Run:
        return self.add(Fault(t=self.t, component=component, state=state))


def owner(id: str) -> str:
    return id.partition("/")[0]
