"""A promise with many votes leaves in parts that frames can hold, and counts when it is whole."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.schemes.paxos.messages import Accept, AcceptedVotes, Prepare, Promise, Vote
from holdfast.schemes.paxos.promises import PromiseParts, split
from holdfast.wire.limits import WireLimits
from tests.paxos.bench import Bench, messages
from tests.paxos.test_catching_up import value

VOTES = [Vote(slot, 1, value(slot)) for slot in range(1, 11)]
WHOLE = Promise(64, 1, VOTES, 0)


def test_a_restarted_acceptor_with_many_votes_promises_in_frames_that_are_read() -> None:
    """After a blackout all are restarted, and every promise tells all votes since the snapshot: one frame of them would
    be refused, the link closed, and nobody could be elected any more."""
    large = msgspec.Raw(msgspec.msgpack.encode(bytes(200_000)))
    bench = Bench(streams={"acceptor": [AcceptedVotes(65, slot, [large]) for slot in range(1, 31)]})
    bench.meet()
    sent = messages(bench.say("r1", Prepare(129, 1)), Promise)
    assert sum(len(promise.votes) for promise in sent) == 30
    assert max(len(msgspec.msgpack.encode(promise)) for promise in sent) < WireLimits().frame_bytes


@pytest.mark.parametrize("size", [1, 20, 50, 10**6])
def test_the_parts_in_any_order_and_twice_are_the_whole(size: int) -> None:
    parts = split(WHOLE, size)
    for order in (parts, parts[::-1], [*parts[::2], *parts[::2], *parts[1::2]]):
        collected = PromiseParts()
        came = [whole for part in order if (whole := collected.add("r1", part)) is not None]
        assert came[0] == WHOLE
    assert [len(part.votes) for part in split(Promise(64, 1, [], 0), size)] == [0]


def test_parts_of_two_promises_are_not_put_together() -> None:
    collected = PromiseParts()
    first, second = (split(Promise(ballot, 1, VOTES, 0), 1) for ballot in (64, 128))
    assert [collected.add("r1", part) for part in [*first[:5], *second[5:]]] == [None] * 10
    assert [collected.add("r1", part) for part in second[:5]][-1] == Promise(128, 1, VOTES, 0)


def test_parts_of_two_answers_to_one_ballot_are_not_put_together() -> None:
    """Who is asked twice may have voted, or forgotten votes, in between: the votes of one answer belong together."""
    collected = PromiseParts()
    fewer = Promise(64, 1, VOTES[3:], 3)
    first, second = split(WHOLE, 1), split(fewer, 1)
    assert len(first) > len(second)
    assert [collected.add("r1", part) for part in [*second[:4], *first[4:]]] == [None] * 10
    assert [collected.add("r1", part) for part in first[:4]][-1] == WHOLE
    again = [collected.add("r1", part) for part in [*first[:2], *second]]
    assert again[-1] == fewer


def test_a_leader_is_not_elected_by_a_part() -> None:
    """The votes that are missing may be the ones that were chosen."""
    bench = Bench()
    bench.meet()
    ballot = bench.canvass()
    *most, last = split(msgspec.structs.replace(WHOLE, ballot=ballot), 20)
    assert messages(bench.say("r1", *most), Accept) == []
    assert not bench.parts.memory.proposer.is_leading
    assert {accept.first for accept in messages(bench.say("r1", last), Accept)} == set(range(1, 11))


def test_a_part_beyond_the_last_is_ignored() -> None:
    bench = Bench()
    bench.meet()
    ballot = bench.canvass()
    bench.say("r1", Promise(ballot, 1, [], 0, part=5, last=0))
    assert not bench.parts.memory.proposer.is_leading
