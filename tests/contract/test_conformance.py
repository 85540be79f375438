"""What clients may rely on, asked of every driver in the same words."""

from typing import TypeVar

import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.client_assembly import make_client
from holdfast.kernel.links import Role
from holdfast.kernel.time import MILLISECOND
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.cursors.messages import EARLIEST
from holdfast.protocols.cursors.requests import (
    AcknowledgedUpTo,
    AcknowledgeUpTo,
    AskBounds,
    Bounds,
    CommitParts,
    CursorLost,
    CursorMade,
    EventsRead,
    MakeCursor,
    PartsCommitted,
    PartStaged,
    ReadEvents,
    StagePart,
)
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.messages import Overflow, Refusal
from holdfast.protocols.sessions.requests import (
    AdvertisementMade,
    Close,
    Closed,
    Consume,
    EndSubscription,
    EventsMissed,
    MakeAdvertisement,
    MakeSubscription,
    NewEvent,
    Published,
    PublishEvents,
    SubscriptionLost,
    SubscriptionMade,
    SubscriptionOver,
    SubscriptionRefused,
)
from holdfast.schemes.tree.parts import make_broker
from tests.contract.driver import Driver, Inbox

_T = TypeVar("_T")


def start_broker(driver: Driver, durable: bool = False, limits: CoreLimits | None = None) -> None:
    settings = BrokerSettings("b1", durable, limits or CoreLimits())
    driver.add("b1", Role.BROKER, lambda rng, streams: make_broker(settings, rng, streams), durable=durable)
    driver.start("b1")


def start_client(driver: Driver, name: str) -> Inbox:
    settings = ClientSettings(name, (driver.address("b1", Role.CLIENT),), pause_max=200 * MILLISECOND)
    inbox = driver.add(name, Role.CLIENT, lambda rng, streams: make_client(settings, rng, streams))
    driver.start(name)
    return inbox


def subscribe(driver: Driver, inbox: Inbox, name: str, text: str = "", **options: object) -> None:
    made = len([result for result in inbox.results if isinstance(result, SubscriptionMade)])
    driver.request(name, MakeSubscription(text, **options))  # type: ignore[arg-type]
    driver.wait_until(lambda: len([r for r in inbox.results if isinstance(r, SubscriptionMade)]) == made + 1)


def sequences(inbox: Inbox) -> list[int]:
    return [int(event.rpartition("/")[2]) for event in inbox.events]


def events(*prices: float) -> PublishEvents:
    return PublishEvents([NewEvent({"price": price}, topic="stock") for price in prices])


def test_a_subscriber_gets_what_matches_in_order(driver: Driver) -> None:
    start_broker(driver)
    subscriber, publisher = start_client(driver, "s"), start_client(driver, "p")
    subscribe(driver, subscriber, "s", "topic = 'stock' AND price > 10")
    for first in range(0, 300, 30):
        driver.request("p", events(*range(first, first + 30)))
    driver.wait_until(lambda: publisher.results.count(Published([])) == 10)
    driver.wait_until(lambda: len(subscriber.events) == 289)
    assert sequences(subscriber) == list(range(12, 301))


def test_a_window_is_not_exceeded_and_consuming_makes_room(driver: Driver) -> None:
    start_broker(driver)
    subscriber, _ = start_client(driver, "s"), start_client(driver, "p")
    subscribe(driver, subscriber, "s", window=5)
    driver.request("p", events(*range(20)))
    driver.wait_until(lambda: len(subscriber.events) == 5)
    driver.settle()
    assert len(subscriber.events) == 5
    for there in (10, 15, 20):
        driver.request("s", Consume(1, 5))
        driver.wait_until(lambda there=there: len(subscriber.events) == there)  # type: ignore[misc]
    assert sequences(subscriber) == list(range(1, 21))


@pytest.mark.parametrize("power_cut", [False, True], ids=["killed", "without power"])
def test_a_broker_with_a_disk_loses_doubles_and_reorders_nothing_when_it_is_restarted(
    driver: Driver, power_cut: bool
) -> None:
    start_broker(driver, durable=True)
    subscriber, publisher = start_client(driver, "s"), start_client(driver, "p")
    subscribe(driver, subscriber, "s")
    for round in range(4):
        for _ in range(5):
            driver.request("p", events(*range(10)))
        driver.wait_until(lambda: bool(subscriber.events))
        if round < 3:
            driver.kill("b1", power_cut)
            driver.start("b1")
    driver.wait_until(lambda: publisher.results.count(Published([])) == 20)
    driver.wait_until(lambda: len(subscriber.events) == 200)
    driver.settle()
    assert sequences(subscriber) == list(range(1, 201))


def test_a_broker_without_a_disk_may_lose_and_says_so_but_doubles_and_reorders_nothing(driver: Driver) -> None:
    start_broker(driver)
    subscriber, publisher = start_client(driver, "s"), start_client(driver, "p")
    subscribe(driver, subscriber, "s")
    for _ in range(5):
        driver.request("p", events(*range(10)))
    driver.wait_until(lambda: bool(subscriber.events))
    driver.kill("b1")
    driver.start("b1")
    driver.wait_until(lambda: any(isinstance(result, EventsMissed) for result in subscriber.results))
    driver.wait_until(lambda: publisher.results.count(Published([])) == 5)
    driver.settle()
    driver.request("p", events(1))
    driver.wait_until(lambda: bool(subscriber.events) and sequences(subscriber)[-1] == 51)
    assert sequences(subscriber) == sorted(set(sequences(subscriber)))


def test_a_client_that_is_started_again_is_not_muted(driver: Driver) -> None:
    start_broker(driver)
    subscriber, publisher = start_client(driver, "s"), start_client(driver, "p")
    subscribe(driver, subscriber, "s")
    driver.request("p", events(1, 2, 3))
    driver.wait_until(lambda: len(subscriber.events) == 3 and Published([]) in publisher.results)
    driver.kill("p")
    driver.start("p")
    driver.request("p", events(1, 2, 3))
    driver.wait_until(lambda: len(subscriber.events) == 6)
    assert sequences(subscriber) == [1, 2, 3, 1, 2, 3]
    driver.wait_until(lambda: publisher.results.count(Published([])) == 2)


def test_refusals_carry_their_reasons(driver: Driver) -> None:
    start_broker(driver, limits=CoreLimits(subscriptions_per_session=1))
    client = start_client(driver, "s")
    driver.request("s", MakeSubscription("price >"))
    driver.wait_until(lambda: any(isinstance(result, SubscriptionRefused) for result in client.results))
    refused = next(result for result in client.results if isinstance(result, SubscriptionRefused))
    assert (refused.reason, refused.problem, refused.offset) == (Refusal.FILTER, "the filter ends too early", 7)
    subscribe(driver, client, "s")
    driver.request("s", MakeSubscription("price > 1"))
    problem = "a session has at most 1 subscriptions"
    refused = SubscriptionRefused(Refusal.LIMIT, problem, limit="subscriptions_per_session", allowed=1)
    driver.wait_until(lambda: refused in client.results)
    driver.request("s", PublishEvents([NewEvent({"price": float("nan")}), NewEvent({"price": 1})]))
    driver.wait_until(lambda: any(isinstance(result, Published) for result in client.results))
    (published,) = [result for result in client.results if isinstance(result, Published)]
    assert [(place, reason) for place, reason, _ in published.refused] == [(0, Refusal.EVENT)]


def test_a_publisher_is_held_to_what_it_advertised_also_by_a_broker_that_forgot(driver: Driver) -> None:
    start_broker(driver)
    publisher = start_client(driver, "p")
    driver.request("p", MakeAdvertisement("price < 10"))
    driver.wait_until(lambda: AdvertisementMade(1) in publisher.results)
    for round in range(2):
        driver.request("p", events(1, 20))
        driver.wait_until(lambda round=round: len(_published(publisher)) == round + 1)  # type: ignore[misc]
        refused = _published(publisher)[round].refused
        assert [(place, reason) for place, reason, _ in refused] == [(1, Refusal.NOT_ADVERTISED)]
        if round == 0:
            driver.kill("b1")
            driver.start("b1")


def _published(inbox: Inbox) -> list[Published]:
    return [result for result in inbox.results if isinstance(result, Published)]


def test_a_subscription_that_overflows_is_ended_or_told_what_it_missed(driver: Driver) -> None:
    start_broker(driver, limits=CoreLimits(backlog_events=10))
    ended, dropping = start_client(driver, "s1"), start_client(driver, "s2")
    publisher = start_client(driver, "p")
    subscribe(driver, ended, "s1", window=1)
    subscribe(driver, dropping, "s2", window=1, overflow=Overflow.DROP_OLDEST)
    driver.request("p", events(*range(40)))
    driver.wait_until(lambda: publisher.results.count(Published([])) == 1)
    driver.wait_until(lambda: any(isinstance(result, SubscriptionLost) for result in ended.results))
    for _ in range(40):
        driver.request("s2", Consume(1, 1))
        driver.settle()
    missed = sum(result.count or 0 for result in dropping.results if isinstance(result, EventsMissed))
    assert sequences(dropping)[-1] == 40
    assert missed == 40 - len(dropping.events) > 0


def test_a_blocking_subscription_makes_its_publishers_wait_and_loses_nothing(driver: Driver) -> None:
    start_broker(driver, limits=CoreLimits(backlog_events=10))
    subscriber, publisher = start_client(driver, "s"), start_client(driver, "p")
    other = start_client(driver, "q")
    subscribe(driver, subscriber, "s", "topic = 'stock'", window=1, overflow=Overflow.BLOCK)
    driver.request("p", events(*range(40)))
    driver.wait_until(lambda: bool(subscriber.events))
    driver.request("q", PublishEvents([NewEvent({}, topic="news")]))
    driver.wait_until(lambda: Published([]) in other.results)
    assert Published([]) not in publisher.results
    while len(subscriber.events) < 40:
        seen = len(subscriber.events)
        driver.request("s", Consume(1, 1))
        driver.wait_until(lambda seen=seen: len(subscriber.events) > seen)  # type: ignore[misc]
    driver.wait_until(lambda: Published([]) in publisher.results)
    assert sequences(subscriber) == list(range(1, 41))


def test_ending_and_closing_are_answered(driver: Driver) -> None:
    start_broker(driver)
    client = start_client(driver, "s")
    subscribe(driver, client, "s")
    driver.request("s", EndSubscription(1))
    driver.wait_until(lambda: SubscriptionOver(1) in client.results)
    driver.request("s", events(1))
    driver.wait_until(lambda: Published([]) in client.results)
    driver.request("s", Close())
    driver.wait_until(lambda: Closed() in client.results)
    assert client.events == []


# -------------------------------------------------------------------------------------------------------------- the log
def make_cursor(driver: Driver, inbox: Inbox, name: str, text: str = "") -> int:
    """The number of the cursor, which begins at the log's first event if it is new."""
    made = len(_of(inbox, CursorMade))
    driver.request(name, MakeCursor("risk", text, EARLIEST))
    driver.wait_until(lambda: len(_of(inbox, CursorMade)) == made + 1)
    return _of(inbox, CursorMade)[-1].cursor


def _of(inbox: Inbox, kind: type[_T]) -> list[_T]:
    return [result for result in inbox.results if isinstance(result, kind)]


def test_a_named_subscriber_that_was_away_during_a_restart_gets_everything(driver: Driver) -> None:
    start_broker(driver, durable=True)
    subscriber, publisher = start_client(driver, "s"), start_client(driver, "p")
    cursor = make_cursor(driver, subscriber, "s")
    driver.request("p", events(1, 2, 3))
    driver.wait_until(lambda: len(subscriber.events) == 3)
    driver.request("s", AcknowledgeUpTo(cursor, 2))
    driver.wait_until(lambda: AcknowledgedUpTo(2) in subscriber.results)
    driver.kill("s")
    driver.request("p", events(4, 5))
    driver.wait_until(lambda: publisher.results.count(Published([])) == 2)
    driver.kill("b1", power_cut=True)
    driver.request("p", events(6))
    driver.start("b1")
    driver.start("s")
    make_cursor(driver, subscriber, "s")
    driver.wait_until(lambda: len(subscriber.events) == 7)
    driver.settle()
    assert sequences(subscriber) == [1, 2, 3, 3, 4, 5, 6]


def test_a_cursor_goes_on_over_a_restart_of_its_broker_without_a_repetition(driver: Driver) -> None:
    start_broker(driver, durable=True)
    subscriber, publisher = start_client(driver, "s"), start_client(driver, "p")
    make_cursor(driver, subscriber, "s")
    for round in range(3):
        for _ in range(4):
            driver.request("p", events(1, 2, 3))
        driver.wait_until(lambda round=round: len(subscriber.events) > 12 * round)  # type: ignore[misc]
        driver.kill("b1", power_cut=True)
        driver.start("b1")
    driver.wait_until(lambda: publisher.results.count(Published([])) == 12)
    driver.wait_until(lambda: len(subscriber.events) == 36)
    driver.settle()
    assert sequences(subscriber) == list(range(1, 37))


def test_who_opens_a_name_second_has_it_and_the_first_is_told(driver: Driver) -> None:
    start_broker(driver, durable=True)
    first, second = start_client(driver, "s1"), start_client(driver, "s2")
    start_client(driver, "p")
    make_cursor(driver, first, "s1")
    driver.request("p", events(1, 2))
    driver.wait_until(lambda: len(first.events) == 2)
    make_cursor(driver, second, "s2")
    driver.wait_until(lambda: len(_of(first, CursorLost)) == 1)
    assert _of(first, CursorLost)[0].reason is Refusal.SUPERSEDED
    driver.request("p", events(3))
    driver.wait_until(lambda: len(second.events) == 3)
    driver.kill("b1")
    driver.start("b1")
    driver.request("p", events(4))
    driver.wait_until(lambda: len(second.events) == 4)
    driver.settle()
    assert (sequences(first), sequences(second)) == ([1, 2], [1, 2, 3, 4])
    assert len(_of(first, CursorLost)) == 1
    assert _of(second, CursorLost) == []


def test_a_range_is_read_by_position_and_who_waits_for_one_is_answered(driver: Driver) -> None:
    start_broker(driver, durable=True)
    reader, _ = start_client(driver, "r"), start_client(driver, "p")
    driver.request("r", AskBounds(at_least=5))
    driver.request("p", events(1, 2, 3))
    driver.request("p", events(4, 5))
    driver.wait_until(lambda: len(_of(reader, Bounds)) == 1)
    assert (_of(reader, Bounds)[0].tail, _of(reader, Bounds)[0].head) == (1, 5)
    driver.request("r", ReadEvents("price <> 3", 2, 4))
    driver.wait_until(lambda: len(_of(reader, EventsRead)) == 1)
    (read,) = _of(reader, EventsRead)
    found = [(event.position.number, event.sequence) for event in read.events if event.position is not None]
    assert (read.through, found, read.scanned) == (4, [(2, 2), (4, 4)], 3)


def test_stages_are_committed_once_also_across_a_restart(driver: Driver) -> None:
    start_broker(driver, durable=True)
    sink, subscriber = start_client(driver, "k"), start_client(driver, "s")
    make_cursor(driver, subscriber, "s")
    for task, stage in enumerate(("a", "b")):
        new = [NewEvent({"price": price}) for price in (1, 2)]
        driver.request("k", StagePart("q", 1, task, stage, 1, 7, 1 + 2 * task, new))
    driver.wait_until(lambda: len(_of(sink, PartStaged)) == 2)
    driver.kill("b1", power_cut=True)
    driver.start("b1")
    driver.request("k", CommitParts("q", 1, ("b", "a")))
    driver.wait_until(lambda: len(_of(sink, PartsCommitted)) == 1)
    driver.kill("b1", power_cut=True)
    driver.start("b1")
    driver.request("k", CommitParts("q", 1, ("b", "a")))
    driver.wait_until(lambda: len(_of(sink, PartsCommitted)) == 2)
    assert _of(sink, PartsCommitted) == [PartsCommitted(1, 4, False), PartsCommitted(1, 4, True)]
    driver.wait_until(lambda: len(subscriber.events) == 4)
    driver.settle()
    assert sequences(subscriber) == [3, 4, 1, 2]
