"""A group goes on while a majority can talk: failures, one-way cuts, slow disks, duels. A leader of yesterday is mute.

Times are virtual, in heartbeats of 50 ms.
"""

from __future__ import annotations

import pytest

from holdfast.kernel.time import MILLISECOND
from holdfast.schemes.paxos.messages import Accept, Canvass, CanvassAnswer, Heartbeat, Prepare
from holdfast.schemes.paxos.settings import Protocol
from tests.paxos.bench import Bench, messages
from tests.paxos.group import Group
from tests.paxos.ledger import Asked

BEAT = 50
QUICKLY = 40 * BEAT  # to notice, to elect, and to serve


def serving(seed: int, members: int = 3, **options: object) -> Group:
    group = Group(seed, members, **options)  # type: ignore[arg-type]
    group.start()
    assert group.run(5_000, lambda: group.watch.prefix > 5)
    return group


def serves(group: Group, ms: int) -> bool:
    """Whether every client gets an answer in that time."""
    before = dict(group.answered)
    return group.run(ms, lambda: all(number > before[who] for who, number in group.answered.items()))


@pytest.mark.parametrize("protocol", Protocol)
@pytest.mark.parametrize(("members", "failed"), [(3, 1), (5, 2), (7, 3)])
def test_a_group_survives_f_failures_with_its_leader_among_them(members: int, failed: int, protocol: Protocol) -> None:
    """D4-D1."""
    for seed in range(5):
        group = serving(seed, members, protocol=protocol)
        leader = group.leader()
        gone = {leader, *[name for name in group.hosts if name != leader][: failed - 1]}
        for name in gone:
            group.hosts[name].stop(power_cut=seed % 2 == 0)
        assert serves(group, QUICKLY), f"seed {seed}"


@pytest.mark.parametrize("members", [3, 5, 7])
def test_a_group_that_lost_power_goes_on_when_it_is_back(members: int) -> None:
    group = serving(members, members)
    for host in group.hosts.values():
        host.stop(power_cut=True)
    for host in group.hosts.values():
        host.start()
    assert group.run(QUICKLY, group.serves_again())


def test_a_leader_that_was_paused_for_long_answers_nothing_that_is_out_of_date() -> None:
    """It has to hear of the new ballot before it can say anything: what it says is what a majority voted for."""
    group = serving(6)
    old = group.leader()
    group.hosts[old].pause()
    for who in group.answered:  # asked while nobody else leads: they wait in the paused one
        group.watch.asked.add((who, group.answered[who] + 1))
        group.hosts[old].request(0, Asked((who, group.answered[who] + 1)))
    group.run(10_000)
    assert group.leader() != ""
    answered: list[str] = []
    check = group.watch.answered
    group.watch.answered = lambda name, command: (answered.append(name), check(name, command))[1]  # type: ignore[method-assign, func-returns-value]
    group.hosts[old].resume()
    group.run(20)
    assert old not in answered
    assert group.run(QUICKLY, group.serves_again())


def test_a_leader_that_nobody_answers_stops_leading() -> None:
    """Its clients would wait for it; the others have another leader."""
    group = serving(7, 5)
    old = group.leader()
    for other in group.hosts:
        if other != old:
            group.cut(old, other)
    assert group.run(QUICKLY, lambda: not group.made[old].memory.proposer.is_leading)
    assert serves(group, QUICKLY)


@pytest.mark.parametrize("hears", [True, False])
def test_a_replica_that_is_half_cut_off_does_not_keep_the_others_from_working(hears: bool) -> None:
    """It hears the leader and is not heard, or the other way round; and it is no reason for elections without end."""
    group = serving(8, 5)
    leader = group.leader()
    half = next(name for name in group.hosts if name != leader)
    for other in group.hosts:
        if other != half:
            group.cut(*((half, other) if hears else (other, half)), both=False)
    elections = len(group.watch.elections)
    for _ in range(5):
        assert serves(group, QUICKLY)
    assert len(group.watch.elections) <= elections + 1


@pytest.mark.parametrize("hears", [True, False])
def test_a_leader_that_is_half_cut_off_is_replaced(hears: bool) -> None:
    group = serving(9, 5)
    leader = group.leader()
    for other in group.hosts:
        if other != leader:
            group.cut(*((leader, other) if hears else (other, leader)), both=False)
    assert serves(group, 2 * QUICKLY)


def test_a_leader_whose_disk_is_slow_does_not_block_the_group() -> None:
    """Its own vote is one among the others; a majority decides without it."""
    group = serving(10)
    group.slow(group.leader(), 1_000)
    assert serves(group, QUICKLY)


def test_a_leader_whose_disk_is_full_is_replaced() -> None:
    group = serving(11)
    leader = group.leader()
    group.fill(leader, True)
    assert serves(group, QUICKLY)
    assert group.leader() != leader


@pytest.mark.parametrize("members", [2, 5])
def test_proposers_that_duel_come_to_an_end(members: int) -> None:
    """All want to lead at the same moment, again and again; nobody has heard of a leader."""
    for seed in range(10):
        group = Group(seed, members=3 if members == 2 else 5)
        for host in group.hosts.values():
            host.start()
        group.run(200)
        duelling = list(group.hosts)[:members]
        for name in duelling:
            parts, host = group.made[name], group.hosts[name]
            assert not parts.memory.proposer.is_leading
            host.out.begin(group.simulation.now, 0)
            parts.leader._prepare(host.out)
            host._carrier.carry_out()
        group.start_clients()
        assert group.run(QUICKLY, lambda group=group: all(group.answered.values())), f"seed {seed}"  # type: ignore[misc]
        ballots = len(group.watch.elections)
        group.run(QUICKLY)
        assert len(group.watch.elections) == ballots, "there is one leader, and it stays"


def test_a_replica_that_hears_a_leader_does_not_help_another_to_lead() -> None:
    bench = Bench()
    bench.meet()
    bench.say("r1", Heartbeat(65, 0, 1))
    [answer] = [send.message for send in bench.say("r2", Canvass(130))]
    assert not answer.yes  # type: ignore[attr-defined]
    bench.out.now += 10_000 * MILLISECOND
    [answer] = [send.message for send in bench.say("r2", Canvass(130))]
    assert answer.yes  # type: ignore[attr-defined]


def test_a_leader_steps_down_before_a_higher_ballot_and_says_no_more_under_its_own() -> None:
    bench = Bench()
    bench.meet()
    ballot = bench.lead()
    bench.replica.submit(("a", 1), bench.out)
    bench.say("r1", Prepare(ballot + 1, 1))
    assert not bench.parts.memory.proposer.is_leading
    bench.replica.submit(("a", 2), bench.out)
    assert messages([*bench.fire("repeat", 100), *bench.fire("beat", 100)], Accept) == []


def test_support_that_comes_when_a_leader_is_there_is_not_used_against_it() -> None:
    bench = Bench()
    bench.meet()
    canvass = messages(bench.fire("patience", 2_000), Canvass)[0]
    bench.say("r1", Heartbeat(65, 0, 1))
    assert messages(bench.say("r2", CanvassAnswer(canvass.ballot, True)), Prepare) == []
    assert bench.parts.memory.acceptor.promised == 0
