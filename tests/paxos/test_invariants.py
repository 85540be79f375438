"""What the parts of a replica believe of their own state is looked at after every turn of a simulation, and is seen."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from holdfast.kernel.node import InvariantBroken
from holdfast.schemes.paxos.messages import Vote
from holdfast.schemes.paxos.parts import GroupParts
from holdfast.schemes.paxos.proposer import Phase
from tests.paxos.group import Group

NOTHING = msgspec.Raw(b"\x90")


def _misplaced_vote(parts: GroupParts) -> None:
    parts.memory.acceptor.votes[10**6] = Vote(10**6 + 1, parts.memory.acceptor.promised, NOTHING, False)


def _vote_above_the_promise(parts: GroupParts) -> None:
    parts.memory.acceptor.votes[10**6] = Vote(10**6, parts.memory.acceptor.promised + 1, NOTHING, False)


def _votes_for_what_is_decided(parts: GroupParts) -> None:
    parts.memory.decided._votes[parts.memory.decided.executed] = {}


def _proposal_beyond_the_next_slot(parts: GroupParts) -> None:
    parts.memory.proposer.undecided[parts.memory.proposer.next_slot] = NOTHING


@pytest.mark.parametrize(
    ("spoil", "claim"),
    [
        (_misplaced_vote, "a vote is found under its slot"),
        (_vote_above_the_promise, "no vote is above the promise"),
        (_votes_for_what_is_decided, "votes are counted for what is not decided"),
        (_proposal_beyond_the_next_slot, "what is proposed has a slot"),
    ],
)
def test_a_state_that_should_be_impossible_stops_a_replica(spoil: Callable[[GroupParts], None], claim: str) -> None:
    group = Group(1)
    group.start()
    assert group.run(5_000, lambda: group.watch.prefix > 5)
    parts, node = group.made[group.leader()], group.hosts[group.leader()].node
    assert node is not None
    assert parts.memory.proposer.phase is Phase.LEADING
    parts.memory.acceptor._unchecked = len(parts.memory.acceptor.votes)  # long runs look at votes now and then: now
    node.check_invariants()
    parts.memory.acceptor._unchecked = len(parts.memory.acceptor.votes) + 1
    spoil(parts)
    with pytest.raises(InvariantBroken, match=claim):
        node.check_invariants()
