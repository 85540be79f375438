"""Who leads, and when another one wants to: heartbeats, patience, canvassing, handing over (D4-A2).

Nothing here decides anything: ballots are promised and values voted for elsewhere, by rules that hold whoever leads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from holdfast.kernel.inputs import Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import LATEST, NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.sequencing import LeaderKnown
from holdfast.schemes.paxos.authority import Authority
from holdfast.schemes.paxos.ballots import epoch_of
from holdfast.schemes.paxos.changing import Changing
from holdfast.schemes.paxos.group_view import GroupView
from holdfast.schemes.paxos.holdings import Holdings
from holdfast.schemes.paxos.memory import Memory
from holdfast.schemes.paxos.messages import Canvass, CanvassAnswer, Heartbeat, HeartbeatSeen, Refused, TakeOver
from holdfast.schemes.paxos.notices import (
    FastRoundsOpened,
    LeaderDeserted,
    LeadershipOffered,
    MembershipChanged,
    PeerLost,
)
from holdfast.schemes.paxos.peers import REPLICAS
from holdfast.schemes.paxos.report import Report


class Learning(Protocol):
    """How far this replica is, and what others may rely on."""

    def held(self) -> int: ...

    def vouched(self) -> int: ...


class FastVoting(Protocol):
    """Who votes in fast rounds."""

    def permit(self, ballot: int, first: int, out: Outbox) -> None: ...


class Asking(Protocol):
    """Who asks others for what they are ahead."""

    def later(self, out: Outbox) -> None: ...

    def ask(self, out: Outbox) -> None: ...


class Elections(Part):
    """Heartbeats, and what follows when they fail to come. It never leads by itself: it tells when to."""

    name: ClassVar[str] = "elections"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (Heartbeat, HeartbeatSeen, Canvass, CanvassAnswer, TakeOver), REPLICAS
    )
    notices: ClassVar[tuple[type[Notice], ...]] = (PeerLost, MembershipChanged, FastRoundsOpened)

    def __init__(
        self,
        view: GroupView,
        memory: Memory,
        holdings: Holdings,
        authority: Authority,
        changing: Changing,
        report: Report,
        learner: Learning,
        fast: FastVoting,
        catching_up: Asking,
    ) -> None:
        self._settings, self._roster = view.settings, view.roster
        self._peers, self._liveness = view.peers, view.liveness
        self._acceptor, self._proposer, self._decided = memory.acceptor, memory.proposer, memory.decided
        self._holdings, self._authority, self._changing, self._report = holdings, authority, changing, report
        self._learner, self._fast, self._catching_up = learner, fast, catching_up
        self._beats = 0
        self._canvassed = 0  # the ballot that we would use
        self._supporters: set[str] = set()

    def on_started(self, started: Started, out: Outbox) -> None:
        self._liveness.start(out.now)
        self.set_timer(out)

    def on_peer_lost(self, lost: PeerLost, out: Outbox) -> None:
        self._liveness.lost_link(lost.peer, out.now)
        self.set_timer(out)

    def on_membership_changed(self, changed: MembershipChanged, out: Outbox) -> None:
        before = changed.before
        self._liveness.forget([member.name for member in before.members if member.name not in self._roster.names])
        if self._roster.epoch != before.epoch:
            self._canvassed = 0  # support of the voters before is not used

    # ----------------------------------------------------------------------------------------------------- heartbeats
    def beat(self, out: Outbox) -> None:
        """Says that we lead, and from where on fast rounds are open."""
        self._beats += 1
        ballot, fast_from = self._proposer.ballot, self._proposer.fast_from
        self._peers.tell_all(Heartbeat(ballot, self._decided.executed, self._beats, fast_from), out, now=True)
        out.set_timer((self.name, "beat"), self._settings.heartbeat)

    def on_fast_rounds_opened(self, opened: FastRoundsOpened, out: Outbox) -> None:
        self.beat(out)

    def on_heartbeat(self, peer: str, beat: Heartbeat, out: Outbox) -> None:
        if not self._peers.hears(peer):
            return
        # The leader of a later epoch leads, though we can't vote for it yet; it is followed, and asked.
        of_our_time = self._authority.is_of_our_time
        if epoch_of(beat.ballot) <= self._roster.epoch and not of_our_time(peer, beat.ballot, out):
            return
        if beat.ballot < self._acceptor.promised:
            out.send(peer, Refused(self._acceptor.promised))
            return
        self._authority.give_way(beat.ballot, out)
        self._fast.permit(beat.ballot, beat.fast_from, out)
        before = self._liveness.leader
        self._canvassed = 0  # there is a leader: support that comes late is not used against it
        self._liveness.heard(peer, beat.ballot, beat.executed, out.now)
        if self._liveness.leader != before:
            out.tell(LeaderKnown())
        self.set_timer(out)
        executed = self._decided.executed
        seen = HeartbeatSeen(beat.ballot, executed, beat.number, self._learner.held())
        # What a learner says that it has is what it will vote with: not before it is on the disk.
        out.send(peer, seen, after=NOW if self._roster.is_voter else LATEST)
        if beat.executed > executed or self._decided.is_behind:
            self._catching_up.later(out)

    def on_heartbeat_seen(self, peer: str, seen: HeartbeatSeen, out: Outbox) -> None:
        is_ours = self._proposer.is_leading and seen.ballot == self._proposer.ballot
        if is_ours and self._peers.hears(peer):
            self._liveness.answered(peer, seen.executed, seen.held, out.now)

    def _give_up(self, out: Outbox) -> None:
        """Too few answer. Those that still hear us trust us, and send clients here, where nothing can be decided: a
        broken link tells them sooner than silence."""
        out.tell(LeaderDeserted())
        self._peers.break_links("too few answer this leader", out)

    # ------------------------------------------------------------------------------------------------------- patience
    def set_timer(self, out: Outbox) -> None:
        if not self._proposer.is_leading:
            out.set_timer((self.name, "patience"), self._liveness.until_deadline(out.now))

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        match key[1]:
            case "patience":
                self._lose_patience(out)
            case "beat":
                if self._proposer.is_leading:
                    if self._liveness.is_alone(self._settings.name, out.now):
                        self._give_up(out)
                    else:
                        self.beat(out)
                        self._hand_over_if_leaving(out)
            case _:
                broken("a timer of the elections has a known name", key=key)

    def _lose_patience(self, out: Outbox) -> None:
        if self._proposer.is_leading:
            return
        heard = 1 + len(self._peers.heard)
        if self._liveness.wants_to_lead(out.now) and self._peers.is_formed:
            self._liveness.attempt(out.now)
            able = self._holdings.is_whole() and self._roster.is_voter
            if heard >= self._roster.quorum and able:  # with too few there is nothing to lead
                self._canvass(out)
        elif not self._peers.is_formed:
            self._liveness.attempt(out.now)
        self.set_timer(out)

    # ------------------------------------------------------------------------------------------------------ canvassing
    def _canvass(self, out: Outbox) -> None:
        """Asks who would follow; nothing is promised by that, and no ballot is used up."""
        if self._authority.is_outdated(out):
            return
        self._canvassed = self._authority.next_ballot()
        self._supporters = {self._settings.name}
        self._peers.tell_all(Canvass(self._canvassed, self._decided.executed), out, now=True)
        self._count_support(out)

    def on_canvass(self, peer: str, canvass: Canvass, out: Outbox) -> None:
        if self._authority.is_of_our_time(peer, canvass.ballot, out) and self._roster.is_voter:
            follows = self._liveness.trusts_leader(out.now) and self._liveness.leader != peer
            trusting = self._proposer.is_leading or follows
            near = canvass.executed >= self._learner.vouched() or self._decided.knows(canvass.executed + 1)
            yes = not trusting and near and canvass.ballot > self._acceptor.promised
            out.send(peer, CanvassAnswer(canvass.ballot, yes, self._authority.floor()), after=NOW)

    def on_canvass_answer(self, peer: str, answer: CanvassAnswer, out: Outbox) -> None:
        if not self._peers.hears(peer):
            return
        self._liveness.see(answer.promised)
        if epoch_of(answer.promised) > self._roster.epoch:
            self._authority.give_way(answer.promised, out)
            self._catching_up.ask(out)
        elif answer.yes and answer.ballot == self._canvassed and peer in self._roster.voters:
            self._supporters.add(peer)
            self._count_support(out)

    def _count_support(self, out: Outbox) -> None:
        if self._canvassed and len(self._supporters) >= self._roster.quorum and not self._proposer.is_leading:
            self._canvassed = 0
            if self._holdings.is_whole():  # a state may have been taken over since
                out.tell(LeadershipOffered())

    # ---------------------------------------------------------------------------------------------------- handing over
    def transfer(self, to: str, out: Outbox) -> tuple[str, str]:
        """Asks another replica to lead, or the one that is furthest: which, and what is against it, if something is."""
        if not to and self._proposer.is_leading:
            to = self._liveness.furthest(peer for peer in self._peers.heard if peer in self._roster.voters)
        problem = self._report.objection(to)
        if not problem:
            out.send(to, TakeOver(self._proposer.ballot), after=NOW)
        return to, problem

    def on_take_over(self, peer: str, message: TakeOver, out: Outbox) -> None:
        leads = self._liveness.leader == peer and message.ballot == self._liveness.highest
        asked = leads and self._peers.hears(peer)
        able = self._peers.is_formed and self._holdings.is_whole() and self._roster.is_voter
        if asked and able and not self._proposer.is_leading and epoch_of(message.ballot) == self._roster.epoch:
            out.tell(LeadershipOffered())

    def _hand_over_if_leaving(self, out: Outbox) -> None:
        """A leader is not removed by itself: it could not lead those who are left to the end of it."""
        if self._proposer.is_serving and self._changing.must_hand_over:
            stays = [peer for peer in self._liveness.answers_lately(out.now) if peer in self._roster.voters]
            if stays:
                self.transfer(self._liveness.furthest(stays), out)
