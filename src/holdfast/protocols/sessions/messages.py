"""What clients and brokers say to each other.

A session belongs to one life of a client. Its client numbers the events that it publishes, from 1, and the broker
answers with the number up to which it has accepted them; the broker numbers the events of each subscription, from 1,
and the client answers with the number up to which it has received and consumed them. So either side can say anything
again after a loss, and the other knows what is new.
"""

from __future__ import annotations

import enum
from typing import Final

from holdfast.kernel.messages import NOMINAL_WEIGHT, Message
from holdfast.model.event import EventBytes, event_ids

NO_APPLICATION: Final = "the broker hosts no application: name one in the site file, under [application]"


class Overflow(enum.Enum):
    """What happens when a subscription without a name can't hold another event at its broker."""

    DISCONNECT = "disconnect"  # the subscription ends, and its owner is told
    DROP_OLDEST = "drop-oldest"  # the oldest event goes, and the owner sees how many did
    BLOCK = "block"  # publishers of matching events at the same broker wait, for a while


class Refusal(enum.Enum):
    """Why a broker said no. Client libraries turn these into exceptions."""

    SUPERSEDED = "superseded"  # another client opened a session under the same name
    FILTER = "filter"  # the text is no filter, or is beyond a limit
    LIMIT = "limit"  # more than the broker allows
    CONFLICT = "conflict"  # the number is in use for something else
    EVENT = "event"  # no event can be like this
    NO_LOG = "no-log"  # the broker keeps none
    POSITION_GONE = "position-gone"  # the log begins behind what was asked for
    POSITION_AHEAD = "position-ahead"  # the log ends before it
    UNKNOWN = "unknown"  # what is asked for is not there, or not any more
    NOT_ADVERTISED = "not-advertised"  # the publisher has said what it publishes, and this is something else
    NO_APPLICATION = "no-application"  # the broker hosts none
    APPLICATION_FAILED = "application-failed"  # it raised something, or gave what is no answer


# ------------------------------------------------------------------------------------------------- client to broker
class OpenSession(Message, frozen=True):
    """The first message on a link. `instance` is drawn anew in each life of a client; `epoch` is 0 in a new life.

    `received` and `consumed` say how far the client is with each subscription, if the broker still knows the session.
    """

    instance: int
    epoch: int = 0
    subscriptions: tuple[int, ...] = ()
    received: tuple[int, ...] = ()
    consumed: tuple[int, ...] = ()


class Subscribe(Message, frozen=True):
    """`window` is how many events the client is ready to hold that its application has not consumed."""

    subscription: int
    filter: str
    overflow: Overflow = Overflow.DISCONNECT
    window: int = 1024


class Unsubscribe(Message, frozen=True):
    """Also the answer to `SubscriptionEnded`: the client knows."""

    subscription: int


class Advertise(Message, frozen=True):
    """The client says what it will publish. One that never says so may publish anything."""

    advertisement: int
    filter: str


class Unadvertise(Message, frozen=True):
    advertisement: int


class Publish(Message, frozen=True):
    """Events from the session's number `first` on; `confirmed`: the client has seen answers up to there.

    `direct`: the client says the same to other replicas too, over direct links. `skipped`: instead of events, so many
    numbers from `first` on whose events the client sent and has given up since. They are not used again: what was sent
    may still be under way, and would be taken for the event that comes later.
    """

    first: int
    events: EventBytes  # a msgpack array of events
    confirmed: int = 0
    direct: bool = False
    skipped: int = 0

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.events)

    def event_ids(self) -> list[str]:
        return event_ids(self.events)

    def published(self) -> EventBytes:
        return self.events


class Progress(Message, frozen=True):
    """How far the client is with some of its subscriptions. What is consumed makes room for more (credit).

    `missing`: something in between did not arrive; say everything again that comes after `received`. `late`, if it is
    there: how many of what was received came after their deadlines, and were not handed over.
    """

    subscriptions: tuple[int, ...]
    received: tuple[int, ...]
    consumed: tuple[int, ...]
    missing: bool = False
    late: tuple[int, ...] = ()


class AskApplication(Message, frozen=True):
    """A request for the application that the broker hosts. The client numbers them, from 1; `confirmed`: it has the
    answers to all up to there. Asked again until it is answered, and executed once."""

    number: int
    request: bytes
    confirmed: int = 0

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.request)


class CloseSession(Message, frozen=True):
    """The client is leaving for good; forget it."""


class Ping(Message, frozen=True):
    """Anyone there?"""


class OpenDirect(Message, frozen=True):
    """The first message on a direct link, and said again now and then, so that the link is not silent.

    Publications of this session may follow, which the client says to the session's broker too. Nothing is answered.
    """

    epoch: int
    instance: int


# ------------------------------------------------------------------------------------------------- broker to client
class SessionOpened(Message, frozen=True):
    """The session is `epoch`: the client's own if the broker still knew it, else a new one that knows nothing.

    Events are accepted up to the session's number `accepted`; the client may be `publish_window` ahead of that.
    `memory` names what the broker remembers: another one means that it lost everything. `forgotten` are those of the
    client's subscriptions that are not known any more. `alternates` are addresses that serve too if this one fails.
    `refused` is that of `Accepted`: its answer may have been lost with the link before. `log_id` names the broker's
    log of events, if it keeps one. `request_window` is how many requests to its application the client may have
    unconfirmed; 0: it hosts none. `direct` are the addresses of `DirectChanged`. `reissue`: whatever is forgotten is to
    be subscribed to again (D1-B3), also by clients that would not do so by themselves. `report_every`: the broker keeps
    so few events of a subscription that it is to hear when so many have come; 0: the client tells when it likes.
    `member_since` is higher than it was when the session was opened before, if the broker was not in its network for a
    while since then: what others published meanwhile has not come there, and never will.
    """

    epoch: int
    accepted: int
    publish_window: int
    memory: int
    forgotten: tuple[int, ...] = ()
    alternates: tuple[str, ...] = ()
    refused: tuple[tuple[int, Refusal, str], ...] = ()
    log_id: str = ""
    request_window: int = 0
    direct: tuple[str, ...] = ()
    reissue: bool = False
    report_every: int = 0
    member_since: int = 0

    def weight(self) -> int:
        return NOMINAL_WEIGHT + 16 * len(self.forgotten) + _refusals_weight(self.refused)


class SessionRefused(Message, frozen=True):
    """`limit` is the name of the limit that was reached, if it was one, and `allowed` its value."""

    reason: Refusal
    problem: str
    limit: str = ""
    allowed: int = 0


class SessionClosed(Message, frozen=True):
    """The answer to `CloseSession`."""


class Redirect(Message, frozen=True):
    """Not here; try there."""

    addresses: tuple[str, ...]


class Subscribed(Message, frozen=True):
    subscription: int


class SubscribeRefused(Message, frozen=True):
    """`offset` and `expected` are those of a filter's error, `limit` and `allowed` those of a limit."""

    subscription: int
    reason: Refusal
    problem: str
    offset: int = 0
    expected: str = ""
    limit: str = ""
    allowed: int = 0

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.problem) + len(self.expected)


class Unsubscribed(Message, frozen=True):
    subscription: int


class SubscriptionEnded(Message, frozen=True):
    """The broker ended a subscription; said again until the client unsubscribes."""

    subscription: int
    reason: str


class Advertised(Message, frozen=True):
    advertisement: int


class AdvertiseRefused(Message, frozen=True):
    """`offset` and `expected` are those of a filter's error, `limit` and `allowed` those of a limit."""

    advertisement: int
    reason: Refusal
    problem: str
    offset: int = 0
    expected: str = ""
    limit: str = ""
    allowed: int = 0

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.problem) + len(self.expected)


class Unadvertised(Message, frozen=True):
    advertisement: int


class Accepted(Message, frozen=True):
    """Events are accepted up to this number of the session, except those refused: (number, reason, problem)."""

    sequence: int
    refused: tuple[tuple[int, Refusal, str], ...] = ()

    def weight(self) -> int:
        return NOMINAL_WEIGHT + _refusals_weight(self.refused) if self.refused else NOMINAL_WEIGHT


class Deliver(Message, frozen=True):
    """Events for subscriptions, in runs: the next so many of `events` are for a subscription, with numbers from the
    first on. Events that go to several subscriptions are there for each.

    `positions` are those in the broker's log, if it keeps one: the next so many have positions from the first on.
    """

    runs: list[tuple[int, int, int]]  # subscription, first number, count
    events: EventBytes  # a msgpack array of events
    positions: list[tuple[int, int]] = []  # noqa: RUF012 - a field's default, which is copied; first, count

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.events)

    def event_ids(self) -> list[str]:
        return event_ids(self.events)


class Dropped(Message, frozen=True):
    """Of a subscription, events up to number `through` that have not arrived will not arrive: there was no room, or
    they have expired: `expired` is the first and the last number of each run of those."""

    subscription: int
    through: int
    expired: tuple[int, ...] = ()

    def expired_between(self, after: int, through: int) -> int:
        """How many numbers of a range are among those that have expired."""
        pairs = zip(self.expired[::2], self.expired[1::2], strict=True)
        return sum(max(0, min(last, through) - max(first, after + 1) + 1) for first, last in pairs)


class ApplicationAnswered(Message, frozen=True):
    """What came of a request: an answer, or with a reason none. `limit` and `allowed` are those of a limit."""

    number: int
    answer: bytes = b""
    reason: Refusal | None = None
    problem: str = ""
    limit: str = ""
    allowed: int = 0

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.answer) + len(self.problem)


class Pong(Message, frozen=True):
    """Someone is here."""


class AlternatesChanged(Message, frozen=True):
    """A group has other members now: `alternates` of `SessionOpened`, anew."""

    alternates: tuple[str, ...]


class DirectChanged(Message, frozen=True):
    """Publications may go to these addresses too, over direct links; none: to this broker only."""

    addresses: tuple[str, ...]


def _refusals_weight(refused: tuple[tuple[int, Refusal, str], ...]) -> int:
    # Who is refused a whole window again and again would otherwise fill a queue with what is taken to weigh nothing.
    return sum([NOMINAL_WEIGHT + len(problem) for _, _, problem in refused])


# Kinds are numbers that are never given to another type.
SESSION_MESSAGES: dict[int, type[Message]] = {
    1: OpenSession,
    2: Subscribe,
    3: Unsubscribe,
    4: Publish,
    5: Progress,
    6: CloseSession,
    7: Ping,
    8: Advertise,
    9: Unadvertise,
    10: AskApplication,
    11: OpenDirect,
    16: SessionOpened,
    17: SessionRefused,
    18: SessionClosed,
    19: Redirect,
    20: Subscribed,
    21: SubscribeRefused,
    22: Unsubscribed,
    23: SubscriptionEnded,
    24: Accepted,
    34: Deliver,  # 25 was one that named the subscription and the number of every event
    26: Dropped,
    27: Pong,
    28: Advertised,
    29: AdvertiseRefused,
    30: Unadvertised,
    31: ApplicationAnswered,
    32: DirectChanged,
    33: AlternatesChanged,
}
