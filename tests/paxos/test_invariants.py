"""What the parts of a replica believe of their own state is looked at after every turn of a simulation, and is seen."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from holdfast.kernel.node import InvariantBroken
from holdfast.protocols.paxos.messages import Vote
from holdfast.protocols.paxos.proposer import Phase
from holdfast.protocols.paxos.replica import Replica
from tests.paxos.group import Group

NOTHING = msgspec.Raw(b"\x90")


def _misplaced_vote(replica: Replica) -> None:
    replica.acceptor.votes[10**6] = Vote(10**6 + 1, replica.acceptor.promised, NOTHING, False)


def _vote_above_the_promise(replica: Replica) -> None:
    replica.acceptor.votes[10**6] = Vote(10**6, replica.acceptor.promised + 1, NOTHING, False)


def _votes_for_what_is_decided(replica: Replica) -> None:
    replica.decided._votes[replica.decided.executed] = {}


def _proposal_beyond_the_next_slot(replica: Replica) -> None:
    replica.proposer.undecided[replica.proposer.next_slot] = NOTHING


@pytest.mark.parametrize(
    ("spoil", "claim"),
    [
        (_misplaced_vote, "a vote is found under its slot"),
        (_vote_above_the_promise, "no vote is above the promise"),
        (_votes_for_what_is_decided, "votes are counted for what is not decided"),
        (_proposal_beyond_the_next_slot, "what is proposed has a slot"),
    ],
)
def test_a_state_that_should_be_impossible_stops_a_replica(spoil: Callable[[Replica], None], claim: str) -> None:
    group = Group(1)
    group.start()
    assert group.run(5_000, lambda: group.watch.prefix > 5)
    replica = group.replicas[group.leader()]
    assert replica.proposer.phase is Phase.LEADING
    replica.acceptor._unchecked = len(replica.acceptor.votes)  # long runs look at votes now and then: now
    replica.check_invariants()
    replica.acceptor._unchecked = len(replica.acceptor.votes) + 1
    spoil(replica)
    with pytest.raises(InvariantBroken, match=claim):
        replica.check_invariants()
