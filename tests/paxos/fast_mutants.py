"""Replicas with one mistake each in fast rounds: what the swarm has to see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import pytest

from holdfast.kernel.outbox import NOW, Outbox
from holdfast.protocols.paxos import coordinator as coordinator_module
from holdfast.protocols.paxos import proposer as proposer_module
from holdfast.protocols.paxos import replica as replica_module
from holdfast.protocols.paxos import roster as roster_module
from holdfast.protocols.paxos.acceptor import Acceptor
from holdfast.protocols.paxos.ballots import quorum
from holdfast.protocols.paxos.coordinator import Coordinator
from holdfast.protocols.paxos.fallback import Fallback
from holdfast.protocols.paxos.fast import FastRounds
from holdfast.protocols.paxos.membership import Membership
from holdfast.protocols.paxos.messages import AcceptedVotes, FastLearn, ReplicaState, Value, Vote
from holdfast.protocols.paxos.notices import FastVotesCounted
from holdfast.protocols.paxos.replica import Replica
from holdfast.protocols.paxos.transfer import make_state
from tests.paxos.fast_swarm import Play, play_fast, play_in_peace, problem

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class FastMutant:
    mistake: str
    make_replica: type[Replica] = Replica
    patch: Patch = lambda monkeypatch: None
    play: Play = play_fast
    swarm: ClassVar[str] = "fast rounds"

    def seen(self, seed: int) -> str:
        with pytest.MonkeyPatch.context() as monkeypatch:
            self.patch(monkeypatch)
            return problem(seed, self.play, make_replica=self.make_replica)

    def sound(self, seed: int) -> str:
        return problem(seed, self.play)


# ----------------------------------------------------------------------------------------------------- the acceptor
def _votes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def may_vote_fast(self: Acceptor, slot: int, ballot: int) -> bool:
        vote = self.votes.get(slot)
        return ballot >= self.promised and (vote is None or vote.fast or vote.ballot < ballot)

    monkeypatch.setattr(Acceptor, "may_vote_fast", may_vote_fast)


def _votes_fast_after_classic(monkeypatch: pytest.MonkeyPatch) -> None:
    def may_vote_fast(self: Acceptor, slot: int, ballot: int) -> bool:
        vote = self.votes.get(slot)
        return ballot >= self.promised and (vote is None or not vote.fast or vote.ballot < ballot)

    monkeypatch.setattr(Acceptor, "may_vote_fast", may_vote_fast)


class _AnyBallot(FastRounds):
    """What was open once is taken to be open in every ballot after."""

    @property
    def is_open(self) -> bool:
        if self._first:
            self._ballot = max(self._ballot, self._host.acceptor.promised)
        return self._first > 0


class VotesByAnOlderPermission(Replica):
    fast_type = _AnyBallot


class _NoPermission(FastRounds):
    @property
    def is_open(self) -> bool:
        self._ballot, self._first = self._host.acceptor.promised, 1
        return self._ballot > 0


class VotesWithoutPermission(Replica):
    fast_type = _NoPermission


class _TellsEarly(FastRounds):
    def vote(self, ballot: int, slot: int, value: Value, out: Outbox) -> None:
        super().vote(ballot, slot, value, out)
        digest = self._unsafe.get((ballot, slot))
        if digest is not None:
            for peer in self._host.peers.heard:
                out.send(peer, FastLearn(ballot, [slot], [digest]), after=NOW)


class TellsAFastVoteBeforeTheDiskHasIt(Replica):
    fast_type = _TellsEarly


class _CountsEarly(FastRounds):
    def vote(self, ballot: int, slot: int, value: Value, out: Outbox) -> None:
        super().vote(ballot, slot, value, out)
        digest = self._unsafe.get((ballot, slot))
        if digest is not None:
            self._count(ballot, slot, self._host.settings.name, digest, out)
            out.tell(FastVotesCounted(ballot, [slot]))


class CountsItsOwnFastVoteAtOnce(Replica):
    fast_type = _CountsEarly


class ForgetsWhichVotesWereFast(Replica):
    def recover(self, streams: Any) -> None:
        records = [
            msgspec.structs.replace(record, fast=False) if isinstance(record, AcceptedVotes) else record
            for record in streams.get("acceptor", ())
        ]
        super().recover({**streams, "acceptor": records} if records else streams)


def _tells_fast_votes_as_classic(monkeypatch: pytest.MonkeyPatch) -> None:
    votes_from = Acceptor.votes_from
    monkeypatch.setattr(
        Acceptor,
        "votes_from",
        lambda self, first: [Vote(vote.slot, vote.ballot, vote.value) for vote in votes_from(self, first)],
    )


# ------------------------------------------------------------------------------------------------------ the learner
def _majority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster_module, "fast_quorum", quorum)


class _CountsAnyValue(FastRounds):
    """Whoever has voted in the slot counts for the value that came first."""

    def _count(self, ballot: int, slot: int, voter: str, digest: bytes, out: Outbox) -> None:
        first = next(iter(self.tally.votes(ballot, slot).values()), digest)
        super()._count(ballot, slot, voter, first, out)


class CountsVotesForOtherValues(Replica):
    fast_type = _CountsAnyValue


def _local_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(int):
        """Takes the place of the time of the entry before."""

    execute = Replica.execute

    def executing(self: Replica, out: Outbox) -> None:
        self.wall = Clock(out.wall)
        execute(self, out)

    monkeypatch.setattr(Replica, "execute", executing)


def _without_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def timeless(slot: int, commands: int, state: bytes, membership: Membership, *rest: Any) -> ReplicaState:
        return make_state(slot, commands, state, membership)

    monkeypatch.setattr(replica_module, "make_state", timeless)


# ------------------------------------------------------------------------------------------------------ the new leader
def _rule(choose: Callable[[list[Vote]], Value]) -> Patch:
    def wrong(promises: Iterable[Iterable[Vote]], first: int, members: int) -> dict[int, Value | None]:
        votes = [vote for some in promises for vote in some if vote.slot >= first]
        last = max((vote.slot for vote in votes), default=first - 1)
        here = {slot: [vote for vote in votes if vote.slot == slot] for slot in range(first, last + 1)}
        return {slot: choose(some) if some else None for slot, some in here.items()}

    return lambda monkeypatch: monkeypatch.setattr(proposer_module, "pick", wrong)


def _most(votes: list[Vote]) -> Value:
    return msgspec.Raw(Counter(bytes(vote.value) for vote in votes).most_common(1)[0][0])


def _any_of_the_highest_ballot(votes: list[Vote]) -> Value:
    return max(votes, key=lambda vote: vote.ballot).value


def _fewest_of_the_highest_round(votes: list[Vote]) -> Value:
    highest = max(vote.round for vote in votes)
    return msgspec.Raw(Counter(bytes(vote.value) for vote in votes if vote.round == highest).most_common()[-1][0])


# ----------------------------------------------------------------------------------------------------- the coordinator
class _TooEarly(Coordinator):
    """Opens the last slot that it has proposed something in, too."""

    @property
    def fast_from(self) -> int:
        return self._fast_from

    @fast_from.setter
    def fast_from(self, slot: int) -> None:
        self._fast_from = slot - 1 if slot else 0


class OpensWhatIsProposed(Replica):
    coordinator_type = _TooEarly


class _ClosesInTheSameBallot(Coordinator):
    def _give_up(self, reason: str, out: Outbox) -> None:
        self.fallback.closed(out.now)
        self.close()


class GoesClassicWithoutANewBallot(Replica):
    coordinator_type = _ClosesInTheSameBallot


def _own_vote_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recovery proposes what the leader voted for."""

    def preferred(self: Coordinator, slot: int, votes: dict[str, bytes]) -> Value | None:
        own = votes.get(self._host.settings.name)
        return None if own is None else self._fast.tally.value(own)

    monkeypatch.setattr(coordinator_module, "pick_in_round", lambda votes, members: None)
    monkeypatch.setattr(Coordinator, "_preferred", preferred)


def _too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recovery begins with any vote."""
    real = Coordinator._recovered_value

    def recovered_value(self: Coordinator, slot: int) -> Value | None:
        votes = self._votes(slot)
        few = votes and len(votes) < self._host.roster.quorum
        return self._preferred(slot, votes) if few else real(self, slot)

    monkeypatch.setattr(Coordinator, "_recovered_value", recovered_value)


def _nothing_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recovery fills the slot with nothing where votes differ."""
    monkeypatch.setattr(Coordinator, "_preferred", lambda self, slot, votes: proposer_module.NOTHING)
    monkeypatch.setattr(
        coordinator_module,
        "pick_in_round",
        lambda votes, members: next(iter(votes.values())) if len(set(votes.values())) == 1 else None,
    )


class _Forgets(Coordinator):
    def executed(self, slot: int, digest: bytes) -> None:
        self._placed.pop(slot, None)
        super().executed(slot, digest)


class ForgetsWhatLostItsSlot(Replica):
    coordinator_type = _Forgets


class _SuggestsTwice(Coordinator):
    def _suggest(self, slot: int, value: Value, out: Outbox) -> None:
        super()._suggest(slot, value, out)
        other = next(self._fast.free_slots(), 0)
        if other:
            super()._suggest(other, value, out)


class SuggestsInTwoSlots(Replica):
    coordinator_type = _SuggestsTwice


class _LooksAway(Coordinator):
    def _act(self, slot: int, out: Outbox) -> None:
        pass

    def _is_stuck(self, now: int) -> bool:
        return False


class NeverLooksIntoASlot(Replica):
    coordinator_type = _LooksAway


def _no_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fallback, "reason_to_close", lambda self, voters, needed: "")


def _opens_never_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(self: Fallback, now: int) -> None:
        self._closed_until = 1 << 62

    monkeypatch.setattr(Fallback, "closed", closed)


FAST_MUTANTS = [
    FastMutant("an acceptor votes twice in a fast round", patch=_votes_twice),
    FastMutant("an acceptor votes fast after it voted classic", patch=_votes_fast_after_classic),
    FastMutant("a permission counts in later ballots", VotesByAnOlderPermission),
    FastMutant("votes need no permission", VotesWithoutPermission),
    FastMutant("a fast vote is told before the disk has it", TellsAFastVoteBeforeTheDiskHasIt),
    FastMutant("its own fast vote counts before the disk has it", CountsItsOwnFastVoteAtOnce),
    FastMutant("a restart forgets which votes were fast", ForgetsWhichVotesWereFast),
    FastMutant("fast votes are told as classic ones", patch=_tells_fast_votes_as_classic),
    FastMutant("a majority is a fast quorum", patch=_majority),
    FastMutant("votes for different values are counted together", CountsVotesForOtherValues),
    FastMutant("what has no time gets that of the local clock", patch=_local_clock),
    FastMutant("a snapshot lacks the time", patch=_without_the_time),
    FastMutant("what most voted for is picked, in whatever round", patch=_rule(_most)),
    FastMutant("any value of the highest ballot is picked", patch=_rule(_any_of_the_highest_ballot)),
    FastMutant("what fewest voted for is picked", patch=_rule(_fewest_of_the_highest_round)),
    FastMutant("fast rounds are opened where something is proposed", OpensWhatIsProposed),
    FastMutant("fast rounds are closed without a new ballot", GoesClassicWithoutANewBallot),
    FastMutant("recovery proposes the leader's own vote", patch=_own_vote_wins),
    FastMutant("recovery begins with too few votes", patch=_too_few),
    FastMutant("recovery takes no part of a quorum for one", patch=_nothing_wins),
    FastMutant("what lost its slot is forgotten", ForgetsWhatLostItsSlot, play=play_in_peace),
    FastMutant("a leader's value goes into two slots", SuggestsInTwoSlots),
    FastMutant("a slot that is not decided is not looked into", NeverLooksIntoASlot),
    FastMutant("fast rounds go on with too few", patch=_no_way_back, play=play_in_peace),
    FastMutant("fast rounds are not opened again", patch=_opens_never_again, play=play_in_peace),
]
