"""What the brokers of a network are told: the graph, the level of reliability, and the times."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping

import msgspec

from holdfast.kernel.time import SECOND
from holdfast.protocols.failure.settings import DetectorSettings
from holdfast.topology.overlay import Overlay


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
    def buffers(self) -> bool:
        """Whether events are kept until the next broker has stored them (D1-B4)."""
        return self in (Reliability.BUFFERED, Reliability.BYPASS_BUFFERED)

    @property
    def detours(self) -> bool:
        """Whether events and subscriptions go around a broker that failed (D1-B5)."""
        return self in (Reliability.BYPASS, Reliability.BYPASS_BUFFERED)


class RoutingSettings(msgspec.Struct, frozen=True, gc=False):
    """What one broker of a network is told."""

    name: str
    overlay: Overlay
    addresses: Mapping[str, str] = {}  # of the other brokers
    reliability: Reliability = Reliability.NONE
    advertisements: bool = True  # subscriptions go where something is advertised; without, everywhere (D1-B1)
    covering: bool = True  # what a broader subscription asks for already is not asked for again
    detector: DetectorSettings = DetectorSettings()
    dial_every: int = 1 * SECOND
    refresh: int = 10 * SECOND  # between tellings again of what is wanted (D1-B3: T_r)
    expire: int = 35 * SECOND  # what was not told again for so long is not wanted any more (D1-B3: timeout)
    ask_neighbours: bool = True  # a broker that was restarted asks at once, and does not wait for the next refresh
    settle: int = 2 * SECOND  # a publisher of something new waits at most so long until those who want it are known
    restore: int = 5 * SECOND  # a broker that was restarted waits at most so long for its neighbours to tell
    retransmit: int = 1 * SECOND  # what is not acknowledged on a link that is up is sent again
    store_bytes: int = 256 * 1024 * 1024  # of events that neighbours have not acknowledged; then publishers wait
    queue_bytes: int = 8 * 1024 * 1024  # of events that wait for a neighbour's link; then publishers wait
    duplicates_remembered: int = 65_536  # events of which the last broker knows that it delivered them (D1-B6)

    @property
    def network_id(self) -> str:
        """Brokers with different ones would not route alike."""
        said = [self.overlay.brokers, self.overlay.links, self.reliability.value, self.advertisements]
        return hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:32]
