"""Replicas that are behind: values, snapshots in parts, and leaders that have to learn what was decided before them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.kernel.inputs import Drained, Started
from holdfast.kernel.node import InvariantBroken
from holdfast.kernel.sequencing import CommandsApplied
from holdfast.schemes.paxos.ballots import place_of
from holdfast.schemes.paxos.membership import Leave
from holdfast.schemes.paxos.messages import (
    Accept,
    AcceptorState,
    AskDecided,
    AskSnapshot,
    Decided,
    Heartbeat,
    Learn,
    Promised,
    Proposal,
    ReplicaState,
    SnapshotPart,
    Vote,
)
from holdfast.schemes.paxos.settings import Protocol
from holdfast.schemes.paxos.transfer import make_state, pack
from tests.paxos.bench import Bench, messages
from tests.paxos.group import Group
from tests.paxos.ledger import Ledger, encode


def value(*numbers: int, trim_before: int = 0) -> msgspec.Raw:
    commands = [msgspec.Raw(encode(("a", number))) for number in numbers]
    return msgspec.Raw(msgspec.msgpack.encode(Proposal(1, commands, trim_before)))


def ledger_after(*numbers: int) -> Ledger:
    ledger = Ledger()
    for number, what in enumerate(numbers, 1):
        ledger.apply(number, 1, ("a", what))
    return ledger


def parts(state: ReplicaState, size: int) -> list[SnapshotPart]:
    data = pack(state)
    return [
        SnapshotPart(state.slot, len(data), state.digest, at, data[at : at + size]) for at in range(0, len(data), size)
    ]


STATE = make_state(9, 4, ledger_after(1, 2, 3, 4).get_state())


def applied(bench: Bench) -> list[Any]:
    """What came of commands."""
    return [output for notice in bench.out.notices if isinstance(notice, CommandsApplied) for output in notice.outputs]


def follower(**settings: Any) -> Bench:
    bench = Bench(**settings)
    bench.meet()
    bench.say("r1", Heartbeat(65, 9, 1))
    return bench


# ------------------------------------------------------------------------------------------------------- snapshots
@pytest.mark.parametrize("kept", range(2))
def test_a_snapshot_whose_installing_is_cut_off_leaves_the_old_state_or_the_new_one(kept: int) -> None:
    """The disk keeps any prefix of what was written. What a restart finds is never a mixture."""
    bench = Bench()
    bench.meet()
    old = {name: list(records) for name, records in bench.streams.items()}
    bench.say("r1", Accept(65, 1, [value(1)]), Accept(65, 2, [value(2)]))
    voted = {name: list(records) for name, records in bench.streams.items()}
    bench.say("r1", *parts(STATE, 40))
    assert bench.ledger.number == 4
    written = [name for name in bench.streams if bench.streams[name] != voted.get(name)]
    assert written == ["state"]  # votes are kept until the group decides to forget them
    again = Bench(streams={**voted, **({"state": bench.streams["state"]} if kept else {})})
    number, executed = (4, 9) if kept else (0, 0)
    assert (again.ledger.number, again.parts.memory.decided.executed) == (number, executed)
    assert again.ledger.get_state() == (STATE.state if kept else Ledger().get_state())
    assert again.parts.memory.acceptor.promised == 65
    assert set(again.parts.memory.acceptor.votes) == {1, 2}
    assert old["group"] == again.streams["group"]


def voted(*slots: int, trim_at: int, trim_before: int) -> Bench:
    """One that has voted in slots in which the others have voted too, one of which lets go of votes."""
    bench = Bench()
    bench.meet()
    for slot in slots:
        proposed = value(slot, trim_before=trim_before if slot == trim_at else 0)
        bench.say("r1", Accept(65, slot, [proposed]), Learn(65, [slot]))
    return bench


def test_who_takes_a_snapshot_forgets_the_votes_that_the_group_has_decided_to_forget() -> None:
    """It skips the decision, which may be the last one for long: its votes would hold its disk until the next."""
    giver = voted(*range(1, 10), trim_at=8, trim_before=7)
    state = giver.parts.memory.snapshots.latest
    assert state is not None
    taker = voted(*range(2, 10), trim_at=8, trim_before=7)  # the first slot never came
    assert taker.parts.memory.decided.executed == 0
    taker.say("r1", *parts(state, 40))
    assert set(taker.parts.memory.acceptor.votes) == set(giver.parts.memory.acceptor.votes) == {7, 8, 9}
    again = Bench(streams=taker.streams)
    assert set(again.parts.memory.acceptor.votes) == {7, 8, 9}


def test_votes_are_forgotten_behind_the_snapshot_that_stands_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk keeps any prefix of what was written: the other way round a power cut could leave neither."""
    bench = follower()
    order: list[str] = []
    monkeypatch.setattr(bench.parts.memory.snapshots, "keep", lambda state, out: order.append("snapshot"))
    monkeypatch.setattr(bench.parts.memory.acceptor, "trim", lambda before, out: order.append(f"votes before {before}"))
    bench.parts.learner.install(make_state(9, 4, STATE.state, trimmed=6), bench.out)
    assert order == ["snapshot", "votes before 7"]


def test_what_is_not_known_to_be_forgotten_stays_unknown_with_a_state_that_forgets_nothing() -> None:
    """Records of an earlier format do not say how far votes were forgotten: -1 stands for that (`vouched`)."""
    met = follower()
    bench = Bench(streams={**met.streams, "acceptor": [AcceptorState(65, [], -1)]})
    bench.parts.learner.install(STATE, bench.out)
    assert STATE.trimmed == 0
    assert bench.parts.memory.acceptor.trimmed == -1


@pytest.mark.parametrize("trimmed", [-1, STATE.slot + 1])
def test_a_state_that_lets_go_of_votes_beyond_its_own_slot_is_refused(trimmed: int) -> None:
    bench = follower()
    bench.say("r1", *parts(make_state(STATE.slot, 4, STATE.state, trimmed=trimmed), 40))
    assert (bench.ledger.number, bench.parts.memory.decided.executed) == (0, 0)


def test_what_the_group_has_forgotten_is_known_to_who_took_a_snapshot_or_was_restarted_since() -> None:
    state = voted(*range(1, 10), trim_at=8, trim_before=7).parts.memory.snapshots.latest
    assert state is not None
    first, second = follower(), follower()
    first.say("r1", *parts(state, 40))
    first.parts.learner._snapshot(first.out)
    for giver in (first, Bench(streams=first.streams)):
        state = giver.parts.memory.snapshots.latest
        assert state is not None
        assert state.trimmed == 6
    second.say("r1", *parts(state, 40))
    assert second.parts.memory.acceptor.trimmed == 6


@pytest.mark.parametrize("missing", range(5))
def test_a_snapshot_with_a_part_missing_changed_or_out_of_order_changes_nothing(missing: int) -> None:
    cut = parts(STATE, 40)
    assert len(cut) >= 5
    for wrong in (
        [part for place, part in enumerate(cut) if place != missing],
        [
            msgspec.structs.replace(part, data=bytes([part.data[0] ^ 1]) + part.data[1:]) if place == missing else part
            for place, part in enumerate(cut)
        ],
        [*cut[missing:], *cut[:missing]] if missing else cut[1:],
    ):
        bench = follower()
        before = {name: list(records) for name, records in bench.streams.items()}
        bench.say("r1", *wrong)
        assert (bench.ledger.number, bench.parts.memory.decided.executed) == (0, 0)
        assert bench.streams == before
        bench.say("r1", *cut)
        bench.say("r1", *cut)  # whatever had come of the wrong ones, the right ones are taken in the end
        assert bench.ledger.get_state() == STATE.state


def test_parts_of_two_snapshots_are_not_put_together() -> None:
    other = make_state(10, 5, ledger_after(1, 2, 3, 4, 5).get_state())
    bench = follower()
    for one, another in zip(parts(STATE, 40), parts(other, 40), strict=True):
        bench.say("r1", one)
        bench.say("r2", another)
    bench.say("r2", *parts(other, 40))
    assert bench.ledger.get_state() == other.state
    assert bench.parts.memory.decided.executed == 10


def test_a_state_on_the_disk_that_is_not_what_it_was_stops_the_replica() -> None:
    broken = ReplicaState(STATE.slot, STATE.commands, STATE.state[:-1] + b"x", STATE.digest)
    with pytest.raises(InvariantBroken, match="a snapshot is what it was"):
        Bench(streams={"state": [broken]})


def test_a_part_that_comes_twice_is_answered_once() -> None:
    """Every repetition by the timer would begin one more conversation, and all would go on to the end."""
    bench = follower()
    first, *_ = parts(STATE, 40)
    assert messages(bench.say("r1", first), AskSnapshot) == [AskSnapshot(9, 40)]
    assert messages(bench.say("r1", first), AskSnapshot) == []


def test_the_rest_of_a_snapshot_is_asked_of_the_one_who_began_it_and_of_no_other() -> None:
    """Another may have no snapshot, and would be silent for ever; it has values."""
    bench = follower()
    bench.say("r1", parts(STATE, 40)[0])
    assert messages(bench.fire("behind", 100), AskSnapshot) == [AskSnapshot(9, 40)]
    bench.say("r2", Heartbeat(66, 9, 1))
    sent = bench.fire("behind", 100)
    assert [(send.to, send.message) for send in sent] == [("r2", AskDecided(1))]


def test_a_leader_that_is_silent_is_not_asked_for_what_others_have_too() -> None:
    """Seed 33455 of the changing groups: it had been removed, answered nobody, and was asked for ever."""
    bench = follower()
    bench.fire("patience", 5_000)
    sent = bench.fire("behind", 100)
    assert {send.to for send in sent if isinstance(send.message, AskDecided)} == {"r1"}, "it says that it is ahead"
    bench.say("r2", Decided(1, [value(1)], 9))
    sent = bench.fire("behind", 100)
    assert {send.to for send in sent if isinstance(send.message, AskDecided)} == {"r1", "r2"}


def test_one_that_answers_tells_how_much_there_is_so_that_the_rest_is_asked_for_without_a_leader() -> None:
    """Seed 31591 of the changing groups: with each attempt to be elected it came one part further."""
    bench = Bench()
    bench.meet()
    assert messages(bench.say("r2", Decided(1, [value(1)], 3)), AskDecided) == [AskDecided(2)]
    assert messages(bench.say("r2", Decided(2, [value(2), value(3)], 3)), AskDecided) == []


def test_a_snapshot_that_was_overtaken_is_not_asked_for_any_more() -> None:
    """Seed 2419 of the swarm: its parts are of no use, so that asking for them would go on for ever."""
    bench = follower()
    bench.say("r1", parts(STATE, 40)[0])
    bench.say("r1", Decided(1, [value(slot) for slot in range(1, 12)]), Heartbeat(65, 30, 2))
    assert messages(bench.fire("behind", 100), AskSnapshot) == []
    assert messages(bench.fire("behind", 100), AskDecided) == [AskDecided(12)]


def test_a_snapshot_that_is_being_sent_is_sent_to_its_end_though_there_is_a_newer_one() -> None:
    """Or one who is behind would begin anew with each, and never get there."""
    bench = Bench(part_bytes=50, trim_keep=0)
    bench.meet()
    for slot in (1, 2):
        bench.say("r1", Accept(65, slot, [value(slot, trim_before=slot)]), Learn(65, [slot]))
    assert bench.parts.memory.decided.executed == 2
    [part] = messages(bench.say("r2", AskDecided(1)), SnapshotPart)
    assert (part.slot, part.offset) == (2, 0)
    bench.say("r1", Accept(65, 3, [value(3, trim_before=3)]), Learn(65, [3]))
    [part] = messages(bench.say("r2", AskSnapshot(2, 50)), SnapshotPart)
    assert (part.slot, part.offset) == (2, 50)
    [part] = messages(bench.say("r2", AskSnapshot(1, 50)), SnapshotPart)  # that one is gone
    assert (part.slot, part.offset) == (3, 0)


@pytest.mark.parametrize("protocol", Protocol)
def test_a_replica_that_is_far_behind_catches_up_under_load(protocol: Protocol) -> None:
    group = Group(5, protocol=protocol, ask_ms=10, options={"trim_every": 5, "trim_keep": 1, "part_bytes": 40})
    group.start()
    assert group.run(5_000, lambda: group.watch.prefix > 5)
    last = next(name for name in group.hosts if name != group.leader())
    group.hosts[last].stop(power_cut=True)
    chosen = group.watch.prefix
    assert group.run(5_000, lambda: group.watch.prefix > chosen + 50)
    group.hosts[last].start()
    assert group.run(5_000, group.serves_again())
    assert group.run(1_000, lambda: group.watch.disks[last].state > chosen)


# --------------------------------------------------------------------------------------------------------- leaders
def test_a_leader_that_can_learn_nothing_of_what_others_executed_asks_for_their_votes_again() -> None:
    """r1 promised when it had executed 10 slots, and was restarted: it knows its votes, and not what was decided."""
    bench = Bench()
    bench.meet()
    ballot = bench.lead(executed=10)
    for _ in range(20):
        bench.fire("repeat", 100)
    assert not bench.parts.memory.proposer.is_leading
    votes = [Vote(slot, 1, value(slot)) for slot in range(1, 11)]
    again = bench.lead(executed=0, votes=votes)
    assert again > ballot
    bench.say("r1", Learn(again, list(range(1, 11))))
    assert bench.parts.memory.decided.executed == 10


def test_a_leader_that_is_learning_goes_on_leading() -> None:
    bench = Bench()
    bench.meet()
    bench.lead(executed=40)
    for slot in range(1, 41):
        bench.fire("repeat", 100)
        bench.say("r1", Decided(slot, [value(slot)]))
    assert bench.parts.memory.proposer.is_leading
    assert bench.parts.memory.decided.executed == 40


def test_a_leader_that_is_behind_answers_nothing_before_it_has_executed_what_was_decided_before_it() -> None:
    """What it takes in stands behind all that: the answer comes from the state that the others have."""
    bench = Bench()
    bench.meet()
    ballot = bench.lead(executed=3)
    bench.replica.submit(("a", 3), bench.out)  # which was done before it led
    assert messages(bench.handle(Drained("r1", 0, 0)), Accept) == []
    assert applied(bench) == []
    sent = bench.say("r1", Decided(1, [value(1), value(2), value(3)]))
    assert {(message.ballot, message.first) for message in messages(sent, Accept)} == {(ballot, 4)}
    bench.say("r1", Learn(ballot, [4]))
    assert applied(bench) == [("a", 1), ("a", 2), ("a", 3), ("a", 3)]
    assert bench.parts.memory.decided.executed == 4


def test_a_leader_proposes_nothing_in_slots_that_others_have_executed() -> None:
    """Their votes may be forgotten there: what it would pick could be anything."""
    bench = Bench()
    bench.meet()
    bench.lead(executed=5, votes=[Vote(7, 1, value(7))])
    accepts = messages(bench.fire("repeat", 100), Accept)
    assert {accept.first for accept in accepts} == {6, 7}


def test_what_was_voted_for_behind_a_change_of_the_members_waits_until_the_change_is_decided() -> None:
    """Seed 158 of the changing groups: an old leader's votes stood behind a change, and were decided by the voters of
    before, of whom one was gone by then."""
    bench = Bench()
    bench.meet()
    change = msgspec.Raw(msgspec.msgpack.encode(Proposal(1, [], 0, Leave("r2"))))
    votes = [Vote(1, 1, value(1)), Vote(2, 2, change), Vote(3, 1, value(3)), Vote(4, 1, value(4))]
    ballot = bench.lead(executed=0, votes=votes)
    assert {vote.slot for vote in bench.parts.memory.acceptor.votes.values()} == {1, 2}
    assert {accept.first for accept in messages(bench.fire("repeat", 100), Accept)} == {1, 2}
    bench.say("r1", Learn(ballot, [1, 2]))
    assert bench.parts.memory.decided.executed == 2
    assert {accept.first for accept in messages(bench.fire("repeat", 100), Accept)} == {3, 4}
    bench.say("r1", Learn(ballot, [3, 4]))
    assert bench.parts.memory.decided.executed == 4


def test_a_leader_that_is_brought_up_by_a_snapshot_leads_no_more() -> None:
    """It may lack what is no part of a state."""
    bench = Bench()
    bench.meet()
    bench.lead(executed=7, votes=[Vote(slot, 1, value(slot)) for slot in (8, 9, 10)])
    assert {accept.first for accept in messages(bench.fire("repeat", 100), Accept)} == {8, 9, 10}
    bench.say("r1", *parts(STATE, 40))
    assert not bench.parts.memory.proposer.is_leading
    assert messages(bench.fire("repeat", 100), Accept) == []


# ------------------------------------------------------------------------------------------------------ odd messages
def test_a_value_that_contradicts_what_is_decided_stops_the_replica() -> None:
    bench = follower()
    bench.say("r1", Decided(2, [value(2)]))
    with pytest.raises(InvariantBroken, match="one value is chosen"):
        bench.say("r2", Decided(2, [value(3)]))


def test_an_accept_that_is_repeated_after_the_slot_was_trimmed_changes_nothing_that_counts() -> None:
    bench = Bench(trim_keep=1)
    bench.meet()
    for slot in range(1, 6):
        trim = 5 if slot == 5 else 0
        bench.say("r1", Accept(65, slot, [value(slot, trim_before=trim)]), Learn(65, [slot]))
    assert set(bench.parts.memory.acceptor.votes) == {5}
    state = bench.ledger.get_state()
    [learn] = {tuple(message.slots) for message in messages(bench.say("r1", Accept(65, 2, [value(2)])), Learn)}
    assert learn == (2,)  # it has the vote again, on its disk; the slot is executed
    assert (bench.parts.memory.decided.executed, bench.ledger.get_state()) == (5, state)
    again = Bench(streams=bench.streams, trim_keep=1)
    assert again.parts.memory.decided.executed == 5
    assert again.parts.memory.acceptor.promised == 65


def test_a_trimmed_acceptor_keeps_its_promise() -> None:
    bench = Bench(trim_keep=1)
    bench.meet()
    bench.say("r1", Accept(65, 1, [value(1), value(2, trim_before=2)]), Learn(65, [1, 2]))
    assert [type(record) for record in bench.streams["acceptor"]] == [AcceptorState]
    again = Bench(streams={"acceptor": [*bench.streams["acceptor"], Promised(129)]})
    assert again.parts.memory.acceptor.promised == 129


def test_a_snapshot_knows_whose_entries_were_executed() -> None:
    """One that was restored from it skips the same old leader's entry as all others, and does not come apart."""
    bench = Bench()
    bench.meet()
    ballot = bench.lead()
    bench.replica.submit(("a", 1), bench.out)
    [accept, *_] = messages(bench.fire("beat"), Accept)
    bench.say("r1", Learn(ballot, [accept.first]))
    bench.parts.learner._snapshot(bench.out)
    state = bench.parts.memory.snapshots.latest
    assert state is not None
    assert state.origins == [(place_of(ballot), ballot)]
    restored = Bench()
    restored.meet()
    restored.parts.learner._restore(state)
    for origin, is_stale in ((ballot - 1, True), (ballot, False), (ballot + 1, False)):
        assert restored.parts.learner._is_stale(origin) == bench.parts.learner._is_stale(origin) == is_stale


def test_votes_are_forgotten_only_for_what_a_majority_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that holds it may be gone tomorrow, with what came of it, which is no part of a snapshot."""
    bench = Bench(5, trim_every=1)
    bench.meet()
    bench.lead()
    monkeypatch.setattr(bench.parts.learner, "held", lambda: 90)
    bench.parts.view.liveness.held |= {"r1": 70, "r2": 40, "r3": 10}
    assert bench.parts.leader._trim_due() == 41
    bench.parts.view.liveness.held |= {"r2": 0}
    assert bench.parts.leader._trim_due() == 11


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_replica_that_lacks_events_gives_no_state_that_speaks_of_them(
    monkeypatch: pytest.MonkeyPatch, is_whole: bool
) -> None:
    """Who took it over would have the same hole, and nobody could lead in the end."""
    bench = Bench()
    bench.meet()
    bench.parts.memory.snapshots.keep(make_state(7, 0, bench.ledger.get_state()), bench.out)
    bench.parts.memory.decided.skip_to(7)
    monkeypatch.setattr(bench.holdings, "is_whole", lambda: is_whole)
    for ask in (AskDecided(3), AskSnapshot(7, 0)):
        assert bool(messages(bench.say("r1", ask), SnapshotPart)) == is_whole


def test_what_a_snapshot_speaks_of_is_written_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut of all replicas, snapshots that speak of events which no disk has leave nobody to lead."""
    bench = Bench()
    bench.meet()
    order: list[str] = []
    monkeypatch.setattr(bench.holdings, "settle", lambda out: order.append("events"))
    monkeypatch.setattr(bench.parts.memory.snapshots, "keep", lambda state, out: order.append("snapshot"))
    bench.parts.learner._snapshot(bench.out)
    assert order == ["events", "snapshot"]


def test_a_disk_of_which_something_was_given_up_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may lack votes: one that voted again where it had voted before would decide a slot twice."""
    bench = Bench()
    named: list[str] = []
    monkeypatch.setattr(bench.parts.view.formation, "start", named.append)
    for repairs in (0, 1, 2):
        bench.parts.view.peers.on_started(Started(2, "disk", repairs=repairs), bench.out)
    assert len(set(named)) == 3
    assert named[0] == "disk"
