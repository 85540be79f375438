"""What the brokers of a network are told: the graph, the level of reliability, and the times."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from typing import Annotated

import msgspec

from holdfast.kernel.settings import Setting, milliseconds
from holdfast.kernel.time import SECOND
from holdfast.model.event import EVENT_BYTES_MAX
from holdfast.protocols.failure.settings import DetectorSettings
from holdfast.protocols.routing.feed import WINDOW_BYTES
from holdfast.protocols.routing.network_map import NetworkMap, NetworkMember, StandInProtocol, founding_map
from holdfast.topology.graph import BrokerGraph


class Reliability(enum.Enum):
    """The five levels (D1-A10): what a network does about failing brokers and links."""

    NONE = "none"
    PERIODIC = "periodic"
    BUFFERED = "buffered"
    BYPASS = "bypass"
    BYPASS_BUFFERED = "bypass+buffered"

    @property
    def refreshes(self) -> bool:
        """Whether brokers tell each other again what they want: after a restart, and now and then (D1-B3)."""
        return self is not Reliability.NONE

    @property
    def expires(self) -> bool:
        """Whether what was not told again for long is forgotten (D1-B3)."""
        return self.refreshes and not self.buffers

    @property
    def buffers(self) -> bool:
        """Whether events are kept until the next broker has stored them (D1-B4)."""
        return self in (Reliability.BUFFERED, Reliability.BYPASS_BUFFERED)

    @property
    def detours(self) -> bool:
        """Whether events and subscriptions go around a broker that failed (D1-B5)."""
        return self in (Reliability.BYPASS, Reliability.BYPASS_BUFFERED)


class Remedy(enum.Enum):
    """What is done about a broker that is congested."""

    SHARE = "ms"
    SHARE_IN_ORDER = "ms-ro"
    NOTHING = "none"


class ServiceLevels(msgspec.Struct, frozen=True, gc=False):
    """What the neighbours of a broker expect of it (D0-A8), and what is done when it falls short. All of it is measured
    at the neighbour: by its detector, and by its queue for that broker."""

    enabled: Annotated[
        bool, Setting("sla", "brokers watch their neighbours, and see to it that a stand-in comes and goes")
    ] = False
    unreachable: Annotated[
        int,
        milliseconds("unreachable_ms", "a neighbour can't be reached for so long: it failed; 0: not looked at", 0),
    ] = 5 * SECOND
    queue_events: Annotated[
        int, Setting("queue_events", "more events than that wait for it: it is congested; 0: is not looked at", least=0)
    ] = 0
    oldest: Annotated[
        int, milliseconds("oldest_ms", "the oldest of them waits for so long: likewise; 0: is not looked at", 0)
    ] = 5 * SECOND
    rate: Annotated[
        int, Setting("rate", "of those that wait, it takes fewer in a second: likewise; 0: is not looked at", least=0)
    ] = 0
    sustained: Annotated[
        int, milliseconds("sustained_ms", "it is congested when that lasts for so long, and not by a short spike")
    ] = 3 * SECOND
    calm: Annotated[
        int, milliseconds("calm_ms", "a broker has its place or its work back when it was well for so long …")
    ] = 10 * SECOND
    hand_back: Annotated[bool, Setting("hand_back", "… by itself; else an operator gives it back")] = True
    start: Annotated[
        int, milliseconds("start_ms", "neighbours that were never there are given so long, when a network starts")
    ] = 60 * SECOND
    protocol: Annotated[StandInProtocol, Setting("protocol", "how events go on while a stand-in learns")] = (
        StandInProtocol.SYNCH
    )
    congestion: Annotated[
        Remedy, Setting("congestion", "what is done about a broker that is congested: its work is shared, or nothing")
    ] = Remedy.SHARE


class SubscriptionOrder(enum.Enum):
    """In which order subscriptions come to a stand-in, where single events wait for them (D0-F2)."""

    TABLE = "table"  # as the tables of who sends them have them
    PENDING = "pending"  # by the first event that waits for each
    GENERAL = "general"  # those first for which most events wait


class StandInSettings(msgspec.Struct, frozen=True, gc=False):
    """Of networks in which a broker that fails is replaced by a stand-in (D0)."""

    enabled: Annotated[bool, Setting("stand_ins", "a broker that fails may be replaced by a stand-in")] = False
    keep_bytes: Annotated[
        int,
        Setting(
            "keep_bytes",
            "of events that are kept for a neighbour that can't be reached, at levels that do not store them",
            least=0,
        ),
    ] = 8 * 1024 * 1024
    patience: Annotated[
        int, milliseconds("patience_ms", "a stand-in waits at most so long for a neighbour that says nothing more")
    ] = 10 * SECOND

    signal: Annotated[
        int, milliseconds("signal_ms", "between two words of how far events have come that a stand-in has a share of")
    ] = SECOND // 10
    levels: ServiceLevels = ServiceLevels()
    in_group: bool = False  # whether a group keeps the directory
    order: Annotated[
        SubscriptionOrder,
        Setting("order", "in which subscriptions come to a stand-in, with `increm`: by the table, or by what waits"),
    ] = SubscriptionOrder.TABLE

    @property
    def kept(self) -> int:
        return self.keep_bytes if self.enabled else 0


class RoutingSettings(msgspec.Struct, frozen=True, gc=False):
    """What one broker of a network is told."""

    name: str
    graph: BrokerGraph
    addresses: Mapping[str, str] = {}  # of brokers, for brokers
    client_addresses: Mapping[str, str] = {}  # of brokers, for clients
    network: str = ""  # the site's name
    reliability: Annotated[Reliability, Setting("reliability", "what is done about failing brokers and links")] = (
        Reliability.NONE
    )
    advertisements: Annotated[
        bool, Setting("advertisements", "subscriptions go where something is advertised; without, everywhere")
    ] = True  # D1-B1
    covering: Annotated[
        bool, Setting("covering", "what a broader subscription asks for already is not asked for again")
    ] = True
    ask_neighbours: Annotated[bool, Setting("ask_neighbours", "a restarted broker asks at once what is wanted")] = True
    dial_every: Annotated[int, milliseconds("dial_every_ms", "between attempts to reach a neighbour")] = 1 * SECOND
    refresh: Annotated[int, milliseconds("refresh_ms", "between tellings of what is wanted …")] = 10 * SECOND  # D1-B3
    expire: Annotated[int, milliseconds("expire_ms", "… and what was not told for so long is not wanted any more")] = (
        35 * SECOND
    )  # D1-B3
    settle: Annotated[
        int, milliseconds("settle_ms", "a publisher of something new waits at most so long for those who want it")
    ] = 2 * SECOND
    restore: Annotated[
        int, milliseconds("restore_ms", "a restarted broker waits at most so long for its neighbours")
    ] = 5 * SECOND
    retransmit: Annotated[int, milliseconds("retransmit_ms", "what is not acknowledged is sent again")] = 1 * SECOND
    detector: DetectorSettings = DetectorSettings()
    stand_ins: StandInSettings = StandInSettings()
    # The largest event has to find room.
    store_bytes: Annotated[
        int,
        Setting(
            "store_bytes",
            "of events that neighbours have not acknowledged; then publishers wait",
            least=EVENT_BYTES_MAX,
        ),
    ] = 256 * 1024 * 1024
    queue_bytes: Annotated[
        int,
        Setting("queue_bytes", "of events that wait for one neighbour; then publishers wait", least=EVENT_BYTES_MAX),
    ] = 8 * 1024 * 1024
    window_bytes: Annotated[
        int,
        Setting("window_bytes", "of events that were sent to one neighbour and are not acknowledged", least=1),
    ] = WINDOW_BYTES
    duplicates_remembered: Annotated[
        int, Setting("duplicates_remembered", "events that the last broker knows as delivered")
    ] = 65_536  # D1-B6

    @property
    def network_id(self) -> str:
        """Brokers with different ones would not route alike, or are of different sites. Who belongs to the network and
        who is joined with whom may change, and is in its map."""
        said = [self.network, self.reliability.value, self.advertisements]
        return hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:32]

    @property
    def founding_map(self) -> NetworkMap:
        """How the network begins, by the site file."""
        brokers, links = self.graph.brokers, self.graph.links
        clients, peers = self.client_addresses, self.addresses
        return founding_map(
            [NetworkMember(name, clients.get(name, ""), peers.get(name, "")) for name in brokers], links
        )
