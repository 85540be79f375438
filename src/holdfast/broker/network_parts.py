"""Which parts make a broker one of a network, by its level of reliability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.codec import Registry
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import LATEST, NOW, Outbox
from holdfast.kernel.queues import Lane
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.bypass.database import Database
from holdfast.protocols.bypass.detours import Detours
from holdfast.protocols.bypass.link_state import LinkStateNews
from holdfast.protocols.bypass.view import View
from holdfast.protocols.failure.detector import FailureDetector, Trust
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.gate import Gate
from holdfast.protocols.routing.local import LocalInterests
from holdfast.protocols.routing.messages import ROUTING_MESSAGES, Forward, Introduction, Routes
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.router import Router
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.routing.store import EventStore
from holdfast.protocols.routing.table_store import TableStore
from holdfast.protocols.sessions.core import BrokerCore
from holdfast.protocols.sessions.host import SessionHost
from holdfast.protocols.sessions.interests import Interests
from holdfast.protocols.sessions.sequencer import DirectSequencer
from holdfast.topology.overlay import SpanningTree


class NetworkParts(msgspec.Struct, frozen=True):
    """What the parts are made with; tests put mutants in their place."""

    router: type[Router] = Router
    neighbours: type[Neighbours] = Neighbours
    forwarding: type[Forwarding] = Forwarding
    store: type[EventStore] = EventStore
    gate: type[Gate] = Gate


def network_neighbours(settings: RoutingSettings) -> tuple[str, ...]:
    return settings.overlay.neighbours(settings.name)


def network_facts(settings: RoutingSettings, parts: Sequence[Any]) -> dict[str, str]:
    """What operators are told of a broker's links now."""
    links = next(part for part in parts if isinstance(part, Neighbours))
    detector = next(part for part in parts if isinstance(part, FailureDetector))
    near = network_neighbours(settings)
    return {
        "neighbours_up": ", ".join(peer for peer in near if links.is_linked(peer)),
        "neighbours_suspected": ", ".join(peer for peer in near if detector.trust(peer) is Trust.SUSPECTED),
    }


def join_network(core: BrokerCore, settings: RoutingSettings) -> None:
    """The core says what its clients want and offer; before it is brought to where its journal ends."""
    core.interests = core.cursors.interests = Interests()
    core.arrivals.remember_max = settings.duplicates_remembered
    core.arrivals.are_stored = settings.reliability.buffers


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
    gate = parts.gate(settings, core, neighbours, local, table)

    neighbours.introduce = forwarding.introduction
    neighbours.linked, neighbours.unlinked = forwarding.on_linked, forwarding.on_unlinked
    neighbours.answered = forwarding.on_answered
    neighbours.settled, neighbours.becoming_ready = gate.on_settled, gate.on_becoming_ready
    neighbours.became_ready = gate.release_soon
    forwarding.released, forwarding.recovered = gate.release_soon, gate.offer_recovered
    gate.is_congested, gate.publish = forwarding.is_congested, host.on_publish
    host.admits, host.on_entered = gate.admits, forwarding.on_entered
    detector = FailureDetector(settings.detector, network_neighbours(settings))
    detector.suspected = lambda peer, reason, out: neighbours.on_suspected(peer, out)
    bypass = _add_bypass(settings, tree, detector, neighbours, forwarding) if level.detours else []
    # News come before the detector: a restart is known before the neighbour counts as up.
    return [*bypass, detector, gate, neighbours, forwarding]


# What may travel by a detour, under the numbers that it has in the catalogue.
_CARRIED = Registry[Message]({kind: type for kind, type in ROUTING_MESSAGES.items() if type in (Routes, Forward)})


def _add_bypass(
    settings: RoutingSettings,
    tree: SpanningTree,
    detector: FailureDetector,
    neighbours: Neighbours,
    forwarding: Forwarding,
) -> list[Any]:
    """News of links, a view of the whole network, and the ways around what failed (D1-B5)."""
    database = Database(settings.overlay, settings.name)
    news = LinkStateNews(database)
    view = View(database, tree)

    def is_usable(peer: str) -> bool:
        """Both ends have to say so: one may still hear the other, and not be heard."""
        return detector.trusts(peer) and neighbours.is_linked(peer) and view.is_usable(settings.name, peer)

    detours = Detours(database, view, _CARRIED, is_usable)
    events_after = LATEST if settings.reliability.buffers else NOW

    def suspected(peer: str, reason: str, out: Outbox) -> None:
        news.suspected(peer, reason, out)
        neighbours.on_suspected(peer, out)

    def arrived(source: str, sender: str, message: Message, out: Outbox) -> None:
        if isinstance(message, Routes):
            neighbours.on_detoured(source, sender, message, out)
        elif isinstance(message, Forward):
            forwarding.on_detoured(source, message, out)

    def tell_around(peer: str, message: Message, out: Outbox) -> None:
        """To nobody, if nobody can be reached: whoever comes back is told everything."""
        detours.send(peer, message, Lane.CONTROL, out, events_after, unready=True)

    def became_ready(out: Outbox) -> None:
        news.set_ready(True, out)
        release(out)

    def trusted(peer: str, out: Outbox) -> None:
        """Up is who is there and known to be of this network, whichever comes later."""
        if neighbours.is_linked(peer) and detector.trusts(peer):
            news.trusted(peer, out)

    def linked(peer: str, introduction: Introduction, out: Outbox) -> None:
        forwarding.on_linked(peer, introduction, out)
        trusted(peer, out)

    release, neighbours.became_ready = neighbours.became_ready, became_ready
    detector.suspected, detector.trusted, neighbours.linked = suspected, trusted, linked
    news.is_introduced = detours.is_introduced = neighbours.is_linked
    news.changed = neighbours.on_view_changed
    neighbours.is_usable = is_usable
    neighbours.targets = lambda peer: view.targets(peer, unready=True)
    neighbours.detour = tell_around
    forwarding.is_usable = detours.is_direct
    forwarding.detour = lambda peer, message, out: bool(detours.send(peer, message, Lane.USER, out, events_after))
    detours.arrived = arrived
    return [news, detours]
