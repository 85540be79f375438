"""The rows of a trace, version 1: one JSON object a line, after a header line (X-D5).

The header says once what every row of the file shares: the run, the system that ran, the seed. Rows are told apart by
`kind`. Times are integer nanoseconds of the run's clock, and never go backwards; rows of one time stand in the order
in which they happened. Fields that have their default value are left out of the line. New fields get defaults and new
kinds may be added without a new version; a reader skips kinds that it does not know. docs/trace.md is the table of all
fields.

An event's id is text, `publisher/incarnation/sequence`; a subscription's is `subscriber/incarnation/number`. Both name
the incarnation, so that a client that was started again is never taken for its earlier self.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias, get_args

import msgspec

TRACE_FORMAT = "holdfast-trace"
TRACE_VERSION = 1
OF_BROKERS = "brokers"  # the `view` in the settings of a trace that a broker wrote while it served


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a trace."""

    format: str = TRACE_FORMAT
    version: int = TRACE_VERSION
    run: str  # what tells this run from others, for instance "one-broker/17"
    system: str  # the scheme
    seed: int = 0
    sampled: bool = False  # rows were left out: no checker may draw conclusions
    promises: list[str] = []  # the checkers that this run must pass, for instance "weak-ordered:b2"
    settings: dict[str, Any] = {}

    @property
    def is_live(self) -> bool:
        """Whether a broker wrote it while it served: what its clients got is not in it, and times are since 1970."""
        return self.settings.get("view") == OF_BROKERS

    @property
    def share(self) -> float:
        """Of the events, those that have rows."""
        share = self.settings.get("share", 1.0)
        return float(share) if isinstance(share, int | float) else 1.0


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """What all rows have."""

    kind: ClassVar[str]
    t: int


class Published(Row, frozen=True, kw_only=True, tag="published"):
    """A publisher's application asked for an event to be published.

    `derived`: an application that brokers host made it. Each replica says so, and one that was restarted may say so
    again; if a broker lost what it had not told anyone, another event may get the number: the last word counts.
    """

    kind: ClassVar[str] = "published"
    event: str
    publisher: str
    incarnation: int
    sequence: int
    topic: str = ""
    attributes: dict[str, int | float | str | bool] = {}
    lifetime: int = 0  # nanoseconds; 0 is for ever
    derived: bool = False


class Acknowledged(Row, frozen=True, kw_only=True, tag="acknowledged"):
    """The publisher was told that its event is accepted, with all that the scheme promises of accepted events."""

    kind: ClassVar[str] = "acknowledged"
    event: str
    publisher: str


class Refused(Row, frozen=True, kw_only=True, tag="refused"):
    """The publisher was told that its event is not accepted, or that it is not known whether it was."""

    kind: ClassVar[str] = "refused"
    event: str
    publisher: str
    reason: str


class Accepted(Row, frozen=True, kw_only=True, tag="accepted"):
    """A broker of a network took events in from their publisher: what its tables say now decides where they go."""

    kind: ClassVar[str] = "accepted"
    node: str
    events: list[str]


class Routed(Row, frozen=True, kw_only=True, tag="routed"):
    """An entry of a routing table came or went.

    `source` is the neighbour that told it; empty if it is of the node's own clients, and then `owner` says which
    subscription it stands for: `subscriber/number`, of the life that it has then. A node that crashes loses its
    tables, and says again what it still has.
    """

    kind: ClassVar[str] = "routed"
    node: str
    table: str  # "subscriptions" or "advertisements"
    entry: str
    source: str = ""
    filter: str = ""
    owner: str = ""
    present: bool = True


class Subscribed(Row, frozen=True, kw_only=True, tag="subscribed"):
    """A subscriber's application asked for a subscription. With a name, it opened a named one: it gets what earlier
    owners of the name have not acknowledged, and what comes."""

    kind: ClassVar[str] = "subscribed"
    subscription: str
    subscriber: str
    filter: str
    overflow: str = ""
    name: str = ""


class Confirmed(Row, frozen=True, kw_only=True, tag="confirmed"):
    """The subscriber was told that its subscription is in place; again after each time that it had to be made anew."""

    kind: ClassVar[str] = "confirmed"
    subscription: str
    subscriber: str
    via: str = ""  # the broker that confirmed it


class Unsubscribed(Row, frozen=True, kw_only=True, tag="unsubscribed"):
    """The subscription ended: its owner asked for that, or was told so."""

    kind: ClassVar[str] = "unsubscribed"
    subscription: str
    subscriber: str
    reason: str = ""


class Delivered(Row, frozen=True, kw_only=True, tag="delivered"):
    """An event was handed to the subscriber's application."""

    kind: ClassVar[str] = "delivered"
    event: str
    subscription: str
    subscriber: str
    via: str = ""  # the broker that the subscriber got it from
    attempt: int = 1  # of a named subscription: more than 1 is a declared redelivery
    position: tuple[str, int] | None = None  # in a log: its id, and the number
    left: int | None = None  # nanoseconds until its deadline, by the subscriber's clock; None: it has no lifetime


class Expired(Row, frozen=True, kw_only=True, tag="expired"):
    """An event that a subscription wanted is not handed over: at `node`, it came after its deadline or waited past it.

    At its broker, or at the subscriber itself. A broker may say so of an event that its client had on time and could
    not confirm.
    """

    kind: ClassVar[str] = "expired"
    event: str
    subscription: str
    subscriber: str
    node: str


class Missed(Row, frozen=True, kw_only=True, tag="missed"):
    """The subscriber was told that it did not get events that it wanted.

    With a count, so many were dropped. Without one, nothing is known of events accepted before the next `Confirmed`
    of the subscription: its broker forgot it and it had to be made anew, or was not in its network for a while
    (`apart`), and it is in place again at once.
    """

    kind: ClassVar[str] = "missed"
    subscription: str
    subscriber: str
    reason: str
    count: int | None = None


class Hop(Row, frozen=True, kw_only=True, tag="hop"):
    """A message was put on the link from `source` to `target`. `events` are the events that it carries."""

    kind: ClassVar[str] = "hop"
    message: int  # a running number in the run
    source: str
    target: str
    what: str  # the message's type
    size: int = 0
    events: list[str] = []


class Fault(Row, frozen=True, kw_only=True, tag="fault"):
    """A component changed its state: a node is `crashed`, `paused`, `up`, a link `a>b` is `cut`, `healed`, and so on.

    The states `up` and `healed` say that all is well; every other says what is not.
    """

    kind: ClassVar[str] = "fault"
    component: str
    state: str


class Control(Row, frozen=True, kw_only=True, tag="control"):
    """Something else that a node found worth noting."""

    kind: ClassVar[str] = "control"
    node: str
    what: str
    detail: dict[str, Any] = {}


class TableSize(Row, frozen=True, kw_only=True, tag="table_size"):
    """How many entries a table of a node has."""

    kind: ClassVar[str] = "table_size"
    node: str
    table: str
    entries: int


class QueueLength(Row, frozen=True, kw_only=True, tag="queue_length"):
    """How much waits in a queue of a node, and how much may."""

    kind: ClassVar[str] = "queue_length"
    node: str
    queue: str
    length: int
    limit: int = 0  # 0: no limit is claimed
    bytes: int = 0


AnyRow: TypeAlias = (
    Published
    | Acknowledged
    | Refused
    | Accepted
    | Routed
    | Subscribed
    | Confirmed
    | Unsubscribed
    | Delivered
    | Expired
    | Missed
    | Hop
    | Fault
    | Control
    | TableSize
    | QueueLength
)

ROW_TYPES: tuple[type[Row], ...] = get_args(AnyRow)
KINDS: dict[str, type[Row]] = {row_type.kind: row_type for row_type in ROW_TYPES}
