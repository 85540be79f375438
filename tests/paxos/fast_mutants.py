"""Replicas with one mistake each in fast rounds: what the swarm has to see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from holdfast.kernel.outbox import NOW, Outbox
from holdfast.schemes.paxos.acceptor import Acceptor
from holdfast.schemes.paxos.coordinator import Coordinator
from holdfast.schemes.paxos.fallback import Fallback
from holdfast.schemes.paxos.fast import FastRounds
from holdfast.schemes.paxos.learner import Learner
from holdfast.schemes.paxos.membership import Membership
from holdfast.schemes.paxos.messages import AcceptedVotes, FastLearn, ReplicaState, Value, Vote
from holdfast.schemes.paxos.notices import FastSlotExecuted, FastVotesCounted
from holdfast.schemes.paxos.parts import PaxosKit
from holdfast.schemes.paxos.proposer import NOTHING, Proposer
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.transfer import make_state
from tests.paxos.fast_swarm import Play, play_fast, play_in_peace, problem


@dataclass(frozen=True)
class FastMutant:
    mistake: str
    kit: PaxosKit
    play: Play = play_fast
    swarm: ClassVar[str] = "fast rounds"

    def seen(self, seed: int) -> str:
        return problem(seed, self.play, kit=self.kit)

    def sound(self, seed: int) -> str:
        return problem(seed, self.play)


# ----------------------------------------------------------------------------------------------------- the acceptor
class VotesTwice(Acceptor):
    def may_vote_fast(self, slot: int, ballot: int) -> bool:
        vote = self.votes.get(slot)
        return ballot >= self.promised and (vote is None or vote.fast or vote.ballot < ballot)


class VotesFastAfterClassic(Acceptor):
    def may_vote_fast(self, slot: int, ballot: int) -> bool:
        vote = self.votes.get(slot)
        return ballot >= self.promised and (vote is None or not vote.fast or vote.ballot < ballot)


class VotesByAnOlderPermission(FastRounds):
    """What was open once is taken to be open in every ballot after."""

    @property
    def is_open(self) -> bool:
        if self._first:
            self._ballot = max(self._ballot, self._acceptor.promised)
        return self._first > 0


class VotesWithoutPermission(FastRounds):
    @property
    def is_open(self) -> bool:
        self._ballot, self._first = self._acceptor.promised, 1
        return self._ballot > 0


class TellsAFastVoteBeforeTheDiskHasIt(FastRounds):
    def vote(self, ballot: int, slot: int, value: Value, out: Outbox) -> None:
        super().vote(ballot, slot, value, out)
        digest = self._unsafe.get((ballot, slot))
        if digest is not None:
            for peer in self._peers.heard:
                out.send(peer, FastLearn(ballot, [slot], [digest]), after=NOW)


class CountsItsOwnFastVoteAtOnce(FastRounds):
    def vote(self, ballot: int, slot: int, value: Value, out: Outbox) -> None:
        super().vote(ballot, slot, value, out)
        digest = self._unsafe.get((ballot, slot))
        if digest is not None:
            self._count(ballot, slot, self._settings.name, digest, out)
            out.tell(FastVotesCounted(ballot, [slot]))


class ForgetsWhichVotesWereFast(Acceptor):
    def recover(self, records: Any) -> None:
        super().recover(
            msgspec.structs.replace(record, fast=False) if isinstance(record, AcceptedVotes) else record
            for record in records
        )


class TellsFastVotesAsClassic(Acceptor):
    def votes_from(self, first: int) -> list[Vote]:
        return [Vote(vote.slot, vote.ballot, vote.value) for vote in super().votes_from(first)]


# ------------------------------------------------------------------------------------------------------ the learner
class TakesAMajority(Roster):
    def set(self, membership: Membership) -> None:
        super().set(membership)
        self.fast_quorum = self.quorum


class CountsVotesForOtherValues(FastRounds):
    """Whoever has voted in the slot counts for the value that came first."""

    def _count(self, ballot: int, slot: int, voter: str, digest: bytes, out: Outbox) -> None:
        first = next(iter(self._vote_count.votes(ballot, slot).values()), digest)
        super()._count(ballot, slot, voter, first, out)


class GoesByItsOwnClock(Learner):
    def execute(self, out: Outbox) -> None:
        self.wall = out.wall  # takes the place of the time of the entry before
        super().execute(out)


class LeavesTheTimeOut(Learner):
    def _state(self) -> ReplicaState:
        whole = super()._state()
        return make_state(whole.slot, whole.commands, whole.state, whole.membership)


# ------------------------------------------------------------------------------------------------------ the new leader
def _picks(choose: Callable[[list[Vote]], Value]) -> PaxosKit:
    class Picks(Proposer):
        def _pick(self, promises: list[list[Vote]], first: int) -> dict[int, Value | None]:
            votes = [vote for some in promises for vote in some if vote.slot >= first]
            last = max((vote.slot for vote in votes), default=first - 1)
            here = {slot: [vote for vote in votes if vote.slot == slot] for slot in range(first, last + 1)}
            return {slot: choose(some) if some else None for slot, some in here.items()}

    return PaxosKit(proposer=Picks)


def _most(votes: list[Vote]) -> Value:
    return msgspec.Raw(Counter(bytes(vote.value) for vote in votes).most_common(1)[0][0])


def _any_of_the_highest_ballot(votes: list[Vote]) -> Value:
    return max(votes, key=lambda vote: vote.ballot).value


def _fewest_of_the_highest_round(votes: list[Vote]) -> Value:
    highest = max(vote.round for vote in votes)
    return msgspec.Raw(Counter(bytes(vote.value) for vote in votes if vote.round == highest).most_common()[-1][0])


# ----------------------------------------------------------------------------------------------------- the coordinator
class OpensWhatIsProposed(Proposer):
    """Opens the last slot that it has proposed something in, too."""

    def open_fast_rounds(self) -> None:
        self.fast_from = self.next_slot - 1


class GoesClassicWithoutANewBallot(Coordinator):
    def _give_up(self, reason: str, out: Outbox) -> None:
        self._fallback.closed(out.now)
        self._proposer.fast_from = 0
        self.close()


class ProposesTheLeadersVote(Coordinator):
    """Recovery proposes what the leader voted for."""

    def _forced(self, votes: dict[str, bytes]) -> bytes | None:
        return None

    def _preferred(self, slot: int, votes: dict[str, bytes]) -> Value | None:
        own = votes.get(self._settings.name)
        return None if own is None else self._count.value(own)


class RecoversWithTooFew(Coordinator):
    """Recovery begins with any vote."""

    def _recovered_value(self, slot: int) -> Value | None:
        votes = self._votes(slot)
        few = votes and len(votes) < self._roster.quorum
        return self._preferred(slot, votes) if few else super()._recovered_value(slot)


class RecoversWithNothing(Coordinator):
    """Recovery fills the slot with nothing where votes differ."""

    def _forced(self, votes: dict[str, bytes]) -> bytes | None:
        return next(iter(votes.values())) if len(set(votes.values())) == 1 else None

    def _preferred(self, slot: int, votes: dict[str, bytes]) -> Value | None:
        return NOTHING


class ForgetsWhatLostItsSlot(Coordinator):
    def on_fast_slot_executed(self, executed: FastSlotExecuted, out: Outbox) -> None:
        self._placed.pop(executed.slot, None)
        super().on_fast_slot_executed(executed, out)


class SuggestsInTwoSlots(Coordinator):
    def _suggest(self, slot: int, value: Value, out: Outbox) -> None:
        super()._suggest(slot, value, out)
        other = next(self._fast.free_slots(), 0)
        if other:
            super()._suggest(other, value, out)


class NeverLooksIntoASlot(Coordinator):
    def _act(self, slot: int, out: Outbox) -> None:
        pass

    def _is_stuck(self, now: int) -> bool:
        return False


class GoesOnWithTooFew(Fallback):
    def reason_to_close(self, voters: int, needed: int) -> str:
        return ""


class OpensNeverAgain(Fallback):
    def closed(self, now: int) -> None:
        self._closed_until = 1 << 62


FAST_MUTANTS = [
    FastMutant("an acceptor votes twice in a fast round", PaxosKit(acceptor=VotesTwice)),
    FastMutant("an acceptor votes fast after it voted classic", PaxosKit(acceptor=VotesFastAfterClassic)),
    FastMutant("a permission counts in later ballots", PaxosKit(fast=VotesByAnOlderPermission)),
    FastMutant("votes need no permission", PaxosKit(fast=VotesWithoutPermission)),
    FastMutant("a fast vote is told before the disk has it", PaxosKit(fast=TellsAFastVoteBeforeTheDiskHasIt)),
    FastMutant("its own fast vote counts before the disk has it", PaxosKit(fast=CountsItsOwnFastVoteAtOnce)),
    FastMutant("a restart forgets which votes were fast", PaxosKit(acceptor=ForgetsWhichVotesWereFast)),
    FastMutant("fast votes are told as classic ones", PaxosKit(acceptor=TellsFastVotesAsClassic)),
    FastMutant("a majority is a fast quorum", PaxosKit(roster=TakesAMajority)),
    FastMutant("votes for different values are counted together", PaxosKit(fast=CountsVotesForOtherValues)),
    FastMutant("what has no time gets that of the local clock", PaxosKit(learner=GoesByItsOwnClock)),
    FastMutant("a snapshot lacks the time", PaxosKit(learner=LeavesTheTimeOut)),
    FastMutant("what most voted for is picked, in whatever round", _picks(_most)),
    FastMutant("any value of the highest ballot is picked", _picks(_any_of_the_highest_ballot)),
    FastMutant("what fewest voted for is picked", _picks(_fewest_of_the_highest_round)),
    FastMutant("fast rounds are opened where something is proposed", PaxosKit(proposer=OpensWhatIsProposed)),
    FastMutant("fast rounds are closed without a new ballot", PaxosKit(coordinator=GoesClassicWithoutANewBallot)),
    FastMutant("recovery proposes the leader's own vote", PaxosKit(coordinator=ProposesTheLeadersVote)),
    FastMutant("recovery begins with too few votes", PaxosKit(coordinator=RecoversWithTooFew)),
    FastMutant("recovery takes no part of a quorum for one", PaxosKit(coordinator=RecoversWithNothing)),
    FastMutant("what lost its slot is forgotten", PaxosKit(coordinator=ForgetsWhatLostItsSlot), play_in_peace),
    FastMutant("a leader's value goes into two slots", PaxosKit(coordinator=SuggestsInTwoSlots)),
    FastMutant("a slot that is not decided is not looked into", PaxosKit(coordinator=NeverLooksIntoASlot)),
    FastMutant("fast rounds go on with too few", PaxosKit(fallback=GoesOnWithTooFew), play_in_peace),
    FastMutant("fast rounds are not opened again", PaxosKit(fallback=OpensNeverAgain), play_in_peace),
]
