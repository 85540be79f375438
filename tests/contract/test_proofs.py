"""The contract's proofs: what five very different protocols will ask of the kernel, shown to work under a driver.

(e), that splitting a batch changes nothing, is in tests/sessions/test_batch_splitting.py; (f), that hash seeds change
nothing, is in tests/sim/.
"""

from random import Random

import msgspec
import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.client_assembly import make_client
from holdfast.kernel.inputs import ConnectFailed
from holdfast.kernel.links import Role
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.requests import (
    Consume,
    MakeSubscription,
    NewEvent,
    Published,
    PublishEvents,
    SubscriptionMade,
)
from holdfast.schemes.tree.parts import make_broker
from tests.contract.driver import Driver, Inbox
from tests.contract.nodes import Asker, Early, Librarian, Member, Mistaken, Mover, Recorder, Sequencer, broker_behind


def test_a_feed_that_is_suspended_moved_and_goes_on_keeps_its_order(driver: Driver) -> None:
    """Proof (a): D0's stand-in takes over what waits for the broker that it replaces."""
    mover, first, second = Mover("b2", "b3", 400, driver.address), Recorder(), Recorder()
    for name, node in (("b2", first), ("b3", second), ("b1", mover)):
        driver.add(name, Role.BROKER, lambda rng, streams, node=node: node)  # type: ignore[misc]
        driver.start(name)
    driver.wait_until(lambda: len(second.got.get("b1", [])) == 200)
    driver.settle()
    assert mover.moved == 100, "half of what b3 gets had waited for b2, and one event for b3 itself"
    assert first.got == {"b1": list(range(1, 201))}
    assert second.got == {"b1": list(range(201, 401))}


def test_what_was_queued_before_there_was_a_link_leaves_when_there_is_one(driver: Driver) -> None:
    recorder = Recorder()
    driver.add("b2", Role.BROKER, lambda rng, streams: recorder)
    driver.start("b2")
    driver.add("b1", Role.BROKER, lambda rng, streams: Early("b2", driver.address("b2")))
    driver.start("b1")
    driver.wait_until(lambda: recorder.got == {"b1": [1, 2, 3]})


def test_a_link_to_someone_else_than_was_expected_does_not_come_up(driver: Driver) -> None:
    address = driver.address("b2")
    driver.add("b2", Role.BROKER, lambda rng, streams: Recorder())
    driver.start("b2")
    mistaken = Mistaken("b3", address)
    driver.add("b1", Role.BROKER, lambda rng, streams: mistaken)
    driver.start("b1")
    driver.wait_until(lambda: bool(mistaken.failed))
    driver.settle()
    assert mistaken.failed == [ConnectFailed("b3", address, "b2 answered, not b3")]
    assert not mistaken.linked


def test_a_part_of_a_log_leaves_behind_what_was_sent_before_it_and_says_how_far_it_went(driver: Driver) -> None:
    recorder = Recorder()
    librarian = Librarian("b2", driver.address("b2"))
    driver.add("b2", Role.BROKER, lambda rng, streams: recorder)
    driver.start("b2")
    driver.add("b1", Role.BROKER, lambda rng, streams: librarian, durable=True)
    driver.start("b1")
    driver.wait_until(lambda: len(recorder.got.get("b1", [])) == 3)
    assert recorder.got["b1"] == [1, 105, -3]
    assert librarian.sent == [(1, 5, 2, 0), (2, 1, 0, 3)]


def _client(driver: Driver, name: str, *addresses: str) -> Inbox:
    settings = ClientSettings(name, tuple(driver.address(broker, Role.CLIENT) for broker in addresses))
    inbox = driver.add(name, Role.CLIENT, lambda rng, streams: make_client(settings, rng, streams))
    driver.start(name)
    return inbox


def _broker(driver: Driver, settings: BrokerSettings) -> None:
    def make(rng: Random, streams: object) -> object:
        return make_broker(settings, rng, streams)  # type: ignore[arg-type]

    driver.add(settings.name, Role.BROKER, make, durable=settings.durable)  # type: ignore[arg-type]
    driver.start(settings.name)


@pytest.mark.parametrize("power_cut", [False, True], ids=["killed", "without power"])
def test_a_client_that_loses_its_broker_connects_two_hops_further_to_an_address_it_learned(
    driver: Driver, power_cut: bool
) -> None:
    """Proof (b): D3's clients go to farther brokers when theirs fails (b1 is the client's, b2 between, b3 beyond)."""
    _broker(driver, BrokerSettings("b1", desk=DeskSettings(alternates=(driver.address("b3", Role.CLIENT),))))
    _broker(driver, BrokerSettings("b3"))
    inbox = _client(driver, "c1", "b1")
    _client(driver, "c2", "b3")
    driver.request("c1", MakeSubscription("price > 1"))
    driver.wait_until(lambda: SubscriptionMade(1) in inbox.results)
    driver.kill("b1", power_cut)
    driver.wait_until(lambda: any(getattr(result, "broker", "") == "b3" for result in inbox.results))
    driver.settle()
    driver.request("c2", PublishEvents([NewEvent({"price": 2})]))
    driver.wait_until(lambda: len(inbox.events) == 1)


def test_a_redirected_client_goes_where_it_is_sent(driver: Driver) -> None:
    _broker(driver, BrokerSettings("b1", desk=DeskSettings(redirect=(driver.address("b2", Role.CLIENT),))))
    _broker(driver, BrokerSettings("b2"))
    inbox = _client(driver, "c1", "b1")
    driver.wait_until(lambda: any(getattr(result, "broker", "") == "b2" for result in inbox.results))


def test_a_join_replaces_a_set_of_peers_and_survives_a_restart(driver: Driver) -> None:
    """Proof (c): D2's clusters and D4's groups change their members; what was answered is remembered."""
    members: list[Member] = []

    def make_member(rng: Random, streams: object) -> Member:
        members.append(Member(["b2", "b3"], streams, driver.address))  # type: ignore[arg-type]
        return members[-1]

    for name in ("b2", "b3", "b4"):
        driver.add(name, Role.BROKER, lambda rng, streams: Recorder())
        driver.start(name)
    driver.add("b1", Role.BROKER, make_member, durable=True)
    driver.start("b1")
    driver.wait_until(lambda: set(members[0].links) == {"b2", "b3"})
    asker = Asker("b1", ["b3", "b4"], driver.address)
    driver.add("b9", Role.BROKER, lambda rng, streams: asker)
    driver.start("b9")
    driver.wait_until(lambda: asker.got.get("b1") == [2])
    driver.wait_until(lambda: set(members[0].links) == {"b3", "b4"})
    driver.kill("b1", power_cut=True)
    driver.start("b1")
    driver.wait_until(lambda: set(members[-1].links) == {"b3", "b4"})
    assert len(members) == 2
    assert members[-1].peers == ["b3", "b4"]


def test_an_application_behind_a_sequencer_ends_where_a_bare_one_does(driver: Driver) -> None:
    """Proof (d): the broker's core knows nothing of who decides the order of its commands (D4-A9)."""
    core, sequencer = BrokerCore(), Sequencer()
    settings = BrokerSettings("b1")
    driver.add("q1", Role.BROKER, lambda rng, streams: sequencer)
    driver.start("q1")
    driver.add("b1", Role.BROKER, lambda rng, streams: broker_behind("q1", driver.address("q1"), core, settings, rng))
    driver.start("b1")
    subscriber, publisher = _client(driver, "c1", "b1"), _client(driver, "c2", "b1")
    driver.request("c1", MakeSubscription("price > 50"))
    driver.wait_until(lambda: SubscriptionMade(1) in subscriber.results)
    for batch in range(10):
        events = [NewEvent({"price": price}, topic="stock") for price in range(batch, 100, 7)]
        driver.request("c2", PublishEvents(events))
        driver.settle()
        driver.request("c1", Consume(1, len(subscriber.events)))
    driver.wait_until(lambda: publisher.results.count(Published([])) == 10)
    driver.settle()

    bare = BrokerCore()
    number = 0
    for decided in sequencer.decided:
        for command in decided.commands:
            number += 1
            bare.apply(number, decided.wall, command)
    assert number == core.number
    assert bare.get_state() == core.get_state()
    wanted = [price for batch in range(10) for price in range(batch, 100, 7) if price > 50]
    assert len(subscriber.events) == len(wanted)
    assert msgspec.msgpack.decode(bare.get_state())[2] == sum(len(range(batch, 100, 7)) for batch in range(10))
