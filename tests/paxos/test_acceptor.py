"""An acceptor's own word about its disk: nothing is safe before its own write is."""

from __future__ import annotations

from holdfast.kernel.outbox import Outbox
from holdfast.protocols.paxos.acceptor import Acceptor
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
