"""The client: where it connects, what it keeps over lost links, and what its application is told."""

from typing import Any

import pytest

from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Received, Requested, Started, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.node import InvariantBroken
from holdfast.kernel.outbox import NOW, Connect, Disconnect, Send, SetTimer
from holdfast.kernel.queues import Lane
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.model.event import EventBytes
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.addresses import REDIRECTS_MAX
from holdfast.protocols.sessions.conversation import ClientSettings, Conversation, Phase
from holdfast.protocols.sessions.messages import (
    Accepted,
    CloseSession,
    Deliver,
    Dropped,
    OpenSession,
    Overflow,
    Ping,
    Pong,
    Progress,
    Redirect,
    Refusal,
    SessionClosed,
    SessionOpened,
    SessionRefused,
    Subscribe,
    Subscribed,
    SubscribeRefused,
    SubscriptionEnded,
    Unsubscribe,
    Unsubscribed,
)
from holdfast.protocols.sessions.requests import (
    Close,
    Closed,
    Connected,
    Consume,
    Disconnected,
    EndSubscription,
    EventsMissed,
    MakeSubscription,
    NewEvent,
    NotReached,
    Published,
    PublishEvents,
    SessionLost,
    SubscriptionLost,
    SubscriptionMade,
    SubscriptionOver,
    SubscriptionRefused,
)
from tests.sessions.bench import ClientBench, batch, sent, shown

INSTANCE = ClientBench().part._instance


def publish(count: int = 1, retry: bool = True) -> PublishEvents:
    return PublishEvents([NewEvent({"n": n}) for n in range(count)], retry)


def deliver(*numbers: int, subscription: int = 1, first: int | None = None) -> Deliver:
    """Events of a publisher with the sequences of these numbers, as events with these numbers, or from `first` on."""
    runs: list[tuple[int, int, int]] = []
    for place in numbers if first is None else range(first, first + len(numbers)):
        if runs and sum(runs[-1][1:]) == place:
            runs[-1] = (subscription, runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((subscription, place, 1))
    return Deliver(runs, batch(*numbers))


def completed(request: int, result: Any) -> tuple[str, int, Any]:
    return ("complete", request, result)


def report(result: Any) -> tuple[str, int, Any]:
    return completed(requests.UNSOLICITED, result)


def subscribed(window: int = 100, **settings: Any) -> ClientBench:
    """A client with one live subscription, made by request 1."""
    bench = ClientBench(**settings)
    bench.open()
    bench.ask(MakeSubscription("n > 0", Overflow.DISCONNECT, window))
    assert bench.say(Subscribed(1)) == [completed(1, SubscriptionMade(1))]
    return bench


def pauses(bench: ClientBench, rounds: int, address: str = "a:1") -> list[int]:
    """How long the client waits between failing attempts."""
    found = []
    for _ in range(rounds):
        effects = bench.handle(ConnectFailed("", bench.part._address, "refused"))
        found += [effect.after for effect in effects if isinstance(effect, SetTimer)]
        bench.advance(found[-1])
    return found


# ------------------------------------------------------------------------------------------------------- connecting
def test_a_client_says_who_it_is_as_soon_as_it_has_a_link() -> None:
    bench = ClientBench()
    assert shown(bench.handle(Started(3))) == [Connect("", "a:1")]
    assert shown(bench.handle(bench.up())) == [("b1", OpenSession(INSTANCE))]
    assert bench.say(SessionOpened(5, 0, 100, 9)) == [report(Connected("a:1", "b1", False))]
    assert bench.part.phase is Phase.OPEN


def test_addresses_are_tried_in_turn() -> None:
    bench = ClientBench("a:1", "a:2", "a:3", opening_max_with_choice=5 * SECOND)
    tried = [effect.address for effect in bench.handle(Started(1)) if isinstance(effect, Connect)]
    for _ in range(4):
        bench.handle(ConnectFailed("", tried[-1], "refused"))
        tried += [effect.address for effect in bench.advance(5 * SECOND) if isinstance(effect, Connect)]
    assert tried == ["a:1", "a:2", "a:3", "a:1", "a:2"]


def test_pauses_double_up_to_a_limit_and_are_shortened_at_random_by_up_to_half() -> None:
    bench = ClientBench(pause_min=100, pause_max=3000)
    bench.handle(Started(1))
    found = pauses(bench, 8)
    for pause, whole in zip(found, [100, 200, 400, 800, 1600, 3000, 3000, 3000], strict=True):
        assert whole // 2 <= pause <= whole
    assert len(set(found[-3:])) == 3


def test_a_session_makes_pauses_short_again() -> None:
    bench = ClientBench(pause_min=100, pause_max=3000)
    bench.handle(Started(1))
    pauses(bench, 6)
    bench.open()
    bench.handle(bench.down())
    assert bench.timers["client", "pause"] - bench.out.now <= 100


def test_a_very_long_outage_does_not_overflow_the_pause() -> None:
    bench = ClientBench(pause_min=1, pause_max=7)
    bench.handle(Started(1))
    assert max(pauses(bench, 100)) <= 7


def test_an_attempt_that_takes_too_long_is_given_up() -> None:
    bench = ClientBench("a:1", "a:2")
    bench.handle(Started(1))
    assert shown(bench.advance(1 * SECOND)) == [report(NotReached("a:1", "no answer in time"))]
    assert shown(bench.advance(SECOND // 2)) == [Connect("", "a:2")]
    # The first one comes through after all, and is not wanted.
    assert shown(bench.handle(bench.up())) == [Disconnect(1, "not wanted any more")]
    assert bench.handle(ConnectFailed("", "a:1", "late")) == []
    assert bench.part.phase is Phase.CONNECTING


def test_a_link_without_a_session_is_given_up() -> None:
    bench = ClientBench(repeat_after=10**6 * SECOND)
    bench.handle(Started(1))
    bench.handle(bench.up())
    assert shown(bench.advance(5 * SECOND)) == [Disconnect(1, "no session in time")]
    assert shown(bench.handle(bench.down())) == [report(NotReached("a:1", "gone"))]
    assert bench.part.phase is Phase.PAUSING


def test_a_redirect_is_followed_at_once_and_the_old_broker_is_not_heard_any_more() -> None:
    bench = ClientBench(opening_max_with_choice=5 * SECOND)
    bench.handle(Started(1))
    bench.handle(bench.up())
    assert bench.say(Redirect(("z:1", "z:2"))) == [Disconnect(1, "redirected"), Connect("", "z:1")]
    old = bench.received(SessionOpened(5, 0, 100, 9))
    assert shown(bench.handle(old)) == []
    up = bench.up("b9", "z:1")
    assert shown(bench.handle(LinkDown(1, "b1", "redirected"), up)) == [("b9", OpenSession(INSTANCE))]
    assert bench.say(SessionOpened(5, 0, 100, 9), broker="b9") == [report(Connected("z:1", "b9", False))]
    bench.handle(bench.down("b9"))
    tried = []
    for _ in range(3):
        tried += [effect.address for effect in bench.advance(5 * SECOND) if isinstance(effect, Connect)]
        bench.handle(ConnectFailed("", tried[-1], ""))
    assert tried == ["z:2", "a:1", "z:1"]


def test_the_word_of_a_broker_that_was_left_behind_does_not_count_on_a_newer_link() -> None:
    bench = ClientBench()
    bench.handle(Started(1))
    bench.handle(bench.up())
    bench.say(Redirect(("z:1",)))
    bench.handle(LinkUp(2, "b9", 1, Role.BROKER, True, "z:1"))
    assert bench.say(SessionOpened(5, 0, 100, 9), SessionRefused(Refusal.LIMIT, "x"), Redirect(("y:1",))) == []
    assert bench.part.phase is Phase.OPENING
    older = [Accepted(9), SessionRefused(Refusal.LIMIT, "x"), SubscriptionEnded(1, "x"), SessionClosed()]
    opened = Received(2, "b9", [SessionOpened(5, 0, 100, 9)])
    assert shown(bench.handle(opened, bench.received(*older))) == [report(Connected("z:1", "b9", False))]


@pytest.mark.parametrize("addresses", [("z:1",), ()])
def test_redirects_without_end_lead_to_a_pause(addresses: tuple[str, ...]) -> None:
    bench = ClientBench()
    bench.handle(Started(1))
    followed = 0
    while followed < 2 * REDIRECTS_MAX:
        bench.handle(LinkUp(followed + 1, "b", 1, Role.BROKER, True, bench.part._address))
        bench._last_link = followed + 1
        rows = bench.say(Redirect(addresses), broker="b")
        if rows[-1] != Connect("", "z:1"):
            break
        followed += 1
    assert followed == (REDIRECTS_MAX if addresses else 0)
    assert rows == [Disconnect(followed + 1, "sent from one broker to the next")]
    bench.handle(LinkDown(followed + 1, "b", ""))
    assert bench.part.phase is Phase.PAUSING


def test_a_session_makes_room_for_redirects_again() -> None:
    bench = ClientBench()
    bench.handle(Started(1))
    for link in range(1, 3 * REDIRECTS_MAX):
        bench.handle(LinkUp(link, "b", 1, Role.BROKER, True, bench.part._address))
        bench._last_link = link
        if link % REDIRECTS_MAX:
            assert bench.say(Redirect(("z:1",)), broker="b")[-1] == Connect("", "z:1")
        else:
            bench.say(SessionOpened(5, 0, 100, 9), broker="b")
            bench.handle(bench.down("b"))
            bench.advance(SECOND)


def test_alternates_are_tried_too() -> None:
    bench = ClientBench()
    bench.handle(Started(1))
    bench.handle(bench.up())
    bench.say(SessionOpened(5, 0, 100, 9, (), ("z:1", "a:1")))
    bench.handle(bench.down())
    assert shown(bench.advance(SECOND)) == [Connect("", "z:1")]


def test_a_timer_that_fired_in_the_turn_of_the_goodbye_does_not_wake_the_client() -> None:
    bench = ClientBench()
    bench.handle(Started(1), ConnectFailed("", "a:1", ""))
    assert bench.ask(Close()) == [completed(1, Closed())]
    assert bench.handle(TimerFired(("client", "pause")), TimerFired(("client", "opening"))) == []
    assert bench.part.phase is Phase.CLOSED


def test_a_timer_of_no_name_stops_the_node() -> None:
    with pytest.raises(InvariantBroken, match="known name"):
        ClientBench().handle(TimerFired(("client", "x")))


def test_a_request_of_no_kind_stops_the_node() -> None:
    with pytest.raises(InvariantBroken, match="knows what it is asked"):
        ClientBench().ask("dance")


# ------------------------------------------------------------------------------------------------------- publishing
def test_events_are_published_and_answered_request_by_request() -> None:
    bench = ClientBench()
    bench.open()
    assert bench.ask(publish(2), publish(1)) == [("b1", "Publish", 1, [1, 2, 3], 0)]
    assert bench.say(Accepted(1)) == []
    assert bench.say(Accepted(3)) == [completed(1, Published([])), completed(2, Published([]))]
    assert bench.ask(publish(1)) == [("b1", "Publish", 4, [4], 3)]


def test_events_travel_in_the_users_lane_and_everything_else_before_them() -> None:
    bench = ClientBench()
    bench.open()
    (effect,) = [effect for effect in bench.handle(Requested(1, publish())) if isinstance(effect, Send)]
    assert effect.lane is Lane.USER


def test_what_is_published_before_there_is_a_session_is_sent_when_there_is() -> None:
    bench = ClientBench()
    bench.handle(Started(1))
    assert bench.ask(publish(2)) == []
    assert bench.open()[-1] == ("b1", "Publish", 1, [1, 2], 0)


def test_no_more_is_in_flight_than_both_sides_allow() -> None:
    for own, brokers in ((3, 100), (100, 3)):
        bench = ClientBench(publish_window=own)
        bench.open(window=brokers)
        assert bench.ask(publish(5)) == [("b1", "Publish", 1, [1, 2, 3], 0)]
        assert bench.say(Accepted(2)) == [("b1", "Publish", 4, [4, 5], 2)]


def test_events_are_sent_in_batches_of_bounded_size() -> None:
    bench = ClientBench(batch_events=2)
    bench.open()
    assert [row[3] for row in bench.ask(publish(5))] == [[1, 2], [3, 4], [5]]
    bench = ClientBench(batch_bytes=250)
    bench.open()
    large = PublishEvents([NewEvent({}, payload=b"x" * 100) for _ in range(5)])
    assert [row[3] for row in bench.ask(large)] == [[1, 2], [3, 4], [5]]


def test_an_event_that_no_broker_accepts_is_refused_here_and_the_others_go() -> None:
    bench = ClientBench()
    bench.open()
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    bad: list[Any] = [float("nan"), 2**64, None, "\ud800", nested]
    events = [NewEvent({"n": 1})] + [NewEvent({"n": value}) for value in bad] + [NewEvent({"n": 2}, topic="t")]
    assert bench.ask(PublishEvents(events)) == [("b1", "Publish", 1, [1, 7], 0)]
    (row,) = bench.say(Accepted(2))
    assert [(place, reason) for place, reason, _ in row[2].refused] == [(n, Refusal.EVENT) for n in range(1, 6)]
    (row,) = bench.ask(PublishEvents([NewEvent({"n": float("nan")})]))
    assert row[:2] == ("complete", 2)
    assert bench.ask(PublishEvents([])) == [completed(3, Published([]))]


def test_what_the_broker_refuses_is_told_with_its_place() -> None:
    bench = ClientBench()
    bench.open()
    bench.ask(publish(1), publish(3))
    rows = bench.say(Accepted(4, ((3, Refusal.EVENT, "bad"), (4, Refusal.LIMIT, "much"))))
    refused: list[Any] = [(1, Refusal.EVENT, "bad"), (2, Refusal.LIMIT, "much")]
    assert rows == [completed(1, Published([])), completed(2, Published(refused))]


@pytest.mark.parametrize("accepted", [3, 2**63])
def test_an_acceptance_of_what_was_never_sent_ends_the_link(accepted: int) -> None:
    bench = ClientBench()
    bench.open()
    bench.ask(publish(2))
    reason = f"protocol error: event {accepted} is accepted, but only 2 were sent"
    assert bench.say(Accepted(accepted)) == [Disconnect(1, reason)]
    bench.handle(bench.down())
    bench.handle(*[TimerFired(("client", "pause"))])
    bench.handle(bench.up())
    assert bench.say(SessionOpened(5, accepted, 100, 9)) == [Disconnect(2, reason)]


def test_a_broker_that_takes_an_answer_back_loses_its_link() -> None:
    bench = ClientBench()
    bench.open()
    bench.ask(publish(2))
    bench.say(Accepted(2))
    bench.handle(bench.down())
    bench.handle(*[TimerFired(("client", "pause"))])
    bench.handle(bench.up())
    reason = "protocol error: events up to 2 were answered, and now only those up to 1 are accepted"
    assert bench.say(SessionOpened(5, 1, 100, 9)) == [Disconnect(2, reason)]


@pytest.mark.parametrize(
    "opened", [SessionOpened(0, 0, 100, 9), SessionOpened(-1, 0, 100, 9), SessionOpened(5, 0, 0, 9)]
)
def test_a_session_that_makes_no_sense_ends_the_link(opened: SessionOpened) -> None:
    bench = ClientBench()
    bench.handle(Started(1))
    bench.handle(bench.up())
    (row,) = bench.say(opened)
    assert isinstance(row, Disconnect)


def test_a_resumed_session_sends_again_what_is_not_accepted() -> None:
    bench = ClientBench()
    bench.open()
    bench.ask(publish(2), publish(2))
    lost = [report(Disconnected("gone"))]
    assert shown(bench.handle(bench.down())) == lost
    bench.advance(SECOND)
    assert shown(bench.handle(bench.up())) == [("b1", OpenSession(INSTANCE, 5))]
    rows = bench.say(SessionOpened(5, 3, 100, 9, (), (), ((2, Refusal.EVENT, "bad"),)))
    assert rows == [
        completed(1, Published([(1, Refusal.EVENT, "bad")])),
        report(Connected("a:1", "b1", True)),
        ("b1", "Publish", 4, [4], 3),
    ]


def test_what_waits_for_a_link_goes_with_it() -> None:
    bench = ClientBench()
    bench.open()
    bench.handle(Requested(1, publish(2)))
    assert bench.out.queue("b1").bytes > 0
    bench.handle(bench.down())
    assert bench.out.queue("b1").bytes == 0


def test_a_broker_that_forgot_only_this_client_leaves_what_was_sent_in_doubt() -> None:
    bench = ClientBench(publish_window=2)
    bench.open()
    bench.ask(publish(3))
    bench.handle(bench.down())
    bench.advance(SECOND)
    rows = bench.open(epoch=6)
    problem = "the broker does not know any more whether it accepted this event"
    assert rows == [report(Connected("a:1", "b1", False)), ("b1", "Publish", 1, [3], 0)]
    assert bench.say(Accepted(1)) == [completed(1, Published([(0, None, problem), (1, None, problem)]))]


def test_a_broker_that_forgot_everything_gets_what_was_not_answered_again() -> None:
    bench = ClientBench()
    bench.open()
    bench.ask(publish(3))
    bench.say(Accepted(1))
    bench.handle(bench.down())
    bench.advance(SECOND)
    rows = bench.open(epoch=6, memory=10)
    assert rows == [report(Connected("a:1", "b1", False)), ("b1", "Publish", 1, [2, 3], 0)]
    assert bench.say(Accepted(2)) == [completed(1, Published([]))]


def test_without_retry_an_event_that_a_lost_link_swallows_is_lost() -> None:
    """D1-B4.4."""
    bench = ClientBench()
    bench.handle(Started(1))
    assert bench.ask(publish(1, retry=False)) == [completed(1, Published([(0, None, "not connected")]))]
    bench.open()
    bench.ask(publish(2, retry=False), publish(1))
    problem = "the link was lost: gone"
    assert shown(bench.handle(bench.down())) == [
        report(Disconnected("gone")),
        completed(2, Published([(0, None, problem), (1, None, problem)])),
    ]
    bench.advance(SECOND)
    # The broker had taken one of the two, and may still come to the other: its number is skipped.
    assert bench.open(accepted=1)[-2:] == [("b1", "Publish", 2, [], 1), ("b1", "Publish", 3, [4], 1)]
    assert bench.say(Accepted(2)) == []
    assert bench.say(Accepted(3)) == [completed(3, Published([]))]


def test_what_is_not_answered_is_sent_again_ever_more_rarely() -> None:
    bench = ClientBench(ping_every=10**6 * SECOND)
    bench.open()
    bench.ask(publish(2))
    times = []
    for _ in range(50):
        if shown(bench.advance(SECOND // 2)) == [("b1", "Publish", 1, [1, 2], 0)]:
            times.append(bench.out.now / SECOND)
    assert times == [1, 3, 7, 15, 23]
    assert bench.say(Accepted(1)) == []
    assert shown(bench.advance(SECOND)) == [("b1", "Publish", 2, [2], 1)]


def test_an_answer_that_says_nothing_new_does_not_put_off_the_repetition() -> None:
    bench = ClientBench()
    bench.open()
    bench.ask(publish(2))
    bench.advance(SECOND // 2)
    bench.say(Accepted(0))
    assert shown(bench.advance(SECOND // 2)) == [("b1", "Publish", 1, [1, 2], 0)]


# --------------------------------------------------------------------------------------------------- subscriptions
def test_a_subscription_is_asked_for_when_there_is_a_session_and_again_without_an_answer() -> None:
    bench = ClientBench(ping_every=10**6 * SECOND)
    bench.handle(Started(1))
    assert bench.ask(MakeSubscription("n > 0", Overflow.BLOCK, 7)) == []
    subscribe = ("b1", Subscribe(1, "n > 0", Overflow.BLOCK, 7))
    assert bench.open()[-1] == subscribe
    assert shown(bench.advance(SECOND)) == [subscribe]
    assert bench.say(Subscribed(1), Subscribed(1), Subscribed(2)) == [completed(1, SubscriptionMade(1))]
    assert shown(bench.advance(SECOND)) == []


def test_a_refused_subscription_is_told_with_its_reason() -> None:
    bench = ClientBench()
    bench.open()
    bench.ask(MakeSubscription("n >"))
    rows = bench.say(SubscribeRefused(1, Refusal.FILTER, "no filter", 3, "a literal"))
    assert rows == [completed(1, SubscriptionRefused(Refusal.FILTER, "no filter", 3, "a literal"))]
    assert bench.say(Subscribed(1)) == []


def test_events_are_handed_over_once_and_in_order() -> None:
    bench = subscribed(report_after=10**6 * SECOND)
    assert bench.say(deliver(1, 2)) == [("deliver", 1, [1, 2])]
    assert bench.say(deliver(2, 3)) == [("deliver", 1, [3]), ("b1", Progress((1,), (3,), (0,)))]
    assert bench.say(deliver(5)) == [("b1", Progress((1,), (3,), (0,), True))]
    assert bench.say(deliver(4, 5)) == [("deliver", 1, [4, 5])]


def test_progress_is_reported_when_a_quarter_of_the_window_is_used_and_soon_otherwise() -> None:
    bench = subscribed(window=8, little_events=1)
    assert bench.say(deliver(1)) == [("deliver", 1, [1])]
    assert shown(bench.advance(10 * MILLISECOND - 1)) == []
    assert shown(bench.advance(1)) == [("b1", Progress((1,), (1,), (0,)))]
    assert bench.say(deliver(2, 3)) == [("deliver", 1, [2, 3]), ("b1", Progress((1,), (3,), (0,)))]
    bench.say(deliver(4))
    assert shown(bench.advance(10 * MILLISECOND)) == [("b1", Progress((1,), (4,), (0,)))]
    assert bench.ask(Consume(1, 1)) == []
    assert bench.ask(Consume(1, 1)) == [("b1", Progress((1,), (4,), (2,)))]
    assert bench.ask(Consume(9, 1)) == []


def test_a_gap_of_one_subscription_is_told_with_the_progress_of_others() -> None:
    bench = subscribed()
    bench.ask(MakeSubscription("n > 1", Overflow.DISCONNECT, 100))
    bench.say(Subscribed(2))
    rows = bench.say(deliver(1), deliver(2, subscription=2))
    assert rows == [("deliver", 1, [1]), ("b1", Progress((1, 2), (1, 0), (0, 0), True))]


def test_how_far_a_subscription_was_is_not_told_after_its_end() -> None:
    bench = subscribed()
    bench.say(deliver(1))
    bench.ask(EndSubscription(1))
    assert shown(bench.advance(SECOND // 2)) == []


def test_more_than_the_window_ends_the_link() -> None:
    bench = subscribed(window=2)
    bench.say(deliver(1, 2))
    assert bench.say(deliver(3)) == [Disconnect(1, "protocol error: event 3 of subscription 1 is beyond its window")]


def test_counts_that_differ_and_bytes_that_are_no_event_end_the_link() -> None:
    for message in (
        Deliver([(1, 1, 1)], batch()),
        Deliver([], batch(1)),
        Deliver([(1, 1, 2)], batch(1)),
        Deliver([(1, 1, 2), (1, 3, -1)], batch(1)),
        Deliver([(1, 1, 0), (1, 1, 1)], batch(1)),
        Deliver([(1, 1, 1)], batch(1), [(1, 2)]),
        Deliver([(1, 1, 2)], batch(1, 2), [(1, 3), (7, -1)]),
        Deliver([(1, 1, 1)], EventBytes(b"\x91\x95\xa1\xff\x01\x01\xa0\x80")),
        Deliver([(1, 1, 1)], EventBytes(b"\xc1")),
    ):
        (row,) = subscribed().say(message)
        assert isinstance(row, Disconnect)


def test_what_was_dropped_is_told_and_a_question_is_answered() -> None:
    bench = subscribed(report_after=10**6 * SECOND)
    bench.say(deliver(1))
    assert bench.say(Dropped(1, 4)) == [report(EventsMissed(1, 3, "overflow"))]
    assert bench.say(deliver(5)) == [("deliver", 1, [5])]
    assert bench.say(Dropped(1, 5)) == [("b1", Progress((1,), (5,), (0,)))]
    assert bench.say(Dropped(7, 5)) == []


def test_events_of_a_subscription_that_nobody_has_make_the_client_end_it() -> None:
    bench = subscribed()
    assert bench.say(deliver(1, 2, subscription=8)) == [("b1", Unsubscribe(8))]
    assert bench.say(Unsubscribed(8)) == []


def test_an_end_is_asked_for_until_it_is_confirmed_and_nothing_is_handed_over_meanwhile() -> None:
    bench = subscribed(ping_every=10**6 * SECOND)
    assert bench.ask(EndSubscription(1)) == [("b1", Unsubscribe(1))]
    assert bench.say(deliver(1)) == []
    assert bench.ask(EndSubscription(1)) == [("b1", Unsubscribe(1))]
    assert shown(bench.advance(2 * SECOND)) == [("b1", Unsubscribe(1))]
    assert bench.say(Unsubscribed(1)) == [completed(2, SubscriptionOver(1)), completed(3, SubscriptionOver(1))]
    assert bench.say(Unsubscribed(1)) == []
    assert bench.ask(EndSubscription(1)) == [completed(4, SubscriptionOver(1))]


def test_a_subscription_can_end_before_it_was_made() -> None:
    bench = ClientBench()
    bench.handle(Started(1))
    bench.ask(MakeSubscription("n > 0"))
    problem = SubscriptionRefused(None, "ended before it was confirmed")
    assert bench.ask(EndSubscription(1)) == [completed(1, problem)]
    assert bench.open()[-1] == ("b1", Unsubscribe(1))
    assert bench.say(Subscribed(1), Unsubscribed(1)) == [completed(2, SubscriptionOver(1))]


def test_an_end_by_the_broker_is_told_once_and_acknowledged_each_time() -> None:
    bench = subscribed()
    ended = SubscriptionEnded(1, "overflow")
    over = ("b1", Unsubscribe(1))
    assert bench.say(ended, ended) == [report(SubscriptionLost(1, "overflow")), over, over]
    assert bench.say(deliver(1), Unsubscribed(1), ended) == [over]


def test_a_resumed_session_says_how_far_its_subscriptions_are() -> None:
    bench = subscribed()
    bench.say(deliver(1, 2, 3))
    bench.ask(Consume(1, 1))
    bench.handle(bench.down())
    bench.advance(SECOND)
    assert shown(bench.handle(bench.up())) == [("b1", OpenSession(INSTANCE, 5, (1,), (3,), (1,)))]
    assert bench.say(SessionOpened(5, 0, 100, 9), deliver(4))[:2] == [
        report(Connected("a:1", "b1", True)),
        ("deliver", 1, [4]),
    ]


def test_a_forgotten_subscription_is_made_again_and_what_was_seen_is_not_handed_over_twice() -> None:
    bench = subscribed()
    bench.say(deliver(1, 2, 3))
    bench.handle(bench.down())
    bench.advance(SECOND)
    assert bench.open(epoch=6, memory=10) == [
        report(Connected("a:1", "b1", False)),
        report(EventsMissed(1, None, "the broker forgot the subscription")),
        ("b1", Subscribe(1, "n > 0", Overflow.DISCONNECT, 100)),
    ]
    assert bench.say(deliver(9)) == []  # of the time before it was made again
    assert bench.say(Subscribed(1)) == []
    assert bench.say(deliver(3, 4, first=1)) == [("deliver", 1, [4])]


def test_one_subscription_may_be_forgotten_in_a_session_that_is_resumed() -> None:
    bench = subscribed()
    bench.handle(bench.down())
    bench.advance(SECOND)
    bench.handle(bench.up())
    rows = bench.say(SessionOpened(5, 0, 100, 9, (1,)))
    assert rows[1:] == [
        report(EventsMissed(1, None, "the broker forgot the subscription")),
        ("b1", Subscribe(1, "n > 0", Overflow.DISCONNECT, 100)),
    ]


def test_a_broker_that_was_not_in_its_network_for_a_while_makes_one_gap_in_each_subscription() -> None:
    bench = subscribed()
    bench.ask(MakeSubscription("n > 9", Overflow.DISCONNECT, 100))  # which is not confirmed: nothing is owed to it yet
    bench.say(deliver(1, 2))
    told = report(EventsMissed(1, None, "its broker was not in the network for a while"))
    for since, gaps in ((0, []), (1_007, [told]), (1_007, []), (2_011, [told])):
        bench.handle(bench.down())
        bench.advance(SECOND)
        bench.handle(bench.up())
        rows = bench.say(SessionOpened(5, 0, 100, 9, member_since=since))
        assert [row for row in rows if row[0] == "complete"] == [report(Connected("a:1", "b1", True)), *gaps], since
    assert bench.say(deliver(3, first=3)) == [("deliver", 1, [3])], "what waited there comes all the same"


def test_a_session_that_begins_anew_knows_nothing_of_an_earlier_one() -> None:
    conversation = Conversation(ClientSettings("a", ("a:1",)))
    for since, resumed, was_apart in ((7, False, False), (7, True, False), (9, False, False), (11, True, True)):
        conversation.opened(SessionOpened(5, 0, 100, 9, member_since=since), resumed)
        assert conversation.was_apart is was_apart, since


def test_at_a_broker_that_was_away_before_the_session_began_there_is_no_gap() -> None:
    bench = ClientBench()
    bench.handle(Started(3), bench.up())
    bench.say(SessionOpened(5, 0, 100, 9, member_since=1_007))
    bench.ask(MakeSubscription("n > 0", Overflow.DISCONNECT, 100))
    bench.say(Subscribed(1))
    bench.handle(bench.down())
    bench.advance(SECOND)
    bench.handle(bench.up())
    assert bench.say(SessionOpened(5, 0, 100, 9, member_since=1_007)) == [report(Connected("a:1", "b1", True))]
    bench.handle(bench.down())
    bench.advance(SECOND)
    bench.handle(bench.up())
    # At another broker, or forgotten here: one gap, and not two.
    assert bench.say(SessionOpened(6, 0, 100, 9, member_since=2_011))[:2] == [
        report(Connected("a:1", "b1", False)),
        report(EventsMissed(1, None, "the broker forgot the subscription")),
    ]


def test_without_resubscribing_a_forgotten_subscription_stays_forgotten() -> None:
    """D1-C1."""
    bench = subscribed(resubscribe=False)
    bench.handle(bench.down())
    bench.advance(SECOND)
    assert bench.open(epoch=6, memory=10) == [
        report(Connected("a:1", "b1", False)),
        report(EventsMissed(1, None, "the broker forgot the subscription")),
    ]
    assert bench.say(Subscribed(1), deliver(1)) == []
    assert shown(bench.advance(4 * SECOND)) == []
    assert bench.ask(EndSubscription(1)) == [("b1", Unsubscribe(1))]


def test_a_subscription_that_is_refused_when_made_again_is_lost() -> None:
    bench = subscribed()
    bench.handle(bench.down())
    bench.advance(SECOND)
    bench.open(epoch=6, memory=10)
    assert bench.say(SubscribeRefused(1, Refusal.LIMIT, "too many")) == [report(SubscriptionLost(1, "too many"))]


def test_what_the_application_had_before_the_broker_forgot_is_not_taken_for_newer_events() -> None:
    bench = subscribed(window=4)
    bench.say(deliver(1, 2, 3, 4))
    bench.handle(bench.down())
    bench.advance(SECOND)
    bench.open(Subscribed(1), epoch=6, memory=10)
    bench.say(deliver(5, 6, first=1))
    bench.ask(Consume(1, 4))
    assert bench.ask(Consume(1, 1)) == [("b1", Progress((1,), (2,), (1,)))]


# ----------------------------------------------------------------------------------------------------- life and end
def test_a_client_pings_and_leaves_a_broker_that_is_silent() -> None:
    bench = ClientBench()
    bench.open()
    effects = bench.advance(5 * SECOND)
    assert [(effect.message, effect.after) for effect in effects if isinstance(effect, Send)] == [(Ping(), NOW)]
    assert shown(bench.advance(5 * SECOND)) == [("b1", Ping())]
    bench.say(Pong())
    assert shown(bench.advance(10 * SECOND)) == [("b1", Ping())] * 2
    assert shown(bench.advance(5 * SECOND)) == [Disconnect(1, "nothing heard for 15 s")]
    bench.handle(bench.down())
    bench.advance(5 * SECOND)


def test_a_goodbye_is_said_until_it_is_answered_and_ends_everything() -> None:
    bench = subscribed(ping_every=10**6 * SECOND)
    bench.ask(publish(1))
    bench.ask(MakeSubscription("n > 1"))
    assert bench.ask(Close()) == [("b1", CloseSession())]
    assert ("b1", CloseSession()) in shown(bench.advance(SECOND))
    assert bench.say(SessionClosed()) == [
        Disconnect(1, "closed by the application"),
        completed(2, Published([(0, None, "the client was closed")])),
        completed(3, SubscriptionRefused(None, "the client was closed")),
        completed(4, Closed()),
    ]
    assert bench.timers == {}
    assert shown(bench.handle(bench.down())) == []
    assert bench.ask(publish(), MakeSubscription("n > 1"), EndSubscription(1), Close(), Consume(1, 1)) == [
        completed(5, Published([(0, None, "the client is closed")])),
        completed(6, SubscriptionRefused(None, "the client is closed")),
        completed(7, SubscriptionOver(1)),
        completed(8, Closed()),
    ]


def test_a_goodbye_without_a_session_is_answered_at_once() -> None:
    bench = ClientBench()
    bench.handle(Started(1))
    assert bench.ask(Close()) == [completed(1, Closed())]
    assert shown(bench.handle(bench.up())) == [Disconnect(1, "not wanted any more")]
    bench = ClientBench()
    bench.handle(Started(1))
    bench.handle(bench.up())
    assert bench.ask(Close()) == [Disconnect(1, "closed by the application"), completed(1, Closed())]


def test_a_link_that_is_lost_during_a_goodbye_ends_it() -> None:
    bench = subscribed()
    bench.ask(EndSubscription(1))
    bench.ask(Close())
    assert shown(bench.handle(bench.down())) == [
        report(Disconnected("gone")),
        completed(2, SubscriptionOver(1)),
        completed(3, Closed("the broker was gone")),
    ]
    assert bench.timers == {}


def test_a_client_whose_session_is_refused_is_finished() -> None:
    bench = subscribed()
    bench.ask(publish(1))
    bench.handle(bench.down())
    bench.advance(SECOND)
    bench.handle(bench.up())
    assert bench.say(SessionRefused(Refusal.SUPERSEDED, "another")) == [
        report(SessionLost("another")),
        Disconnect(2, "another"),
        completed(2, Published([(0, Refusal.SUPERSEDED, "another")])),
    ]
    assert bench.say(SessionRefused(Refusal.SUPERSEDED, "another")) == []
    assert bench.part.phase is Phase.CLOSED


def test_a_session_that_the_broker_closed_is_opened_anew() -> None:
    bench = subscribed()
    assert bench.say(SessionClosed()) == [Disconnect(1, "the broker closed the session")]
    bench.handle(bench.down())
    bench.advance(SECOND)
    assert sent(shown(bench.handle(bench.up())), "b1") == [OpenSession(INSTANCE, 5, (1,), (0,), (0,))]


def test_nothing_that_comes_before_a_session_is_open_counts() -> None:
    bench = ClientBench()
    bench.handle(Started(1))
    bench.ask(MakeSubscription("n > 0"), publish(1))
    bench.handle(bench.up())
    early = [
        Subscribed(1), SubscribeRefused(1, Refusal.LIMIT, ""), Unsubscribed(1), SubscriptionEnded(1, ""), Accepted(9),
        deliver(1), Dropped(1, 5), SessionClosed(), Pong(),
    ]  # fmt: skip
    assert bench.say(*early) == []
    assert bench.say(SessionOpened(5, 0, 100, 9), SessionOpened(6, 0, 100, 9), Redirect(("z:1",))) == [
        report(Connected("a:1", "b1", False)),
        ("b1", Subscribe(1, "n > 0", Overflow.DISCONNECT, 1024)),
        ("b1", "Publish", 1, [1], 0),
    ]


def test_an_opening_without_an_answer_is_said_again() -> None:
    bench = ClientBench()
    bench.handle(Started(1))
    bench.handle(bench.up())
    assert shown(bench.advance(2 * SECOND)) == [("b1", OpenSession(INSTANCE))] * 2


def test_a_question_about_a_subscription_that_ends_in_the_same_turn_is_answered_before_its_end() -> None:
    bench = subscribed()
    said = bench.handle(Received(1, "b1", [Dropped(1, 0)]), Requested(9, requests.EndSubscription(1)))
    assert [type(effect.message).__name__ for effect in said if isinstance(effect, Send)] == ["Progress", "Unsubscribe"]
