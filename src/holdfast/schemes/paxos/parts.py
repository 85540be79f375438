"""Which parts make a broker one of a group: a replica around an application, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.broker.assembly import PlainFacts, check_streams
from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.kit import BrokerKit
from holdfast.errors import WrongLog
from holdfast.kernel.application import Application, Hosted
from holdfast.kernel.parts import Assembly, Part
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.core.commands import Command
from holdfast.protocols.core.hosting import Hosting
from holdfast.protocols.desks.application_desk import ApplicationDesk
from holdfast.protocols.desks.census import CoreCensus
from holdfast.protocols.desks.direct_desk import DirectDesk
from holdfast.protocols.desks.log_holdings import LogHoldings
from holdfast.protocols.desks.names_desk import NamesDesk
from holdfast.protocols.desks.overlay import Alone
from holdfast.protocols.operating.desk import Facts, OperatorDesk
from holdfast.schemes.paxos import KIND
from holdfast.schemes.paxos import acceptor as acceptor_module
from holdfast.schemes.paxos import formation as formation_module
from holdfast.schemes.paxos import snapshots as snapshots_module
from holdfast.schemes.paxos.acceptor import Acceptor
from holdfast.schemes.paxos.authority import Authority
from holdfast.schemes.paxos.catching_up import CatchingUp
from holdfast.schemes.paxos.changing import Changing
from holdfast.schemes.paxos.coordinator import Coordinator
from holdfast.schemes.paxos.decided import DecidedLog
from holdfast.schemes.paxos.elections import Elections
from holdfast.schemes.paxos.fallback import Fallback
from holdfast.schemes.paxos.fast import FastRounds
from holdfast.schemes.paxos.formation import Formation
from holdfast.schemes.paxos.group_view import GroupView
from holdfast.schemes.paxos.holdings import Holdings, NoHoldings
from holdfast.schemes.paxos.leader import Leader
from holdfast.schemes.paxos.learner import Learner
from holdfast.schemes.paxos.liveness import Liveness
from holdfast.schemes.paxos.memory import Memory
from holdfast.schemes.paxos.operations import GroupOperations
from holdfast.schemes.paxos.peers import Peers
from holdfast.schemes.paxos.promises import PromiseParts
from holdfast.schemes.paxos.proposer import Proposer
from holdfast.schemes.paxos.replica import Replica
from holdfast.schemes.paxos.report import Report
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.settings import PaxosSettings
from holdfast.schemes.paxos.snapshots import Snapshots
from holdfast.schemes.paxos.transfer import IncomingSnapshot
from holdfast.schemes.paxos.vote_count import VoteCount
from holdfast.schemes.paxos.voter import Voter

if TYPE_CHECKING:
    from random import Random

_COMMANDS = msgspec.msgpack.Decoder(Command)


class PaxosKit(msgspec.Struct, frozen=True):
    """The types that a replica is made of; tests put mutants in their place."""

    roster: type[Roster] = Roster
    formation: type[Formation] = Formation
    peers: type[Peers] = Peers
    acceptor: type[Acceptor] = Acceptor
    proposer: type[Proposer] = Proposer
    decided: type[DecidedLog] = DecidedLog
    count: type[VoteCount] = VoteCount
    learner: type[Learner] = Learner
    incoming: type[IncomingSnapshot] = IncomingSnapshot
    catching_up: type[CatchingUp] = CatchingUp
    authority: type[Authority] = Authority
    fast: type[FastRounds] = FastRounds
    changing: type[Changing] = Changing
    elections: type[Elections] = Elections
    voter: type[Voter] = Voter
    fallback: type[Fallback] = Fallback
    coordinator: type[Coordinator] = Coordinator
    promises: type[PromiseParts] = PromiseParts
    leader: type[Leader] = Leader
    replica: type[Replica] = Replica


class GroupParts(msgspec.Struct, frozen=True):
    """A replica: what it remembers, and its parts."""

    view: GroupView
    memory: Memory
    replica: Replica
    learner: Learner
    catching_up: CatchingUp
    fast: FastRounds
    changing: Changing
    report: Report
    elections: Elections
    voter: Voter
    coordinator: Coordinator
    leader: Leader

    @property
    def parts(self) -> list[Part]:
        """Those that a node lists, in this order."""
        # The leader proposes before the voter tells its votes; fast rounds tell all votes at the end. When the voters
        # change, the leader takes another ballot before the voter answers those of others.
        first = [self.view.peers, self.coordinator, self.leader, self.elections]
        return [*first, self.learner, self.catching_up, self.voter, self.fast, self.report]


def make_view(settings: PaxosSettings, rng: Random, kit: PaxosKit) -> GroupView:
    roster = kit.roster(settings)
    formation = kit.formation(settings, roster)
    peers = kit.peers(settings, roster, formation)
    return GroupView(settings, roster, formation, Liveness(settings, roster, rng), peers)


def make_group(
    application: Application[Any, Any],
    encode: Callable[[Any], bytes],
    decode: Callable[[msgspec.Raw], Any],
    view: GroupView,
    streams: StoredStreams,
    kit: PaxosKit,
    holdings: Holdings | None = None,
) -> GroupParts:
    """A replica, from what its disk kept. `encode` and `decode` are the application's: a command as bytes."""
    settings, roster = view.settings, view.roster
    holdings = holdings or NoHoldings()
    proposer = kit.proposer(roster, settings.pipeline)
    memory = Memory(kit.acceptor(), proposer, kit.decided(roster), kit.count(roster), Snapshots(settings))
    # What executes.
    learner = kit.learner(application, decode, view, memory, holdings)
    catching_up = kit.catching_up(view, memory, holdings, learner, kit.incoming())
    # What votes.
    authority = kit.authority(view, memory, catching_up)
    fast = kit.fast(view, memory, authority, learner, catching_up)
    changing = kit.changing(settings, roster, view.liveness, view.peers, view.formation)
    report = Report(view, memory, changing, fast)
    elections = kit.elections(view, memory, holdings, authority, changing, report, learner, fast, catching_up)
    voter = kit.voter(view, memory, authority, learner, fast, elections)
    # What leads.
    coordinator = kit.coordinator(view, memory, kit.fallback(settings), learner, fast, voter)
    leading = (learner, catching_up, fast, elections, voter, coordinator, kit.promises())
    leader = kit.leader(view, memory, authority, changing, report, *leading)
    replica = kit.replica(encode, roster, view.liveness, proposer, fast)
    # What the disk kept.
    view.formation.recover(streams.get(formation_module.STREAM, ()))
    memory.acceptor.recover(streams.get(acceptor_module.STREAM, ()))
    memory.snapshots.recover(streams.get(snapshots_module.STREAM, ()))
    learner.recover()
    view.formation.check()
    view.liveness.see(memory.acceptor.promised)
    return GroupParts(
        view, memory, replica, learner, catching_up, fast, changing, report, elections, voter, coordinator, leader
    )


def make_replica(
    settings: BrokerSettings,
    group: PaxosSettings,
    rng: Random,
    streams: StoredStreams,
    application: Hosted | None = None,
    kit: BrokerKit | None = None,
) -> Assembly:
    """A broker that is one of a group: the core of any broker, behind the group's decided log."""
    check_streams(streams, (formation_module.STREAM, acceptor_module.STREAM, snapshots_module.STREAM))
    if streams.get(snapshots_module.STREAM) and not streams.get(formation_module.STREAM):
        raise WrongLog("the data are those of a broker that is no replica; a replica needs a folder of its own")
    kit = kit or BrokerKit()
    paxos = kit.scheme if isinstance(kit.scheme, PaxosKit) else PaxosKit()
    core = kit.core(settings.limits, True, Hosting(application, settings.application, settings.hosting))
    rules = msgspec.structs.asdict(settings.limits)
    if application is not None:
        rules |= {"application": settings.application, **msgspec.structs.asdict(settings.hosting)}
    group = msgspec.structs.replace(group, rules=tuple(rules.items()))
    view = make_view(group, rng, paxos)
    events = kit.events(is_shared=True)
    refill = kit.refill(events, view, core)
    holdings = LogHoldings(core, events, refill)
    made = make_group(core, msgspec.msgpack.encode, _COMMANDS.decode, view, streams, paxos, holdings)
    replica = made.replica
    sessions = kit.sessions(settings.name, core, replica, settings.desk)
    log = kit.log(core, replica, sessions, events, settings.retention, settings.delivery)
    direct = DirectDesk(core, replica, sessions, settings.desk)
    # The replica comes first: it proposes what the turn asked for.
    names = NamesDesk(settings.name, core, replica, sessions)
    parts = [*made.parts, log, refill, sessions, direct, ApplicationDesk(core, replica, sessions), names]
    facts: list[Facts] = [PlainFacts({"scheme": KIND, "durable": "yes"}), made.report, names]
    operations = GroupOperations(view.roster, made.leader, made.elections)
    desk = OperatorDesk(settings.name, parts, CoreCensus(core, Alone()), names, facts, operations, operations)
    return Assembly([*parts, desk])
