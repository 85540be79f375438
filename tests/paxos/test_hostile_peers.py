"""What a peer says that no replica would say ends its link, and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from holdfast.codec import UNREADABLE
from holdfast.kernel.inputs import LinkUp, Received
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Disconnect, RecordingOutbox, SendLog
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.log_state import LogState
from holdfast.protocols.cursors.messages import AskEvents
from holdfast.protocols.desks.event_log import EventLog
from holdfast.protocols.desks.refill import Refill
from holdfast.schemes.catalogue import MESSAGES
from holdfast.schemes.paxos.decided import AHEAD_MAX
from holdfast.schemes.paxos.membership import GroupMember, Leave, Membership
from holdfast.schemes.paxos.messages import (
    Accept,
    CanvassAnswer,
    Decided,
    FastLearn,
    HeartbeatSeen,
    Learn,
    Prepare,
    Promise,
    Proposal,
    Refused,
    SnapshotPart,
    Suggest,
    Vote,
    Voted,
)
from holdfast.schemes.paxos.settings import Protocol
from holdfast.schemes.paxos.transfer import make_state, pack
from tests.paxos.bench import Bench, messages
from tests.paxos.fast_bench import BALLOT, A, B, FastBench, learn

NO_ENTRY = msgspec.Raw(b"\xc0")
NO_TEXT = msgspec.Raw(msgspec.msgpack.encode(Proposal(0, [], 0, Leave("name"))).replace(b"name", b"n\xff\xfee"))


@pytest.mark.parametrize(
    "absurd",
    [
        Learn(65, [-1]),
        Learn(65, [2**63]),
        Learn(-65, [1]),
        Accept(65, -5, []),
        Accept(65, 2**64 - 1, [NO_ENTRY, NO_ENTRY]),
        Prepare(2**64 - 63, 1),
        Promise(65, 1, [], 2**63),
        Refused(2**64 - 1),
        CanvassAnswer(65, False, 2**64 - 1),
        HeartbeatSeen(65, 2**63, 1, 2**63),
        Decided(-1, []),
        SnapshotPart(2**63, 1, b"", 0, b""),
        SnapshotPart(1, -1, b"", 0, b""),
    ],
)
def test_numbers_that_no_group_reaches_are_no_message(absurd: Message) -> None:
    """Ballots and slots are added to and written: beyond 64 bits that would have stopped the replica."""
    kind, body = MESSAGES.kinds[type(absurd)], MESSAGES.encoder(absurd)
    with pytest.raises(UNREADABLE):
        MESSAGES.decoders[kind](body)


@pytest.mark.parametrize("absurd", [NO_ENTRY, NO_TEXT])
def test_a_value_that_can_not_be_read_is_not_voted_for(absurd: msgspec.Raw) -> None:
    """Decided, it would stop every replica, again at every start."""
    bench = Bench()
    bench.meet()
    bench.say("r1", Prepare(65, 1))
    before = list(bench.streams["acceptor"])
    assert messages(bench.say("r1", Accept(65, 1, [absurd])), Learn) == []
    assert bench.streams["acceptor"] == before
    assert bench.parts.memory.acceptor.votes == {}


def test_nobody_is_let_in_under_the_name_of_the_replica_itself() -> None:
    """Its greeting would take the place of our own disk's name, and its votes that of ours."""
    bench = Bench()
    bench.meet()
    ours = bench.parts.view.formation.greeting(True)
    bench.handle(
        LinkUp(9, "r0", 1, Role.BROKER, False),
        Received(9, "r0", [msgspec.structs.replace(bench.greeting(), disk="another"), Learn(65, [1])]),
    )
    assert bench.parts.view.formation.greeting(True) == ours
    assert Disconnect(9, "r0 is the one that was dialled") in bench.out.actions


def test_whoever_is_not_listened_to_is_told_no_events_and_leaves_nothing_behind() -> None:
    """Each stranger left a queue with a megabyte of events, which nobody would ever read."""
    out = RecordingOutbox()
    log = SimpleNamespace(durable_head=5)
    sources = SimpleNamespace(others=lambda: ["r1"])
    refill = Refill(cast(EventLog, log), sources, cast(BrokerCore, SimpleNamespace(log=LogState(5))))
    refill.on_ask_events("mallory", AskEvents(1), out)
    assert out.take_effects() == []
    assert dict(out.queues) == {}
    refill.on_ask_events("r1", AskEvents(1), out)
    assert [effect.to for effect in out.take_effects() if isinstance(effect, SendLog)] == ["r1"]


FAR = 2**61


def test_votes_in_slots_that_no_group_reaches_leave_nothing_behind() -> None:
    bench = FastBench()
    bench.follow()
    slots = list(range(FAR, FAR + 50))
    bench.say("r1", FastLearn(BALLOT, slots, [b"x" * 16] * len(slots)), Learn(BALLOT, slots))
    bench.say("r1", Suggest(BALLOT, FAR, A))
    assert bench.parts.memory.acceptor.votes == {}
    assert bench.parts.memory.count._votes == {}
    assert bench.parts.memory.decided._votes == {}


def test_a_leader_proposes_nothing_where_no_group_comes_to() -> None:
    bench = FastBench()
    ballot = bench.lead()
    bench.say("r1", Learn(ballot, [1]))
    assert bench.takes_direct()
    before = bench.parts.memory.proposer.next_slot
    for slot in (FAR, bench.parts.memory.decided.executed + AHEAD_MAX):
        for peer, value in (("r1", A), ("r2", B)):
            bench.say(peer, Voted(ballot, slot, value), learn(ballot, slot, value))
    bench.fire("recover", 1_000)
    assert bench.parts.memory.proposer.next_slot == before
    assert max(bench.parts.coordinator._placed, default=0) < FAR


def test_a_vote_that_no_leader_can_have_asked_for_is_not_picked() -> None:
    """All slots up to it would have been filled with nothing."""
    bench = Bench()
    bench.meet()
    ballot = bench.canvass()
    sent = bench.say("r1", Promise(ballot, 1, [Vote(2, 64, A), Vote(FAR, 64, B)], 0))
    assert bench.parts.memory.proposer.is_leading
    assert {accept.first for accept in messages(sent, Accept)} == {1, 2}


def test_a_snapshot_whose_text_is_none_is_thrown_away() -> None:
    """It is read before its hash is known, and stopped the replica."""
    bench = Bench()
    bench.meet()
    state = make_state(5, 0, b"state", Membership((GroupMember("name", 0, "p", "c"),), protocol=Protocol.BATCH))
    data = pack(state).replace(b"name", b"n\xff\xfee")
    bench.say("r1", SnapshotPart(5, len(data), state.digest, 0, data))
    assert bench.parts.memory.decided.executed == 0
    assert bench.parts.memory.snapshots.latest is None
