"""Replicas with one mistake each: what the swarm has to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.sequencing import CommandsApplied
from holdfast.schemes.paxos.acceptor import Acceptor
from holdfast.schemes.paxos.authority import Authority
from holdfast.schemes.paxos.catching_up import CatchingUp
from holdfast.schemes.paxos.decided import DecidedLog
from holdfast.schemes.paxos.formation import Formation, Standing
from holdfast.schemes.paxos.leader import Leader
from holdfast.schemes.paxos.learner import Learner
from holdfast.schemes.paxos.membership import Membership
from holdfast.schemes.paxos.messages import (
    AskSnapshot,
    Greeting,
    Learn,
    Prepare,
    Promise,
    ReplicaState,
    SnapshotPart,
    Value,
    Vote,
)
from holdfast.schemes.paxos.parts import PaxosKit
from holdfast.schemes.paxos.peers import Peers
from holdfast.schemes.paxos.picking import pick
from holdfast.schemes.paxos.promises import PromiseParts
from holdfast.schemes.paxos.proposer import Phase, Proposer
from holdfast.schemes.paxos.replica import Replica
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.transfer import IncomingSnapshot, unpack
from holdfast.schemes.paxos.voter import Voter
from tests.paxos.ledger import Command, Ledger
from tests.paxos.swarm import problem


@dataclass(frozen=True)
class Mutant:
    mistake: str
    kit: PaxosKit = field(default_factory=PaxosKit)
    make_ledger: type[Ledger] = Ledger
    swarm: ClassVar[str] = "replicas"

    def seen(self, seed: int) -> str:
        return problem(seed, kit=self.kit, make_ledger=self.make_ledger)

    def sound(self, seed: int) -> str:
        return problem(seed)


# -------------------------------------------------------------------------------------------------------- the disk
class PromisesBeforeTheDiskHasIt(Voter):
    def on_prepare(self, peer: str, prepare: Prepare, out: Outbox) -> None:
        if self._peers.hears(peer) and prepare.ballot > self._acceptor.promised:
            executed = self._decided.executed
            votes = self._acceptor.votes_from(max(prepare.first, executed + 1))
            out.send(peer, Promise(prepare.ballot, prepare.first, votes, executed), after=NOW)
        super().on_prepare(peer, prepare, out)


class VotesBeforeTheDiskHasIt(Voter):
    def _vote(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        voted = super()._vote(ballot, first, values, out)
        if voted:
            for peer in self._peers.heard:
                out.send(peer, Learn(ballot, list(range(first, first + len(values)))), after=NOW)
        return voted


class CountsItsOwnVoteAtOnce(Voter):
    def _vote(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        voted = super()._vote(ballot, first, values, out)
        self._decided.vote(ballot, range(first, first + len(values)), self._settings.name)
        return voted


class CountsItsOwnPromiseAtOnce(Leader):
    def _prepare(self, out: Outbox) -> None:
        super()._prepare(out)
        voter: Voter = self._voter  # type: ignore[assignment]
        promise = voter._own_promise
        voter.forget_own_promise()
        if promise is not None:
            self._count_promise(self._settings.name, promise, out)


class ForgetsItsPromise(Acceptor):
    def recover(self, records: Any) -> None:
        super().recover(records)
        self.promised = max((vote.ballot for vote in self.votes.values()), default=0)


class ForgetsItsVotes(Acceptor):
    def recover(self, records: Any) -> None:
        super().recover(records)
        self.votes = {}


class UsesBallotsAgain(Peers):
    """Says PREPARE before its own promise is on the disk."""

    def tell_all(self, message: Any, out: Outbox, now: bool = False) -> None:
        super().tell_all(message, out, now or isinstance(message, Prepare))


class TrimsWithoutASnapshot(Learner):
    def _trim(self, before: int, out: Outbox) -> None:
        self._acceptor.trim(before, out)
        super()._trim(before, out)


class TrimsWhatIsNotExecuted(Learner):
    def _trim(self, before: int, out: Outbox) -> None:
        super()._trim(self._decided.executed + 3, out)


class TrustsAnyDisk(Formation):
    def greet(self, peer: str, greeting: Greeting, out: Outbox) -> bool:
        if greeting.confirmed and self.standing is Standing.UNKNOWN:
            self._write_down(dict(greeting.formed), out)
            self._count(True, out)
        return super().greet(peer, greeting, out)


class ListensToAnyone(Peers):
    def hears(self, peer: str) -> bool:
        return peer in self._connected


# --------------------------------------------------------------------------------------------------- the acceptor
class AcceptsBelowItsPromise(Acceptor):
    def accept(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        promised, self.promised = self.promised, 0
        voted = super().accept(ballot, first, values, out)
        self.promised = max(promised, ballot)
        return voted


class KeepsSilentAboutItsVotes(Voter):
    """Tells only the votes in the first slot that is asked for."""

    def on_prepare(self, peer: str, prepare: Prepare, out: Outbox) -> None:
        votes_from = self._acceptor.votes_from
        self._acceptor.votes_from = lambda first: votes_from(first)[:1]  # type: ignore[method-assign]
        super().on_prepare(peer, prepare, out)
        self._acceptor.votes_from = votes_from  # type: ignore[method-assign]


# ------------------------------------------------------------------------------------------------------- the leader
class NeedsOneVoteLess(Roster):
    def set(self, membership: Membership) -> None:
        super().set(membership)
        self.quorum = max(1, self.quorum - 1)


class NeverGivesWay(Authority):
    """Goes on under its old ballot, whatever it promised to others …"""

    def give_way(self, ballot: int, out: Outbox) -> None:
        if self._proposer.phase is Phase.PREPARING:
            super().give_way(ballot, out)


class VotesForItself(Voter):
    """… and votes for itself."""

    def propose(self, ballot: int, first: int, values: list[Value], out: Outbox) -> None:
        self._acceptor.promised = ballot
        super().propose(ballot, first, values, out)


class DedupesWhenItProposes(Replica):
    """Takes a request that it has seen for done, and gives the application no chance to say so."""

    def submit(self, command: Command, out: Outbox, known: object = None) -> None:
        seen: set[Command] = self.__dict__.setdefault("seen", set())
        if command not in seen:
            seen.add(command)
            super().submit(command, out)


class TrustingLedger(Ledger):
    """Takes every command for new."""

    def apply(self, number: int, wall: int, command: Command) -> list[Command]:
        self.last[command[0]] = command[1] - 1
        return super().apply(number, wall, command)


class AnswersBeforeItIsDecided(Replica):
    def submit(self, command: Command, out: Outbox, known: object = None) -> None:
        super().submit(command, out)
        if self._proposer.is_leading:
            out.tell(CommandsApplied([command]))


Picked = dict[int, Value | None]


def _picks(choose: Callable[[list[Vote]], Vote]) -> PaxosKit:
    class Picks(Proposer):
        def _pick(self, promises: list[list[Vote]], first: int) -> Picked:
            votes = [vote for some in promises for vote in some if vote.slot >= first]
            last = max((vote.slot for vote in votes), default=first - 1)
            here = {slot: [vote for vote in votes if vote.slot == slot] for slot in range(first, last + 1)}
            return {slot: choose(some).value if some else None for slot, some in here.items()}

    return PaxosKit(proposer=Picks)


class PicksNothing(Proposer):
    def _pick(self, promises: list[list[Vote]], first: int) -> Picked:
        return {}


class FillsOpenSlotsWithNothing(Proposer):
    def _pick(self, promises: list[list[Vote]], first: int) -> Picked:
        return dict.fromkeys(super()._pick(promises, first))


class PicksFromOnePromise(Proposer):
    """The new leader trusts what it knows by itself, and fills the rest with nothing."""

    def _pick(self, promises: list[list[Vote]], first: int) -> Picked:
        own = pick([promises[0]], first, 1)
        return {**dict.fromkeys(super()._pick(promises, first)), **own}


class PicksInTheFirstSlot(Proposer):
    """Phase 1 of the first open slot only."""

    def _pick(self, promises: list[list[Vote]], first: int) -> Picked:
        return dict(list(super()._pick(promises, first).items())[:1])


class TakesAPartForThePromise(PromiseParts):
    def add(self, peer: str, promise: Promise) -> Promise | None:
        return promise


# ------------------------------------------------------------------------------------------------------ the learner
class CountsAVoterTwice(DecidedLog):
    def vote(self, ballot: int, slots: Any, voter: str) -> None:
        for slot in slots:
            if slot > self.executed and slot not in self._values:
                voters = self._votes.setdefault(slot, {}).setdefault(ballot, set())
                voters.add(f"{voter}{len(voters)}")
                self._look(slot, ballot)


class CountsVotesOfAllBallots(DecidedLog):
    def _look(self, slot: int, ballot: int) -> None:
        voters = set().union(*self._votes.get(slot, {}).values())
        value = self._proposed.get(slot, {}).get(ballot)
        if value is not None and len(voters) >= self._roster.quorum:
            self.decide(slot, value)


class GivesOutOfOrder(DecidedLog):
    def _look_ahead(self) -> None:
        ahead = [slot for slot in self._values if slot > self.executed]
        if ahead and self.executed + 1 not in self._values:
            self.executed = min(ahead) - 1
            self.trim(min(ahead))
        super()._look_ahead()


class ForgetfulLedger(Ledger):
    """Its states lack the dedupe table."""

    def get_state(self) -> bytes:
        kept, self.last = self.last, {}
        state = super().get_state()
        self.last = kept
        return state


class TakesAnyHash(IncomingSnapshot):
    """Parts are put together as they come, and what comes of them is taken for the snapshot."""

    def add(self, part: SnapshotPart) -> ReplicaState | None:
        if part.slot != self.slot:
            self.slot, self._size = part.slot, part.size
        self._data += part.data
        if len(self._data) < self._size:
            return None
        data = bytes(self._data[: self._size])
        self._data = bytearray()
        return unpack(part.slot, data)


class TakesASnapshotHalf(Learner):
    """Keeps its old state below the new slot."""

    def _restore(self, state: ReplicaState) -> None:
        self.commands = state.commands
        self._decided.skip_to(state.slot)


class SendsTheNewestSnapshot(CatchingUp):
    """Begins anew whenever there is a newer snapshot than the one it is sending."""

    def on_ask_snapshot(self, peer: str, ask: AskSnapshot, out: Outbox) -> None:
        self._outgoing.pop(peer, None)
        super().on_ask_snapshot(peer, ask, out)


class SaysNothingTwice(Leader):
    """A leader takes it that no message is lost."""

    def _repeat(self, out: Outbox) -> None:
        pass


class NeverCatchesUp(CatchingUp):
    def ask(self, out: Outbox) -> None:
        pass


class ExecutesAnOldLeadersWords(Learner):
    """Behind what its successor has decided."""

    def _is_stale(self, origin: int) -> bool:
        return False


MUTANTS = [
    Mutant("a promise is told before the disk has it", PaxosKit(voter=PromisesBeforeTheDiskHasIt)),
    Mutant("a vote is told before the disk has it", PaxosKit(voter=VotesBeforeTheDiskHasIt)),
    Mutant("its own vote counts before the disk has it", PaxosKit(voter=CountsItsOwnVoteAtOnce)),
    Mutant("its own promise counts before the disk has it", PaxosKit(leader=CountsItsOwnPromiseAtOnce)),
    Mutant("a restart forgets the promise", PaxosKit(acceptor=ForgetsItsPromise)),
    Mutant("a restart forgets votes", PaxosKit(acceptor=ForgetsItsVotes)),
    Mutant("a ballot is used before its own disk has it", PaxosKit(peers=UsesBallotsAgain)),
    Mutant("votes are trimmed before the snapshot is written", PaxosKit(learner=TrimsWithoutASnapshot)),
    Mutant("votes are trimmed that are not executed", PaxosKit(learner=TrimsWhatIsNotExecuted)),
    Mutant("a wiped disk votes", PaxosKit(formation=TrustsAnyDisk)),
    Mutant("a wiped disk votes and is listened to", PaxosKit(formation=TrustsAnyDisk, peers=ListensToAnyone)),
    Mutant("a vote goes below the promise", PaxosKit(acceptor=AcceptsBelowItsPromise)),
    Mutant("a promise tells one slot only", PaxosKit(voter=KeepsSilentAboutItsVotes)),
    Mutant("a quorum of f", PaxosKit(roster=NeedsOneVoteLess)),
    Mutant("a leader goes on below a higher ballot", PaxosKit(authority=NeverGivesWay, voter=VotesForItself)),
    Mutant(
        "requests are deduplicated where they are proposed", PaxosKit(replica=DedupesWhenItProposes), TrustingLedger
    ),
    Mutant("an answer comes before the decision", PaxosKit(replica=AnswersBeforeItIsDecided)),
    Mutant("the lowest ballot's value is picked", _picks(lambda votes: min(votes, key=lambda v: v.ballot))),
    Mutant("the first value seen is picked", _picks(lambda votes: votes[0])),
    Mutant("the last value seen is picked", _picks(lambda votes: votes[-1])),
    Mutant("one promise alone is picked from", PaxosKit(proposer=PicksFromOnePromise)),
    Mutant("nothing is picked", PaxosKit(proposer=PicksNothing)),
    Mutant("open slots are filled with nothing", PaxosKit(proposer=FillsOpenSlotsWithNothing)),
    Mutant("only the first open slot is picked", PaxosKit(proposer=PicksInTheFirstSlot)),
    Mutant("one part of a promise is enough", PaxosKit(promises=TakesAPartForThePromise)),
    Mutant("one voter counts twice", PaxosKit(decided=CountsAVoterTwice)),
    Mutant("votes of different ballots are counted together", PaxosKit(decided=CountsVotesOfAllBallots)),
    Mutant("slots are executed out of order", PaxosKit(decided=GivesOutOfOrder)),
    Mutant("a snapshot lacks the dedupe table", make_ledger=ForgetfulLedger),
    Mutant("a snapshot is taken without its hash", PaxosKit(incoming=TakesAnyHash)),
    Mutant("a snapshot moves the slot and not the state", PaxosKit(learner=TakesASnapshotHalf)),
    Mutant(
        "a newer snapshot takes the place of the one that is being sent", PaxosKit(catching_up=SendsTheNewestSnapshot)
    ),
    Mutant("a leader says nothing twice", PaxosKit(leader=SaysNothingTwice)),
    Mutant("a replica that is behind stays there", PaxosKit(catching_up=NeverCatchesUp)),
    Mutant("an old leader's words are executed behind its successor's", PaxosKit(learner=ExecutesAnOldLeadersWords)),
]
