"""Planted bugs: each is caught by the swarm, within 20 seeds from the first one that is known to catch it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.kernel.outbox import NOW, Outbox
from holdfast.protocols.paxos import proposer as proposer_module
from holdfast.protocols.paxos.messages import Learn, Value, Vote
from holdfast.protocols.paxos.replica import Replica
from tests.paxos.swarm import play

SEEDS = 20


class VotesBeforeTheDiskHasIt(Replica):
    """Says LEARN, and counts its own vote, before the vote is safe."""

    def _vote(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        voted = super()._vote(ballot, first, values, out)
        if voted:
            slots = list(range(first, first + len(values)))
            for peer in self._links:
                out.send(peer, Learn(ballot, slots), after=NOW)
            for slot in slots:
                self.decided.vote(ballot, slot, self._settings.name)
        return voted


class ForgetsPromises(Replica):
    def recover(self, streams: Any) -> None:
        super().recover(streams)
        self.acceptor.promised = 0
        self.acceptor.votes = {}


class AcceptsBelowItsPromise(Replica):
    def _vote(self, ballot: int, first: int, values: list[Value], out: Outbox) -> bool:
        promised = self.acceptor.promised
        self.acceptor.promised = 0
        voted = super()._vote(ballot, first, values, out)
        self.acceptor.promised = max(promised, ballot)
        return voted


class NeedsOneVoteLess(Replica):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._quorum -= 1
        self.proposer._quorum -= 1
        self.decided._quorum -= 1


def _problem(seed: int, **options: Any) -> bool:
    try:
        return bool(play(seed, **options).check())
    except AssertionError:  # a broken invariant, of ours or of the application
        return True


@pytest.mark.parametrize(
    ("mutant", "start"),
    [(VotesBeforeTheDiskHasIt, 4), (ForgetsPromises, 0), (AcceptsBelowItsPromise, 33), (NeedsOneVoteLess, 1)],
)
def test_a_broken_replica_is_caught(mutant: type[Replica], start: int) -> None:
    assert any(_problem(seed, make_replica=mutant) for seed in range(start, start + SEEDS))


def _lowest(promises: list[list[Vote]], first: int) -> dict[int, Value | None]:
    votes = [vote for some in promises for vote in some if vote.slot >= first]
    last = max((vote.slot for vote in votes), default=first - 1)
    picked: dict[int, Value | None] = {}
    for slot in range(first, last + 1):
        here = [vote for vote in votes if vote.slot == slot]
        picked[slot] = min(here, key=lambda vote: vote.ballot).value if here else None
    return picked


def _nothing(promises: list[list[Vote]], first: int) -> dict[int, Value | None]:
    return {}


@pytest.mark.parametrize(("rule", "start"), [(_lowest, 104), (_nothing, 0)])
def test_a_wrong_rule_for_picking_values_is_caught(rule: Any, start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposer_module, "pick", rule)
    assert any(_problem(seed) for seed in range(start, start + SEEDS))
