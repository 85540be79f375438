"""What a stand-in and its neighbours say to each other while it learns (D0-A15 to A22).

`initialize` is the map of the network in which it has its place. All of these stay between the two of them (D0-B6):
what a neighbour did not know before goes on as any news does, by `Routes`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.kernel.messages import NOMINAL_WEIGHT, Message
from holdfast.model.event import EventBytes, event_ids
from holdfast.protocols.routing.messages import Told


class StandInRequest(Message, frozen=True):
    """Stand-in to neighbour: the request for advertisements (D0-A16), under the map with this number."""

    number: int


class StandInAdvertised(Message, frozen=True):
    """What is advertised: on the neighbour's side, and on the other sides of the stand-in (D0-A17). `last`: that is all
    there is on a neighbour's side, `lastAdv` (D0-A19)."""

    number: int
    advertisements: list[Told] = []  # noqa: RUF012 - a field's default, which is copied
    last: bool = False

    def weight(self) -> int:
        return NOMINAL_WEIGHT + sum([len(entry) + len(text) for entry, text in self.advertisements])


class StandInSubscribed(Message, frozen=True):
    """What is wanted of that (D0-A18). `answered`: for each of these advertisements, that is all on a neighbour's side,
    `lastSub` (D0-A20), which names its advertisement (D0-B7.1)."""

    number: int
    subscriptions: list[Told] = []  # noqa: RUF012
    answered: list[str] = []  # noqa: RUF012

    def weight(self) -> int:
        told = sum([len(entry) + len(text) for entry, text in self.subscriptions])
        return NOMINAL_WEIGHT + told + sum(map(len, self.answered))


class StandInDone(Message, frozen=True):
    """Stand-in to neighbour: it knows everything, `replication_done` (D0-A21)."""

    number: int


class StandInForward(Message, frozen=True):
    """Events for a stand-in that is still learning, each with the subscriptions that the sender knows to want it
    (D0-A22)."""

    first: int
    events: EventBytes
    wanted: list[list[str]]

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.events) + sum([len(entry) for entries in self.wanted for entry in entries])

    def event_ids(self) -> list[str]:
        return event_ids(self.events)


class Through(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far the events of a publisher have been sent."""

    publisher: str
    incarnation: int
    sequence: int


class StandInPreferred(Message, frozen=True):
    """In which order subscriptions had best come, since events wait for them (D0-F2): a neighbour to the stand-in, and
    that to its other neighbours. Those that are not named come behind."""

    number: int
    subscriptions: list[str]

    def weight(self) -> int:
        return NOMINAL_WEIGHT + sum(map(len, self.subscriptions))


class StandInOwn(Message, frozen=True):
    """From a broker whose work is shared: what its own clients want, and what of that they want no more. In pieces, of
    which `first` begins anew, and `last` says that there is no more."""

    broker: str
    subscriptions: list[Told] = []  # noqa: RUF012 - a field's default, which is copied
    gone: tuple[str, ...] = ()
    first: bool = False
    last: bool = False

    def weight(self) -> int:
        told = sum([len(entry) + len(text) for entry, text in self.subscriptions])
        return NOMINAL_WEIGHT + told + sum(map(len, self.gone))


class StandInSignal(Message, frozen=True):
    """From a neighbour of a broker whose work `stand_in` shares, through both, to the others (D0-A23): all events up to
    these numbers that it gave to the one were before this. The first one through the broker is before all that was
    given to it since the stand-in was given anything. `ends`: there will be no more for the stand-in."""

    stand_in: str
    origin: str
    through: list[Through] = []  # noqa: RUF012
    ends: bool = False

    def weight(self) -> int:
        return NOMINAL_WEIGHT + sum([len(one.publisher) + 16 for one in self.through])


class StandInLeft(Message, frozen=True):
    """Neighbour to stand-in, of the step of the map with this number: nothing more comes, and nothing is waited for."""

    number: int


STAND_IN_MESSAGES: Final[dict[int, type[Message]]] = {
    118: StandInRequest,
    119: StandInAdvertised,
    120: StandInSubscribed,
    121: StandInDone,
    122: StandInForward,
    123: StandInSignal,
    124: StandInLeft,
    125: StandInPreferred,
    126: StandInOwn,
}
LARGE_STAND_IN_MESSAGES: Final = (
    StandInOwn,
    StandInAdvertised,
    StandInSubscribed,
    StandInForward,
    StandInPreferred,
    StandInSignal,
)
