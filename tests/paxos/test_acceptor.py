"""An acceptor's own word about its disk: nothing is safe before its own write is."""

from __future__ import annotations

import msgspec

from holdfast.kernel.messages import Record
from holdfast.kernel.outbox import Append, Outbox, Snapshot
from holdfast.schemes.catalogue import RECORDS
from holdfast.schemes.paxos.acceptor import Acceptor
from tests.paxos.fast_bench import A, B


def test_a_promise_is_safe_with_its_own_write_and_not_with_an_earlier_one() -> None:
    """D4-B1: a candidate counts its own promise when its disk has it. An earlier write that becomes durable meanwhile
    says nothing of it: after a crash it could vote below."""
    acceptor, out = Acceptor(), Outbox()
    acceptor.accept(64, 1, [A], out)
    earlier = acceptor._promise_token
    assert acceptor.promise(129, out)
    later = acceptor._promise_token
    assert later > earlier
    acceptor.on_durable(earlier)
    assert not acceptor.is_safe(129)
    acceptor.on_durable(later)
    assert acceptor.is_safe(129)


def test_votes_are_safe_with_their_own_writes_in_order() -> None:
    acceptor, out = Acceptor(), Outbox()
    acceptor.accept(64, 1, [A], out)
    first = acceptor._promise_token
    acceptor.accept(64, 2, [B], out)
    second = acceptor._promise_token
    assert [votes.slots for votes in acceptor.on_durable(first)] == [[1]]
    assert [votes.slots for votes in acceptor.on_durable(second)] == [[2]]


def stored_bytes(out: Outbox) -> int:
    return sum(len(RECORDS.encode(kept.record)[1]) for kept in out.stored if isinstance(kept, Append | Snapshot))


def test_one_that_executes_what_it_voted_for_long_before_does_not_write_its_votes_again_and_again() -> None:
    """It catches up, and meets one decision to forget votes after the other: each leaves it most of them."""
    acceptor, out = Acceptor(), Outbox()
    value = msgspec.Raw(msgspec.msgpack.encode(b"x" * 1000))
    acceptor.accept(64, 1, [value] * 500, out)
    voted = stored_bytes(out)
    for before in range(10, 501, 10):
        acceptor.trim(before, out)
        assert min(acceptor.votes) == before
    assert stored_bytes(out) <= 3 * voted


def test_votes_that_were_forgotten_take_no_more_of_the_disk_than_those_that_are_kept() -> None:
    acceptor, out = Acceptor(), Outbox()
    value = msgspec.Raw(msgspec.msgpack.encode(b"x" * 1000))
    for slot in range(1, 301):
        acceptor.accept(64, slot, [value], out)
        if slot % 7 == 0:
            acceptor.trim(max(1, slot - 20), out)
            on_disk = _on_disk(out)
            again = Acceptor()
            again.recover(on_disk)
            assert acceptor.votes.items() <= again.votes.items(), "it may remember more"
            assert again.trimmed <= acceptor.trimmed
            assert len(again.votes) <= 2 * len(acceptor.votes) + 1


def _on_disk(out: Outbox) -> list[Record]:
    records: list[Record] = []
    for kept in out.stored:
        if isinstance(kept, Snapshot):
            records = []
        if isinstance(kept, Append | Snapshot):
            records.append(kept.record)
    return records
