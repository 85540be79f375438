"""A client that others dial: both sides are told who is there, and each may go on to what it is for."""

import pytest

from holdfast.broker.any_client import AnyClient
from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.registry import SCHEMES
from holdfast.kernel.inputs import Input, LinkUp, Started
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.requests import Connected, NewEvent, Published, PublishEvents, SchemeFound
from holdfast.schemes.tree.parts import make_broker
from tests.contract.driver import SCHEME, Driver, Inbox
from tests.contract.nodes import Recorder
from tests.taking_scheme import KIND
from tests.taking_scheme.client import Greet


class Looks:
    """Dials, if it is told where, and writes down the links that come up."""

    def __init__(self, address: str = "") -> None:
        self.ups: list[LinkUp] = []
        self._address = address

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        for event in inputs:
            if isinstance(event, LinkUp):
                self.ups.append(event)
            elif isinstance(event, Started) and self._address:
                out.connect("", self._address)

    def check_invariants(self) -> None:
        pass


@pytest.mark.parametrize("listener", [Role.BROKER, Role.CLIENT])
def test_both_sides_of_a_link_are_told_who_is_there_and_the_one_that_dialled_of_which_scheme(
    driver: Driver, listener: Role
) -> None:
    there, here = Looks(), Looks(driver.address("there", Role.CLIENT))
    driver.add("there", listener, lambda rng, streams: there)
    driver.add("here", Role.CLIENT, lambda rng, streams: here)
    driver.start("there")
    driver.start("here")
    driver.wait_until(lambda: bool(here.ups and there.ups))
    name = "there" if listener is Role.BROKER else "client:there"
    told, heard = here.ups[0], there.ups[0]
    assert (told.peer, told.role, told.initiated, told.scheme) == (name, listener, True, SCHEME)
    assert (heard.peer, heard.role, heard.initiated, heard.scheme) == ("client:here", Role.CLIENT, False, "")
    assert (told.address, heard.address) == (driver.address("there", Role.CLIENT), "")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCHEMES._packages, KIND, "tests.taking_scheme")


def start_client(driver: Driver, name: str, at: str = "b1") -> Inbox:
    listening = driver.address(name, Role.CLIENT)
    settings = ClientSettings(name, (driver.address(at, Role.CLIENT),), listening=listening)
    inbox = driver.add(name, Role.CLIENT, lambda rng, streams: AnyClient(settings, rng, streams))
    driver.start(name)
    return inbox


def start_broker(driver: Driver) -> None:
    driver.add("b1", Role.BROKER, lambda rng, streams: make_broker(BrokerSettings("b1"), rng, streams))
    driver.start("b1")


def test_a_client_that_is_dialled_by_another_talks_to_it_and_to_its_broker(driver: Driver) -> None:
    start_broker(driver)
    one, other = start_client(driver, "one"), start_client(driver, "other")
    for inbox in (one, other):
        driver.wait_until(lambda inbox=inbox: any(isinstance(r, Connected) for r in inbox.results))  # type: ignore[misc]
    there = driver.address("other", Role.CLIENT)
    driver.request("one", Greet(there))
    driver.wait_until(lambda: f"client:other: hello from one, says {there}" in one.results)
    driver.request("other", PublishEvents([NewEvent({"n": 1})]))
    driver.wait_until(lambda: Published([]) in other.results)
    assert [inbox.results[0] for inbox in (one, other)] == [SchemeFound(SCHEME)] * 2


def test_a_client_is_no_broker_to_another_client(driver: Driver) -> None:
    driver.add("other", Role.CLIENT, lambda rng, streams: Recorder())
    driver.start("other")
    lost = start_client(driver, "lost", at="other")
    driver.wait_until(lambda: any(getattr(r, "reason", "") == "client:other is no broker" for r in lost.results))
