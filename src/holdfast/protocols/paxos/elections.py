"""Who leads, and when another one wants to: heartbeats, patience, canvassing, handing over (D4-A2).

Nothing here decides anything: ballots are promised and values voted for elsewhere, by rules that hold whoever leads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken
from holdfast.kernel.outbox import LATEST, NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.sequencing import LeaderKnown
from holdfast.protocols.paxos import report
from holdfast.protocols.paxos.ballots import epoch_of
from holdfast.protocols.paxos.messages import Canvass, CanvassAnswer, Heartbeat, HeartbeatSeen, Refused, TakeOver
from holdfast.protocols.paxos.peers import REPLICAS

if TYPE_CHECKING:
    from holdfast.protocols.paxos.replica import Replica


class Elections(Part):
    """Heartbeats, and what follows when they fail to come."""

    name: ClassVar[str] = "elections"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (Heartbeat, HeartbeatSeen, Canvass, CanvassAnswer, TakeOver), REPLICAS
    )

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._beats = 0
        self._canvassed = 0  # the ballot that we would use
        self._supporters: set[str] = set()

    def give_up_canvassing(self) -> None:
        """Support that comes late is not used."""
        self._canvassed = 0

    # ----------------------------------------------------------------------------------------------------- heartbeats
    def beat(self, out: Outbox) -> None:
        self._beats += 1
        ballot, fast_from = self._replica.proposer.ballot, self._replica.coordinator.fast_from
        self._replica.peers.tell_all(
            Heartbeat(ballot, self._replica.decided.executed, self._beats, fast_from), out, now=True
        )
        out.set_timer((self.name, "beat"), self._replica.settings.heartbeat)

    def on_heartbeat(self, peer: str, beat: Heartbeat, out: Outbox) -> None:
        if not self._replica.peers.hears(peer):
            return
        # The leader of a later epoch leads, though we can't vote for it yet; it is followed, and asked.
        if epoch_of(beat.ballot) <= self._replica.roster.epoch and not self._replica.is_of_our_time(
            peer, beat.ballot, out
        ):
            return
        if beat.ballot < self._replica.acceptor.promised:
            out.send(peer, Refused(self._replica.acceptor.promised))
            return
        self._replica.step_down_below(beat.ballot, out)
        self._replica.fast.permit(beat.ballot, beat.fast_from, out)
        before = self._replica.liveness.leader
        self._canvassed = 0  # there is a leader: support that comes late is not used against it
        self._replica.liveness.heard(peer, beat.ballot, beat.executed, out.now)
        if self._replica.liveness.leader != before:
            out.tell(LeaderKnown())
        self.set_timer(out)
        executed = self._replica.decided.executed
        seen = HeartbeatSeen(beat.ballot, executed, beat.number, self._replica.held())
        # What a learner says that it has is what it will vote with: not before it is on the disk.
        out.send(peer, seen, after=NOW if self._replica.roster.is_voter else LATEST)
        if beat.executed > executed or self._replica.decided.is_behind:
            self._replica.catching_up.later(out)

    def on_heartbeat_seen(self, peer: str, seen: HeartbeatSeen, out: Outbox) -> None:
        if (
            self._replica.peers.hears(peer)
            and self._replica.is_leading
            and seen.ballot == self._replica.proposer.ballot
        ):
            self._replica.liveness.answered(peer, seen.executed, seen.held, out.now)

    def _give_up(self, out: Outbox) -> None:
        """Too few answer. Those that still hear us trust us, and send clients here, where nothing can be decided: a
        broken link tells them sooner than silence."""
        self._replica.step_down(out)
        self._replica.peers.break_links("too few answer this leader", out)

    # ------------------------------------------------------------------------------------------------------- patience
    def set_timer(self, out: Outbox) -> None:
        if not self._replica.is_leading:
            out.set_timer((self.name, "patience"), self._replica.liveness.until_deadline(out.now))

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        match key[1]:
            case "patience":
                self._lose_patience(out)
            case "beat":
                if self._replica.is_leading:
                    if self._replica.liveness.is_alone(self._replica.settings.name, out.now):
                        self._give_up(out)
                    else:
                        self.beat(out)
                        self._hand_over_if_leaving(out)
            case _:
                broken("a timer of the elections has a known name", key=key)

    def _lose_patience(self, out: Outbox) -> None:
        if self._replica.is_leading:
            return
        heard = 1 + len(self._replica.peers.heard)
        if self._replica.liveness.wants_to_lead(out.now) and self._replica.peers.is_formed:
            self._replica.liveness.attempt(out.now)
            able = self._replica.holdings.is_whole() and self._replica.roster.is_voter
            if heard >= self._replica.roster.quorum and able:  # with too few there is nothing to lead
                self._canvass(out)
        elif not self._replica.peers.is_formed:
            self._replica.liveness.attempt(out.now)
        self.set_timer(out)

    # ------------------------------------------------------------------------------------------------------ canvassing
    def _canvass(self, out: Outbox) -> None:
        """Asks who would follow; nothing is promised by that, and no ballot is used up."""
        if self._replica.is_outdated(out):
            return
        self._canvassed = self._replica.next_ballot()
        self._supporters = {self._replica.settings.name}
        self._replica.peers.tell_all(Canvass(self._canvassed, self._replica.decided.executed), out, now=True)
        self._count_support(out)

    def on_canvass(self, peer: str, canvass: Canvass, out: Outbox) -> None:
        if self._replica.is_of_our_time(peer, canvass.ballot, out) and self._replica.roster.is_voter:
            trusting = self._replica.is_leading or (
                self._replica.liveness.trusts_leader(out.now) and self._replica.liveness.leader != peer
            )
            near = canvass.executed >= self._replica.vouched() or self._replica.decided.knows(canvass.executed + 1)
            yes = not trusting and near and canvass.ballot > self._replica.acceptor.promised
            out.send(peer, CanvassAnswer(canvass.ballot, yes, self._replica.floor()), after=NOW)

    def on_canvass_answer(self, peer: str, answer: CanvassAnswer, out: Outbox) -> None:
        if not self._replica.peers.hears(peer):
            return
        self._replica.liveness.see(answer.promised)
        if epoch_of(answer.promised) > self._replica.roster.epoch:
            self._replica.step_down_below(answer.promised, out)
            self._replica.catching_up.ask(out)
        elif answer.yes and answer.ballot == self._canvassed and peer in self._replica.roster.voters:
            self._supporters.add(peer)
            self._count_support(out)

    def _count_support(self, out: Outbox) -> None:
        if self._canvassed and len(self._supporters) >= self._replica.roster.quorum and not self._replica.is_leading:
            self._canvassed = 0
            if self._replica.holdings.is_whole():  # a state may have been taken over since
                self._replica.prepare(out)

    # ---------------------------------------------------------------------------------------------------- handing over
    def transfer(self, to: str, out: Outbox) -> tuple[str, str]:
        """Asks another replica to lead, or the one that is furthest: which, and what is against it, if something is."""
        if not to and self._replica.is_leading:
            voters = [peer for peer in self._replica.peers.heard if peer in self._replica.roster.voters]
            to = max(voters, key=lambda peer: self._replica.liveness.executed.get(peer, 0), default="")
        problem = report.objection(self._replica, to)
        if not problem:
            out.send(to, TakeOver(self._replica.proposer.ballot), after=NOW)
        return to, problem

    def on_take_over(self, peer: str, message: TakeOver, out: Outbox) -> None:
        asked = (
            self._replica.peers.hears(peer)
            and self._replica.liveness.leader == peer
            and message.ballot == self._replica.liveness.highest
        )
        able = self._replica.peers.is_formed and self._replica.holdings.is_whole() and self._replica.roster.is_voter
        if asked and able and not self._replica.is_leading and epoch_of(message.ballot) == self._replica.roster.epoch:
            self._replica.prepare(out)

    def _hand_over_if_leaving(self, out: Outbox) -> None:
        """A leader is not removed by itself: it could not lead those who are left to the end of it."""
        if self._replica.is_serving and self._replica.changing.must_hand_over:
            stays = [
                peer for peer in self._replica.liveness.answers_lately(out.now) if peer in self._replica.roster.voters
            ]
            if stays:
                self.transfer(max(stays, key=lambda peer: self._replica.liveness.executed.get(peer, 0)), out)
