"""What the parts of a network's broker tell each other."""

from __future__ import annotations

from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.protocols.routing.messages import Introduction, Routes
from holdfast.protocols.routing.network_map import NetworkMap
from holdfast.protocols.routing.router import TableChange


class NeighbourConnected(Notice, frozen=True):
    """There is a link to a neighbour, on which nothing has been said."""

    peer: str


class BrokerIntroduced(Notice, frozen=True):
    """A broker of this network has said who it is on its link; it need not be a neighbour."""

    peer: str


class NeighbourLinked(Notice, frozen=True):
    """A neighbour is known to be of this network."""

    peer: str
    introduction: Introduction


class NeighbourAccepted(Notice, frozen=True):
    """Nothing is against what a neighbour said of itself; `incarnation` is which of its lives the link is to."""

    peer: str
    incarnation: int


class NeighbourUnlinked(Notice, frozen=True):
    """The link to a neighbour is gone, whether it was known or not."""

    peer: str


class NeighbourAnswered(Notice, frozen=True):
    """A neighbour has answered all advertisements that it was told."""

    peer: str


class TicketsSettled(Notice, frozen=True):
    """What was advertised here under these tickets is known wherever it may be wanted."""

    tickets: list[int]


class BecomingReady(Notice, frozen=True):
    """The tables are about to be known; neighbours are told next."""


class BecameReady(Notice, frozen=True):
    """The tables are known, or were waited for long enough."""


class ViewChanged(Notice, frozen=True):
    """Others may stand in for a neighbour now."""


class Detoured(Notice, frozen=True):
    """A message came around a failure, as from the neighbour `source` in the tree; `sender` is who sent it."""

    source: str
    sender: str
    message: Message


class MapHeard(Notice, frozen=True):
    """A broker has told its map of the network."""

    peer: str
    map: NetworkMap


class MapChanged(Notice, frozen=True):
    """The network has another map than before: other members, links, or something under way."""

    before: NetworkMap


class LinkMoved(Notice, frozen=True):
    """For this broker, the link that moves has moved: events go along another tree here than that of the map."""


class RoutesHeard(Notice, frozen=True):
    """A neighbour tells something about its side."""

    peer: str
    routes: Routes


class TablesChanged(Notice, frozen=True):
    """The tables have changed in this turn, and neighbours were told."""

    changes: tuple[TableChange, ...]


class RoomMade(Notice, frozen=True):
    """What waited since the ways out were full may go on."""


class FeedsRecovered(Notice, frozen=True):
    """The broker starts: the feeds have what the disk has for them, and nothing is routed yet."""


class TopicsRecovered(Notice, frozen=True):
    """Events of these topics were stored when the broker started."""

    topics: list[str]
