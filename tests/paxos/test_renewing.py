"""A leader that takes a higher ballot stays the leader: nothing that it proposed or was asked for is lost."""

from __future__ import annotations

from holdfast.schemes.paxos.messages import Accept, Heartbeat, Learn, Prepare, Promise, Vote
from holdfast.schemes.paxos.notices import BallotWanted
from holdfast.schemes.paxos.proposer import Phase
from tests.paxos.bench import Bench, messages
from tests.paxos.group import Group
from tests.paxos.ledger import Asked


def test_what_was_proposed_in_the_ballot_before_is_proposed_again_and_what_waits_follows() -> None:
    bench = Bench()
    bench.meet()
    old = bench.lead()
    bench.replica.submit(("a", 1), bench.out)
    bench.fire("beat")
    [proposed] = bench.parts.memory.proposer.undecided.values()
    bench.parts.leader.on_ballot_wanted(BallotWanted(), bench.out)
    [prepare, _] = messages(bench.fire("beat"), Prepare)
    assert prepare.ballot > old
    assert bench.parts.memory.proposer.is_leading
    assert bench.replica.is_serving
    bench.replica.submit(("a", 2), bench.out)
    assert messages(bench.fire("beat"), Accept) == []  # not before the ballot is promised
    sent = bench.say("r1", Promise(prepare.ballot, 1, [Vote(1, old, proposed)], 0))
    assert messages(sent, Accept) == [Accept(prepare.ballot, 1, [proposed])] * 2
    assert bench.parts.memory.proposer.elections_won == 1
    sent = bench.say("r1", Learn(prepare.ballot, [1]))
    assert {(accept.ballot, accept.first) for accept in messages(sent, Accept)} == {(prepare.ballot, 2)}
    bench.say("r1", Learn(prepare.ballot, [2]))
    assert bench.ledger.last == {"a": 2}


def test_a_ballot_that_is_renewed_is_asked_for_again_and_heartbeats_go_on() -> None:
    bench = Bench()
    bench.meet()
    bench.lead()
    bench.parts.leader.on_ballot_wanted(BallotWanted(), bench.out)
    bench.fire("beat")
    assert bench.parts.memory.proposer.phase is Phase.RENEWING
    assert len(messages(bench.fire("repeat"), Prepare)) == 2
    assert {beat.ballot for beat in messages(bench.fire("beat"), Heartbeat)} == {bench.parts.memory.proposer.ballot}


def test_a_leader_that_renews_again_and_again_serves_on() -> None:
    group = Group(7)
    group.start()
    assert group.run(5_000, lambda: group.watch.prefix > 5)
    leader = group.leader()
    elections = group.made[leader].memory.proposer.elections_won
    for _ in range(20):
        group.simulation.after(0, lambda _: group.hosts[leader].request(0, Asked("renew")), None)
        group.run(60)
    assert group.run(5_000, group.serves_again())
    assert group.leader() == leader
    assert group.made[leader].memory.proposer.elections_won == elections
    assert len(group.watch.elections) > 20
