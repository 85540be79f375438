"""Replicas with one mistake each: what the swarm has to see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.sequencing import CommandsApplied
from holdfast.protocols.paxos import proposer as proposer_module
from holdfast.protocols.paxos.catching_up import CatchingUp
from holdfast.protocols.paxos.decided import DecidedLog
from holdfast.protocols.paxos.formation import Formation, Standing
from holdfast.protocols.paxos.membership import Membership
from holdfast.protocols.paxos.messages import (
    AskSnapshot,
    Learn,
    Prepare,
    Promise,
    ReplicaState,
    SnapshotPart,
    Value,
    Vote,
)
from holdfast.protocols.paxos.peers import Peers
from holdfast.protocols.paxos.picking import pick
from holdfast.protocols.paxos.promises import PromiseParts
from holdfast.protocols.paxos.proposer import Phase, Proposer
from holdfast.protocols.paxos.replica import Replica
from holdfast.protocols.paxos.transfer import IncomingSnapshot, unpack
from tests.paxos.ledger import Command, Ledger
from tests.paxos.swarm import problem

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    mistake: str
    make_replica: type[Replica] = Replica
    patch: Patch = lambda monkeypatch: None
    swarm: ClassVar[str] = "replicas"

    def seen(self, seed: int) -> str:
        with pytest.MonkeyPatch.context() as monkeypatch:
            self.patch(monkeypatch)
            return problem(seed, make_replica=self.make_replica)

    def sound(self, seed: int) -> str:
        return problem(seed)


# -------------------------------------------------------------------------------------------------------- the disk
class PromisesBeforeTheDiskHasIt(Replica):
    def on_prepare(self, peer: str, prepare: Prepare, out: Outbox) -> None:
        if self.peers.hears(peer) and prepare.ballot > self.acceptor.promised:
            executed = self.decided.executed
            votes = self.acceptor.votes_from(max(prepare.first, executed + 1))
            out.send(peer, Promise(prepare.ballot, prepare.first, votes, executed), after=NOW)
        super().on_prepare(peer, prepare, out)


class VotesBeforeTheDiskHasIt(Replica):
    def _vote(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        voted = super()._vote(ballot, first, values, out)
        if voted:
            for peer in self.peers.heard:
                out.send(peer, Learn(ballot, list(range(first, first + len(values)))), after=NOW)
        return voted


class CountsItsOwnVoteAtOnce(Replica):
    def _vote(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        voted = super()._vote(ballot, first, values, out)
        for slot in range(first, first + len(values)):
            self.decided.vote(ballot, slot, self.settings.name)
        return voted


class CountsItsOwnPromiseAtOnce(Replica):
    def prepare(self, out: Outbox) -> None:
        super().prepare(out)
        promise, self._own_promise = self._own_promise, None
        if promise is not None:
            self._count_promise(self.settings.name, promise, out)


class ForgetsItsPromise(Replica):
    def recover(self, streams: Any) -> None:
        super().recover(streams)
        self.acceptor.promised = max((vote.ballot for vote in self.acceptor.votes.values()), default=0)


class ForgetsItsVotes(Replica):
    def recover(self, streams: Any) -> None:
        super().recover(streams)
        self.acceptor.votes = {}


class _PreparesEarly(Peers):
    def tell_all(self, message: Any, out: Outbox, now: bool = False) -> None:
        super().tell_all(message, out, now or isinstance(message, Prepare))


class UsesBallotsAgain(Replica):
    """Says PREPARE before its own promise is on the disk."""

    peers_type = _PreparesEarly


class TrimsWithoutASnapshot(Replica):
    def _trim(self, before: int, out: Outbox) -> None:
        self.acceptor.trim(before, out)
        super()._trim(before, out)


class TrimsWhatIsNotExecuted(Replica):
    def _trim(self, before: int, out: Outbox) -> None:
        super()._trim(self.decided.executed + 3, out)


class _TrustsAnyDisk(Peers):
    def on_started(self, started: Any, out: Outbox) -> None:
        super().on_started(started, out)
        self.formation.greet = self._trusting  # type: ignore[method-assign]

    def _trusting(self, peer: str, greeting: Any, out: Outbox) -> bool:
        if greeting.confirmed and self.formation.standing is Standing.UNKNOWN:
            self.formation._write_down(dict(greeting.formed), out)
            self.formation._count(True, out)
        return Formation.greet(self.formation, peer, greeting, out)


class VotesWithAWipedDisk(Replica):
    peers_type = _TrustsAnyDisk


class _ListensToAnyone(_TrustsAnyDisk):
    def hears(self, peer: str) -> bool:
        return peer in self._connected


class ListensToAWipedDisk(Replica):
    peers_type = _ListensToAnyone


# --------------------------------------------------------------------------------------------------- the acceptor
class AcceptsBelowItsPromise(Replica):
    def _vote(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        promised, self.acceptor.promised = self.acceptor.promised, 0
        voted = super()._vote(ballot, first, values, out)
        self.acceptor.promised = max(promised, ballot)
        return voted


class KeepsSilentAboutItsVotes(Replica):
    """Tells only the votes in the first slot that is asked for."""

    def on_prepare(self, peer: str, prepare: Prepare, out: Outbox) -> None:
        votes_from = self.acceptor.votes_from
        self.acceptor.votes_from = lambda first: votes_from(first)[:1]  # type: ignore[method-assign]
        super().on_prepare(peer, prepare, out)
        self.acceptor.votes_from = votes_from  # type: ignore[method-assign]


# ------------------------------------------------------------------------------------------------------- the leader
class NeedsOneVoteLess(Replica):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        set_all = self.roster.set

        def set_less(membership: Membership) -> None:
            set_all(membership)
            self.roster.quorum = max(1, self.roster.quorum - 1)

        self.roster.set = set_less  # type: ignore[method-assign]
        self.roster.set(self.roster.membership)


class NeverStepsDown(Replica):
    """Goes on under its old ballot, whatever it promised to others, and votes for itself."""

    def step_down_below(self, ballot: int, out: Outbox) -> None:
        if self.proposer.phase is Phase.PREPARING:
            super().step_down_below(ballot, out)

    def _vote(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        if ballot == self.proposer.ballot:
            self.acceptor.promised = ballot
        return super()._vote(ballot, first, values, out)


class DedupesWhenItProposes(Replica):
    """Takes a request that it has seen for done, and gives the application no chance to say so."""

    def submit(self, command: Command, out: Outbox) -> None:
        seen: set[Command] = self.__dict__.setdefault("seen", set())
        if command not in seen:
            seen.add(command)
            super().submit(command, out)

    def execute(self, out: Outbox) -> None:
        application: Ledger = self._application  # type: ignore[assignment]
        apply = application.apply

        def trusting(number: int, wall: int, command: Command) -> list[Command]:
            application.last[command[0]] = command[1] - 1
            return apply(number, wall, command)

        application.apply = trusting  # type: ignore[method-assign]
        super().execute(out)
        application.apply = apply  # type: ignore[method-assign]


class AnswersBeforeItIsDecided(Replica):
    def submit(self, command: Command, out: Outbox) -> None:
        super().submit(command, out)
        if self.is_leading:
            out.tell(CommandsApplied([command]))


def _rule(choose: Callable[[list[Vote]], Vote]) -> Patch:
    def wrong(promises: list[list[Vote]], first: int, members: int) -> dict[int, Value | None]:
        votes = [vote for some in promises for vote in some if vote.slot >= first]
        last = max((vote.slot for vote in votes), default=first - 1)
        here = {slot: [vote for vote in votes if vote.slot == slot] for slot in range(first, last + 1)}
        return {slot: choose(some).value if some else None for slot, some in here.items()}

    return lambda monkeypatch: monkeypatch.setattr(proposer_module, "pick", wrong)


def _nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposer_module, "pick", lambda promises, first, members: {})


def _only_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        proposer_module, "pick", lambda promises, first, members: dict.fromkeys(pick(promises, first, members))
    )


def _own_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new leader trusts what it knows by itself, and fills the rest with nothing."""
    promise = Proposer.promise

    def watched(self: Proposer, peer: str, message: Promise) -> bool:
        own: list[Vote] = self.__dict__.setdefault("first_votes", [])
        if not self._promises:
            own[:] = message.votes
        monkeypatch.setattr(
            proposer_module,
            "pick",
            lambda promises, first, members: {
                **dict.fromkeys(pick(promises, first, members)),
                **pick([own], first, members),
            },
        )
        return promise(self, peer, message)

    monkeypatch.setattr(Proposer, "promise", watched)


def _from_its_own_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Phase 1 of the first open slot only."""
    monkeypatch.setattr(
        proposer_module, "pick", lambda promises, first, members: dict(list(pick(promises, first, members).items())[:1])
    )


def _one_part_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PromiseParts, "add", lambda self, peer, promise: promise)


# ------------------------------------------------------------------------------------------------------ the learner
def _one_voter_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def vote(self: DecidedLog, ballot: int, slot: int, voter: str) -> None:
        if slot > self.executed and slot not in self._values:
            voters = self._votes.setdefault(slot, {}).setdefault(ballot, set())
            voters.add(f"{voter}{len(voters)}")
            self._look(slot, ballot)

    monkeypatch.setattr(DecidedLog, "vote", vote)


def _votes_of_all_ballots(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(self: DecidedLog, slot: int, ballot: int) -> None:
        voters = set().union(*self._votes.get(slot, {}).values())
        value = self._proposed.get(slot, {}).get(ballot)
        if value is not None and len(voters) >= self._roster.quorum:
            self.decide(slot, value)

    monkeypatch.setattr(DecidedLog, "_look", look)


def _out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    take_next = DecidedLog.take_next

    def take(self: DecidedLog) -> tuple[int, Value] | None:
        ahead = [slot for slot in self._values if slot > self.executed]
        if ahead and self.executed + 1 not in self._values:
            self.executed = min(ahead) - 1
            self.trim(min(ahead))
        return take_next(self)

    monkeypatch.setattr(DecidedLog, "take_next", take)


def _without_the_dedupe_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def get_state(self: Ledger) -> bytes:
        kept, self.last = self.last, {}
        state = real(self)
        self.last = kept
        return state

    real = Ledger.get_state
    monkeypatch.setattr(Ledger, "get_state", get_state)


def _any_hash_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are put together as they come, and what comes of them is taken for the snapshot."""

    def add(self: IncomingSnapshot, part: SnapshotPart) -> ReplicaState | None:
        if part.slot != self.slot:
            self.slot, self._size = part.slot, part.size
        self._data += part.data
        if len(self._data) < self._size:
            return None
        data = bytes(self._data[: self._size])
        self._data = bytearray()
        return unpack(part.slot, data)

    monkeypatch.setattr(IncomingSnapshot, "add", add)


class ExecutesASnapshotHalf(Replica):
    """Keeps its old state below the new slot."""

    def _restore(self, state: ReplicaState) -> None:
        self.commands = state.commands
        self.decided.skip_to(state.slot)


class _AlwaysTheNewest(CatchingUp):
    def on_ask_snapshot(self, peer: str, ask: AskSnapshot, out: Outbox) -> None:
        self._outgoing.pop(peer, None)
        super().on_ask_snapshot(peer, ask, out)


class SendsTheNewestSnapshot(Replica):
    """Begins anew whenever there is a newer snapshot than the one it is sending."""

    catching_up_type = _AlwaysTheNewest


class SaysNothingTwice(Replica):
    """A leader takes it that no message is lost."""

    def _repeat(self, out: Outbox) -> None:
        pass


class _NeverAsks(CatchingUp):
    def ask(self, out: Outbox) -> None:
        pass


class NeverCatchesUp(Replica):
    catching_up_type = _NeverAsks


class ExecutesAnOldLeadersWords(Replica):
    """Behind what its successor has decided."""

    def _is_stale(self, origin: int) -> bool:
        return False


MUTANTS = [
    Mutant("a promise is told before the disk has it", PromisesBeforeTheDiskHasIt),
    Mutant("a vote is told before the disk has it", VotesBeforeTheDiskHasIt),
    Mutant("its own vote counts before the disk has it", CountsItsOwnVoteAtOnce),
    Mutant("its own promise counts before the disk has it", CountsItsOwnPromiseAtOnce),
    Mutant("a restart forgets the promise", ForgetsItsPromise),
    Mutant("a restart forgets votes", ForgetsItsVotes),
    Mutant("a ballot is used before its own disk has it", UsesBallotsAgain),
    Mutant("votes are trimmed before the snapshot is written", TrimsWithoutASnapshot),
    Mutant("votes are trimmed that are not executed", TrimsWhatIsNotExecuted),
    Mutant("a wiped disk votes", VotesWithAWipedDisk),
    Mutant("a wiped disk votes and is listened to", ListensToAWipedDisk),
    Mutant("a vote goes below the promise", AcceptsBelowItsPromise),
    Mutant("a promise tells one slot only", KeepsSilentAboutItsVotes),
    Mutant("a quorum of f", NeedsOneVoteLess),
    Mutant("a leader goes on below a higher ballot", NeverStepsDown),
    Mutant("requests are deduplicated where they are proposed", DedupesWhenItProposes),
    Mutant("an answer comes before the decision", AnswersBeforeItIsDecided),
    Mutant("the lowest ballot's value is picked", patch=_rule(lambda votes: min(votes, key=lambda v: v.ballot))),
    Mutant("the first value seen is picked", patch=_rule(lambda votes: votes[0])),
    Mutant("the last value seen is picked", patch=_rule(lambda votes: votes[-1])),
    Mutant("one promise alone is picked from", patch=_own_votes),
    Mutant("nothing is picked", patch=_nothing),
    Mutant("open slots are filled with nothing", patch=_only_nothing),
    Mutant("only the first open slot is picked", patch=_from_its_own_gap),
    Mutant("one part of a promise is enough", patch=_one_part_is_enough),
    Mutant("one voter counts twice", patch=_one_voter_twice),
    Mutant("votes of different ballots are counted together", patch=_votes_of_all_ballots),
    Mutant("slots are executed out of order", patch=_out_of_order),
    Mutant("a snapshot lacks the dedupe table", patch=_without_the_dedupe_table),
    Mutant("a snapshot is taken without its hash", patch=_any_hash_will_do),
    Mutant("a snapshot moves the slot and not the state", ExecutesASnapshotHalf),
    Mutant("a newer snapshot takes the place of the one that is being sent", SendsTheNewestSnapshot),
    Mutant("a leader says nothing twice", SaysNothingTwice),
    Mutant("a replica that is behind stays there", NeverCatchesUp),
    Mutant("an old leader's words are executed behind its successor's", ExecutesAnOldLeadersWords),
]
