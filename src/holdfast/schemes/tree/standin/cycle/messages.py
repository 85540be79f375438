"""What brokers say to each other when one of them needs a stand-in, and what they keep of it.

Those who speak need not be neighbours: they call each other for it (`calls`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.kernel.messages import Message, Record
from holdfast.protocols.routing.network_map import NetworkMember, StandInProtocol

TEXT_BYTES_MAX: Final = 300
HAPPENED_MAX: Final = 100  # that a broker remembers
RECORD_FORMAT: Final = 1


class WhetherHere(Message, frozen=True):
    """Is somebody there?"""


class Here(Message, frozen=True):
    """Yes."""


class Complained(Message, frozen=True):
    """To the member that sees to it: `origin`, a neighbour of the broker `faulty`, complains of it, by its map with
    this number. Said again and again as long as it holds."""

    origin: str
    faulty: str
    cause: str
    text: str
    number: int


class Reserve(Message, frozen=True):
    """To a broker that is no member: is it free to stand in for that one?"""

    faulty: str


class Reserved(Message, frozen=True):
    """It is, and is kept free for a while; or the problem."""

    faulty: str
    problem: str = ""


class AskConsent(Message, frozen=True):
    """To all members but the one that failed: is that to be replaced so, or to be taken out if there is nobody in `by`,
    by the map that follows the one with this number and digest? `after` is that one's digest; `round` tells one time of
    asking from the next."""

    number: int
    digest: str
    round: int
    faulty: str
    by: NetworkMember | None
    protocol: StandInProtocol
    after: str


class Consented(Message, frozen=True):
    """It is, and nothing else is agreed to while that map counts; or the problem."""

    number: int
    after: str
    round: int
    problem: str = ""


class ConsentQuestioned(Message, frozen=True):
    """To whom it was agreed: is that still wanted? Something else is, by another."""

    number: int
    after: str


class ConsentReturned(Message, frozen=True):
    """Nothing comes of it: something else may be agreed to."""

    number: int
    after: str


CYCLE_MESSAGES: Final[dict[int, type[Message]]] = {
    130: Complained,
    131: Reserve,
    132: Reserved,
    133: AskConsent,
    134: Consented,
    135: ConsentReturned,
    136: ConsentQuestioned,
    137: WhetherHere,
    138: Here,
}


# --------------------------------------------------------------------------------------------------------- on the disk
class Promised(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What this broker has agreed to: that `maker` makes the map with this digest from the one with this number."""

    number: int
    maker: str
    after: str


class Happened(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Something that people may want to know afterwards. `number` is the map's."""

    wall: int
    broker: str
    number: int
    text: str


class CycleState(Record, frozen=True):
    """All that is kept; of a stream of its own."""

    promised: Promised | None = None
    happened: list[Happened] = []  # noqa: RUF012
    format: int = RECORD_FORMAT


CYCLE_RECORDS: Final[dict[int, type[Record]]] = {40: CycleState}


def short(text: str) -> str:
    """A text that fits into a message."""
    raw = text.encode()
    return text if len(raw) <= TEXT_BYTES_MAX else raw[: TEXT_BYTES_MAX - 3].decode(errors="ignore") + "…"
