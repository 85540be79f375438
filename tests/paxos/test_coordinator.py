"""The leader of fast rounds, message by message: what it opens, what it recovers, and what it proposes again."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from holdfast.kernel.outbox import Send
from holdfast.schemes.paxos.membership import ChangeProtocol, Leave
from holdfast.schemes.paxos.messages import (
    Accept,
    Heartbeat,
    HeartbeatSeen,
    Learn,
    Prepare,
    Promise,
    Proposal,
    Suggest,
    Vote,
    Voted,
)
from holdfast.schemes.paxos.proposer import NOTHING
from holdfast.schemes.paxos.settings import Protocol
from tests.paxos.bench import messages
from tests.paxos.fast_bench import A, B, FastBench, direct, learn
from tests.paxos.group import Group
from tests.paxos.oracle import may_have_a_fast_quorum
from tests.paxos.watch import _read_entry

C = direct(("c", 1))


def leading(members: int = 3) -> tuple[FastBench, int]:
    """The leader of a group, with fast rounds from slot 2 on: the first slot of its ballot was decided alone."""
    bench = FastBench(members)
    ballot = bench.lead()
    pass_gate(bench, ballot, 1)
    return bench, ballot


def pass_gate(bench: FastBench, ballot: int, slot: int) -> list[Send]:
    sent: list[Send] = []
    for peer in bench.peers[: len(bench.members) // 2]:
        sent += bench.say(peer, Learn(ballot, [slot]))
    return sent


def proposed(sent: list[Send]) -> list[tuple[int, bytes]]:
    """What goes on to classic rounds."""
    return sorted({(accept.first, bytes(accept.values[0])) for accept in messages(sent, Accept)})


def suggested(sent: list[Send]) -> list[tuple[int, Proposal]]:
    found = {(suggest.slot, bytes(suggest.value)) for suggest in messages(sent, Suggest)}
    return [(slot, _read_entry(value)) for slot, value in sorted(found)]


# ------------------------------------------------------------------------------------------------- opening and closing
def test_a_leader_opens_its_fast_rounds_behind_all_that_it_has_to_propose() -> None:
    bench = FastBench()
    ballot = bench.canvass()
    sent = bench.say("r1", Promise(ballot, 1, [Vote(2, 64, A)], 0))
    assert proposed(sent) == [(1, bytes(NOTHING)), (2, bytes(A))]
    assert proposed(bench.say("r1", Learn(ballot, [1, 2]))) == [(3, bytes(NOTHING))], "the first free one, alone"
    assert bench.parts.report.facts()["rounds"] == "classic"
    sent = pass_gate(bench, ballot, 3)
    assert {beat.fast_from for beat in messages(sent, Heartbeat)} == {4}
    assert bench.parts.report.facts()["rounds"] == "fast"


def test_fast_rounds_are_not_opened_while_too_few_are_heard() -> None:
    bench = FastBench(4)
    bench.parts.view.peers.heard.pop("r3")
    bench.parts.view.peers.heard.pop("r2")
    bench.parts.view.peers.heard["r2"] = None
    pass_gate(bench, bench.lead(), 1)
    assert bench.takes_direct(), "three of four are enough"
    assert not leading_without("r2").takes_direct(), "and of three all are needed"


def leading_without(peer: str) -> FastBench:
    bench = FastBench()
    del bench.parts.view.peers.heard[peer]
    ballot = bench.lead()
    bench.replica.submit(("a", 1), bench.out)
    bench.fire("beat")
    pass_gate(bench, ballot, 1)
    assert bench.ledger.last
    return bench


def test_a_leader_that_too_few_answer_takes_a_new_ballot_and_stays_classic_until_they_do() -> None:
    bench, ballot = leading()
    bench.out.now += 200_000_000
    bench.say("r1", HeartbeatSeen(ballot, 0, 1))
    sent = bench.fire("beat", 150)
    [prepare, _] = messages(sent, Prepare)
    assert prepare.ballot > ballot
    bench.say("r1", Promise(prepare.ballot, 2, [], 1))
    bench.replica.submit(("a", 1), bench.out)
    assert len(proposed(bench.fire("beat"))) == 1
    pass_gate(bench, prepare.ballot, 2)
    for number in range(30):
        bench.say("r1", HeartbeatSeen(prepare.ballot, 0, number))
        bench.fire("beat", 50)
    assert not bench.takes_direct(), "the pause is over, and two of three answer"
    bench.say("r2", HeartbeatSeen(prepare.ballot, 0, 31))
    assert bench.takes_direct()
    assert {beat.fast_from for beat in messages(bench.fire("beat"), Heartbeat)} == {3}, "in the same ballot"
    assert bench.parts.memory.proposer.ballot == prepare.ballot


def test_fast_rounds_are_not_opened_behind_a_change_of_members_that_is_not_executed() -> None:
    """Those who would vote in them are perhaps not those who vote there: of five voters four choose something, and of
    the four that are left two of three who are asked know of it. Here too few answer for fast rounds, so that the
    change is not the first of its ballot, which is alone anyway; and then they do."""
    bench = FastBench(5)
    away = [bench.parts.view.peers.heard.pop(peer) for peer in ("r3", "r4")]
    ballot = bench.lead()
    bench.replica.submit(("a", 1), bench.out)
    bench.fire("beat")
    pass_gate(bench, ballot, 1)
    assert not bench.takes_direct()
    assert bench.parts.leader.change(Leave("r4"), bench.out) == ""
    changing = [accept for accept in messages(bench.fire("beat"), Accept) if _read_entry(accept.values[0]).change]
    assert {accept.first for accept in changing} == {2}
    bench.parts.view.peers.heard |= dict(zip(("r3", "r4"), away, strict=True))
    for number in range(40):
        for peer in bench.peers:
            bench.say(peer, HeartbeatSeen(ballot, 1, number, 1))
        bench.fire("beat", 50)
        assert not bench.takes_direct(), "the change is proposed, and nobody has voted for it"
    pass_gate(bench, ballot, 2)
    assert bench.parts.view.roster.membership.under_way


def test_a_group_that_changes_its_protocol_goes_to_fast_rounds_and_back() -> None:
    """By its log: what was decided in fast rounds stays, and the change is decided in a classic one, alone."""
    bench, ballot = leading()
    bench.ask(("a", 1))
    assert bench.parts.leader.change(ChangeProtocol(Protocol.BATCH), bench.out) == ""
    bench.fire("beat")
    [prepare, _] = messages(bench.fire("beat"), Prepare)
    promise = Promise(prepare.ballot, 2, [Vote(2, ballot, A, True)], 1)
    assert proposed(bench.say("r1", promise)) == [(2, bytes(A))], "what may be decided in the fast round"
    [(slot, value)] = proposed(bench.say("r1", Learn(prepare.ballot, [2])))
    assert (slot, _read_entry(value).change) == (3, ChangeProtocol(Protocol.BATCH))
    bench.say("r1", Learn(prepare.ballot, [3]))
    assert not bench.takes_direct()
    assert "rounds" not in bench.parts.report.facts()
    assert bench.parts.leader.change(ChangeProtocol(Protocol.FAST), bench.out) == ""
    bench.fire("beat")
    bench.say("r1", Learn(prepare.ballot, [4]))
    assert bench.takes_direct()
    assert bench.parts.memory.proposer.ballot == prepare.ballot


# ------------------------------------------------------------------------------------------------------------ recovery
@pytest.mark.parametrize("members", [3, 4, 5, 7])
def test_every_split_of_two_values_is_recovered_by_the_rule(members: int) -> None:
    """D4-B4: each of the others has voted for one, for the other, or not yet."""
    quorum, fast_quorum = members // 2 + 1, -(-3 * members // 4)
    happened: Counter[str] = Counter()
    for split in product((A, B, None), repeat=members - 1):
        bench, ballot = leading(members)
        bench.ask(("a", 1))
        bench.ask(("b", 1))  # in the next slot; so the value is known
        assert bench.fast_votes == {2: A, 3: B}
        sent: list[Send] = []
        told = {0: bytes(A)}
        for place, value in enumerate(split, 1):
            if value is not None:
                told[place] = bytes(value)
                sent += bench.say(f"r{place}", learn(ballot, 2, value))
        sent += bench.fire("recover", 10)
        at_first = [value for slot, value in proposed(sent) if slot == 2]
        most = max(Counter(told.values()).values())
        may_be_chosen = may_have_a_fast_quorum(told, members)
        if most >= fast_quorum and not at_first:
            happened["decided"] += 1
            assert bench.parts.memory.decided.knows(2)
        elif len(told) < quorum:
            happened["asked"] += 1
            assert at_first == []
            assert Suggest(ballot, 2, A) in messages(sent, Suggest)
        else:
            happened["recovered"] += 1
            assert len(at_first) == 1
            assert may_be_chosen in (set(), set(at_first))
    assert set(happened) == {"decided", "asked", "recovered"}


def test_a_split_is_recovered_at_once_and_the_loser_gets_another_slot() -> None:
    bench, ballot = leading()
    bench.ask(("a", 1))
    assert proposed(bench.say("r1", learn(ballot, 2, B))) == [(2, bytes(A))], "its own, where it is free"
    sent = bench.say("r1", Voted(ballot, 2, B), Learn(ballot, [2]))
    assert bench.ledger.last == {"a": 1}
    assert [(slot, entry.commands) for slot, entry in suggested(sent)] == [(3, _read_entry(B).commands)]
    assert (bench.parts.coordinator.decided_fast, bench.parts.coordinator.recovered) == (1, 1)


def test_what_the_leader_voted_for_and_lost_is_proposed_again() -> None:
    bench, ballot = leading(5)
    bench.replica.submit(("c", 1), bench.out)
    [(slot, entry)] = suggested(bench.fire("beat"))
    assert slot == 2
    bench.ask(("a", 1))
    bench.say("r1", learn(ballot, 2, A))
    bench.say("r2", learn(ballot, 2, A))
    assert proposed(bench.say("r3", learn(ballot, 2, B))) == [(2, bytes(A))], "what most voted for"
    sent = bench.say("r1", Learn(ballot, [2])) + bench.say("r2", Learn(ballot, [2]))
    assert bench.ledger.last == {"a": 1}
    assert [(slot, other.commands) for slot, other in suggested(sent)] == [(4, entry.commands)]


def test_a_value_that_others_must_have_chosen_and_the_leader_lacks_is_asked_for() -> None:
    bench, ballot = leading(5)
    bench.ask(("a", 1))
    sent = [send for peer in ("r1", "r2") for send in bench.say(peer, learn(ballot, 2, B))]
    assert proposed(sent) == []
    sent = bench.fire("recover", 10)
    assert (proposed(sent), messages(sent, Suggest)[0]) == ([], Suggest(ballot, 2, A))
    assert proposed(bench.say("r1", Voted(ballot, 2, B))) == [(2, bytes(B))]


def test_a_leader_does_not_ask_again_with_every_answer() -> None:
    """Each answer to what it asks is told to all: they would become more and more."""
    bench, ballot = leading(5)
    bench.ask(("a", 1))
    for peer in ("r1", "r2"):
        bench.say(peer, learn(ballot, 2, B))
    assert messages(bench.fire("recover", 10), Suggest)
    assert messages(bench.say("r3", learn(ballot, 2, B)), Suggest) == []
    assert messages(bench.fire("recover", 10), Suggest) == []
    assert messages(bench.fire("recover", 100), Suggest)


def test_what_the_leader_voted_for_is_known_though_it_was_executed_elsewhere() -> None:
    bench, ballot = leading()
    bench.ask(("a", 1))
    bench.parts.memory.count._values.clear()
    assert proposed(bench.say("r1", learn(ballot, 2, B))) == [(2, bytes(A))]


def test_what_nobody_who_is_left_knows_is_given_up_in_a_new_ballot() -> None:
    bench, ballot = leading(5)
    bench.ask(("a", 1))
    for peer in ("r1", "r2"):
        bench.say(peer, learn(ballot, 2, B))
    for number in range(10):
        for peer in bench.peers:
            bench.say(peer, HeartbeatSeen(ballot, 1, number))
        bench.fire("recover", 40)
    assert bench.parts.memory.proposer.ballot > ballot
    assert bench.parts.coordinator.given_up == 1


def test_a_slot_below_one_that_is_used_is_filled_with_nothing() -> None:
    bench, ballot = leading()
    bench.say("r1", learn(ballot, 3, A))
    bench.fire("recover", 10)
    sent = bench.fire("recover", 10)
    assert (2, Proposal(0, [])) in suggested(sent)


def test_a_leader_that_others_are_ahead_of_asks_what_was_decided() -> None:
    """Fast rounds go on without it."""
    bench, ballot = leading(4)
    bench.say("r1", HeartbeatSeen(ballot, 5, 1))
    sent = bench.fire("repeat", 100)
    assert [(send.to, type(send.message).__name__) for send in sent if send.to == "r1"] == [("r1", "AskDecided")]


# ----------------------------------------------------------------------------------------------------------- proposing
def test_a_leader_proposes_in_slots_that_nobody_uses() -> None:
    bench, ballot = leading()
    bench.say("r1", learn(ballot, 2, A))
    bench.replica.submit(("b", 1), bench.out)
    bench.replica.submit(("b", 2), bench.out)
    [(slot, entry)] = suggested(bench.fire("beat"))
    assert (slot, len(entry.commands)) == (3, 2), "all that waits, in one"


def test_a_client_that_says_again_what_was_executed_is_served_again_but_a_late_copy_is_not() -> None:
    bench, ballot = leading()
    bench.ask(("a", 1))
    for peer in bench.peers:
        bench.say(peer, learn(ballot, 2, A))
    assert bench.ledger.last == {"a": 1}
    assert [entry.commands for _, entry in suggested(bench.ask(("a", 1)))] == [_read_entry(A).commands]


# ----------------------------------------------------------------------------------------------------------------- time
def test_the_leader_says_what_time_it_is_while_only_clients_propose() -> None:
    """What they say has no time of its own: it was taken for as old as the leader's last entry, and events were given
    up by their age long before they had it."""
    bench, ballot = leading()
    every = bench.settings.time_every
    bench.out.wall = every
    [(slot, entry)] = suggested(bench.fire("beat"))
    assert (slot, entry) == (2, Proposal(every, []))
    assert suggested(bench.fire("beat")) == [], "it is on its way"
    for peer in bench.peers:
        value = bench.fast_votes[2]
        bench.say(peer, learn(ballot, 2, value))
    assert (bench.parts.memory.decided.executed, bench.parts.learner.wall) == (2, every)
    bench.out.wall = 2 * every - 1
    assert suggested(bench.fire("beat", 1)) == [], "it is known well enough"


def test_the_time_of_what_clients_propose_stays_near_the_clock() -> None:
    group = Group(1, 3, Protocol.FAST, directly=1.0, ask_ms=100)
    group.start()
    assert group.run(5_000, lambda: bool(group.leader()) and group.made[group.leader()].replica.takes_direct)
    group.run(1_500)
    for _ in range(10):
        group.run(400)
        parts = group.made[group.leader()]
        clock = group.simulation.wall + group.simulation.now
        assert clock - parts.learner.wall < 2 * group.settings["r0"].time_every
