"""Which parts a broker of the scheme is made of: on its own, or one of a network, by its level of reliability."""

from __future__ import annotations

from collections.abc import Mapping as Fields
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.broker.assembly import make_journalled
from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.kit import BrokerKit
from holdfast.codec import Registry
from holdfast.kernel.application import Hosted
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import LATEST, NOW, Outbox
from holdfast.kernel.parts import Assembly, Part
from holdfast.kernel.storage import StoredStreams
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.arrivals import Arrivals
from holdfast.protocols.core.interests import Key
from holdfast.protocols.core.outputs import Entered
from holdfast.protocols.core.session import Session
from holdfast.protocols.desks.home import Home
from holdfast.protocols.desks.overlay import EVERYTHING, SubscriptionState
from holdfast.protocols.failure.detector import FailureDetector, Trust
from holdfast.protocols.routing.awaited import Awaited
from holdfast.protocols.routing.feed import Feed
from holdfast.protocols.routing.feeds import Feeds
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.gate import Gate
from holdfast.protocols.routing.links import Links
from holdfast.protocols.routing.local import EntryIds, LocalInterests
from holdfast.protocols.routing.messages import ROUTING_MESSAGES, Forward, Routes
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.routing.settling import Settling
from holdfast.protocols.routing.store import STREAM as STORE_STREAM
from holdfast.protocols.routing.table_store import STREAM as TABLE_STREAM
from holdfast.protocols.routing.table_store import TableStore, recovered_tables
from holdfast.protocols.routing.ways import NoDetours, Ways
from holdfast.protocols.sessions.messages import Publish
from holdfast.schemes.tree import KIND
from holdfast.schemes.tree.bypass.database import Database
from holdfast.schemes.tree.bypass.detours import Detours
from holdfast.schemes.tree.bypass.link_state import LinkStateNews
from holdfast.schemes.tree.bypass.view import View
from holdfast.schemes.tree.kit import NetworkKit
from holdfast.schemes.tree.mapping import STREAM as MAP_STREAM
from holdfast.schemes.tree.mapping import Mapping, held_up, recovered_map
from holdfast.schemes.tree.moving import MoveWords, Moving
from holdfast.schemes.tree.standin.cycle.assembly import Cycle, make_cycle
from holdfast.schemes.tree.standin.cycle.memory import STREAM as CYCLE_STREAM
from holdfast.schemes.tree.standin.keeping import Keeping, TrustedLinks
from holdfast.schemes.tree.standin.learning import Learning
from holdfast.schemes.tree.standin.own import OwnInterests
from holdfast.schemes.tree.standin.relieving import Ordering
from holdfast.schemes.tree.standin.sharing import Sharing

if TYPE_CHECKING:
    from random import Random


class NetworkParts:
    """What makes a broker one of a network: its parts, in their order, as the overlay of its sessions."""

    def __init__(
        self,
        settings: RoutingSettings,
        roster: Roster,
        bypass: Sequence[Part],
        detector: FailureDetector,
        mapping: Mapping,
        gate: Gate,
        moving: Moving,
        neighbours: Neighbours,
        links: Links,
        forwarding: Forwarding,
        words: MoveWords,
        stand_ins: tuple[Sequence[Part], Sequence[Part]],
        cycle: Cycle | None,
    ) -> None:
        # News come before the detector: a restart is known before the neighbour counts as up. The gate advertises,
        # links move, the neighbours are told, stand-ins learn, the events follow, and what is said of moves.
        before: tuple[Part, ...] = (*bypass, detector, mapping, gate, moving)
        self.parts: tuple[Part, ...] = (*before, neighbours, *stand_ins[0], links, forwarding, words, *stand_ins[1])
        self.parts += () if cycle is None else cycle.parts
        self._cycle = cycle
        self._roster = roster
        self._mapping = mapping
        self._settings = settings
        self._detector = detector
        self._gate = gate
        self._links = links
        self._forwarding = forwarding
        self._learning = next((part for part in stand_ins[0] if isinstance(part, Learning)), None)

    def admits(self, session: Session, message: Publish, batch: EventBatch, out: Outbox) -> bool:
        if self._mapping.elsewhere:
            return False  # it is said again to another broker
        return self._gate.admits(session, message, batch, out)

    def entered(self, entered: Entered, out: Outbox) -> None:
        self._forwarding.entered(entered, out)

    def answerable_through(self, session: Session) -> int:
        """What is published is this broker's, as soon as it is on its disk; how it gets on, the level promises."""
        return EVERYTHING

    def answerable_commands(self) -> int:
        return EVERYTHING

    def interests_changed(self, out: Outbox) -> None:
        self._gate.interests_changed(out)

    def subscription_state(self, key: Key) -> SubscriptionState:
        """As far as any level promises: that its broker knows it. When others do, nobody is told."""
        return SubscriptionState.CONFIRMED

    def facts(self) -> dict[str, str]:
        """What operators are told of the level, and of a broker's links now."""
        near = self._roster.linked
        suspected = [peer for peer in near if self._detector.trust(peer) is Trust.SUSPECTED]
        up = [peer for peer in near if peer in self._links.acquaintances]
        facts = {
            "network": self._settings.network_id,
            "reliability": self._settings.reliability.value,
            "neighbours": ", ".join(near),
            "neighbours_up": ", ".join(up),
            "neighbours_suspected": ", ".join(suspected),
            **self._mapping.facts(),
        }
        unheard = [] if self._learning is None else self._learning.waits_for()
        if problem := held_up(self._roster, up, suspected, unheard):
            facts["change_problem"] = problem
        return facts if self._cycle is None else facts | self._cycle.facts()

    @property
    def elsewhere(self) -> tuple[str, ...]:
        return self._mapping.elsewhere

    @property
    def member_since(self) -> int:
        return self._roster.member_since

    def change(self, action: str, told: Fields[str, str], out: Outbox) -> str:
        """Begins a change of the network; gives what is against it. By whom a broker is to be replaced, the cycle finds
        out, if it is not said."""
        if self._cycle is not None and self._cycle.takes(action, told):
            return self._cycle.ask(action, told, out)
        if self._cycle is not None and (problem := self._cycle.against(action, told)):
            return problem
        return self._mapping.change(action, told, out)


def make_broker(
    settings: BrokerSettings,
    rng: Random,
    streams: StoredStreams,
    application: Hosted | None = None,
    routing: RoutingSettings | None = None,
    kit: BrokerKit | None = None,
) -> Assembly:
    """A broker, from what its disk kept: on its own, or with `routing` one of a network. An application that is given
    is a new one."""
    kit = kit or BrokerKit()
    own = (STORE_STREAM, TABLE_STREAM, MAP_STREAM, CYCLE_STREAM)
    if routing is None:
        return make_journalled(KIND, settings, streams, application, kit, own)
    network_kit = kit.scheme if isinstance(kit.scheme, NetworkKit) else NetworkKit()
    arrivals = Arrivals(routing.duplicates_remembered, routing.reliability.buffers)
    settings = replace(settings, desk=replace(settings.desk, reissue=routing.reliability.refreshes))

    def weave(home: Home, recovered: Sequence[Entered], streams: StoredStreams) -> NetworkParts:
        return make_network(routing, settings.durable, home, recovered, streams, network_kit)

    return make_journalled(KIND, settings, streams, application, kit, own, arrivals, weave)


# What may travel by a detour, under the numbers that it has in the catalogue.
_CARRIED = Registry[Message]({kind: type for kind, type in ROUTING_MESSAGES.items() if type in (Routes, Forward)})


def make_network(
    settings: RoutingSettings,
    durable: bool,
    home: Home,
    recovered: Sequence[Entered],
    streams: StoredStreams,
    kit: NetworkKit,
) -> NetworkParts:
    level = settings.reliability
    roster = Roster(settings.name, recovered_map(settings, streams), settings.addresses)
    recovered_table = recovered_tables(streams) if level.buffers else None
    kept = None if recovered_table is None else recovered_table.near
    near = roster.near if kept is None else tuple(kept)
    ids = EntryIds(settings.name)
    feeds = Feeds({peer: Feed() for peer in near})
    ordering = Ordering()
    answers = kit.answers(near, ids) if level.buffers else None
    router = kit.router(near, settings.advertisements, settings.covering, answers, feeds)
    settling = Settling()
    local = LocalInterests(ids, home.interests, router, settling)
    table = TableStore(router, recovered_table)
    detector = FailureDetector(settings.detector, roster.linked)
    links = Links(settings, roster)
    acquaintances = links.acquaintances
    keeps = settings.stand_ins.enabled and not level.buffers
    ways: Ways = TrustedLinks(detector) if keeps else NoDetours()
    bypass: list[Part] = []
    after = LATEST if level.buffers else NOW
    if level.detours:
        # News of links, a view of the whole network, and the ways around what failed (D1-B5).
        database = Database(roster.graph, settings.name)
        view = View(database, roster.tree)
        detours = Detours(database, view, _CARRIED, detector, acquaintances, after)
        ways, bypass = detours, [LinkStateNews(roster, database, view, detector, acquaintances), detours]
    awaited = Awaited()
    teller = kit.teller(settings, router, settling, table, acquaintances, ways, awaited, answers)
    neighbours = kit.neighbours(
        settings, roster, router, settling, ids, local, table, acquaintances, awaited, teller, answers
    )
    store = kit.store(near, streams, recovered) if level.buffers else None
    sharing = Sharing(router, feeds)
    forwarding = kit.forwarding(
        settings, roster, home, router, feeds, acquaintances, teller, ways, store, sharing, ordering
    )
    gate = kit.gate(settings, home, local, table, awaited, forwarding.room)
    mapping = kit.mapping(settings, roster, acquaintances, detector, neighbours, durable)
    words = kit.words(after)
    moving = kit.moving(roster, mapping, links, neighbours, forwarding, answers, words, table.stage)
    stand_ins: tuple[Sequence[Part], Sequence[Part]] = ((), ())  # before what carries events, and behind it
    if settings.stand_ins.enabled:
        learning = kit.learning(settings, roster, mapping, neighbours, forwarding, answers)
        relieving = kit.relieving(settings, roster, acquaintances, neighbours, forwarding, sharing, ordering)
        teaching = kit.teaching(settings.stand_ins, roster, acquaintances, neighbours, forwarding, learning, relieving)
        signals = kit.signals(settings.stand_ins, roster, acquaintances, forwarding, learning, relieving)
        withdrawing = kit.withdrawing(settings.stand_ins, roster, acquaintances, mapping, forwarding)
        own = OwnInterests(roster, acquaintances, neighbours)
        stand_ins = ((learning, relieving, teaching, own, Keeping(forwarding)), (signals, withdrawing))
    cycle = None
    if settings.stand_ins.levels.enabled:
        cycle = make_cycle(settings, roster, mapping, links, detector, forwarding, durable, streams, kit)
    return NetworkParts(
        settings,
        roster,
        bypass,
        detector,
        mapping,
        gate,
        moving,
        neighbours,
        links,
        forwarding,
        words,
        stand_ins,
        cycle,
    )
