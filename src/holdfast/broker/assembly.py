"""Which parts a node is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.broker.group_operations import GroupOperations
from holdfast.broker.group_parts import make_group, make_view
from holdfast.broker.kit import BrokerKit
from holdfast.broker.network_parts import make_network
from holdfast.errors import WrongLog
from holdfast.kernel.application import Hosted
from holdfast.kernel.parts import Assembly
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.core.arrivals import Arrivals
from holdfast.protocols.core.commands import Command
from holdfast.protocols.core.hosting import Hosting
from holdfast.protocols.core.interests import Interests
from holdfast.protocols.core.limits import CoreLimits, HostingLimits
from holdfast.protocols.desks.application_desk import ApplicationDesk
from holdfast.protocols.desks.census import CoreCensus
from holdfast.protocols.desks.cursor_deliveries import DeliverySettings
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.direct_desk import DirectDesk
from holdfast.protocols.desks.log_desk import RetentionSettings
from holdfast.protocols.desks.log_holdings import LogHoldings
from holdfast.protocols.desks.names_desk import NamesDesk
from holdfast.protocols.desks.sequencer import SNAPSHOT_EVERY, SnapshotTaker
from holdfast.protocols.operating.desk import Facts, OperatorDesk
from holdfast.protocols.paxos import snapshots
from holdfast.protocols.paxos.formation import STREAM as FORMATION_STREAM
from holdfast.protocols.paxos.settings import PaxosSettings
from holdfast.protocols.routing.settings import RoutingSettings

if TYPE_CHECKING:
    from random import Random


_COMMANDS = msgspec.msgpack.Decoder(Command)


class BrokerSettings(msgspec.Struct, frozen=True):
    """What a broker is told: who it is, and how it works."""

    name: str
    durable: bool = False  # keeps its sessions, subscriptions and events over a restart
    limits: CoreLimits = CoreLimits()
    desk: DeskSettings = DeskSettings()
    snapshot_every: int = SNAPSHOT_EVERY
    retention: RetentionSettings = RetentionSettings()
    delivery: DeliverySettings = DeliverySettings()
    application: str = ""  # which one it hosts, if one is given
    hosting: HostingLimits = HostingLimits()


class PlainFacts(msgspec.Struct, frozen=True):
    """That do not change while a broker runs."""

    told: dict[str, str]

    def facts(self) -> dict[str, str]:
        return self.told


def make_broker(
    settings: BrokerSettings,
    rng: Random,
    streams: StoredStreams,
    application: Hosted | None = None,
    routing: RoutingSettings | None = None,
    kit: BrokerKit | None = None,
) -> Assembly:
    """A broker, from what its disk kept: on its own, or with `routing` one of a network. An application that is given
    is a new one. Tests put mutants into the kit."""
    if streams.get(FORMATION_STREAM):
        raise WrongLog("the data are those of a replica of a group; a broker on its own needs a folder of its own")
    kit = kit or BrokerKit()
    hosted = Hosting(application, settings.application, settings.hosting)
    if routing is None:
        core = kit.core(settings.limits, settings.durable, hosted)
    else:
        arrivals = Arrivals(routing.duplicates_remembered, routing.reliability.buffers)
        core = kit.core(settings.limits, settings.durable, hosted, Interests(), arrivals)
    sequencer = kit.sequencer(core, settings.durable, settings.snapshot_every)
    sequencer.recover(streams)
    facts: list[Facts] = [PlainFacts({"scheme": "tree", "durable": "yes" if settings.durable else "no"})]
    network = None if routing is None else make_network(routing, core, sequencer, streams, kit.network)
    if network is not None:
        facts.append(network)
    reissue = routing is not None and routing.reliability.refreshes
    desk_settings = msgspec.structs.replace(settings.desk, reissue=reissue)
    sessions = kit.sessions(settings.name, core, sequencer, desk_settings, network)
    events = kit.events(sequencer.recovered)
    log = kit.log(core, sequencer, sessions, events, settings.retention, settings.delivery)
    # The sequencer comes first: it journals a turn before the log is written, and before anyone is told.
    carriers = () if network is None else network.parts
    names = NamesDesk(settings.name, core, sequencer, sessions)
    parts = [sequencer, log, *carriers, sessions, ApplicationDesk(core, sequencer, sessions), names]
    desk = OperatorDesk(settings.name, parts, CoreCensus(core), names, [*facts, names])
    return Assembly([*parts, desk, SnapshotTaker(sequencer)])


def make_replica(
    settings: BrokerSettings,
    group: PaxosSettings,
    rng: Random,
    streams: StoredStreams,
    application: Hosted | None = None,
    kit: BrokerKit | None = None,
) -> Assembly:
    """A broker that is one of a group: the same core, behind the group's decided log. Tests put mutants into the
    kit."""
    if streams.get(snapshots.STREAM) and not streams.get(FORMATION_STREAM):
        raise WrongLog("the data are those of a broker on its own; a replica of a group needs a folder of its own")
    kit = kit or BrokerKit()
    core = kit.core(settings.limits, True, Hosting(application, settings.application, settings.hosting))
    rules = msgspec.structs.asdict(settings.limits)
    if application is not None:
        rules |= {"application": settings.application, **msgspec.structs.asdict(settings.hosting)}
    group = msgspec.structs.replace(group, rules=tuple(rules.items()))
    view = make_view(group, rng, kit.paxos)
    events = kit.events(is_shared=True)
    refill = kit.refill(events, view, core)
    holdings = LogHoldings(core, events, refill)
    made = make_group(core, msgspec.msgpack.encode, _COMMANDS.decode, view, streams, kit.paxos, holdings)
    replica = made.replica
    sessions = kit.sessions(settings.name, core, replica, settings.desk)
    log = kit.log(core, replica, sessions, events, settings.retention, settings.delivery)
    direct = DirectDesk(core, replica, sessions, settings.desk)
    # The replica comes first: it proposes what the turn asked for.
    names = NamesDesk(settings.name, core, replica, sessions)
    parts = [*made.parts, log, refill, sessions, direct, ApplicationDesk(core, replica, sessions), names]
    facts: list[Facts] = [PlainFacts({"scheme": "paxos", "durable": "yes"}), made.report, names]
    operations = GroupOperations(view.roster, made.leader, made.elections)
    desk = OperatorDesk(settings.name, parts, CoreCensus(core), names, facts, operations)
    return Assembly([*parts, desk])
