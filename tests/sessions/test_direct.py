"""The client's side of direct links: what it dials, what it says there, and that its session does not depend on it."""

from typing import Any

import pytest

from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Received, Requested, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import CancelTimer, Connect, Disconnect, Effect, Send, SetTimer
from holdfast.kernel.queues import Lane
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.messages import (
    Accepted,
    Advertised,
    DirectChanged,
    OpenDirect,
    OpenSession,
    Ping,
    Pong,
    Publish,
    Redirect,
    Refusal,
    SessionOpened,
    SessionRefused,
    Subscribe,
    Subscribed,
)
from holdfast.protocols.sessions.requests import (
    Closed,
    Connected,
    Disconnected,
    MakeAdvertisement,
    MakeSubscription,
    NewEvent,
    Published,
    PublishEvents,
    SessionLost,
)
from holdfast.schemes.paxos.client import make_client
from holdfast.schemes.paxos.direct import ADDRESSES_MAX
from tests.sessions.bench import ClientBench, sent, shown

INSTANCE = ClientBench().part._instance
EPOCH = 5
OTHERS = ("a:2", "a:3")
SESSION = 1  # the session's link


class DirectBench(ClientBench):
    """A client with a session at b1, address a:1, that was told of two more replicas, b2 at a:2 and b3 at a:3."""

    def __init__(self, addresses: tuple[str, ...] = OTHERS, **settings: Any) -> None:
        super().__init__("a:1", make=make_client, **settings)
        self.opened = self._open(addresses)

    def _open(self, addresses: tuple[str, ...]) -> list[Effect]:
        self.handle(Started(3))
        self.handle(self.up())
        return self.hear(SessionOpened(EPOCH, 0, 100, 9, direct=addresses))

    def hear(self, *said: Message, broker: str = "b1", link: int = SESSION) -> list[Effect]:
        """What the client does when a broker says something."""
        effects = self.handle(Received(link, broker, list(said)))
        self.drain()
        return effects

    def publish(self, *numbers: int) -> list[Any]:
        return self.ask(PublishEvents([NewEvent({"n": n}) for n in numbers]))

    def linked(self, *brokers: int) -> "DirectBench":
        """With direct links to these."""
        for broker in brokers:
            self.handle(self.up(f"b{broker}", f"a:{broker}"))
        self.drain()
        return self


def dialled(effects: list[Effect]) -> list[str]:
    """The addresses of all attempts to connect."""
    return [effect.address for effect in effects if isinstance(effect, Connect)]


def published(first: int, *sequences: int, confirmed: int = 0) -> tuple[Any, ...]:
    return ("Publish", first, list(sequences), confirmed)


# ---------------------------------------------------------------------------------------------------------- dialling
def test_a_client_dials_where_it_is_told_that_it_may_publish_too() -> None:
    bench = DirectBench()
    assert dialled(bench.opened) == ["a:2", "a:3"]
    assert bench.handle(bench.up("b2", "a:2")) == [
        Send("b2", OpenDirect(EPOCH, INSTANCE)),
        SetTimer(("direct", "say"), 5 * SECOND),
    ]


def test_a_client_that_is_told_of_no_addresses_dials_none() -> None:
    assert dialled(DirectBench(()).opened) == []


def test_a_client_that_does_not_want_direct_links_makes_none() -> None:
    bench = DirectBench(allow_direct=False)
    assert dialled(bench.opened) == []
    assert bench.hear(DirectChanged(OTHERS)) == []
    assert sent(bench.publish(1), "b1") == [published(1, 1)]


def test_the_sessions_own_address_is_not_dialled_again() -> None:
    bench = DirectBench(("a:1", "a:2"))
    assert dialled(bench.opened) == ["a:2"]


def test_where_a_client_may_publish_can_change() -> None:
    bench = DirectBench().linked(2, 3)
    assert bench.hear(DirectChanged(("a:3", "a:4"))) == [
        Disconnect(2, "not to be published to any more"),
        CancelTimer(("direct", "dial", "a:2")),
        Connect("", "a:4"),
    ]
    assert bench.hear(DirectChanged(("a:3", "a:4"))) == []
    assert bench.handle(LinkDown(2, "b2", "closed")) == []
    assert bench.hear(DirectChanged(())) == [
        Disconnect(3, "not to be published to any more"),
        CancelTimer(("direct", "dial", "a:3")),
        CancelTimer(("direct", "dial", "a:4")),
    ]
    assert bench.handle(LinkUp(9, "b4", 1, Role.BROKER, True, "a:4")) == [Disconnect(9, "not wanted any more")]


def test_a_lost_direct_link_is_dialled_again_with_pauses_that_grow_up_to_a_limit() -> None:
    bench = DirectBench(("a:2",), pause_max=400 * MILLISECOND)
    pauses = []
    for _ in range(8):
        (timer,) = bench.handle(ConnectFailed("", "a:2", "refused"))
        assert isinstance(timer, SetTimer)
        assert timer.key == ("direct", "dial", "a:2")
        pauses.append(timer.after)
        assert Connect("", "a:2") in bench.advance(timer.after)
    longest = [ms * MILLISECOND for ms in (50, 100, 200, 400, 400, 400, 400, 400)]
    assert all(most // 2 <= pause <= most for pause, most in zip(pauses, longest, strict=True))
    bench.linked(2)
    (timer,) = bench.handle(LinkDown(2, "b2", "gone"))
    assert isinstance(timer, SetTimer)
    assert timer.after <= 50 * MILLISECOND


def test_direct_links_are_not_silent() -> None:
    bench = DirectBench().linked(2, 3)
    said = [effect for effect in bench.advance(11 * SECOND) if isinstance(effect, Send) and effect.to != "b1"]
    assert said == [Send(to, OpenDirect(EPOCH, INSTANCE)) for to in ("b2", "b3")] * 2


# --------------------------------------------------------------------------------------------------------- publishing
def test_what_is_published_goes_to_all_byte_for_byte_the_same() -> None:
    bench = DirectBench().linked(2, 3)
    request = requests.PublishEvents([NewEvent({"n": 1})])
    effects = [effect for effect in bench.handle(Requested(1, request)) if isinstance(effect, Send)]
    assert [(effect.to, effect.lane) for effect in effects] == [(to, Lane.USER) for to in ("b1", "b2", "b3")]
    assert len({id(effect.message) for effect in effects}) == 1
    message = effects[0].message
    assert isinstance(message, Publish)
    assert message.direct


def test_what_is_published_goes_to_those_links_that_are_open() -> None:
    bench = DirectBench().linked(3)
    assert bench.publish(1) == [("b1", *published(1, 1)), ("b3", *published(1, 1))]


def test_without_an_open_direct_link_nothing_is_different() -> None:
    bench, plain = DirectBench(batch_events=2), ClientBench(batch_events=2)
    plain.open(epoch=EPOCH)
    assert bench.publish(1, 2, 3) == plain.ask(PublishEvents([NewEvent({"n": n}) for n in (1, 2, 3)]))
    (effect, *_) = bench.handle(Requested(9, PublishEvents([NewEvent({"n": 4})])))
    assert isinstance(effect, Send)
    assert isinstance(effect.message, Publish)
    assert not effect.message.direct


def test_one_message_at_a_time_is_under_way() -> None:
    bench = DirectBench(batch_events=2).linked(2)
    assert bench.publish(1, 2, 3) == [("b1", *published(1, 1, 2)), ("b2", *published(1, 1, 2))]
    assert bench.publish(4) == []
    assert shown(bench.hear(Accepted(1))) == []
    answered = shown(bench.hear(Accepted(2)))
    assert answered == [("b1", *published(3, 3, 4, confirmed=2)), ("b2", *published(3, 3, 4, confirmed=2))]
    assert shown(bench.hear(Accepted(4))) == [("complete", 1, Published([])), ("complete", 2, Published([]))]


def test_what_was_under_way_when_a_direct_link_opens_is_answered_before_anything_is_said_on_it() -> None:
    bench = DirectBench(batch_events=1)
    assert bench.publish(1, 2) == [("b1", *published(1, 1)), ("b1", *published(2, 2))]
    bench.linked(2)
    assert bench.publish(3) == []
    assert shown(bench.hear(Accepted(1))) == []
    assert sent(shown(bench.hear(Accepted(2))), "b2") == [published(3, 3, confirmed=2)]


def test_what_was_said_directly_is_answered_before_the_next_is_said_to_the_leader_only() -> None:
    bench = DirectBench().linked(2)
    bench.publish(1)
    bench.hear(DirectChanged(()))
    assert bench.publish(2) == []
    assert shown(bench.hear(Accepted(1)))[-1] == ("b1", *published(2, 2, confirmed=1))


def test_what_is_not_answered_is_said_again_to_the_sessions_broker_only() -> None:
    bench = DirectBench(ping_every=10**6 * SECOND).linked(2)
    bench.publish(1)
    effects = [effect for effect in bench.advance(1100 * MILLISECOND) if isinstance(effect, Send)]
    assert [(effect.to, type(effect.message)) for effect in effects] == [("b1", Publish)]
    assert isinstance(effects[0].message, Publish)
    assert not effects[0].message.direct


def test_what_was_said_before_a_direct_link_opened_is_said_again_to_the_sessions_broker_only() -> None:
    bench = DirectBench(ping_every=10**6 * SECOND)
    bench.publish(1)
    bench.linked(2)
    effects = [effect for effect in bench.advance(1100 * MILLISECOND) if isinstance(effect, Send)]
    assert [(effect.to, type(effect.message)) for effect in effects] == [("b1", Publish)]
    bench.hear(Accepted(1))
    assert [row[0] for row in bench.publish(2)] == ["b1", "b2"]


def test_a_client_whose_direct_messages_are_not_answered_publishes_as_usual_for_longer_and_longer() -> None:
    bench = DirectBench(ping_every=10**6 * SECOND).linked(2)

    def indirect(last: int) -> int:
        """How many messages after this one go to b1 only; the next one is said to b2 too, and not answered."""
        for number in range(last + 1, last + 1000):
            bench.hear(Accepted(number - 1))
            if [row[0] for row in bench.publish(number)] == ["b1", "b2"]:
                return number - last - 1
        return 1000

    bench.publish(1)
    last, found = 1, []
    for _ in range(3):
        bench.advance(1100 * MILLISECOND)
        found.append(indirect(last))
        last += found[-1] + 1
    assert found == [7, 15, 31]  # and what was said again
    bench.hear(Accepted(last))
    assert [row[0] for row in bench.publish(last + 1)] == ["b1", "b2"]
    bench.advance(1100 * MILLISECOND)
    assert indirect(last + 1) == 7  # one was answered


def test_what_follows_a_subscription_or_an_advertisement_that_is_not_answered_goes_to_the_leader_only() -> None:
    bench = DirectBench().linked(2)
    bench.ask(MakeSubscription("n > 0"))
    assert [row[0] for row in bench.publish(1)] == ["b1"]
    bench.hear(Accepted(1), Subscribed(1))
    bench.ask(MakeAdvertisement("n > 0"))
    assert [row[0] for row in bench.publish(2)] == ["b1"]
    bench.hear(Accepted(2), Advertised(1))
    assert [row[0] for row in bench.publish(3)] == ["b1", "b2"]


def test_a_replica_that_does_not_read_loses_its_link_and_holds_nobody_up() -> None:
    bench = DirectBench(direct_bytes_max=200).linked(2)
    rows: list[Any] = []
    for number in range(1, 9):
        effects = bench.handle(Requested(number, PublishEvents([NewEvent({"n": number})])))
        rows += [effect for effect in effects if isinstance(effect, Disconnect)]
        bench.handle(Received(SESSION, "b1", [Accepted(number)]))
    assert rows[0] == Disconnect(2, "what is published is not read")
    assert bench.out.queues["b2"].bytes < 500
    bench.handle(LinkDown(2, "b2", "closed"))
    assert "b2" not in bench.out.queues


# -------------------------------------------------------------------------------------------------------- the session
def test_direct_links_go_with_the_session_and_come_back_with_the_next() -> None:
    bench = DirectBench().linked(2, 3)
    bench.publish(1)
    effects = shown(bench.handle(LinkDown(SESSION, "b1", "gone")))
    assert effects == [
        Disconnect(2, "the session is elsewhere"),
        Disconnect(3, "the session is elsewhere"),
        ("complete", requests.UNSOLICITED, Disconnected("gone")),
    ]
    assert bench.handle(LinkDown(2, "b2", "closed"), LinkDown(3, "b3", "closed")) == []
    bench.advance(50 * MILLISECOND)
    assert shown(bench.handle(bench.up())) == [("b1", OpenSession(INSTANCE, EPOCH))]
    opened = shown(bench.handle(bench.received(SessionOpened(EPOCH, 0, 100, 9, direct=("a:2",)))))
    assert opened == [
        Connect("", "a:2"),
        ("complete", requests.UNSOLICITED, Connected("a:1", "b1", True)),
        ("b1", *published(1, 1)),
    ]


def test_a_redirected_client_has_no_direct_links() -> None:
    bench = DirectBench(()).linked()
    bench.handle(LinkDown(SESSION, "b1", "gone"))
    bench.advance(50 * MILLISECOND)
    bench.handle(bench.up())
    assert Connect("", "a:9") in bench.handle(bench.received(Redirect(("a:9",))))
    assert bench.handle(LinkUp(8, "b2", 1, Role.BROKER, True, "a:2")) == [Disconnect(8, "not wanted any more")]


@pytest.mark.parametrize("refused", [True, False])
def test_direct_links_go_when_the_client_is_closed(refused: bool) -> None:
    bench = DirectBench().linked(2)
    if refused:
        rows = shown(bench.hear(SessionRefused(Refusal.SUPERSEDED, "another")))
        assert ("complete", requests.UNSOLICITED, SessionLost("another")) in rows
    else:
        bench.ask(requests.Close())
        rows = shown(bench.handle(LinkDown(SESSION, "b1", "gone")))
        assert ("complete", 1, Closed("the broker was gone")) in rows
    assert [row for row in rows if isinstance(row, Disconnect) and row.link == 2] != []
    assert bench.handle(LinkDown(2, "b2", "closed")) == []
    assert [key for key in bench.timers if key[:2] == ("direct", "dial")] == []


def test_a_lost_direct_link_is_nothing_to_the_session() -> None:
    bench = DirectBench().linked(2)
    assert bench.publish(1) != []
    assert shown(bench.handle(LinkDown(2, "b2", "gone"))) == []
    assert shown(bench.hear(Accepted(1))) == [("complete", 1, Published([]))]


@pytest.mark.parametrize("said", [Accepted(1), Pong(), Redirect(("a:9",)), DirectChanged(("a:9",)), Subscribed(1)])
def test_what_a_replica_says_on_a_direct_link_counts_for_nothing(said: Message) -> None:
    bench = DirectBench().linked(2)
    bench.publish(1)
    assert bench.hear(said, broker="b2", link=2) == []
    assert shown(bench.hear(Accepted(1))) == [("complete", 1, Published([]))]


def test_a_session_whose_broker_is_silent_is_given_up_whatever_replicas_say() -> None:
    bench = DirectBench().linked(2)
    for _ in range(14):
        bench.advance(SECOND)
        bench.hear(Pong(), broker="b2", link=2)
    effects = bench.advance(6 * SECOND)
    assert Disconnect(SESSION, "nothing heard for 15 s") in effects


def test_a_breach_on_a_direct_link_closes_that_link_only() -> None:
    bench = DirectBench().linked(2)
    (row,) = bench.hear(Ping(), broker="b2", link=2)
    assert isinstance(row, Disconnect)
    assert row.link == 2


def test_an_address_that_leads_to_the_sessions_own_broker_is_tried_once() -> None:
    """Between two nodes there is one link: the driver gave the older one up, which had the session."""
    bench = DirectBench(("other-name:1", "a:2"))
    bench.handle(LinkDown(SESSION, "b1", "superseded by a newer link"))
    assert bench.handle(bench.up("b1", "other-name:1")) == [Disconnect(2, "not wanted any more")]
    bench.advance(50 * MILLISECOND)
    bench.handle(bench.up())
    opened = bench.handle(bench.received(SessionOpened(EPOCH, 0, 100, 9, direct=("other-name:1", "a:4"))))
    assert dialled(opened) == ["a:4"]


def test_two_addresses_of_one_replica_make_one_link() -> None:
    bench = DirectBench().linked(2)
    bench.handle(LinkDown(2, "b2", "superseded by a newer link"))
    assert Disconnect(3, "not wanted any more") in bench.handle(bench.up("b2", "a:3"))
    bench.handle(LinkDown(3, "b2", "closed"))
    assert dialled(bench.advance(SECOND)) == ["a:2"]


def test_a_session_takes_the_link_that_was_dialled_as_a_direct_one() -> None:
    """The leader is gone, and the next address is one that is being dialled: a second link would end the first."""
    bench = DirectBench(("a:2",))
    bench.part._addresses.learn(("a:2",))
    bench.handle(LinkDown(SESSION, "b1", "gone"))
    assert dialled(bench.advance(50 * MILLISECOND)) == []
    assert shown(bench.handle(bench.up("b2", "a:2"))) == [("b2", OpenSession(INSTANCE, EPOCH))]
    # And what is dialled later is dialled as usual.
    bench.handle(bench.down("b2"))
    assert dialled(bench.advance(5 * SECOND))[:2] == ["a:1", "a:2"]


def test_a_session_goes_on_after_the_link_that_was_dialled_as_a_direct_one_fails() -> None:
    bench = DirectBench(("a:2",))
    bench.part._addresses.learn(("a:2",))
    bench.handle(LinkDown(SESSION, "b1", "gone"))
    bench.advance(50 * MILLISECOND)
    bench.handle(ConnectFailed("", "a:2", "refused"))
    assert dialled(bench.advance(SECOND)) == ["a:1"]


@pytest.mark.parametrize("changed", [True, False])
def test_a_broker_that_names_too_many_addresses_breaks_the_protocol(changed: bool) -> None:
    addresses = tuple(f"a:{n}" for n in range(ADDRESSES_MAX + 1))
    if changed:
        effects = DirectBench().hear(DirectChanged(addresses))
    else:
        effects = [effect for effect in DirectBench(addresses).opened if not isinstance(effect, SetTimer)]
    (row,) = effects
    assert isinstance(row, Disconnect)
    assert "names 17 addresses" in row.reason


def test_a_subscription_is_made_as_ever_while_direct_links_are_open() -> None:
    bench = DirectBench().linked(2, 3)
    assert bench.ask(MakeSubscription("n > 0")) == [("b1", Subscribe(1, "n > 0"))]
