"""The broker's side of sessions: credits, resuming, repetition, silence."""

from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.kernel.inputs import Drained
from holdfast.kernel.messages import Record
from holdfast.kernel.node import InvariantBroken
from holdfast.kernel.outbox import NOW, Append, Disconnect, Send, SetTimer, Snapshot
from holdfast.kernel.queues import Lane
from holdfast.kernel.sequencing import Deposed, Elected
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.core.commands import Applied, CoreState
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.cursors.messages import CommitStages, StageEvents
from holdfast.protocols.sessions.messages import (
    Accepted,
    CloseSession,
    Dropped,
    OpenSession,
    Overflow,
    Ping,
    Pong,
    Progress,
    Publish,
    Redirect,
    Refusal,
    SessionClosed,
    SessionOpened,
    Subscribe,
    Subscribed,
    SubscriptionEnded,
    Unsubscribe,
    Unsubscribed,
)
from tests.sessions.bench import EPOCH, WALL, BrokerBench, batch, sent, shown

OPENED = SessionOpened(EPOCH, 0, 4096, WALL)
S, P = "client:s", "client:p"


def with_subscriber(window: int = 3, overflow: Overflow = Overflow.DISCONNECT, **settings: Any) -> BrokerBench:
    """A broker with a subscriber `s` to everything and a publisher `p`."""
    bench = BrokerBench(**settings)
    bench.open("s", Subscribe(1, "n > 0", overflow, window))
    bench.open("p")
    return bench


# --------------------------------------------------------------------------------------------------------- sessions
def test_a_session_is_opened_and_a_turn_is_answered_once() -> None:
    bench = BrokerBench(alternates=("b2:1",))
    said = [Subscribe(1, "n > 0", Overflow.DISCONNECT, 3), Publish(1, batch(1, 2)), Publish(3, batch(3, 4), 0), Ping()]
    assert bench.open("s", *said) == [
        (S, Pong()),
        (S, SessionOpened(EPOCH, 0, 4096, WALL, (), ("b2:1",))),
        (S, Subscribed(1)),
        (S, Accepted(4)),
        (S, "Deliver", [(1, 1, 1), (1, 2, 2), (1, 3, 3)]),
    ]


def test_control_waits_for_the_disk_and_leaves_before_events_and_a_pong_waits_for_nothing() -> None:
    bench = BrokerBench(durable=True)
    bench.handle(bench.up("s"))
    said = [OpenSession(1), Subscribe(1, "n > 0"), Publish(1, batch(1)), Ping()]
    effects = bench.handle(bench.received("s", *said))
    assert [type(effect) for effect in effects if not isinstance(effect, SetTimer)] == [
        Send,
        Append,
        Append,
        Send,
        Send,
        Send,
        Send,
    ]
    assert isinstance(effects[0], Send)
    assert effects[0].after is NOW
    last = effects[-1]
    assert isinstance(last, Send)
    assert last.lane is Lane.USER
    queue = bench.out.queue(S)
    assert [type(entry.message) for entry in queue.take(0, 1 << 20)[0]] == [Pong]
    assert [type(entry.message).__name__ for entry in queue.take(2, 1 << 20)[0]] == [
        "SessionOpened", "Subscribed", "Accepted", "Deliver",
    ]  # fmt: skip


def test_what_is_asked_before_a_session_is_open_is_not_done() -> None:
    bench = BrokerBench()
    bench.handle(bench.up("s"))
    early = [Subscribe(1, "n > 0"), Unsubscribe(1), Publish(1, batch(1)), Progress((1,), (0,), (0,))]
    assert bench.say("s", *early) == []
    assert bench.say("s", CloseSession()) == [(S, SessionClosed())]


def test_a_session_that_is_asked_for_twice_goes_on() -> None:
    bench = with_subscriber()
    bench.say("p", Publish(1, batch(1)))
    assert bench.say("s", OpenSession(1)) == [(S, OPENED)]


def test_a_resumed_session_gets_what_its_client_has_not_received_and_no_more_than_it_has_room_for() -> None:
    bench = with_subscriber()
    bench.say("p", Publish(1, batch(1, 2, 3, 4, 5, 6)))
    bench.handle(bench.down("s"))
    bench.handle(bench.up("s"))
    resumed = bench.say("s", OpenSession(1, EPOCH, (1, 7), (2, 5), (1, 5)))
    opened = SessionOpened(EPOCH, 0, 4096, WALL, (7,))
    assert resumed == [(S, opened), (S, "Deliver", [(1, 3, 3), (1, 4, 4)])]


def test_a_resumed_session_hears_of_refusals_again() -> None:
    bench = with_subscriber()
    bench.say("p", Publish(1, batch(1, m=float("nan"))))
    bench.handle(bench.down("p"))
    bench.handle(bench.up("p"))
    (opened,) = sent(bench.say("p", OpenSession(1, EPOCH)), P)
    assert [(number, reason) for number, reason, _ in opened.refused] == [(1, Refusal.EVENT)]


def test_a_new_life_of_a_client_gets_nothing_of_the_old_one() -> None:
    bench = with_subscriber()
    bench.say("p", Publish(1, batch(1)))
    bench.handle(bench.down("s"))
    assert bench.open("s", instance=2) == [(S, SessionOpened(EPOCH + 1, 0, 4096, WALL))]
    assert bench.say("p", Publish(2, batch(2), 1)) == [(P, Accepted(2))]


def test_what_an_older_link_was_to_hear_is_not_said_on_a_newer_one() -> None:
    bench = with_subscriber()
    bench.say("p", Publish(1, batch(1)))
    # The newer link comes before the end of the older one is known, and in the same turn.
    older = bench.received("s", Subscribe(2, "n > 0"), Publish(1, batch(1)))
    gone = bench.down("s")
    effects = bench.handle(older, bench.up("s"), gone)
    assert sent(shown(effects), S) == []
    assert sent(bench.say("s", OpenSession(1, EPOCH, (1,), (0,), (0,))), S) == [
        SessionOpened(EPOCH, 1, 4096, WALL),
        ("Deliver", [(1, 1, 1), (1, 2, 1), (2, 1, 1)]),
    ]


def test_what_waits_for_a_link_goes_with_it() -> None:
    bench = with_subscriber()
    bench.handle(bench.received("p", Publish(1, batch(1))))
    assert bench.out.queue(S).bytes > 0
    bench.handle(bench.down("s"), bench.up("s"))
    assert bench.out.queue(S).bytes == 0


def test_numbers_of_another_session_do_not_count() -> None:
    bench = with_subscriber()
    bench.say("p", Publish(1, batch(1, 2)))
    bench.handle(bench.down("s"), bench.up("s"))
    # The client never heard of its session, and tells of the one before.
    opened = sent(bench.say("s", OpenSession(1, EPOCH - 1, (1,), (2,), (2,))), S)
    assert opened == [OPENED, ("Deliver", [(1, 1, 1), (1, 2, 2)])]


def test_a_goodbye_ends_the_session_after_what_was_said_before() -> None:
    bench = with_subscriber()
    said = bench.say("s", Publish(1, batch(1)), CloseSession())
    assert said == [(S, Accepted(1)), (S, SessionClosed()), (S, "Deliver", [(1, 1, 1)])]
    assert bench.say("p", Publish(1, batch(2))) == [(P, Accepted(1))]
    assert bench.say("s", CloseSession()) == [(S, SessionClosed())]


def test_every_client_is_sent_elsewhere_by_a_broker_that_redirects() -> None:
    bench = BrokerBench(redirect=("b2:1", "b3:1"))
    assert bench.open("s", Subscribe(1, "n > 0")) == [(S, Redirect(("b2:1", "b3:1")))]


# ----------------------------------------------------------------------------------------------------------- credit
def test_no_more_is_sent_than_the_client_has_room_for() -> None:
    bench = with_subscriber(window=3)
    assert sent(bench.say("p", Publish(1, batch(1, 2, 3, 4, 5))), S) == [("Deliver", [(1, 1, 1), (1, 2, 2), (1, 3, 3)])]
    assert sent(bench.say("s", Progress((1,), (3,), (0,))), S) == []
    assert sent(bench.say("s", Progress((1,), (3,), (1,))), S) == [("Deliver", [(1, 4, 4)])]
    assert sent(bench.say("s", Progress((1,), (2,), (1,))), S) == []  # older news
    assert sent(bench.say("s", Progress((1,), (4,), (4,))), S) == [("Deliver", [(1, 5, 5)])]
    assert sent(bench.say("s", Progress((1,), (4,), (0,))), S) == []
    assert sent(bench.say("p", Publish(6, batch(6), 5)), S) == [("Deliver", [(1, 6, 6)])]


def test_events_of_a_turn_are_sent_in_messages_of_bounded_size() -> None:
    bench = with_subscriber(window=100, deliver_events=3)
    deliveries = sent(bench.say("p", Publish(1, batch(*range(1, 8)))), S)
    assert [len(rows) for _, rows in deliveries] == [3, 3, 1]
    size = len(batch(1, payload=b"x" * 100)) - 1
    bench = with_subscriber(window=100, deliver_bytes=2 * size)
    deliveries = sent(bench.say("p", Publish(1, batch(1, 2, 3, 4, 5, payload=b"x" * 100))), S)
    assert [len(rows) for _, rows in deliveries] == [2, 2, 1]
    bench = with_subscriber(window=100, deliver_bytes=1)
    assert len(sent(bench.say("p", Publish(1, batch(1, 2))), S)) == 2


def test_events_wait_in_their_subscription_while_the_link_is_slow() -> None:
    bench = with_subscriber(window=100, queue_bytes_max=500)
    effects = bench.handle(bench.received("p", Publish(1, batch(*range(1, 11), payload=b"x" * 100))))
    assert len(sent(shown(effects), S)[0][1]) == 5  # with the one that passes the limit
    assert sent(shown(bench.handle(bench.received("p", Publish(11, batch(11))))), S) == []
    queue = bench.out.queue(S)
    assert queue.low_water == 0
    bench.drain()
    assert sent(shown(bench.handle(Drained(S, 1, 1))), S) == [("Deliver", [(1, n, n) for n in range(6, 11)])]
    bench.drain()
    assert sent(shown(bench.handle(Drained(S, 1, 1))), S) == [("Deliver", [(1, 11, 11)])]
    assert bench.handle(Drained("client:nobody", 1, 1)) == []


def test_what_one_turn_collects_for_a_client_is_bounded_too() -> None:
    bench = BrokerBench(queue_bytes_max=500)
    bench.open("s", Subscribe(1, "n > 0", Overflow.DISCONNECT, 100), Subscribe(2, "n > 0", Overflow.DISCONNECT, 100))
    bench.open("p")
    rows = sent(bench.say("p", Publish(1, batch(*range(1, 11), payload=b"x" * 100))), S)[0][1]
    assert {subscription for subscription, _, _ in rows} == {1}


def test_the_client_is_told_what_was_dropped_and_goes_on_behind_it() -> None:
    bench = with_subscriber(window=2, overflow=Overflow.DROP_OLDEST, limits=CoreLimits(backlog_events=3))
    assert sent(bench.say("p", Publish(1, batch(1, 2, 3))), S) == [("Deliver", [(1, 1, 1), (1, 2, 2)])]
    assert sent(bench.say("p", Publish(4, batch(4, 5, 6, 7))), S) == [Dropped(1, 4)]
    assert sent(bench.say("s", Progress((1,), (4,), (4,))), S) == [("Deliver", [(1, 5, 5), (1, 6, 6)])]


def test_a_single_event_that_was_dropped_is_told_too() -> None:
    bench = with_subscriber(window=2, overflow=Overflow.DROP_OLDEST, limits=CoreLimits(backlog_events=3))
    bench.say("p", Publish(1, batch(1, 2, 3)))
    assert sent(bench.say("p", Publish(4, batch(4, 5, 6))), S) == [Dropped(1, 3)]
    assert sent(bench.say("s", Progress((1,), (3,), (3,))), S) == [("Deliver", [(1, 4, 4), (1, 5, 5)])]


def test_a_subscription_that_ends_in_a_turn_still_sends_what_it_had() -> None:
    bench = with_subscriber()
    effects = bench.handle(bench.received("p", Publish(1, batch(1))), bench.received("s", Unsubscribe(1)))
    assert sent(shown(effects), S) == [Unsubscribed(1), ("Deliver", [(1, 1, 1)])]


def test_nothing_of_a_subscription_is_sent_or_kept_after_its_end() -> None:
    bench = with_subscriber(window=2)
    bench.say("p", Publish(1, batch(1, 2, 3)))
    bench.say("s", Unsubscribe(1))
    assert sent(shown(bench.advance(10 * SECOND)), S) == []
    host = bench.desk
    deliveries = host._deliveries
    assert (deliveries._unconfirmed, deliveries._cursors[S]) == ({}, {})
    assert bench.say("s", Progress((1,), (2,), (2,))) == []


# ------------------------------------------------------------------------------------------------------- repetition
def test_what_is_not_confirmed_is_sent_again_ever_more_rarely() -> None:
    bench = with_subscriber(silent_after=100 * SECOND, repeat_after=SECOND)
    bench.say("p", Publish(1, batch(1, 2)))
    times = []
    for _ in range(60):
        if sent(shown(bench.advance(SECOND // 2)), S) == [("Deliver", [(1, 1, 1), (1, 2, 2)])]:
            times.append(bench.out.now / SECOND)
    assert times == [1, 3, 7, 15, 23]
    assert bench.say("s", Progress((1,), (2,), (2,))) == []
    assert sent(shown(bench.advance(30 * SECOND)), S) == []


def test_what_is_sent_after_a_long_silence_is_not_repeated_at_once() -> None:
    bench = with_subscriber(repeat_after=SECOND)
    bench.say("p", Publish(1, batch(1)))
    bench.say("s", Progress((1,), (1,), (1,)))
    bench.advance(5 * SECOND)
    bench.say("p", Publish(2, batch(2), 1))
    assert sent(shown(bench.advance(SECOND - 1)), S) == []
    assert sent(shown(bench.advance(1)), S) == [("Deliver", [(1, 2, 2)])]


def test_progress_makes_repetition_quick_again_and_only_what_is_missing_is_repeated() -> None:
    bench = with_subscriber(repeat_after=SECOND)
    bench.say("p", Publish(1, batch(1, 2, 3)))
    bench.advance(4 * SECOND)
    bench.say("s", Progress((1,), (1,), (0,)))
    assert sent(shown(bench.advance(SECOND)), S) == [("Deliver", [(1, 2, 2), (1, 3, 3)])]


def test_a_client_that_misses_something_gets_it_at_once_but_not_twice() -> None:
    bench = with_subscriber(window=10)
    bench.say("p", Publish(1, batch(1, 2, 3)))
    missing = Progress((1,), (1,), (0,), True)
    assert sent(bench.say("s", missing), S) == []  # it has only just been sent
    bench.advance(100 * MILLISECOND)
    assert sent(bench.say("s", missing), S) == [("Deliver", [(1, 2, 2), (1, 3, 3)])]
    bench.advance(99 * MILLISECOND)
    assert sent(bench.say("s", missing), S) == []
    bench.advance(MILLISECOND)
    assert sent(bench.say("s", Progress((1,), (0,), (0,), True)), S) == []  # older news
    assert sent(bench.say("s", missing), S) == [("Deliver", [(1, 2, 2), (1, 3, 3)])]


def test_a_client_without_credit_is_asked_how_far_it_is() -> None:
    bench = with_subscriber(window=2, repeat_after=SECOND)
    bench.say("p", Publish(1, batch(1, 2, 3)))
    bench.say("s", Progress((1,), (2,), (0,)))
    assert sent(shown(bench.advance(SECOND)), S) == [Dropped(1, 2)]
    assert sent(bench.say("s", Progress((1,), (2,), (2,))), S) == [("Deliver", [(1, 3, 3)])]


def test_an_end_is_told_until_the_client_knows() -> None:
    bench = with_subscriber(limits=CoreLimits(backlog_events=2))
    ended = SubscriptionEnded(1, "overflow: more than 2 events or 8388608 bytes wait")
    assert sent(bench.say("p", Publish(1, batch(1, 2, 3))), S) == [ended, ("Deliver", [(1, 1, 1), (1, 2, 2)])]
    assert sent(shown(bench.advance(SECOND)), S) == [ended, ended]
    bench.handle(bench.down("s"))
    bench.handle(bench.up("s"))
    opened = replace(OPENED, report_every=1)
    assert bench.say("s", OpenSession(1, EPOCH, (1,), (0,), (0,))) == [(S, opened), (S, ended)]
    assert bench.say("s", Unsubscribe(1)) == [(S, Unsubscribed(1))]
    assert sent(shown(bench.advance(SECOND)), S) == []


# ---------------------------------------------------------------------------------------------------------- silence
def test_a_silent_link_is_closed_and_any_message_counts_as_life() -> None:
    bench = BrokerBench()
    bench.open("s")
    bench.advance(10 * SECOND)
    bench.say("s", Ping())
    assert shown(bench.advance(14 * SECOND)) == []
    assert shown(bench.advance(SECOND)) == [Disconnect(bench.links["s"], "nothing heard for 15 s")]
    assert shown(bench.advance(2 * SECOND)) == []  # said once


def test_a_client_that_stays_away_loses_its_subscriptions_and_not_its_session() -> None:
    bench = with_subscriber(away_after=60 * SECOND, silent_after=10**6 * SECOND)
    bench.handle(bench.down("s"))
    bench.advance(59 * SECOND)
    bench.say("p", Publish(1, batch(1)))
    bench.advance(SECOND)
    bench.handle(bench.up("s"))
    resumed = bench.say("s", OpenSession(1, EPOCH, (1,), (0,), (0,)))
    assert resumed == [(S, SessionOpened(EPOCH, 0, 4096, WALL, (1,)))]
    assert shown(bench.advance(100 * SECOND)) == []


def test_a_client_that_comes_back_in_time_keeps_everything() -> None:
    bench = with_subscriber(away_after=60 * SECOND, silent_after=10**6 * SECOND)
    bench.handle(bench.down("s"))
    bench.advance(50 * SECOND)
    bench.handle(bench.up("s"))
    bench.say("s", OpenSession(1, EPOCH, (1,), (0,), (0,)))
    bench.advance(50 * SECOND)
    assert sent(bench.say("p", Publish(1, batch(1))), S) == [("Deliver", [(1, 1, 1)])]


def test_a_client_that_stays_away_from_a_new_leader_loses_its_subscriptions_too() -> None:
    """What is kept for those who never come back would be kept for ever."""
    bench = with_subscriber(away_after=60 * SECOND, silent_after=10**6 * SECOND)
    bench.handle(bench.down("s"))
    bench.desk.on_deposed(Deposed(), bench.out)
    bench.advance(100 * SECOND)
    assert bench.desk._core.sessions[S].subscriptions
    bench.desk.on_elected(Elected(), bench.out)
    bench.handle()
    bench.advance(59 * SECOND)
    assert bench.desk._core.sessions[S].subscriptions
    bench.advance(2 * SECOND)
    assert not bench.desk._core.sessions[S].subscriptions


def test_a_broker_alone_sets_no_timer() -> None:
    bench = BrokerBench()
    assert bench.timers == {}
    bench.handle(bench.up("s"), bench.down("s"))
    bench.advance(10 * SECOND)
    assert bench.timers == {}


# ---------------------------------------------------------------------------------------------------------- journal
def journal(bench: BrokerBench) -> list[Record]:
    return [one.record for one in bench.out.stored if isinstance(one, Append) and one.stream == "state"]


def test_a_broker_that_is_started_again_goes_on_where_its_journal_ends() -> None:
    bench = BrokerBench(durable=True)
    bench.open("s", Subscribe(1, "n > 0"))
    bench.open("p", Publish(1, batch(1, 2)))
    records = journal(bench)
    assert all(isinstance(record, Applied) for record in records)
    again = BrokerBench(durable=True, streams={"state": records})
    assert ("sessions", "tick") in again.timers  # whoever does not come back is forgotten in time
    again.handle(again.up("s"))
    resumed = again.say("s", OpenSession(1, EPOCH, (1,), (1,), (1,)))
    assert resumed[-2:] == [(S, replace(OPENED, log_id="disk")), (S, "Deliver", [(1, 2, 2)])]
    again.handle(again.up("p"))
    assert again.say("p", OpenSession(1, EPOCH), Publish(2, batch(2, 3), 1))[-3:] == [
        (P, replace(OPENED, accepted=2, log_id="disk")),
        (P, Accepted(3)),
        (S, "Deliver", [(1, 3, 3)]),
    ]


def test_a_snapshot_takes_the_journals_place_now_and_then() -> None:
    bench = BrokerBench(durable=True)
    sequencer = bench.node.parts[0]
    sequencer._snapshot_every = 4
    bench.open("s", Subscribe(1, "n > 0"))
    bench.open("p", Publish(1, batch(1)))
    kinds = [(type(stored).__name__, stored.stream) for stored in bench.out.stored]
    # The snapshot comes last: on a disk that kept it, the log has the events that it speaks of.
    assert kinds == [("Append", "state"), ("Append", "state"), ("Append", "events"), ("Snapshot", "state")]
    state = bench.out.stored[-1]
    assert isinstance(state, Snapshot)
    assert isinstance(state.record, CoreState)
    again = BrokerBench(durable=True, streams={"state": [state.record]}, log_end=2)
    again.handle(again.up("s"))
    assert again.say("s", OpenSession(1, EPOCH, (1,), (0,), (0,)))[-1] == (S, "Deliver", [(1, 1, 1)])


def test_snapshots_are_as_far_apart_as_was_asked_for_also_over_a_restart() -> None:
    def stored(bench: BrokerBench) -> list[str]:
        return [type(one).__name__ for one in bench.out.stored if one.stream == "state"]

    bench = BrokerBench(durable=True)
    bench.node.parts[0]._snapshot_every = 3
    bench.open("s")
    for n in range(1, 6):
        bench.say("s", Publish(n, batch(n)))
    assert stored(bench) == ["Append", "Append", "Append", "Snapshot", "Append", "Append", "Append", "Snapshot"]
    records = journal(bench)[:2]
    again = BrokerBench(durable=True, streams={"state": records})
    again.node.parts[0]._snapshot_every = 3
    again.open("s", epoch=EPOCH)
    assert stored(again) == ["Append", "Snapshot"]


def test_a_large_state_is_not_written_again_before_the_journal_is_as_large() -> None:
    bench = BrokerBench(durable=True)
    bench.node.parts[0]._snapshot_every = 1
    bench.open("s", Subscribe(1, "n > 0"))
    bench.say("s", Publish(1, batch(1, payload=b"x" * 5_000)))  # which waits for the subscriber: a part of the state

    def snapshots() -> int:
        return sum(isinstance(one, Snapshot) for one in bench.out.stored)

    before = snapshots()
    for n in range(2, 80):
        bench.say("s", Publish(n, batch(n)))
    assert snapshots() - before == 1  # and not 78


def test_a_snapshot_takes_the_place_of_a_journal_of_many_bytes_too() -> None:
    bench = BrokerBench(durable=True)
    bench.node.parts[0]._snapshot_after_bytes = 20_000
    bench.open("p")

    def snapshots() -> int:
        return sum(isinstance(one, Snapshot) for one in bench.out.stored)

    for n in range(1, 4):
        bench.say("p", Publish(n, batch(n, payload=b"x" * 6_000)))
        assert snapshots() == 0
    bench.say("p", Publish(4, batch(4, payload=b"x" * 6_000)))
    assert snapshots() == 1


def test_what_is_staged_is_not_written_again_in_a_snapshot_if_it_is_most_of_the_journal() -> None:
    bench = BrokerBench(durable=True)
    bench.node.parts[0]._snapshot_after_bytes = 20_000
    bench.open("p")
    for part in range(1, 6):
        bench.say("p", StageEvents(part, "q", 1, 0, "s", part, batch(part, payload=b"x" * 6_000)))
    assert [one for one in bench.out.stored if isinstance(one, Snapshot)] == []
    bench.say("p", CommitStages(6, "q", 1, ("s",)))
    (state,) = [one for one in bench.out.stored if isinstance(one, Snapshot)]
    assert isinstance(state.record, CoreState)
    assert len(state.record.state) < 6_000


def test_a_journal_with_a_gap_stops_the_node() -> None:
    bench = BrokerBench(durable=True)
    bench.open("s")
    bench.say("s", Publish(1, batch(1)))
    records = journal(bench)
    assert [record.number for record in records if isinstance(record, Applied)] == [1, 2]
    for broken in (records[1:], records[:1] * 2):
        with pytest.raises(InvariantBroken, match="no gap"):
            BrokerBench(durable=True, streams={"state": broken})
    with pytest.raises(InvariantBroken, match="commands and states"):
        BrokerBench(durable=True, streams={"state": [Record()]})


@pytest.mark.parametrize("durable", [True, False])
def test_only_a_durable_broker_writes(durable: bool) -> None:
    bench = BrokerBench(durable=durable)
    bench.open("s", Subscribe(1, "n > 0"))
    assert len(bench.out.stored) == (1 if durable else 0)
