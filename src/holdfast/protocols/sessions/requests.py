"""What an application asks of its client node, and what it is told.

Requests come as `Requested(request, command)` and are answered by one `complete(request, result)`. Reports that nobody
asked for come as the result of request `UNSOLICITED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from holdfast.model.values import Value
from holdfast.protocols.sessions.messages import Overflow, Refusal

UNSOLICITED: Final = 0


class _Value(msgspec.Struct, frozen=True, gc=False):
    pass


# --------------------------------------------------------------------------------------------------------- requests
class NewEvent(_Value, frozen=True):
    """What an event is made of; `lifetime` is in nanoseconds, 0 for ever."""

    attributes: Mapping[str, Value]
    topic: str = ""
    payload: bytes = b""
    lifetime: int = 0


class PublishEvents(_Value, frozen=True):
    """Answered with `Published` when every event is answered. `retry=False`: what a lost link swallows is lost."""

    events: list[NewEvent]
    retry: bool = True


def refused_whole(command: PublishEvents, problem: str) -> Published:
    """The answer to a request of which nothing is sent."""
    return Published([(place, None, problem) for place in range(len(command.events))])


def too_many(waiting_max: int) -> str:
    return f"more than waiting_max events, {waiting_max}, wait to be sent"


class MakeSubscription(_Value, frozen=True):
    """Answered with `SubscriptionMade` or `SubscriptionRefused`. `window`: events that may wait for the application."""

    filter: str
    overflow: Overflow = Overflow.DISCONNECT
    window: int = 1024


class EndSubscription(_Value, frozen=True):
    """Answered with `SubscriptionOver`. No event of it is handed over from now on."""

    subscription: int


class Consume(_Value, frozen=True):
    """The application has dealt with so many events of a subscription; not answered."""

    subscription: int
    count: int


class MakeAdvertisement(_Value, frozen=True):
    """Answered with `AdvertisementMade` or `AdvertisementRefused`."""

    filter: str


class EndAdvertisement(_Value, frozen=True):
    """Answered with `AdvertisementOver`."""

    advertisement: int


class AskApplication(_Value, frozen=True):
    """Answered with `ApplicationAnswer`, `NotAnswered` or `AnswerLost`."""

    data: bytes


class Close(_Value, frozen=True):
    """Says goodbye. Answered with `Closed`; what is unanswered then fails."""


# The problem of an event that was neither sent nor to be kept.
NOT_CONNECTED: Final = "not connected"

# Refusals of our own, beside those of brokers: whoever answered is of a scheme that is not known here, or no broker.
UNKNOWN_SCHEME: Final = "scheme"
NO_BROKER: Final = "role"


# ---------------------------------------------------------------------------------------------------------- results
class Published(_Value, frozen=True):
    """Which of the request's events were not accepted: (place, reason, problem). `reason` None: lost on the way, and
    nobody knows whether they were accepted."""

    refused: list[tuple[int, Refusal | None, str]]


class SubscriptionMade(_Value, frozen=True):
    subscription: int


class SubscriptionRefused(_Value, frozen=True):
    reason: Refusal | None
    problem: str
    offset: int = 0
    expected: str = ""
    limit: str = ""
    allowed: int = 0


class SubscriptionOver(_Value, frozen=True):
    subscription: int


class AdvertisementMade(_Value, frozen=True):
    advertisement: int


class AdvertisementRefused(_Value, frozen=True):
    reason: Refusal | None
    problem: str
    offset: int = 0
    expected: str = ""
    limit: str = ""
    allowed: int = 0


class AdvertisementOver(_Value, frozen=True):
    advertisement: int


class ApplicationAnswer(_Value, frozen=True):
    data: bytes


class NotAnswered(_Value, frozen=True):
    """`reason` None: the client was closed."""

    reason: Refusal | None
    problem: str
    limit: str = ""
    allowed: int = 0


class AnswerLost(_Value, frozen=True):
    """Nobody knows whether the request was executed."""

    problem: str


class Closed(_Value, frozen=True):
    reason: str = ""


# ---------------------------------------------------------------------------------------------------------- reports
class Connected(_Value, frozen=True):
    """`resumed`: the broker still knew the session, and nothing is lost."""

    address: str
    broker: str
    resumed: bool


class Disconnected(_Value, frozen=True):
    reason: str


class NotReached(_Value, frozen=True):
    """An attempt to connect came to nothing; there will be others. `refusal`: the broker's reason in a word."""

    address: str
    reason: str
    refusal: str = ""


class SchemeFound(_Value, frozen=True):
    """Comes once: a broker was reached, and this is how its network works. What was asked before is asked now."""

    scheme: str


class SchemeChanged(_Value, frozen=True):
    """A broker was reached that is of another scheme than the first one: this client is finished."""

    address: str
    scheme: str
    expected: str


class SessionLost(_Value, frozen=True):
    """Another client took the name: this one is finished."""

    problem: str


class EventsExpired(_Value, frozen=True):
    """So many events of a subscription did not come before their deadlines, and are not handed over. `subscription` is
    as with `out.deliver`: that of a named subscription is negative."""

    subscription: int
    count: int


# Why, if a broker was not in its network for a while: in a trace, and in words.
APART: Final = "apart"
APART_TOLD: Final = "its broker was not in the network for a while"


class EventsMissed(_Value, frozen=True):
    """Events that the subscription wanted did not arrive. `count` None: nobody knows how many."""

    subscription: int
    count: int | None
    reason: str


class SubscriptionLost(_Value, frozen=True):
    """The broker ended the subscription."""

    subscription: int
    reason: str


class AdvertisementLost(_Value, frozen=True):
    """A broker refused, after a new connection, what was advertised before."""

    advertisement: int
    problem: str
