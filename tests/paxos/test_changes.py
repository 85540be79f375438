"""Changing a group while it serves: learners, replacements, those who were removed and come back."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.errors import NotAMember
from holdfast.kernel.inputs import ConnectFailed, LinkUp, Received
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import RecordingOutbox
from holdfast.schemes.paxos.ballots import next_ballot
from holdfast.schemes.paxos.changing import Changing
from holdfast.schemes.paxos.formation import Standing
from holdfast.schemes.paxos.membership import (
    AddLearner,
    Cancel,
    Change,
    ChangeProtocol,
    Leave,
    Remove,
    changed,
    founders,
)
from holdfast.schemes.paxos.messages import (
    Accept,
    AskDecided,
    Canvass,
    CanvassAnswer,
    Greeting,
    HeartbeatSeen,
    Learn,
    Prepare,
    Promise,
    Proposal,
    Vote,
)
from holdfast.schemes.paxos.settings import Member, Protocol
from tests.paxos.bench import Bench, messages
from tests.paxos.group import Group
from tests.paxos.ledger import encode


def serving(seed: int = 1, members: int = 3, spares: int = 1, **options: object) -> Group:
    group = Group(seed, members, spares=spares, ask_ms=20, **options)  # type: ignore[arg-type]
    group.start()
    assert group.run(5_000, lambda: group.watch.prefix > 5)
    return group


def is_done(group: Group, voters: set[str]) -> bool:
    membership = group.watch.membership
    return set(membership.voters) == voters and not membership.under_way


def test_a_replica_is_added_while_the_group_serves() -> None:
    group = serving()
    group.add("r3")
    assert group.run(5_000, lambda: is_done(group, {"r0", "r1", "r2", "r3"}))
    assert group.run(5_000, group.serves_again())
    assert group.made["r3"].view.roster.is_voter
    group.hosts["r0"].stop(power_cut=True)
    assert group.run(5_000, group.serves_again_but("r0"))


def test_each_of_three_replicas_is_replaced_in_turn_the_leader_too() -> None:
    group = serving(spares=3)
    for old, new in (("r0", "r3"), ("r1", "r4"), ("r2", "r5")):
        assert group.take_in(new, old), group.watch.membership
        group.hosts[old].stop(power_cut=True)
        assert group.run(5_000, group.serves_again())
    assert group.watch.membership.voters == ("r3", "r4", "r5")
    assert group.leader() in {"r3", "r4", "r5"}


def test_a_replica_that_lost_its_disk_is_replaced_by_one_with_a_new_name() -> None:
    group = serving()
    group.wipe("r1")
    group.hosts["r1"].start()
    assert group.run(5_000, lambda: group.made["r1"].view.formation.standing is Standing.WIPED)
    group.add("r3", "r1")
    assert group.run(10_000, lambda: is_done(group, {"r0", "r2", "r3"}))
    group.hosts["r0"].stop(power_cut=True)  # the new one is as good as the old one was
    assert group.run(5_000, group.serves_again_but("r0"))


def test_a_replica_that_is_behind_by_more_than_the_log_learns_by_a_snapshot_before_it_votes() -> None:
    group = serving(options={"trim_every": 3, "trim_keep": 1, "caught_up_slots": 2})
    group.run(2_000)
    group.add("r3")
    assert group.run(10_000, lambda: is_done(group, {"r0", "r1", "r2", "r3"}))
    assert group.run(5_000, group.serves_again())


def test_a_learner_votes_though_more_is_decided_between_two_heartbeats_than_it_may_lack() -> None:
    """What a leader hears is always of some time ago: under much load, nobody would ever be near enough."""
    group = serving(options={"caught_up_slots": -1_000})  # as if so many had been decided since it answered
    group.add("r3")
    assert group.run(5_000, lambda: is_done(group, {"r0", "r1", "r2", "r3"}))
    assert group.run(5_000, group.serves_again())


def test_a_learner_that_lags_more_and_more_does_not_vote() -> None:
    bench = Bench()
    bench.meet()
    bench.lead()
    changing, liveness, settings = bench.parts.changing, bench.parts.view.liveness, bench.settings
    for step in range(2, 50):
        liveness.held["r9"] = step
        now, executed = step * settings.heartbeat, step * settings.caught_up_slots
        assert not changing._is_caught_up("r9", executed, now)


def test_nobody_is_removed_while_too_few_of_the_others_hold_what_came_of_commands() -> None:
    """Events are no part of a snapshot. Who took one fetches them: until then those who go may be the last ones that
    have them, and one that fails would be one too many."""
    bench = Bench()
    bench.meet()
    ballot = bench.lead()
    assert bench.parts.leader.change(Leave("r2"), bench.out) == ""
    bench.fire("beat")
    bench.say("r1", Learn(ballot, [1]))
    assert bench.parts.view.roster.membership.under_way == "r2 is on its way out"
    for number in range(3):
        bench.fire("beat", 50)
        sent = bench.say("r1", HeartbeatSeen(ballot, 1, number, held=0))
        assert messages(sent, Accept) == []
    sent = bench.say("r1", HeartbeatSeen(ballot, 1, 4, held=1))
    assert {msgspec.msgpack.decode(accept.values[0], type=Proposal).change for accept in messages(sent, Accept)} == {
        Remove("r2")
    }


def test_a_learner_that_never_comes_changes_nothing_and_is_given_up() -> None:
    group = serving(options={"invited_within": 1_000_000_000})
    group.hosts["r3"].stop(power_cut=False)
    group.add("r3")
    group.run(100)
    leader = group.made[group.leader()]
    assert "r3 at r3 is to be added" in leader.report.facts()["change"]
    assert group.run(5_000, lambda: not leader.changing.under_way)
    assert "r3 did not answer" in leader.report.facts()["change_problem"]
    assert group.watch.membership.number == 0
    assert group.run(5_000, group.serves_again())


def test_a_learner_that_dies_can_be_given_up_and_another_one_added() -> None:
    group = serving(spares=2)
    group.slow("r3", 100_000)  # it does not get what the others have onto its disk
    group.add("r3")
    assert group.run(5_000, lambda: bool(group.watch.membership.under_way))
    group.hosts["r3"].stop(power_cut=True)
    group.run(1_000)
    assert group.watch.membership.voters == ("r0", "r1", "r2")
    leader = group.made[group.leader()]
    leader.view.liveness.executed["r3"] = 2**40  # the furthest of all, and may not lead
    assert leader.elections.transfer("", RecordingOutbox())[0] in {"r0", "r1", "r2"}
    group.change(Cancel())
    assert group.run(5_000, lambda: is_done(group, {"r0", "r1", "r2"}))
    assert group.take_in("r4")
    assert group.run(5_000, group.serves_again_but("r3"))


def test_a_learner_that_is_given_up_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Changing, "_is_caught_up", lambda *_: False)
    group = serving()
    group.add("r3")
    assert group.run(5_000, lambda: group.made["r3"].report.facts()["role"] == "learning")
    group.run(500)
    group.change(Cancel())
    assert group.run(5_000, lambda: group.made["r3"].report.facts()["role"] == "removed")


def test_nobody_is_removed_if_too_few_would_be_left_that_answer() -> None:
    group = serving(spares=0)
    follower, other = [name for name in group.hosts if name != group.leader()]
    group.hosts[other].stop(power_cut=True)
    group.run(1_000)
    group.change(Leave(follower))
    group.run(3_000)
    assert group.watch.membership.voters == ("r0", "r1", "r2")
    assert group.watch.membership.under_way == f"{follower} is on its way out"
    group.hosts[other].start()
    assert group.run(5_000, lambda: set(group.watch.membership.voters) == {group.leader(), other})


def test_a_leader_that_is_to_go_lets_another_one_lead_first() -> None:
    group = serving(spares=0)
    leader = group.leader()
    group.change(Leave(leader))
    assert group.run(5_000, lambda: is_done(group, set(group.hosts) - {leader}))
    assert group.leader() != leader
    assert group.made[leader].view.formation.standing is Standing.REMOVED
    assert group.run(5_000, group.serves_again())


def test_one_that_is_removed_votes_on_until_the_others_know() -> None:
    """Of two, one is removed, and is the first to learn it; its vote is needed for the other one to learn it too."""
    bench = Bench(members=2)
    bench.meet()
    leave, remove = (Proposal(5, [], 0, change) for change in (Leave("r0"), Remove("r0")))
    values = [msgspec.Raw(msgspec.msgpack.encode(entry)) for entry in (leave, remove)]
    bench.say("r1", Accept(65, 1, values), Learn(65, [1, 2]))
    assert bench.parts.memory.decided.executed == 1
    assert bench.parts.view.roster.is_voter
    [promise] = messages(bench.say("r1", Prepare(129, 2)), Promise)
    assert [(vote.slot, vote.value) for vote in promise.votes] == [(2, values[1])]
    told = bench.greeting(confirmed=True)
    assert told.membership is not None
    gone = changed(changed(told.membership, Leave("r0")), Remove("r0"))
    bench.say("r1", msgspec.structs.replace(told, membership=gone))
    assert bench.parts.view.formation.standing is Standing.REMOVED
    with pytest.raises(NotAMember, match="r0 is no member of the group, which is r1"):
        Bench(members=2, streams=bench.streams)


def test_a_removed_replica_does_not_start_again_when_its_disk_knows_it() -> None:
    group = serving(spares=0)
    removed = next(name for name in group.hosts if name != group.leader())
    group.change(Leave(removed))
    assert group.run(5_000, lambda: group.made[removed].view.formation.standing is Standing.REMOVED)
    group.run(500)
    group.hosts[removed].stop(power_cut=False)
    with pytest.raises(NotAMember, match=f"{removed} is no member of the group"):
        group.hosts[removed].start()


def test_two_removed_replicas_with_their_old_disks_decide_nothing_and_are_told_when_they_can_be() -> None:
    """They are a majority of the group that they know: {r0, r1, r2}. What removed them is decided all the same."""
    group = serving(spares=2)
    old = [name for name in ("r0", "r1", "r2") if name != group.leader()]
    for gone, new in zip(old, ("r3", "r4"), strict=True):
        group.hosts[gone].stop(power_cut=True)
        assert group.take_in(new, gone)
    for gone in old:
        for other in group.hosts:
            if other not in old:
                group.cut(gone, other)
    for gone in old:
        group.hosts[gone].start()
    before = {name: group.made[name].memory.decided.executed for name in old}
    group.run(5_000)  # the watch would see a second value in a slot, or a vote of those who do not vote
    made = {name: group.made[name].memory for name in old}
    assert not any(made[name].proposer.is_leading and made[name].decided.executed > before[name] + 3 for name in old)
    assert set(group.watch.membership.voters).isdisjoint(old)
    group.heal()
    assert group.run(10_000, lambda: all(group.made[name].view.formation.standing is Standing.REMOVED
                                         for name in old))  # fmt: skip
    assert group.run(5_000, group.serves_again())


def test_a_member_that_slept_through_all_changes_finds_the_others() -> None:
    """Of those whom it knew, nobody is left."""
    group = serving(members=5, spares=4, seed=3)
    sleeper, *others = sorted(group.watch.membership.voters, key=lambda name: name == group.leader())
    group.hosts[sleeper].stop(power_cut=True)
    for old, new in zip(others, ("r5", "r6", "r7", "r8"), strict=True):
        assert group.take_in(new, old), group.watch.membership
        group.hosts[old].stop(power_cut=True)
    group.hosts[sleeper].start()
    assert group.run(10_000, group.serves_again())


def test_the_protocol_changes_while_the_group_runs_and_stays_over_restarts() -> None:
    group = serving(spares=0)
    asked: list[Change] = [
        ChangeProtocol(Protocol.MULTI),
        ChangeProtocol(Protocol.BATCH),
        ChangeProtocol(Protocol.MULTI),
    ]
    for change in asked:
        group.change(change)
        assert isinstance(change, ChangeProtocol)
        wanted = change.protocol
        assert group.run(5_000, lambda wanted=wanted: group.watch.membership.protocol is wanted)  # type: ignore[misc]
    assert group.run(5_000, group.serves_again())
    for host in group.hosts.values():
        host.stop(power_cut=True)
    for host in group.hosts.values():
        host.start()
    assert group.run(5_000, group.serves_again())
    assert {parts.report.facts()["protocol"] for parts in group.made.values()} == {"multi"}


# ------------------------------------------------------------------------------------------------- alone in their slots
def test_the_first_slot_of_a_ballot_is_decided_alone() -> None:
    """A leader before may have proposed a change there, which this one has not heard of; were something decided behind
    it by the old voters, and the change picked later, there would be decisions of the wrong ones."""
    bench = Bench(protocol=Protocol.MULTI)
    bench.meet()
    ballot = bench.lead()
    for number in (1, 2, 3):
        bench.replica.submit(("a", number), bench.out)
    assert {accept.first for accept in messages(bench.fire("beat"), Accept)} == {1}
    assert {accept.first for accept in messages(bench.say("r1", Learn(ballot, [1])), Accept)} == {2, 3}


def test_nothing_is_proposed_behind_a_change_that_is_picked_before_it_is_executed() -> None:
    bench = Bench(protocol=Protocol.MULTI)
    bench.meet()
    change = msgspec.Raw(msgspec.msgpack.encode(Proposal(5, [], 0, Leave("r2"))))
    ballot = bench.lead(votes=[Vote(1, 1, change)])
    bench.replica.submit(("a", 1), bench.out)
    assert {accept.first for accept in messages(bench.fire("repeat"), Accept)} == {1}
    bench.say("r1", Learn(ballot, [1]))
    assert bench.parts.view.roster.membership.under_way == "r2 is on its way out"


def test_a_change_waits_until_everything_before_it_is_executed_and_nothing_follows_it() -> None:
    bench = Bench(protocol=Protocol.MULTI)
    bench.meet()
    ballot = bench.lead()
    bench.replica.submit(("a", 1), bench.out)
    bench.fire("beat")
    assert bench.parts.leader.change(Leave("r2"), bench.out) == ""
    bench.replica.submit(("a", 2), bench.out)
    assert messages(bench.fire("beat"), Accept) == []  # slot 1 is not decided
    [change, _] = messages(bench.say("r1", Learn(ballot, [1])), Accept)
    assert (change.first, msgspec.msgpack.decode(change.values[0], type=Proposal).change) == (2, Leave("r2"))
    assert messages(bench.fire("beat"), Accept) == []
    assert {accept.first for accept in messages(bench.say("r1", Learn(ballot, [2])), Accept)} == {3}


def test_a_second_change_is_refused_while_one_is_under_way() -> None:
    bench = Bench()
    bench.meet()
    bench.lead()
    assert bench.parts.leader.change(Leave("r2"), bench.out) == ""
    assert bench.parts.leader.change(Leave("r1"), bench.out) == "another change is under way: r2 is to leave"
    assert "does not lead" in Bench().parts.leader.change(Leave("r1"), bench.out)


def test_a_replica_that_hears_of_other_voters_asks_for_what_it_lacks_and_wants_no_ballot_of_theirs() -> None:
    bench = Bench()
    bench.meet()
    canvass = messages(bench.fire("patience", 2_000), Canvass)[0]
    later = CanvassAnswer(canvass.ballot, False, next_ballot(0, 1, 1))
    assert {ask.first for ask in messages(bench.say("r1", later), AskDecided)} == {1}
    sent = bench.fire("patience", 5_000) + bench.say("r2", CanvassAnswer(canvass.ballot, True))
    assert messages(sent, Canvass) == messages(sent, Prepare) == []
    assert bench.parts.memory.acceptor.promised == 0


def greeting_of_another_group(number: int) -> Greeting:
    """Of a group of one, `s1`, with the same rules, that has changed so often."""
    disks = {"s1": "disk-s"}
    theirs = founders([Member("s1", "s1", "s1")], disks, Protocol.BATCH)
    changed = msgspec.structs.replace(theirs, number=number, epoch=number)
    return Greeting("disk-s", disks, False, True, {"members": "s1", "protocol": "batch"}, changed)


def test_the_word_of_another_group_removes_nobody() -> None:
    """However far that one has changed: its members are not ours."""
    bench = Bench()
    bench.meet()
    bench.handle(LinkUp(9, "s1", 1, Role.BROKER, False))
    bench.handle(Received(9, "s1", [greeting_of_another_group(number=7)]))
    assert bench.parts.view.formation.standing is Standing.FORMED
    assert not bench.parts.view.peers.hears("s1")


def test_a_replica_with_data_in_its_folder_is_not_added_and_it_is_said_why() -> None:
    bench = Bench()
    bench.meet()
    bench.lead()
    assert bench.parts.leader.change(AddLearner("s1", "s1", "s1", ""), bench.out) == ""
    bench.handle(LinkUp(9, "s1", 1, Role.BROKER, False))
    bench.handle(Received(9, "s1", [greeting_of_another_group(number=0)]))
    assert "s1 has the data of a group already: start it with an empty folder" in bench.parts.changing.problem
    assert bench.parts.changing.under_way == ""
    assert bench.parts.view.roster.names == ("r0", "r1", "r2")


def test_a_replica_with_other_rules_is_refused_at_once_and_may_come_with_the_right_ones_later() -> None:
    bench = Bench()
    bench.meet()
    bench.lead()
    newcomer = AddLearner("s1", "s1", "s1", "")
    bench.handle(LinkUp(9, "s1", 1, Role.BROKER, False))
    terms = {"members": "r0, r1, r2", "protocol": "batch"}
    for _ in range(2):
        assert bench.parts.leader.change(newcomer, bench.out) == ""
        bench.fire("repeat")
        assert bench.parts.changing.problem == ""  # what it said before does not count
        bench.handle(Received(9, "s1", [Greeting("disk-s", {}, False, False, {**terms, "sessions": "6"})]))
        assert bench.parts.changing.problem.endswith("s1 has another site file: sessions is 6, here not said")
    assert bench.parts.leader.change(newcomer, bench.out) == ""
    bench.handle(Received(9, "s1", [Greeting("disk-s", {}, False, False, terms)]))
    assert bench.parts.changing.problem == ""
    assert "s1" in bench.parts.view.formation.candidates


def test_it_is_said_why_a_replica_that_is_to_be_added_can_not_be_reached() -> None:
    bench = Bench(invited_within=1_000_000)
    bench.meet()
    bench.lead()
    bench.parts.leader.change(AddLearner("r9", "r9", "r9", ""), bench.out)
    assert bench.parts.report.facts()["change"] == "r9 at r9 is to be added"
    bench.handle(ConnectFailed("r9", "r9", "nobody listens"))
    assert bench.parts.report.facts()["change"] == "r9 at r9 is to be added, and does not answer so far: nobody listens"
    assert "another change is under way: r9 at r9" in bench.parts.leader.change(Leave("r1"), bench.out)
    bench.fire("beat", after_ms=2)
    assert bench.parts.changing.problem == "r9 at r9 is to be added: r9 did not answer: nobody listens"


def test_a_candidate_that_hears_late_of_a_decided_change_proposes_what_stood_behind_it() -> None:
    """It executes the change between its prepare and the promises: the slot is decided, and nothing waits for it."""
    bench = Bench()
    bench.meet()
    old = 129  # r1's
    change = msgspec.Raw(msgspec.msgpack.encode(Proposal(1, [], 0, ChangeProtocol(Protocol.MULTI), old)))
    behind = msgspec.Raw(msgspec.msgpack.encode(Proposal(1, [msgspec.Raw(encode(("a", 1)))], 0, None, old)))
    bench.say("r1", Prepare(old, 1))
    bench.say("r1", Accept(old, 1, [change]))
    ballot = bench.canvass()
    assert bench.parts.memory.decided.executed == 0
    bench.say("r1", Learn(old, [1]))
    assert bench.parts.memory.decided.executed == 1
    sent = bench.say("r1", Promise(ballot, 1, [Vote(1, old, change), Vote(2, old, behind)], 0))
    assert {(accept.first, *map(bytes, accept.values)) for accept in messages(sent, Accept)} == {(2, bytes(behind))}
