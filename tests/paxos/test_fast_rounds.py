"""Fast rounds at one replica, message by message: who votes when, what is told, and what comes of it."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import LATEST, Send
from holdfast.schemes.paxos.ballots import EPOCH
from holdfast.schemes.paxos.messages import (
    Accept,
    AcceptedVotes,
    AskDecided,
    Decided,
    FastLearn,
    Heartbeat,
    Learn,
    Prepare,
    Promise,
    Refused,
    Suggest,
    Vote,
    Voted,
)
from tests.paxos.bench import messages
from tests.paxos.fast_bench import BALLOT, OF_THE_LEADER, A, B, FastBench, direct, learn


def votes(told: list[Send]) -> list[tuple[int, list[int]]]:
    return [(message.ballot, message.slots) for message in messages(told, FastLearn)]


# ------------------------------------------------------------------------------------------------------- the acceptor
def test_an_acceptor_votes_for_what_a_client_says_and_tells_all_when_it_is_on_the_disk() -> None:
    """D4-B4."""
    bench = FastBench()
    bench.follow()
    sent = bench.ask(("a", 1))
    told = [send for send in sent if isinstance(send.message, FastLearn)]
    assert {send.to for send in told} == {"r1", "r2"}
    assert all(send.message == learn(BALLOT, 1, A) and send.after is LATEST for send in told)
    assert bench.streams["acceptor"][-1] == AcceptedVotes(BALLOT, 1, [A], True)


def test_without_the_leaders_word_nothing_is_voted_for() -> None:
    bench = FastBench()
    bench.say("r1", Prepare(BALLOT, 1), Heartbeat(BALLOT, 0, 1))
    assert not bench.takes_direct()
    assert votes(bench.ask(("a", 1))) == []
    bench.follow()
    assert bench.takes_direct()
    assert votes(bench.ask(("b", 1)))[:1] == [(BALLOT, [1])]


def test_the_word_of_an_earlier_leader_does_not_count() -> None:
    bench = FastBench()
    bench.follow()
    bench.say("r2", Prepare(BALLOT + 65, 1))
    assert not bench.takes_direct()
    assert votes(bench.ask(("a", 1))) == []
    assert messages(bench.say("r1", Heartbeat(BALLOT, 0, 2, 1)), Refused)
    assert votes(bench.ask(("a", 1))) == []


def test_after_a_restart_the_next_heartbeat_has_to_say_it_again() -> None:
    bench = FastBench()
    bench.follow()
    bench.ask(("a", 1))
    again = FastBench(streams=bench.streams)
    assert again.fast_votes == {1: A}
    assert not again.takes_direct()
    assert votes(again.ask(("b", 1))) == []
    again.say("r1", Heartbeat(BALLOT, 0, 2, 1))
    assert votes(again.ask(("b", 1)))[:1] == [(BALLOT, [2])]
    assert again.fast_votes == {1: A, 2: B}


def test_an_acceptor_votes_once_in_a_fast_round_and_tells_a_leader_that_wants_something_else() -> None:
    bench = FastBench()
    bench.follow()
    bench.ask(("a", 1))
    sent = bench.say("r1", Suggest(BALLOT, 1, B))
    assert messages(sent, Voted) == [Voted(BALLOT, 1, A)]
    assert bench.fast_votes == {1: A}
    assert votes(bench.say("r1", Suggest(BALLOT, 1, A))) == [(BALLOT, [1])] * 2, "it is told again"


def test_the_classic_round_is_above_the_fast_one_of_the_same_ballot() -> None:
    bench = FastBench()
    bench.follow()
    bench.ask(("a", 1))
    bench.say("r1", Accept(BALLOT, 1, [B]))
    assert bench.parts.memory.acceptor.votes[1] == Vote(1, BALLOT, B)
    sent = bench.say("r1", Suggest(BALLOT, 1, A))
    assert messages(sent, Learn) == [Learn(BALLOT, [1])]
    assert bench.parts.memory.acceptor.votes[1] == Vote(1, BALLOT, B)


def test_a_promise_says_which_votes_were_fast() -> None:
    bench = FastBench()
    bench.follow()
    bench.ask(("a", 1))
    bench.say("r1", Accept(BALLOT, 2, [B]))
    [promise] = messages(bench.say("r2", Prepare(BALLOT + 65, 1)), Promise)
    assert promise.votes == [Vote(1, BALLOT, A, True), Vote(2, BALLOT, B)]


def test_a_value_is_not_voted_for_in_two_slots_nor_after_it_was_executed() -> None:
    bench = FastBench()
    bench.follow()
    bench.ask(("a", 1))
    assert votes(bench.ask(("a", 1))) == []
    bench.say("r1", learn(BALLOT, 1, A))
    bench.say("r2", learn(BALLOT, 1, A))
    assert bench.ledger.last == {"a": 1}
    assert votes(bench.ask(("a", 1))) == []


def test_what_the_leader_voted_for_is_voted_for_where_the_leader_has_it() -> None:
    bench = FastBench()
    bench.follow()
    bench.say("r1", learn(BALLOT, 3, A), learn(BALLOT, 1, B))
    bench.ask(("a", 1))
    bench.ask(("c", 1))
    assert bench.fast_votes == {3: A, 2: direct(("c", 1))}, "and a slot that the leader uses is left alone"


def test_votes_stay_in_the_window_behind_what_is_executed_and_the_rest_waits() -> None:
    bench = FastBench()
    bench.follow(fast_from=2)
    for number in range(1, 15):
        bench.ask(("a", number))
    window = bench.settings.pipeline
    assert sorted(bench.fast_votes) == list(range(2, window + 1))
    bench.say("r1", Accept(BALLOT, 1, [B]), Learn(BALLOT, [1]))
    assert bench.parts.memory.decided.executed == 1
    assert sorted(bench.fast_votes) == list(range(2, window + 2))


def test_no_vote_is_cast_where_something_is_executed_and_the_leader_is_told_what() -> None:
    """The vote in such a slot may be forgotten: a second one would be another vote in the same round."""
    bench = FastBench()
    bench.follow()
    bench.say("r1", Suggest(BALLOT, 1, A), learn(BALLOT, 1, A))
    bench.say("r2", learn(BALLOT, 1, A))
    assert bench.parts.memory.decided.executed == 1
    bench.parts.memory.acceptor.trim(2, bench.out)
    sent = bench.say("r1", Suggest(BALLOT, 1, B))
    assert [type(send.message) for send in sent] == [Decided]
    assert bench.fast_votes == {}
    bench.parts.memory.decided.trim(2)
    assert bench.say("r1", Suggest(BALLOT, 1, B)) == []


# -------------------------------------------------------------------------------------------------------- the learner
def test_a_fast_quorum_decides_and_a_majority_does_not() -> None:
    bench = FastBench(5)
    bench.follow()
    bench.ask(("a", 1))
    for peer in ("r1", "r2"):
        bench.say(peer, learn(BALLOT, 1, A))
    bench.say("r3", learn(BALLOT, 1, B))
    assert bench.parts.memory.decided.executed == 0
    bench.say("r2", learn(BALLOT, 1, A))  # again
    assert bench.parts.memory.decided.executed == 0
    bench.say("r4", learn(BALLOT, 1, A))
    assert bench.ledger.last == {"a": 1}


def test_votes_of_different_ballots_are_counted_apart() -> None:
    bench = FastBench()
    bench.follow()
    bench.ask(("a", 1))
    bench.say("r1", learn(BALLOT, 1, A))
    bench.say("r2", learn(BALLOT + 64, 1, A))
    assert bench.parts.memory.decided.executed == 0


def test_a_value_that_is_decided_and_not_known_is_asked_for_at_once() -> None:
    bench = FastBench(4)
    bench.follow()
    sent = [send for peer in ("r1", "r2", "r3") for send in bench.say(peer, learn(BALLOT, 1, A))]
    assert messages(sent, AskDecided) == [AskDecided(1)]
    bench.say("r1", Decided(1, [A]))
    assert bench.ledger.last == {"a": 1}


def test_a_value_that_comes_after_its_votes_is_executed() -> None:
    bench = FastBench(4)
    bench.follow()
    for peer in ("r1", "r2", "r3"):
        bench.say(peer, learn(BALLOT, 1, A))
    bench.say("r1", Suggest(BALLOT, 1, A))
    assert bench.ledger.last == {"a": 1}


def test_what_clients_propose_has_the_time_of_the_entry_before() -> None:
    bench = FastBench()
    walls: list[int] = []
    bench.ledger._applied = lambda number, wall, *_: walls.append(wall)
    bench.follow()
    bench.out.wall = 99
    for slot, value in enumerate((OF_THE_LEADER, A), 1):
        bench.say("r1", Suggest(BALLOT, slot, value), learn(BALLOT, slot, value))
        bench.say("r2", learn(BALLOT, slot, value))
    assert walls == [7, 7]
    assert bench.parts.learner.wall == 7


# ------------------------------------------------------------------------------------------------------------ hostile
@pytest.mark.parametrize(
    "absurd",
    [
        Suggest(BALLOT + 1, 1, A),  # r2's
        Suggest(BALLOT, 1, msgspec.Raw(b"\xc0")),
        FastLearn(BALLOT, [1, 2], [b"\x00" * 16]),
    ],
)
def test_what_no_leader_says_ends_the_link_and_nothing_else(absurd: Message) -> None:
    bench = FastBench()
    bench.follow()
    assert bench.say("r1", absurd) == []
    assert bench.fast_votes == {}
    assert bench.say("r1", Suggest(BALLOT, 1, A)) == []  # not listened to any more


def test_votes_of_an_earlier_ballot_are_no_votes_in_the_present_one() -> None:
    """A leader that took them for answers would recover a slot from votes that nobody has cast there."""
    bench = FastBench(5)
    tally = bench.parts.memory.count
    tally.vote(65, 1, "r1", tally.know(A))
    tally.vote(129, 1, "r2", tally.know(B))
    assert set(tally.votes(65, 1)) == {"r1"}
    assert set(tally.votes(129, 1)) == {"r2"}
    assert tally.votes(193, 1) == {}


def test_votes_of_other_voters_are_not_counted() -> None:
    """Of an epoch that this replica has not heard of: three of four would decide there, and of five they do not."""
    bench = FastBench(4)
    assert bench.parts.view.peers.counts("r1", BALLOT)
    assert not bench.parts.view.peers.counts("r1", EPOCH + BALLOT)
    for peer in bench.peers:
        bench.say(peer, learn(EPOCH + BALLOT, 1, A))
    assert bench.parts.memory.decided.executed == 0
    assert not bench.parts.memory.decided.knows(1)
