"""Which parts make a broker one of a network, by its level of reliability."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.gate import Gate
from holdfast.protocols.routing.local import LocalInterests
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.router import Router
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.routing.store import EventStore
from holdfast.protocols.routing.table_store import TableStore
from holdfast.protocols.sessions.core import BrokerCore
from holdfast.protocols.sessions.host import SessionHost
from holdfast.protocols.sessions.interests import Interests
from holdfast.protocols.sessions.sequencer import DirectSequencer


class NetworkParts(msgspec.Struct, frozen=True):
    """What the parts are made with; tests put mutants in their place."""

    router: type[Router] = Router
    neighbours: type[Neighbours] = Neighbours
    forwarding: type[Forwarding] = Forwarding
    store: type[EventStore] = EventStore
    gate: type[Gate] = Gate


def network_neighbours(settings: RoutingSettings) -> tuple[str, ...]:
    return settings.overlay.neighbours(settings.name)


def join_network(core: BrokerCore, settings: RoutingSettings) -> None:
    """The core says what its clients want and offer; before it is brought to where its journal ends."""
    core.interests = core.cursors.interests = Interests()
    if settings.reliability.detours:
        core.arrivals.remember_max = settings.duplicates_remembered


def make_network(
    settings: RoutingSettings,
    core: BrokerCore,
    sequencer: DirectSequencer,
    host: SessionHost,
    streams: StoredStreams,
    parts: NetworkParts,
) -> list[Any]:
    """The parts, in their order: the gate offers, the neighbours are told, the events follow."""
    level = settings.reliability
    interests = core.interests or Interests()
    local = LocalInterests(settings.name, interests)
    tree = settings.overlay.spanning_tree()
    router = parts.router(tree.neighbours(settings.name), settings.advertisements, settings.covering)
    table = TableStore(router)
    if level.buffers:
        table.recover(streams)
    neighbours = parts.neighbours(settings, router, local, table)
    store = parts.store(neighbours.tree, streams, sequencer.recovered_entered) if level.buffers else None
    forwarding = parts.forwarding(settings, core, sequencer, neighbours, store)
    gate = parts.gate(settings, core, neighbours, local)

    neighbours.introduce = forwarding.introduction
    neighbours.linked, neighbours.unlinked = forwarding.on_linked, forwarding.on_unlinked
    neighbours.known = forwarding.on_known
    neighbours.settled, neighbours.became_ready = gate.on_settled, gate.release_soon
    forwarding.released = gate.release_soon
    gate.is_congested, gate.publish = forwarding.is_congested, host.on_publish
    host.admits, host.on_entered = gate.admits, forwarding.on_entered
    return [gate, neighbours, forwarding]
