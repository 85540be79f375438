"""Which parts make a broker one of a group: a replica around an application, and what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.kernel.application import Application
from holdfast.kernel.parts import Part
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.paxos import acceptor as acceptor_module
from holdfast.protocols.paxos import formation as formation_module
from holdfast.protocols.paxos import snapshots as snapshots_module
from holdfast.protocols.paxos.acceptor import Acceptor
from holdfast.protocols.paxos.authority import Authority
from holdfast.protocols.paxos.catching_up import CatchingUp
from holdfast.protocols.paxos.changing import Changing
from holdfast.protocols.paxos.coordinator import Coordinator
from holdfast.protocols.paxos.decided import DecidedLog
from holdfast.protocols.paxos.elections import Elections
from holdfast.protocols.paxos.fallback import Fallback
from holdfast.protocols.paxos.fast import FastRounds
from holdfast.protocols.paxos.formation import Formation
from holdfast.protocols.paxos.group_view import GroupView
from holdfast.protocols.paxos.holdings import Holdings, NoHoldings
from holdfast.protocols.paxos.leader import Leader
from holdfast.protocols.paxos.learner import Learner
from holdfast.protocols.paxos.liveness import Liveness
from holdfast.protocols.paxos.memory import Memory
from holdfast.protocols.paxos.peers import Peers
from holdfast.protocols.paxos.promises import PromiseParts
from holdfast.protocols.paxos.proposer import Proposer
from holdfast.protocols.paxos.replica import Replica
from holdfast.protocols.paxos.report import Report
from holdfast.protocols.paxos.roster import Roster
from holdfast.protocols.paxos.settings import PaxosSettings
from holdfast.protocols.paxos.snapshots import Snapshots
from holdfast.protocols.paxos.transfer import IncomingSnapshot
from holdfast.protocols.paxos.vote_count import VoteCount
from holdfast.protocols.paxos.voter import Voter

if TYPE_CHECKING:
    from random import Random


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
