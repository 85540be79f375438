"""What a broker's own clients want and advertise, as its neighbours hear of it (D1-B1, D1-A2, D0-A6)."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.inputs import LinkDown, LinkUp, Received, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Effect
from holdfast.model.event import STRING_BYTES_MAX, Event, encode_batch, encode_event
from holdfast.protocols.cursors.messages import ForgetName, OpenCursor
from holdfast.protocols.routing.gate import LINGER, filter_of
from holdfast.protocols.routing.messages import Forward, Routes, Settled
from holdfast.protocols.sessions import messages
from holdfast.protocols.sessions.messages import Accepted, CloseSession, OpenSession
from tests.routing.test_store import ADVERTISEMENT, Middle, batch, sent

CLIENT, LINK = "client:c", 9


class Home(Middle):
    """b2, with a client; b1 advertises topic 't'."""

    def __init__(self) -> None:
        super().__init__()
        self.link("b1", 0, ADVERTISEMENT)
        self.settle(self.link("b3", 0, Routes(full=True)))
        self.handle(LinkUp(LINK, CLIENT, 1, Role.CLIENT, False))
        self.say(OpenSession(1))

    def say(self, *said: Message) -> list[Effect]:
        return self.keep(self.handle(Received(LINK, CLIENT, list(said))))


def told(effects: list[Effect]) -> list[tuple[str, list[str], list[str], int, int]]:
    """To whom: filters of advertisements and of subscriptions, and how many of each were taken back."""
    return [
        (
            to,
            [t for _, t in each.advertisements],
            [t for _, t in each.subscriptions],
            len(each.unadvertised),
            len(each.unsubscribed),
        )
        for to, each in sent(effects, Routes)
    ]


def test_a_subscription_and_its_end_are_told_towards_what_is_advertised() -> None:
    node = Home()
    assert told(node.say(messages.Subscribe(1, "topic = 't' AND n > 1"))) == [
        ("b1", [], ["topic = 't' AND n > 1"], 0, 0)
    ]
    assert told(node.say(messages.Subscribe(2, "topic = 'u'"))) == []
    assert told(node.say(messages.Unsubscribe(1))) == [("b1", [], [], 0, 1)]


def test_a_named_subscription_is_wanted_whether_its_client_is_there_or_not() -> None:
    node = Home()
    assert told(node.say(OpenCursor(1, "risk", "n > 1"))) == [("b1", [], ["n > 1"], 0, 0)]
    assert told(node.keep(node.handle(LinkDown(LINK, CLIENT, "gone")))) == []
    node.hear("b1", Forward(1, batch(1)))
    node.handle(LinkUp(LINK, CLIENT, 2, Role.CLIENT, False))
    node.say(OpenSession(1))
    assert told(node.say(ForgetName(5, "risk"))) == [("b1", [], [], 0, 1)]


def test_an_advertisement_and_its_end_are_told_to_everyone() -> None:
    node = Home()
    effects = node.say(messages.Advertise(1, "n > 1"))
    assert told(effects) == [("b1", ["n > 1"], ["n > 1"], 0, 0), ("b3", ["n > 1"], [], 0, 0)]
    assert told(node.settle(effects)) == [("b1", [], [], 0, 1)], "b3 wants nothing of it, and counts so now"
    assert told(node.say(messages.Unadvertise(1))) == [("b1", [], [], 1, 0), ("b3", [], [], 1, 0)]


def test_a_client_that_leaves_takes_everything_with_it() -> None:
    node = Home()
    node.settle(node.say(messages.Subscribe(1, "topic = 't'"), messages.Advertise(1, "topic = 'x'")))
    assert told(node.say(CloseSession())) == [("b1", [], [], 1, 1), ("b3", [], [], 1, 0)]


def test_the_first_publication_on_a_topic_advertises_it_and_waits_for_the_network() -> None:
    """D0-A6: without that the event would miss whoever is far away."""
    node = Home()
    effects = node.say(messages.Publish(1, _by_c(1)))
    assert told(effects) == [("b1", ["topic = 'v'"], [], 0, 0), ("b3", ["topic = 'v'"], [], 0, 0)]
    assert sent(effects, Accepted) == []
    tickets = {to: routes.ticket for to, routes in sent(effects, Routes)}
    node.hear("b3", Routes(subscriptions=[("b3.1.5", "n > 0")]))
    for peer, ticket in tickets.items():
        node.hear(peer, Settled(ticket))
    effects = node.keep(node.handle(TimerFired(("gate", "release"))))
    assert [to for to, _ in sent(effects, Accepted)] == [CLIENT]
    assert [to for to, _ in sent(effects, Forward)] == ["b3"]
    again = node.say(messages.Publish(2, _by_c(2), 1))
    assert [to for to, _ in sent(again, Accepted)] == [CLIENT], "the topic is known"


def test_an_advertisement_of_a_topic_outlives_its_client_for_a_while() -> None:
    """So that the next one finds the ways made: `holdfast publish` is a new client each time."""
    node = Home()
    for peer, routes in sent(node.say(messages.Publish(1, _by_c(1))), Routes):
        node.hear(peer, Settled(routes.ticket))
    node.keep(node.handle(TimerFired(("gate", "release"))))
    assert told(node.say(CloseSession())) == []
    node.say(OpenSession(2))
    effects = node.say(messages.Publish(1, _by_c(1)))
    assert (told(effects), [to for to, _ in sent(effects, Accepted)]) == ([], [CLIENT])
    node.say(CloseSession())
    node.out.now += LINGER
    gone = node.keep(node.handle(TimerFired(("gate", "linger"))))
    assert told(gone) == [("b1", [], [], 1, 0), ("b3", [], [], 1, 0)]


def test_nobody_waits_longer_than_the_settings_allow() -> None:
    node = Home()
    node.say(messages.Publish(1, _by_c(1)))
    assert node.node.measure()["publishers_held"] == 1
    node.out.now += 2 * 10**9
    effects = node.keep(node.handle(TimerFired(("gate", "patience"))))
    assert [to for to, _ in sent(effects, Accepted)] == [CLIENT]


def test_what_was_advertised_binds_and_anything_else_is_refused() -> None:
    """NotAdvertised, as with one broker; and no topic is advertised for such a client."""
    node = Home()
    tickets = sent(node.say(messages.Advertise(1, "topic = 'x'")), Routes)
    for peer, routes in tickets:
        node.hear(peer, Settled(routes.ticket))
    effects = node.say(messages.Publish(1, _by_c(1)))
    ((_, answer),) = sent(effects, Accepted)
    assert [reason.value for _, reason, _ in answer.refused] == ["not-advertised"]
    assert told(effects) == []


def _by_c(number: int, topic: str = "v") -> msgspec.Raw:
    return encode_batch([encode_event(Event("c", 1, number, topic, {"n": number}))])


def publication(topic: str, number: int = 1) -> Message:
    return messages.Publish(number, _by_c(number, topic), number - 1)


LONGEST = "x" * (4096 - len("topic = ''"))


@pytest.mark.parametrize("topic", ["x" * STRING_BYTES_MAX, LONGEST + "x", "'" * 2_100, "ü" * 2_050])
def test_a_topic_that_no_filter_can_name_makes_its_publisher_one_of_anything(topic: str) -> None:
    """Topics may be longer than filters: 64 KiB against 4."""
    node = Home()
    effects = node.say(publication(topic))
    assert [(to, advertisements) for to, advertisements, _, _, _ in told(effects)] == [("b1", [""]), ("b3", [""])]


def test_the_longest_topic_that_a_filter_can_name_is_advertised_by_its_name() -> None:
    effects = Home().say(publication(LONGEST))
    assert [advertisements for _, advertisements, _, _, _ in told(effects)] == [[f"topic = '{LONGEST}'"]] * 2


def test_no_topic_stands_for_all_others() -> None:
    events = [encode_event(Event("c", 1, number, topic, {})) for number, topic in enumerate(["\x00", "u"], 1)]
    effects = Home().say(messages.Publish(1, encode_batch(events)))
    assert [advertisements for _, advertisements, _, _, _ in told(effects)] == [["topic = '\x00'", "topic = 'u'"]] * 2


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_the_advertisement_of_a_topic_matches_its_events_and_no_others(topic: str) -> None:
    advertisement = filter_of(topic)
    assert advertisement is not None
    assert advertisement.matches({}, topic=topic)
    assert not advertisement.matches({}, topic=topic + "x")
