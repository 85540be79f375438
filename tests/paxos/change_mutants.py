"""Mistakes in changing a group: what the change swarm has to see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.kernel.outbox import Outbox
from holdfast.schemes.paxos.authority import Authority
from holdfast.schemes.paxos.ballots import fast_quorum, quorum
from holdfast.schemes.paxos.changing import Changing
from holdfast.schemes.paxos.elections import Elections
from holdfast.schemes.paxos.leader import Leader
from holdfast.schemes.paxos.learner import Learner
from holdfast.schemes.paxos.membership import Change, Membership, Promote, Remove, changed
from holdfast.schemes.paxos.messages import ReplicaState
from holdfast.schemes.paxos.notices import MembershipChanged
from holdfast.schemes.paxos.parts import PaxosKit
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.transfer import make_state
from holdfast.schemes.paxos.voter import Voter
from tests.paxos.change_swarm import problem


@dataclass(frozen=True)
class ChangeMutant:
    mistake: str
    kit: PaxosKit
    swarm: ClassVar[str] = "changing groups"

    def seen(self, seed: int) -> str:
        return problem(seed, kit=self.kit)

    def sound(self, seed: int) -> str:
        return problem(seed)


class KeepsItsBallot(Leader):
    """The leader goes on with its ballot when the voters are others …"""

    def on_membership_changed(self, changed: MembershipChanged, out: Outbox) -> None:
        pass


class KeepsItsSupporters(Elections):
    """… and so does who wants to lead …"""

    def on_membership_changed(self, changed: MembershipChanged, out: Outbox) -> None:
        pass


class ForgetsEarlyBallots(Voter):
    """… and nobody looks again at what came too early."""

    def on_membership_changed(self, changed: MembershipChanged, out: Outbox) -> None:
        pass


class ChangesWithoutASnapshot(Learner):
    """Whoever wakes up has promised a ballot of an epoch that it does not know."""

    def _change(self, change: Change, out: Outbox) -> None:
        before = self._roster.membership
        self._roster.set(self._changed(change))
        if self._roster.membership is not before:
            self._follow_change(before, out)


class VotesWhileLearning(Roster):
    def set(self, membership: Membership) -> None:
        super().set(membership)
        self.is_voter = self.name in self.names


class KeepsTheFirstMajority(Roster):
    """Votes are counted by the number of voters that the group began with."""

    def set(self, membership: Membership) -> None:
        known = getattr(self, "quorum", 0)
        super().set(membership)
        self.quorum = known or self.quorum


class CountsEveryone(Roster):
    """Members that do not vote are voters to whoever counts."""

    def set(self, membership: Membership) -> None:
        super().set(membership)
        self.voters, self.is_voter = self.names, self.name in self.names
        self.quorum, self.fast_quorum = quorum(len(self.names)), fast_quorum(len(self.names))


class WaitsForNobody(Changing):
    """A learner comes to vote before it has anything, and its first word is that it was wiped."""

    def _is_caught_up(self, name: str, executed: int, now: int) -> bool:
        return True


class FollowsAnyEpoch(Authority):
    """Promises and votes are given to leaders of all times."""

    def is_of_our_time(self, peer: str, ballot: int, out: Outbox) -> bool:
        return self._peers.hears(peer)


class ChangesTwiceAtATime(Learner):
    """A member is removed in the same step in which the other one comes to vote."""

    def _changed(self, change: Change) -> Membership:
        now = super()._changed(change)
        for member in now.members:
            if member.leaving and isinstance(change, Promote):
                return changed(now, Remove(member.name))
        return now


class LeavesTheMembersOut(Learner):
    def _state(self) -> ReplicaState:
        whole = super()._state()
        return make_state(whole.slot, whole.commands, whole.state, None, whole.wall, whole.origins, whole.trimmed)


MUTANTS = [
    ChangeMutant(
        "a ballot outlives its voters",
        PaxosKit(leader=KeepsItsBallot, elections=KeepsItsSupporters, voter=ForgetsEarlyBallots),
    ),
    ChangeMutant("a change is not on the disk before votes of its epoch", PaxosKit(learner=ChangesWithoutASnapshot)),
    ChangeMutant("a learner votes", PaxosKit(roster=VotesWhileLearning)),
    ChangeMutant("the majority of the beginning counts", PaxosKit(roster=KeepsTheFirstMajority)),
    ChangeMutant("learners are counted", PaxosKit(roster=CountsEveryone)),
    ChangeMutant("a learner votes before it has anything", PaxosKit(changing=WaitsForNobody)),
    ChangeMutant("leaders of all epochs are followed", PaxosKit(authority=FollowsAnyEpoch)),
    ChangeMutant("two changes at a time", PaxosKit(learner=ChangesTwiceAtATime)),
    ChangeMutant("a snapshot does not say who is a member", PaxosKit(learner=LeavesTheMembersOut)),
]
