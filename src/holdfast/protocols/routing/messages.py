"""What the brokers of a network say to each other, and what they keep.

Between neighbours in the tree: `Routes` tells what is advertised and wanted on the sender's side; `Forward` has events,
`AcknowledgeEvents` says how far they are taken. What does not fit into one `Routes` comes in several. `NetworkMapTold`
says who belongs to the network, to all that a link leads to; `MoveSaid` is what brokers say when a link of the tree
moves from one of them to another.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from holdfast.errors import EventError, ProtocolError
from holdfast.kernel.messages import NOMINAL_WEIGHT, Message, Record
from holdfast.model.batch import EventBatch
from holdfast.model.event import EventBytes, event_ids, events_alone
from holdfast.protocols.routing.network_map import NetworkMap

ENTRY_BYTES_MAX: Final = 512  # of an entry's id
ROUTES_BYTES: Final = 256 * 1024  # in one message, about
RECORD_FORMAT: Final = 1
NUMBER_MAX: Final = 2**62  # of an event in a feed: nobody gets there, and more can still be written

# An entry's id, and the text of its filter.
Told = tuple[str, str]


class Introduction(Message, frozen=True):
    """The first message on a link between brokers.

    `network` tells networks apart: brokers of different sites, or with different levels, do not work together. `feed`
    names the sender's log of events, if it has one; `stored` is how far the sender has stored the receiver's, whose
    name it knows as `stored_feed`. `map_number` and `map_digest` are of the map that the sender has; by it, the
    receiver is a `neighbour`, or is not.
    """

    network: str
    feed: str = ""
    stored_feed: str = ""
    stored: int = 0
    map_number: int = 0
    map_digest: str = ""
    neighbour: bool = True


class NetworkMapTold(Message, frozen=True):
    """The map of the network that the sender has, to one that may have an older one."""

    map: NetworkMap

    def weight(self) -> int:
        members = sum(len(member.name) + len(member.client_address) for member in self.map.members)
        return NOMINAL_WEIGHT + 2 * members + 16 * len(self.map.former)


class NetworkMapKnown(Message, frozen=True):
    """The sender has this map now; by it, the receiver is a `neighbour`, or is not."""

    number: int
    digest: str
    neighbour: bool


class MoveWord(enum.Enum):
    """What the three brokers of a move say, in this order: `broker` to `old`, `old` to `new`, and so on. Who leaves
    says one word."""

    ENDED = "ended"  # broker to old: nothing comes behind this number of my feed to you
    PASSED = "passed"  # old to new: all that I have of the broker's is in my feed to you, up to this number
    TAKEN = "taken"  # new to old: the broker is my neighbour; in my feed to you, what comes behind this is not for it
    REWRITTEN = "rewritten"  # old to new: for me the broker is on your side now
    CLOSED = "closed"  # old to broker: nothing comes behind this number of my feed to you
    READY = "ready"  # new to broker: I have told you everything
    EMPTY = "empty"  # who leaves to its neighbour: nothing comes behind this number of my feed to you


class MoveSaid(Message, frozen=True):
    """A word of the move that is the first step of the map with this number. `unanswered`: of PASSED, filters of
    advertisements that the broker has not answered, at levels that buffer."""

    number: int
    word: MoveWord
    through: int = 0
    unanswered: list[str] = []  # noqa: RUF012 - a field's default, which is copied

    def weight(self) -> int:
        return NOMINAL_WEIGHT + sum(map(len, self.unanswered))


class Routes(Message, frozen=True):
    """What is advertised and wanted on the sender's side of the link.

    `full`: this is everything, up to the message with `last`, and not only what has changed. `complete`: the sender
    knows all that is on its side; what it does not name is not there. A receiver that is told in full, but not
    completely, keeps what it was told before. `ticket`: the receiver says `Settled` when those beyond it know too.
    """

    advertisements: list[Told] = []  # noqa: RUF012 - a field's default, which is copied
    subscriptions: list[Told] = []  # noqa: RUF012
    unadvertised: list[str] = []  # noqa: RUF012
    unsubscribed: list[str] = []  # noqa: RUF012
    full: bool = False
    last: bool = True
    complete: bool = True
    ticket: int = 0

    def weight(self) -> int:
        told = sum([len(entry) + len(text) for entry, text in (*self.advertisements, *self.subscriptions)])
        return NOMINAL_WEIGHT + told + sum(map(len, (*self.unadvertised, *self.unsubscribed)))


class Settled(Message, frozen=True):
    """What was told with this ticket is known wherever it goes, and what that pulled was told before this."""

    ticket: int


class Forward(Message, frozen=True):
    """Events, the first with this number of the sender's feed to the receiver; 0: they have none."""

    first: int
    events: EventBytes  # a msgpack array of events

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.events)

    def event_ids(self) -> list[str]:
        return event_ids(self.events)


def read_events(message: Forward, what: str) -> EventBatch:
    try:
        return EventBatch.read(message.events)
    except EventError as error:
        raise ProtocolError(f"in {what}, {error}") from error


def checked_last(first: int, count: int) -> int:
    """The number of the last of so many events; ProtocolError if there are no such numbers."""
    last = first + count - 1
    if first < 1:
        raise ProtocolError(f"a feed's numbers begin with 1, not with {first}")
    if last > NUMBER_MAX:
        raise ProtocolError(f"an event has the number {last}; there are none above {NUMBER_MAX}")
    return last


class AcknowledgeEvents(Message, frozen=True):
    """Everything up to this number is taken in: stored, where the level stores (D1-A11)."""

    number: int


ROUTING_MESSAGES: dict[int, type[Message]] = {
    110: Introduction,
    111: Routes,
    112: Settled,
    113: Forward,
    114: AcknowledgeEvents,
    115: NetworkMapTold,
    116: NetworkMapKnown,
    117: MoveSaid,
}
LARGE_ROUTING_MESSAGES: Final = (Routes, Forward, NetworkMapTold, MoveSaid)


# --------------------------------------------------------------------------------------------------------- on the disk
class TopicAdvertised(Record, frozen=True):
    """A topic is advertised for a client that publishes there, under this entry; None: it publishes anything."""

    entry: str
    client: str
    topic: str | None
    format: int = RECORD_FORMAT


class TopicUnadvertised(Record, frozen=True):
    """The advertisement is taken back."""

    entry: str
    format: int = RECORD_FORMAT


class RoutesTold(Record, frozen=True):
    """What a neighbour told, where tables outlive a crash."""

    source: str
    routes: Routes
    format: int = RECORD_FORMAT


class AdvertisementsAnswered(Record, frozen=True):
    """A neighbour has answered advertisements with these filters; or hears of advertisements with some no more."""

    peer: str
    filters: list[str]
    taken_back: list[str]
    format: int = RECORD_FORMAT


class MoveStage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a broker is with its part in a move: the last word that it said. `number` is that of the map."""

    number: int
    word: MoveWord
    through: int = 0


class NeighboursChanged(Record, frozen=True):
    """From now on these are the neighbours in the tree. What `moved` ones told counts as told by those that are named
    beside them; what others told, that are neighbours no more, is gone. `stage`: of the move that this is a part of."""

    near: list[str]
    moved: dict[str, str]
    stage: MoveStage | None = None
    format: int = RECORD_FORMAT


class MapAdopted(Record, frozen=True):
    """The map of the network from now on; of a stream of its own, where nothing else is."""

    map: NetworkMap
    format: int = RECORD_FORMAT


class TableState(Record, frozen=True):
    """All that neighbours told: source → (advertisements, subscriptions), and those that told everything they know; the
    topics that are advertised for clients of our own; the filters of the advertisements that each neighbour has
    answered; and the neighbours, if they are others than the site file's."""

    told: dict[str, tuple[list[Told], list[Told]]]
    complete: list[str]
    format: int = RECORD_FORMAT
    topics: list[TopicAdvertised] = []  # noqa: RUF012
    answered: dict[str, list[str]] = {}  # noqa: RUF012
    near: list[str] | None = None
    stage: MoveStage | None = None


class FeedMoved(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What older records have for `old` above the number `through` is for `new`, with numbers from `at` on, or nobody's
    if that is empty. What they have for `new` from `at` on comes `count` later."""

    old: str
    new: str
    through: int
    at: int
    count: int

    @property
    def last(self) -> int:
        """The last number that it got."""
        return self.at + self.count - 1


class EventsStored(Record, frozen=True):
    """Events of one turn, each with the neighbours that it goes to (D1-A12), as places in the order of neighbours.

    `number` is that of the record in its stream, `entered` that of the last command whose events are in the store.
    `following` has each feed's next number before these events, that of former neighbours last; `stored` how far the
    feeds of neighbours are stored. `moves` came before these events, in order.
    """

    number: int
    entered: int
    following: dict[str, int]
    stored: dict[str, tuple[str, int]]
    events: EventBytes
    places: list[tuple[int, ...]]
    format: int = RECORD_FORMAT
    moves: list[FeedMoved] = []  # noqa: RUF012

    def parts(self) -> list[memoryview]:
        return [events_alone(self.events)]


ROUTING_RECORDS: dict[int, type[Record]] = {
    32: RoutesTold,
    33: TableState,
    34: EventsStored,
    35: TopicAdvertised,
    36: TopicUnadvertised,
    37: AdvertisementsAnswered,
    38: NeighboursChanged,
    39: MapAdopted,
}


def checked_entry(entry: str) -> str:
    """What is wrong with an entry's id; empty if nothing is."""
    return "" if 0 < len(entry) <= ENTRY_BYTES_MAX else f"an entry's id has 1 to {ENTRY_BYTES_MAX} characters"
