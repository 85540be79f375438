"""The replica's side of direct links: what is handed on, as which bytes, and what a client may do there."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.outbox import Disconnect
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.core import commands
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.sessions.messages import (
    Accepted,
    AlternatesChanged,
    DirectChanged,
    OpenDirect,
    Overflow,
    Ping,
    Publish,
    Redirect,
    SessionOpened,
    Subscribe,
)
from tests.sessions.bench import EPOCH, WALL, batch, sent, shown
from tests.sessions.direct_bench import INSTANCE, OTHERS, ReplicaBench, follower, leader

P, S = "client:p", "client:s"


def command(first: int, events: Any, confirmed: int = 0) -> bytes:
    return msgspec.msgpack.encode(commands.Publish(P, EPOCH, first, confirmed, events))


# -------------------------------------------------------------------------------------------------------- followers
def test_a_publication_on_a_direct_link_is_handed_on_and_not_answered() -> None:
    bench = follower()
    assert bench.say("p", Publish(1, batch(1, 2), 0, True)) == []
    assert bench.sequencer.take_direct() == [command(1, batch(1, 2))]
    assert bench.sequencer.take_submitted() == []
    assert bench.node.measure()["replica_direct_publications_total"] == 1


def test_what_comes_before_the_session_is_known_is_ignored_and_then_no_more() -> None:
    bench = ReplicaBench(leads=False)
    assert bench.open_direct("p", EPOCH, INSTANCE, Publish(1, batch(1), 0, True)) == []
    assert bench.sequencer.take_direct() == []
    bench.know()
    assert bench.say("p", Publish(2, batch(2), 1, True)) == []
    assert bench.sequencer.take_direct() == [command(2, batch(2), 1)]


def test_a_replica_that_has_heard_only_of_an_earlier_session_waits_for_the_next() -> None:
    bench = ReplicaBench(leads=False)
    bench.know(instance=1)
    assert bench.open_direct("p", EPOCH + 1, INSTANCE, Publish(1, batch(1), 0, True)) == []
    assert bench.sequencer.take_direct() == []
    bench.know()
    assert bench.core.sessions[P].epoch == EPOCH + 1
    bench.say("p", Publish(1, batch(1), 0, True))
    assert len(bench.sequencer.take_direct()) == 1


def test_a_publication_ahead_of_what_the_replica_has_executed_is_handed_on() -> None:
    """The client has its answer from the leader before this replica has learned the decision."""
    bench = follower()
    bench.say("p", Publish(1, batch(1, 2), 0, True), Publish(3, batch(3), 2, True))
    assert bench.sequencer.take_direct() == [command(1, batch(1, 2)), command(3, batch(3), 2)]


def test_a_replica_that_is_a_window_behind_does_not_take_part_and_closes_nothing() -> None:
    bench = follower()
    assert bench.say("p", Publish(20, batch(20), 19, True), Publish(21, batch(21), 20, True)) == []
    assert bench.sequencer.take_direct() == [command(20, batch(20), 19)]


def test_an_event_is_handed_on_once_a_link() -> None:
    bench = follower()
    said = Publish(1, batch(1, 2), 0, True)
    bench.say("p", said, said, Publish(2, batch(2, 3), 0, True))
    assert bench.sequencer.take_direct() == [command(1, batch(1, 2))]


def test_an_event_that_is_accepted_already_is_not_handed_on() -> None:
    bench = follower()
    bench.sequencer.decide(commands.Publish(P, EPOCH, 1, 0, batch(1, 2)), bench.out)
    bench.say("p", Publish(1, batch(1, 2), 0, True), Publish(2, batch(2, 3), 0, True), Publish(3, batch(3), 2, True))
    assert bench.sequencer.take_direct() == [command(3, batch(3), 2)]


def test_nothing_is_handed_on_while_the_group_takes_nothing_directly() -> None:
    bench = follower()
    bench.sequencer.takes_direct = False
    assert bench.say("p", Publish(1, batch(1), 0, True)) == []
    assert bench.sequencer.take_direct() == []


def test_nothing_is_handed_on_while_a_subscription_may_make_publishers_wait() -> None:
    bench = follower()
    bench.know("s")
    blocking = commands.Subscribe(S, EPOCH, 1, "n > 0", Overflow.BLOCK, 5)
    bench.sequencer.decide(blocking, bench.out)
    bench.say("p", Publish(1, batch(1), 0, True))
    assert bench.sequencer.take_direct() == []


def test_a_direct_link_is_neither_pinged_back_nor_good_for_anything_else() -> None:
    bench = follower()
    assert bench.say("p", Ping(), Subscribe(1, "n > 0")) == []
    assert bench.sequencer.take_submitted() == []
    assert bench.node.measure()["clients_connected"] == 0
    assert bench.node.measure()["replica_clients_direct"] == 1


def test_a_direct_link_that_is_silent_is_closed_and_one_that_says_so_now_and_then_is_not() -> None:
    bench = follower()
    for _ in range(4):
        assert shown(bench.advance(14 * SECOND)) == []
        bench.say("p", OpenDirect(EPOCH, INSTANCE))
    assert shown(bench.advance(16 * SECOND)) == [Disconnect(bench.links["p"], "nothing heard for 15 s")]
    bench.handle(bench.down("p"))
    bench.advance(SECOND)
    assert [key for key in bench.timers if key[0] == "direct"] == []


# ---------------------------------------------------------------------------------------------- two links of a client
def test_a_session_takes_the_place_of_a_direct_link_at_the_same_node() -> None:
    """Leaders changed, and the client is faster than the news that its direct link is gone."""
    bench = follower()
    before = bench.down("p")
    bench.sequencer.is_serving, bench.sequencer.leader_addresses = True, ()
    opened = bench.open("p", instance=INSTANCE, epoch=EPOCH)
    assert opened == [(P, SessionOpened(EPOCH, 0, 20, WALL, (), OTHERS, (), f"{WALL:032x}", 0, OTHERS))]
    assert bench.node.measure()["replica_clients_direct"] == 0
    assert bench.handle(before) == []
    assert bench.say("p", Publish(1, batch(1), 0, False)) == [(P, Accepted(1))]


def test_a_direct_link_takes_the_place_of_an_older_one() -> None:
    bench = follower()
    before = bench.down("p")
    assert bench.open_direct() == []
    assert bench.handle(before) == []
    assert bench.say("p", Publish(1, batch(1), 0, True)) == []
    assert bench.sequencer.take_direct() == [command(1, batch(1))]
    assert shown(bench.advance(16 * SECOND)) == [Disconnect(bench.links["p"], "nothing heard for 15 s")]


def test_a_direct_link_takes_the_place_of_a_session_and_a_leader_takes_nothing_in_from_it() -> None:
    bench = leader()
    before = bench.down("p")
    assert bench.open_direct("p", EPOCH, INSTANCE, Publish(1, batch(1), 0, True)) == []
    assert bench.handle(before) == []
    assert bench.sequencer.take_direct() == []
    assert bench.sequencer.take_submitted() == []
    assert bench.node.measure()["clients_away"] == 1
    assert bench.say("p", Publish(1, batch(1), 0, True)) == []


def test_a_client_that_was_redirected_may_come_back_with_a_direct_link() -> None:
    bench = ReplicaBench(leads=False)
    assert bench.open("p", instance=INSTANCE) == [(P, Redirect(("b1:1",)))]
    bench.know()
    bench.handle(bench.down("p"))
    assert bench.open_direct("p", EPOCH, INSTANCE, Publish(1, batch(1), 0, True)) == []
    assert len(bench.sequencer.take_direct()) == 1


# ----------------------------------------------------------------------------------------------------------- leaders
def test_a_leader_submits_directly_what_was_said_to_all() -> None:
    bench = leader()
    assert bench.say("p", Publish(1, batch(1, 2), 0, True)) == []
    assert bench.sequencer.take_direct() == [command(1, batch(1, 2))]
    assert bench.sequencer.take_submitted() == []


def test_a_leader_submits_as_usual_what_was_said_to_it_only() -> None:
    bench = leader()
    assert bench.say("p", Publish(1, batch(1, 2))) == [(P, Accepted(2))]
    assert bench.sequencer.take_direct() == []


def test_what_was_decided_after_it_was_said_to_all_is_answered_by_the_leader() -> None:
    bench = leader()
    bench.say("p", Publish(1, batch(1, 2), 0, True))
    bench.sequencer.decide(bench.sequencer.direct[0], bench.out)
    assert shown(bench.handle()) == [(P, Accepted(2))]


def test_what_is_said_again_to_the_leader_goes_its_ordinary_way() -> None:
    bench = leader()
    bench.say("p", Publish(1, batch(1, 2), 0, True))
    assert bench.say("p", Publish(1, batch(1, 2, 3))) == [(P, Accepted(3))]


def test_a_leader_that_takes_nothing_directly_any_more_submits_as_usual_and_says_so() -> None:
    bench = leader()
    bench.sequencer.takes_direct = False
    assert bench.say("p", Publish(1, batch(1), 0, True)) == [(P, DirectChanged(())), (P, Accepted(1))]
    assert bench.sequencer.take_direct() == []


def test_what_has_to_be_cut_or_to_wait_goes_its_ordinary_way() -> None:
    bench = leader(limits=CoreLimits(backlog_events=2))
    bench.open("s", Subscribe(1, "n > 0", Overflow.BLOCK, 1))
    bench.sequencer.take_submitted()
    bench.say("p", Publish(1, batch(1, 2, 3), 0, True))
    assert bench.sequencer.take_submitted() == [commands.Publish(P, EPOCH, 1, 0, batch(1, 2))]
    bench.say("p", Publish(4, batch(4), 0, True))
    assert bench.sequencer.take_direct() == []


def test_what_was_said_to_all_and_lost_keeps_no_room_for_itself() -> None:
    """It counted as under way for ever, so that with a subscription that blocks its repetition waited for itself."""
    bench = leader(limits=CoreLimits(backlog_events=3))
    bench.say("p", Publish(1, batch(1, 2, 3), 0, True))
    bench.open("s", Subscribe(1, "n > 0", Overflow.BLOCK, 9))
    assert sent(bench.say("p", Publish(1, batch(1, 2, 3))), P) == [Accepted(3)]


def test_what_was_said_to_all_counts_as_under_way_until_it_is_applied() -> None:
    bench = leader(limits=CoreLimits(backlog_events=3))
    bench.say("p", Publish(1, batch(1, 2), 0, True))
    bench.open("s", Subscribe(1, "n > 0", Overflow.BLOCK, 9))
    bench.open("q")
    assert bench.say("q", Publish(1, batch(1, 2))) == [("client:q", Accepted(1)), (S, "Deliver", [(1, 1, 1)])]
    assert bench.node.measure()["publishers_waiting"] == 1
    bench.sequencer.decide(bench.sequencer.direct[0], bench.out)
    effects = shown(bench.handle())
    assert sent(effects, P) == [Accepted(2)]


def test_a_client_has_one_message_that_was_said_to_all_under_way() -> None:
    bench = leader()
    bench.say("p", Publish(1, batch(1), 0, True))
    bench.say("p", Publish(2, batch(2), 0, True))
    assert bench.sequencer.take_direct() == [command(1, batch(1))]
    assert bench.sequencer.take_submitted() == [commands.Publish(P, EPOCH, 2, 0, batch(2))]


def test_a_session_is_told_where_else_to_publish_when_that_changes_and_only_then() -> None:
    bench = ReplicaBench(leads=True)
    (opened,) = sent(bench.open("p", instance=INSTANCE), P)
    assert opened.direct == OTHERS
    bench.handle(bench.up("x"))  # and opens no session

    def ticks() -> list[Any]:
        effects = [effect for _ in range(4) for effect in bench.advance(500 * MILLISECOND)]
        bench.say("p", Ping())
        return shown(effects)

    assert ticks() == []
    bench.sequencer.takes_direct = False
    assert ticks() == [(P, DirectChanged(()))]
    bench.sequencer.takes_direct, bench.sequencer.direct_addresses = True, ("b4:1",)
    assert ticks() == [(P, DirectChanged(("b4:1",))), (P, AlternatesChanged(("b4:1",)))]
    bench.know("s")
    epoch = bench.core.sessions[S].epoch
    bench.sequencer.decide(commands.Subscribe(S, epoch, 1, "n > 0", Overflow.BLOCK, 5), bench.out)
    bench.out.take_effects()
    assert ticks() == [(P, DirectChanged(()))]
    bench.sequencer.decide(commands.Unsubscribe(S, epoch, 1), bench.out)
    bench.out.take_effects()
    assert ticks() == [(P, DirectChanged(("b4:1",)))]


def test_a_session_of_a_group_that_takes_nothing_directly_is_told_of_no_addresses() -> None:
    bench = ReplicaBench(leads=True)
    bench.sequencer.takes_direct = False
    (opened,) = sent(bench.open("p", instance=INSTANCE), P)
    assert opened.direct == ()


# ------------------------------------------------------------------------------------------------------ byte by byte
publications = st.lists(st.integers(1, 5), min_size=1, max_size=6)


@given(publications, st.data())
def test_the_same_message_becomes_the_same_bytes_at_every_replica(counts: list[int], data: st.DataObject) -> None:
    """Whatever the replica has executed when the message comes (D4-B4)."""
    replicas = [leader(), follower(), follower(), ReplicaBench(leads=False)]
    assert replicas[3].open_direct() == []  # it hears of the session later
    replicas[3].know()
    decided: list[commands.Publish] = []
    executed = [0] * len(replicas)
    first = 1
    for count in counts:
        said = Publish(first, batch(*range(first, first + count)), first - 1, True)
        made = set()
        for place, replica in enumerate(replicas):
            behind = data.draw(st.integers(0, len(decided) - executed[place])) if place else 0
            for command in decided[executed[place] : len(decided) - behind]:
                replica.sequencer.decide(command, replica.out)
            executed[place] = len(decided) - behind
            replica.say("p", said)
            (handed_on,) = replica.sequencer.take_direct()
            made.add(handed_on)
        assert len(made) == 1
        decided.append(commands.Publish(P, EPOCH, first, first - 1, said.events))
        first += count
    assert [replica.sequencer.take_submitted() for replica in replicas] == [[]] * 4
