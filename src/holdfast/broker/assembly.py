"""Which parts a node is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

import msgspec

from holdfast.broker.network_parts import NetworkParts, join_network, make_network, network_facts, network_neighbours
from holdfast.errors import WrongLog
from holdfast.kernel.application import Hosted
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Assembly
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.cursors.asker import LogAsker
from holdfast.protocols.cursors.consumer import Consumer
from holdfast.protocols.cursors.deliveries import DeliverySettings
from holdfast.protocols.cursors.host import LogHost, RetentionSettings
from holdfast.protocols.cursors.log_state import LogState
from holdfast.protocols.cursors.refill import Refill
from holdfast.protocols.operating.desk import OperatorDesk
from holdfast.protocols.operating.messages import ChangeGroup, GroupAction
from holdfast.protocols.operating.operator import Operator
from holdfast.protocols.paxos import snapshots
from holdfast.protocols.paxos.formation import STREAM as FORMATION_STREAM
from holdfast.protocols.paxos.membership import AddLearner, Cancel, Change, ChangeProtocol, Leave, Remove
from holdfast.protocols.paxos.replica import Replica
from holdfast.protocols.paxos.settings import PaxosSettings, Protocol
from holdfast.protocols.routing.settings import RoutingSettings
from holdfast.protocols.sessions.advertiser import Advertiser
from holdfast.protocols.sessions.application_asker import ApplicationAsker
from holdfast.protocols.sessions.application_desk import ApplicationDesk
from holdfast.protocols.sessions.census import least_reliable
from holdfast.protocols.sessions.client import ClientSession
from holdfast.protocols.sessions.commands import Command
from holdfast.protocols.sessions.conversation import ClientSettings, Conversation
from holdfast.protocols.sessions.core import BrokerCore
from holdfast.protocols.sessions.direct import DirectLinks
from holdfast.protocols.sessions.direct_host import DirectHost
from holdfast.protocols.sessions.host import SessionHost
from holdfast.protocols.sessions.host_settings import HostSettings
from holdfast.protocols.sessions.hosting import Hosting
from holdfast.protocols.sessions.limits import CoreLimits, HostingLimits
from holdfast.protocols.sessions.publisher import Publisher
from holdfast.protocols.sessions.sequencer import SNAPSHOT_EVERY, DirectSequencer, SnapshotTaker
from holdfast.protocols.sessions.subscriber import Subscriber

if TYPE_CHECKING:
    from random import Random


_COMMANDS = msgspec.msgpack.Decoder(Command)


class BrokerSettings(msgspec.Struct, frozen=True):
    """What a broker is told: who it is, and how it works."""

    name: str
    durable: bool = False  # keeps its sessions, subscriptions and events over a restart
    limits: CoreLimits = CoreLimits()
    host: HostSettings = HostSettings()
    snapshot_every: int = SNAPSHOT_EVERY
    retention: RetentionSettings = RetentionSettings()
    delivery: DeliverySettings = DeliverySettings()
    application: str = ""  # which one it hosts, if one is given
    hosting: HostingLimits = HostingLimits()


def make_broker(
    settings: BrokerSettings,
    rng: Random,
    streams: StoredStreams,
    application: Hosted | None = None,
    routing: RoutingSettings | None = None,
    parts: NetworkParts | None = None,
) -> Assembly:
    """A broker, from what its disk kept: on its own, or with `routing` one of a network. An application that is given
    is a new one. Tests put mutants in for `parts`."""
    if streams.get(FORMATION_STREAM):
        raise WrongLog("the data are those of a replica of a group; a broker on its own needs a folder of its own")
    core = BrokerCore(settings.limits, log=settings.durable)
    core.hosting = Hosting(application, settings.application, settings.hosting)
    if routing is not None:
        join_network(core, routing)
    sequencer = DirectSequencer(core, settings.durable, settings.snapshot_every)
    reissue = routing is not None and routing.reliability.refreshes
    host = SessionHost(settings.name, core, sequencer, msgspec.structs.replace(settings.host, reissue=reissue))
    sequencer.recover(streams)
    sequencer.applied = host.on_applied
    log = LogHost(core, sequencer, host, sequencer.recovered, settings.retention, settings.delivery)
    host.on_log_output = log.on_log_output
    facts = {"scheme": "tree", "durable": "yes" if settings.durable else "no"}
    network: list[Any] = []
    if routing is not None:
        network = make_network(routing, core, sequencer, host, streams, parts or NetworkParts())
        facts |= {"reliability": routing.reliability.value, "neighbours": ", ".join(network_neighbours(routing))}
    desk = OperatorDesk(settings.name, facts)
    if routing is not None:
        desk.more_facts = lambda: network_facts(routing, network)
    # The sequencer comes first: it journals a turn before the log is written, and before anyone is told.
    node = Assembly(
        [sequencer, log, *network, host, ApplicationDesk(core, sequencer, host), desk, SnapshotTaker(sequencer)]
    )
    desk.measure_node, desk.application_facts = node.measure, core.hosting.facts
    desk.subscriptions = lambda count: least_reliable(core, count)
    return node


def make_replica(
    settings: BrokerSettings,
    group: PaxosSettings,
    rng: Random,
    streams: StoredStreams,
    replica_type: type[Replica] = Replica,
    host_type: type[SessionHost] = SessionHost,
    core_type: type[BrokerCore] = BrokerCore,
    application: Hosted | None = None,
) -> Assembly:
    """A broker that is one of a group: the same core, behind the group's decided log. Tests put mutants in."""
    if streams.get(snapshots.STREAM) and not streams.get(FORMATION_STREAM):
        raise WrongLog("the data are those of a broker on its own; a replica of a group needs a folder of its own")
    core = core_type(settings.limits, log=True)
    core.hosting = Hosting(application, settings.application, settings.hosting)
    rules = msgspec.structs.asdict(settings.limits)
    if application is not None:
        rules |= {"application": settings.application, **msgspec.structs.asdict(settings.hosting)}
    group = msgspec.structs.replace(group, rules=tuple(rules.items()))
    replica = replica_type(group, core, msgspec.msgpack.encode, _COMMANDS.decode, rng)
    replica.recover(streams)
    hosting = msgspec.structs.replace(settings.host, replicated=True)
    host = host_type(settings.name, core, replica, hosting)
    log = LogHost(core, replica, host, (), settings.retention, settings.delivery, replicated=True)
    host.on_log_output = log.on_log_output
    replica.applied = host.on_applied
    replica.elected = host.on_elected
    replica.deposed = host.on_deposed
    replica.followed = host.on_leader_known
    refill = Refill(log.events, replica.others, lambda: core.log or LogState(), replica.catching_up.on_fetched)
    replica.fetches = lambda state, out: refill.fetch_first(core.log_of(state), out)
    replica.settle = log.write
    replica.is_whole = lambda: not log.events.has_hole
    replica.extent = lambda: (0 if core.log is None else core.log.head, log.events.durable_head)

    def restored(out: Outbox) -> None:
        log.on_restored(out)
        refill.fetch(out)

    replica.restored = restored
    direct = DirectHost(core, replica, host, hosting)
    desk = OperatorDesk(settings.name, {"scheme": "paxos", "durable": "yes"})
    # The replica comes first: it proposes what the turn asked for.
    node = Assembly([*replica.parts, log, refill, host, direct, ApplicationDesk(core, replica, host), desk])
    desk.measure_node, desk.more_facts, desk.transfer = node.measure, replica.facts, replica.elections.transfer
    desk.change = lambda asked, out: _change(replica, asked, out)
    desk.application_facts = core.hosting.facts
    desk.subscriptions = lambda count: least_reliable(core, count)
    return node


def _change(replica: Replica, asked: ChangeGroup, out: Outbox) -> str:
    """What an operator asks for, as the group's log has it. Gives what is against it."""
    change: Change
    match asked.action:
        case GroupAction.ADD | GroupAction.REPLACE:
            change = AddLearner(asked.id, asked.peer_address, asked.address, "", asked.replaces)
        case GroupAction.REMOVE:
            member = replica.roster.find(asked.id)
            learns = member is not None and not member.votes
            change = Remove(asked.id) if learns else Leave(asked.id)
        case GroupAction.CANCEL:
            change = Cancel()
        case GroupAction.PROTOCOL:
            known = [protocol.value for protocol in Protocol]
            if asked.protocol not in known:
                return f"there is no protocol {asked.protocol[:64]!r}; there is {', '.join(known)}"
            change = ChangeProtocol(Protocol(asked.protocol))
        case _:
            assert_never(asked.action)
    return replica.change(change, out)


def make_operator(address: str) -> Assembly:
    """What stands behind `holdfast status`."""
    return Assembly([Operator(address)])


def make_client(settings: ClientSettings, rng: Random, streams: StoredStreams) -> Assembly:
    """A client; it keeps nothing over a restart."""
    conversation = Conversation(settings)
    advertiser, subscriber = Advertiser(conversation), Subscriber(conversation)
    direct = DirectLinks(conversation, rng)
    publisher = Publisher(conversation, advertiser, subscriber, direct)
    consumer, asker = Consumer(conversation), LogAsker(conversation)
    application = ApplicationAsker(conversation)
    companions = (advertiser, consumer, asker, application)
    session = ClientSession(conversation, publisher, subscriber, companions, direct, rng)
    return Assembly([session, direct, advertiser, publisher, subscriber, consumer, asker, application])
