"""What brokers of a flooded network say to each other and keep, and what a client and its witness say."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.kernel.messages import NOMINAL_WEIGHT, Message, Record
from holdfast.model.event import EventBytes, event_ids


class Flooded(Message, frozen=True):
    """Events that were published at `origin`, whose disk is called `life`; their numbers there begin with `first`."""

    origin: str
    life: str
    first: int
    events: EventBytes

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.events)

    def event_ids(self) -> list[str]:
        return event_ids(self.events)


class Stored(Message, frozen=True):
    """What came of that origin is on the disk here, up to this number."""

    origin: str
    life: str
    through: int


class FindWitness(Message, frozen=True):
    """A client asks its broker where it may have a second link."""


class WitnessFound(Message, frozen=True):
    """At a neighbour; empty if there is none."""

    address: str


class AskWitness(Message, frozen=True):
    """A client asks a broker that it has no session with."""


class Witnessed(Message, frozen=True):
    """The last event of the client that has come there: its incarnation and its number; zeros if none has."""

    incarnation: int
    sequence: int


class FloodItem(msgspec.Struct, frozen=True, array_like=True):
    """Events of one origin. Those of this broker's own client have its session's numbers, from `session_first` on."""

    origin: str
    life: str
    first: int
    count: int
    events: EventBytes
    source: str = ""  # the neighbour that they came from
    command: int = 0  # by which they were published here
    client: str = ""
    epoch: int = 0
    session_first: int = 0

    @property
    def last(self) -> int:
        return self.first + self.count - 1


class FloodRecord(Record, frozen=True):
    """What a turn added, and how far all is: the numbers seen of each origin, up to which command what was published
    here is in it, and how far neighbours have stored that."""

    number: int
    entered: int
    seen: list[tuple[str, str, int]]
    stored: dict[str, int]
    items: list[FloodItem]


FLOOD_MESSAGES: Final[dict[int, type[Message]]] = {
    200: Flooded,
    201: Stored,
    202: FindWitness,
    203: WitnessFound,
    204: AskWitness,
    205: Witnessed,
}
WITNESS_MESSAGES: Final = {number: FLOOD_MESSAGES[number] for number in (202, 203, 204, 205)}
FLOOD_RECORDS: Final = {200: FloodRecord}
LARGE_FLOOD_MESSAGES: Final = (Flooded,)
