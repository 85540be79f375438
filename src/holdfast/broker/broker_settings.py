"""What any broker is told, whatever its scheme."""

from __future__ import annotations

import msgspec

from holdfast.protocols.core.limits import CoreLimits, HostingLimits
from holdfast.protocols.desks.cursor_deliveries import DeliverySettings
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.log_desk import RetentionSettings
from holdfast.protocols.desks.sequencer import SNAPSHOT_EVERY


class BrokerSettings(msgspec.Struct, frozen=True):
    """Who it is, and how it works."""

    name: str
    durable: bool = False  # keeps its sessions, subscriptions and events over a restart
    limits: CoreLimits = CoreLimits()
    desk: DeskSettings = DeskSettings()
    snapshot_every: int = SNAPSHOT_EVERY
    retention: RetentionSettings = RetentionSettings()
    delivery: DeliverySettings = DeliverySettings()
    application: str = ""  # which one it hosts, if one is given
    hosting: HostingLimits = HostingLimits()
