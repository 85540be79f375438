"""Advertisements: a publisher that has said what it publishes publishes nothing else, at any broker it comes to."""

from typing import Any

from holdfast.kernel.outbox import Append
from holdfast.kernel.time import SECOND
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.sessions.messages import (
    Accepted,
    Advertise,
    Advertised,
    AdvertiseRefused,
    OpenSession,
    Overflow,
    Publish,
    Refusal,
    Subscribe,
    Unadvertise,
    Unadvertised,
)
from holdfast.protocols.sessions.requests import (
    AdvertisementLost,
    AdvertisementMade,
    AdvertisementOver,
    AdvertisementRefused,
    Close,
    Closed,
    EndAdvertisement,
    MakeAdvertisement,
    NewEvent,
    PublishEvents,
)
from tests.sessions.bench import BrokerBench, ClientBench, batch, sent, shown

P, S = "client:p", "client:s"
REFUSED = "the event matches nothing that its publisher has advertised"


def refused(number: int) -> tuple[int, Refusal, str]:
    return number, Refusal.NOT_ADVERTISED, REFUSED


# ------------------------------------------------------------------------------------------------------- the broker
def test_what_was_not_advertised_is_refused_event_by_event() -> None:
    bench = BrokerBench()
    bench.open("s", Subscribe(1, ""))
    bench.open("p", Advertise(1, "n < 3"))
    said = bench.say("p", Publish(1, batch(1, 2, 3, 4)))
    assert sent(said, P) == [Accepted(4, (refused(3), refused(4)))]
    assert sent(said, S) == [("Deliver", [(1, 1, 1), (1, 2, 2)])]


def test_one_match_among_several_advertisements_is_enough() -> None:
    bench = BrokerBench()
    bench.open("p", Advertise(1, "n = 1"), Advertise(2, "n = 2"))
    assert sent(bench.say("p", Publish(1, batch(1, 2, 3))), P) == [Accepted(3, (refused(3),))]


def test_a_publisher_that_never_advertised_publishes_anything_and_so_does_one_that_took_all_back() -> None:
    bench = BrokerBench()
    bench.open("p")
    assert sent(bench.say("p", Publish(1, batch(1))), P) == [Accepted(1)]
    bench.say("p", Advertise(1, "n = 9"), Advertise(2, "n = 8"))
    assert sent(bench.say("p", Publish(2, batch(2))), P) == [Accepted(2, (refused(2),))]
    assert sent(bench.say("p", Unadvertise(1)), P) == [Unadvertised(1)]
    assert sent(bench.say("p", Publish(3, batch(3), 2)), P) == [Accepted(3, (refused(3),))]
    bench.say("p", Unadvertise(2))
    assert sent(bench.say("p", Publish(4, batch(4), 3)), P) == [Accepted(4)]


def test_advertisements_bind_their_own_publisher_only() -> None:
    bench = BrokerBench()
    bench.open("p", Advertise(1, "n = 9"))
    bench.open("q")
    assert sent(bench.say("q", Publish(1, batch(1))), "client:q") == [Accepted(1)]


def test_an_advertisement_said_again_is_the_same_and_with_another_filter_a_conflict() -> None:
    bench = BrokerBench(CoreLimits(advertisements_per_session=1))
    bench.open("p", Advertise(1, "n = 1"))
    assert sent(bench.say("p", Advertise(1, "n = 1")), P) == [Advertised(1)]
    problem = "advertisement 1 exists already, with another filter"
    assert sent(bench.say("p", Advertise(1, "n = 2")), P) == [AdvertiseRefused(1, Refusal.CONFLICT, problem)]
    problem, limit = "a session has at most 1 advertisements", "advertisements_per_session"
    refused = AdvertiseRefused(2, Refusal.LIMIT, problem, limit=limit, allowed=1)
    assert sent(bench.say("p", Advertise(2, "n = 2")), P) == [refused]


def test_filters_that_are_advertised_and_subscribed_to_share_their_room() -> None:
    bench = BrokerBench(CoreLimits(filter_bytes_per_session=15))
    bench.open("p", Advertise(1, "n = 1"), Subscribe(1, "n = 2", Overflow.DISCONNECT, 10))
    assert sent(bench.say("p", Advertise(2, "n = 3")), P) == [Advertised(2)]
    problem, limit = "the filters of a session have at most 15 bytes", "filter_bytes_per_session"
    refused = AdvertiseRefused(3, Refusal.LIMIT, problem, limit=limit, allowed=15)
    assert sent(bench.say("p", Advertise(3, "n = 4")), P) == [refused]
    (answer,) = sent(bench.say("p", Subscribe(2, "n = 4", Overflow.DISCONNECT, 10)), P)
    assert (answer.reason, answer.limit, answer.allowed) == (Refusal.LIMIT, limit, 15)
    bench.say("p", Unadvertise(2))
    assert sent(bench.say("p", Advertise(3, "n = 4")), P) == [Advertised(3)]


def test_a_text_that_is_no_filter_is_refused_and_binds_nobody() -> None:
    bench = BrokerBench()
    bench.open("p")
    (answer,) = sent(bench.say("p", Advertise(1, "n >")), P)
    assert (answer.reason, answer.offset) == (Refusal.FILTER, 3)
    assert sent(bench.say("p", Publish(1, batch(1))), P) == [Accepted(1)]


def test_a_broker_with_a_disk_remembers_advertisements() -> None:
    bench = BrokerBench(durable=True)
    bench.handle(bench.up("p"))
    streams: dict[str, list[Any]] = {"state": []}
    for message in (OpenSession(1), Advertise(1, "n = 1")):
        effects = bench.handle(bench.received("p", message))
        streams["state"] += [effect.record for effect in effects if isinstance(effect, Append)]
    again = BrokerBench(durable=True, streams=streams)
    again.open("p")
    assert sent(again.say("p", Publish(1, batch(1, 2))), P) == [Accepted(2, (refused(2),))]


# ------------------------------------------------------------------------------------------------------- the client
def advertised() -> ClientBench:
    bench = ClientBench(publish_window=10)
    bench.open()
    assert bench.ask(MakeAdvertisement("n > 0")) == [("b1", Advertise(1, "n > 0"))]
    assert bench.say(Advertised(1)) == [("complete", 1, AdvertisementMade(1))]
    return bench


def test_a_client_advertises_and_takes_back() -> None:
    bench = advertised()
    assert bench.ask(EndAdvertisement(1)) == [("b1", Unadvertise(1))]
    assert bench.say(Unadvertised(1)) == [("complete", 2, AdvertisementOver(1))]
    assert bench.ask(EndAdvertisement(1)) == [("complete", 3, AdvertisementOver(1))]


def test_what_is_asked_before_there_is_a_session_is_advertised_when_there_is() -> None:
    bench = ClientBench()
    bench.ask(MakeAdvertisement("n > 0"))
    assert ("b1", Advertise(1, "n > 0")) in bench.open()


def test_after_a_new_connection_everything_is_advertised_again_before_anything_is_published() -> None:
    bench = advertised()
    bench.handle(bench.down())
    bench.ask(PublishEvents([NewEvent({"n": 1})]))
    bench.advance(SECOND)
    opened = bench.open(epoch=6)
    assert sent(opened, "b1") == [Advertise(1, "n > 0")]
    assert sent(bench.say(Advertised(1)), "b1") == [("Publish", 1, [1], 0)]


def test_a_refusal_after_a_new_connection_is_reported_and_holds_nothing_up() -> None:
    bench = advertised()
    bench.handle(bench.down())
    bench.ask(PublishEvents([NewEvent({"n": 1})]))
    bench.advance(SECOND)
    bench.open(epoch=6)
    said = bench.say(AdvertiseRefused(1, Refusal.LIMIT, "full"))
    assert said == [("complete", 0, AdvertisementLost(1, "full")), ("b1", "Publish", 1, [1], 0)]


def test_taking_back_while_it_is_being_advertised_again_holds_nothing_up() -> None:
    bench = advertised()
    bench.handle(bench.down())
    bench.ask(PublishEvents([NewEvent({"n": 1})]))
    bench.advance(SECOND)
    bench.open(epoch=6)
    assert sent(bench.ask(EndAdvertisement(1)), "b1") == [Unadvertise(1), ("Publish", 1, [1], 0)]


def test_a_refused_advertisement_carries_its_reason() -> None:
    bench = ClientBench()
    bench.open()
    bench.ask(MakeAdvertisement("n >"))
    said = bench.say(AdvertiseRefused(1, Refusal.FILTER, "bad", 3, "a value"))
    assert said == [("complete", 1, AdvertisementRefused(Refusal.FILTER, "bad", 3, "a value"))]


def test_what_is_not_answered_is_said_again() -> None:
    bench = ClientBench()
    bench.open()
    bench.ask(MakeAdvertisement("n > 0"))
    assert ("b1", Advertise(1, "n > 0")) in shown(bench.advance(2 * SECOND))
    bench.say(Advertised(1))
    bench.ask(EndAdvertisement(1))
    assert ("b1", Unadvertise(1)) in shown(bench.advance(4 * SECOND))


def test_closing_answers_everyone_who_waits() -> None:
    bench = ClientBench()
    bench.ask(MakeAdvertisement("n > 0"))
    said = bench.ask(Close())
    assert ("complete", 1, AdvertisementRefused(None, "the client was closed")) in said
    assert ("complete", 2, Closed()) in said
    assert bench.ask(MakeAdvertisement("n > 0")) == [
        ("complete", 3, AdvertisementRefused(None, "the client is closed"))
    ]
