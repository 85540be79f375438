"""Whatever comes over a direct link, the replica goes on, and what it hands on is bounded and the client's own."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.inputs import Received
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Disconnect
from holdfast.protocols.core import commands
from holdfast.protocols.core.register import EPOCH_MAX
from holdfast.protocols.sessions.messages import (
    CloseSession,
    OpenDirect,
    OpenSession,
    Ping,
    Progress,
    Publish,
    Subscribe,
    Unsubscribe,
)
from tests.codec.test_hostile_bytes import EVENTS_OF_NOBODY
from tests.sessions.bench import EPOCH, batch
from tests.sessions.command_strategies import batches, integers
from tests.sessions.direct_bench import INSTANCE, ReplicaBench, follower, leader

P = "client:p"


def closed(bench: ReplicaBench, *said: Message) -> str:
    """Why p's link is closed after it said something; nothing else may come of it."""
    rows = bench.say("p", *said)
    assert len(rows) == 1, rows
    assert isinstance(rows[0], Disconnect)
    assert rows[0].link == bench.links["p"]
    assert bench.sequencer.take_direct() == []
    assert bench.sequencer.take_submitted() == []
    return rows[0].reason


def linked(leads: bool = False) -> ReplicaBench:
    """A replica that knows a session of p, and to which somebody has a link under the name of p."""
    bench = ReplicaBench(leads=leads)
    bench.know()
    bench.handle(bench.up("p"))
    return bench


@pytest.mark.parametrize("epoch", [0, -1, EPOCH_MAX + 1, 2**64 - 1])
def test_an_epoch_that_no_session_has_ends_the_link(epoch: int) -> None:
    assert "the epoch of a session is 1 to" in closed(linked(), OpenDirect(epoch, INSTANCE))


def test_a_stranger_that_does_not_know_the_instance_can_not_publish_in_a_clients_name() -> None:
    assert "is another one" in closed(linked(), OpenDirect(EPOCH, INSTANCE + 1), Publish(1, batch(1), 0, True))


def test_an_epoch_before_the_sessions_ends_the_link() -> None:
    assert "is another one" in closed(linked(), OpenDirect(EPOCH - 1, INSTANCE))


def test_an_epoch_to_come_is_waited_for_and_ends_the_link_if_it_is_somebody_elses() -> None:
    bench = linked()
    assert bench.say("p", OpenDirect(EPOCH + 1, 5), Publish(1, batch(1), 0, True)) == []
    bench.know(instance=6)
    assert bench.core.sessions[P].epoch == EPOCH + 1
    assert "is another one" in closed(bench, Publish(1, batch(1), 0, True))


def test_a_session_that_is_superseded_takes_its_direct_links_with_it() -> None:
    bench = follower()
    bench.know(instance=6)
    assert "is another one" in closed(bench, Publish(1, batch(1), 0, True))


def test_a_direct_link_is_for_one_session() -> None:
    assert "for one session" in closed(follower(), OpenDirect(EPOCH + 1, INSTANCE))


def test_a_link_with_a_session_does_not_become_a_direct_one() -> None:
    bench = leader()
    assert "not a direct one" in closed(bench, OpenDirect(EPOCH, INSTANCE))
    waiting = ReplicaBench(leads=False)
    waiting.sequencer.leader_addresses = ()
    waiting.handle(waiting.up("p"))
    waiting.say("p", OpenSession(INSTANCE))
    assert "not a direct one" in closed(waiting, OpenDirect(EPOCH, INSTANCE))


@pytest.mark.parametrize("leads", [False, True])
def test_a_direct_link_does_not_become_one_with_a_session(leads: bool) -> None:
    bench = linked(leads)
    bench.say("p", OpenDirect(EPOCH, INSTANCE))
    assert "has no session" in closed(bench, OpenSession(INSTANCE, EPOCH))


def test_an_event_of_another_publisher_ends_the_link() -> None:
    bench = follower()
    said = Received(bench.links["p"], P, [Publish(1, batch(1, publisher="q"), 0, True)])
    (effect,) = bench.handle(said)
    assert isinstance(effect, Disconnect)
    assert "names 'q' as its publisher, not 'p'" in effect.reason
    assert bench.sequencer.take_direct() == []


@pytest.mark.parametrize("events", EVENTS_OF_NOBODY.values(), ids=EVENTS_OF_NOBODY)
def test_bytes_that_are_no_events_end_the_link(events: bytes) -> None:
    assert "in Publish, bytes are no events" in closed(follower(), Publish(1, msgspec.Raw(events), 0, True))


@pytest.mark.parametrize(
    ("first", "count", "confirmed"), [(0, 1, 0), (-4, 1, 0), (21, 1, 0), (2, 20, 0), (1, 1, -1), (2**64 - 1, 1, 2)]
)
def test_a_publish_outside_the_window_ends_the_link(first: int, count: int, confirmed: int) -> None:
    said = Publish(first, batch(*range(count)), confirmed, True)
    assert "are beyond the window after" in closed(follower(), said)


def test_a_flood_is_handed_on_up_to_a_window() -> None:
    bench = follower()
    for number in range(1, 2000):
        bench.say("p", Publish(number, batch(number), number - 1, True))
        bench.say("p", Publish(number, batch(), number, True))
    assert len(bench.sequencer.take_direct()) == 20
    assert bench.node.measure()["replica_direct_publications_total"] == 20


def test_a_link_that_is_not_read_gets_nothing_to_read() -> None:
    bench = follower()
    bench.handle(*[bench.received("p", Ping(), CloseSession(), OpenDirect(EPOCH, INSTANCE)) for _ in range(100)])
    assert P not in bench.out.queues


numbers = st.one_of(st.integers(0, 4), integers)
said = st.lists(
    st.one_of(
        st.builds(OpenDirect, st.sampled_from([EPOCH - 1, EPOCH, EPOCH + 1]), st.sampled_from([1, INSTANCE])),
        st.builds(Publish, numbers, batches, numbers, st.booleans()),
        st.builds(OpenSession, st.sampled_from([1, INSTANCE]), st.sampled_from([0, EPOCH])),
        st.just(Subscribe(1, "n > 0")),
        st.just(Unsubscribe(1)),
        st.just(Progress((1,), (1,), (1,))),
        st.just(CloseSession()),
        st.just(Ping()),
    ),
    max_size=6,
)


@settings(deadline=None)
@given(st.lists(said, max_size=6))
def test_whatever_a_stranger_says_another_client_goes_on(turns: list[list[Message]]) -> None:
    for bench in (leader(), follower()):
        bench.know("x")
        for messages in turns:
            bench.handle(bench.up("x"))
            bench.say("x", *messages)
            assert all(command.client == "client:x" for command in bench.sequencer.direct + bench.sequencer.submitted)
        bench.sequencer.take_direct()
        bench.say("p", Publish(1, batch(1), 0, True))
        assert bench.sequencer.direct == [commands.Publish(P, EPOCH, 1, 0, batch(1))]
