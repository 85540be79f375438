"""The settings of a network, where a site file says them, and what one broker is told of them."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.broker.scheme import Told
from holdfast.kernel.node import broken
from holdfast.kernel.settings import choices, chosen
from holdfast.protocols.routing.settings import RoutingSettings, ServiceLevels, StandInSettings
from holdfast.topology.graph import BrokerGraph

DEFAULTS: Final = RoutingSettings(name="", graph=BrokerGraph((), ()))
OF_SCHEME: Final = frozenset({"reliability"})  # settings that [scheme] says
# Settings of [standin] and [standin.sla]; that there are these tables is one of them. All others are in [routing].
OF_STAND_INS: Final = frozenset(choices(StandInSettings))
OF_LEVELS: Final = frozenset(choices(ServiceLevels))
STAND_INS: Final = "stand_ins"
SLA: Final = "sla"
NOT_ROUTING: Final = OF_SCHEME | OF_STAND_INS
NOT_STAND_INS: Final = frozenset(choices(RoutingSettings).keys() - (OF_STAND_INS - OF_LEVELS) | {STAND_INS})
NOT_LEVELS: Final = frozenset(choices(RoutingSettings).keys() - OF_LEVELS | {SLA})
# The simulator's brokers are as others, in times that fit short runs.
SIMULATED: Final = chosen(
    DEFAULTS,
    {
        "refresh_ms": 1_000,
        "expire_ms": 3_500,
        "settle_ms": 2_000,
        "restore_ms": 1_500,
        "retransmit_ms": 1_000,
        "dial_every_ms": 250,
        "heartbeat_ms": 600,
        "suspect_ms_min": 1_500,
        "suspect_ms_max": 3_000,
    },
)


def routing_settings(settings: msgspec.Struct) -> RoutingSettings:
    """The settings of a site, or of a scenario, of this scheme."""
    if not isinstance(settings, RoutingSettings):
        broken("the settings are those of the scheme", settings=type(settings).__name__)
    return settings


def routing_of(told: Told) -> RoutingSettings | None:
    """What one broker of a network is told; None of a broker that is joined with no other. A spare is told of the
    network too, and is not in its graph."""
    if not told.links:
        return None
    graph = BrokerGraph([place.id for place in told.places if not place.spare], told.links)
    return replace(
        routing_settings(told.settings),
        name=told.broker.name,
        graph=graph,
        addresses={place.id: place.peer_address for place in told.places},
        client_addresses={place.id: place.client_address for place in told.places},
        network=told.site,
    )
