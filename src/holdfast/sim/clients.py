"""The programs beside a scenario's clients: they make subscriptions, publish, consume at their pace, and count."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from holdfast.protocols.sessions import requests
from holdfast.sim.machine import Machine, Program
from holdfast.sim.scenario import (
    Action,
    Advertise,
    Ask,
    Close,
    Publish,
    ScenarioEvent,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)

if TYPE_CHECKING:
    from holdfast.sim.simulation import Simulation


def payload_of(event: ScenarioEvent) -> bytes:
    return event.payload_text.encode(errors="replace") + bytes(event.payload_bytes)


class ScenarioClient(Program):
    """What stands beside a client's node. A restart takes everything from it but the wish for its subscriptions
    and its advertisements; one that has said goodbye wishes for nothing."""

    def __init__(self, simulation: Simulation, consume_after_us: int) -> None:
        self._simulation = simulation
        self._consume_after = consume_after_us * 1_000
        self._wanted: dict[str, Subscribe] = {}
        self._offered: dict[str, Advertise] = {}
        self._last_request = 0
        # Of this life:
        self._making: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._offering: dict[int, str] = {}
        self._offers: dict[str, int] = {}

    def on_started(self, machine: Machine) -> None:
        self._making, self._numbers = {}, {}
        self._offering, self._offers = {}, {}
        for offered in self._offered.values():
            self._offer(machine, offered)
        for wanted in self._wanted.values():
            self._make(machine, wanted)

    def do(self, machine: Machine, action: Action) -> None:
        """Carries out one action of the scenario, if there is anyone to do it."""
        if machine.node is None:
            return
        match action:
            case Subscribe():
                self._wanted[action.name] = action
                self._make(machine, action)
            case Unsubscribe():
                self._wanted.pop(action.name, None)
                number = self._numbers.pop(action.name, None)
                if number is not None:
                    self._request(machine, requests.EndSubscription(number))
            case Publish():
                events = [
                    requests.NewEvent(event.attributes, event.topic, payload_of(event), event.lifetime_ms * 1_000_000)
                    for event in action.events
                ]
                self._request(machine, requests.PublishEvents(events, action.retry))
            case Advertise():
                self._offered[action.name] = action
                self._offer(machine, action)
            case Unadvertise():
                self._offered.pop(action.name, None)
                number = self._offers.pop(action.name, None)
                if number is not None:
                    self._request(machine, requests.EndAdvertisement(number))
            case Close():
                self._wanted, self._offered = {}, {}
                self._request(machine, requests.Close())
            case Ask():
                self._request(machine, requests.AskApplication(action.request.encode()))

    def _make(self, machine: Machine, wanted: Subscribe) -> None:
        self._last_request += 1
        self._making[self._last_request] = wanted.name
        command = requests.MakeSubscription(wanted.filter, wanted.overflow, wanted.window)
        machine.request(self._last_request, command)

    def _offer(self, machine: Machine, offered: Advertise) -> None:
        self._last_request += 1
        self._offering[self._last_request] = offered.name
        machine.request(self._last_request, requests.MakeAdvertisement(offered.filter))

    def _request(self, machine: Machine, command: Any) -> None:
        self._last_request += 1
        machine.request(self._last_request, command)

    def on_complete(self, machine: Machine, request: int, result: Any) -> None:
        match result:
            case requests.SubscriptionMade():
                name = self._making.pop(request)
                if name in self._wanted:
                    self._numbers[name] = result.subscription
                else:
                    # Ended by the scenario before it was made.
                    end = requests.EndSubscription(result.subscription)
                    self._simulation.after(0, self._do_later, (machine, machine.life, end))
            case requests.AdvertisementMade():
                name = self._offering.pop(request)
                if name in self._offered:
                    self._offers[name] = result.advertisement
                else:
                    over = requests.EndAdvertisement(result.advertisement)
                    self._simulation.after(0, self._do_later, (machine, machine.life, over))
            case requests.SubscriptionLost():
                for name, number in list(self._numbers.items()):
                    if number == result.subscription:
                        del self._numbers[name]

    def _do_later(self, arguments: tuple[Machine, int, Any]) -> None:
        machine, life, command = arguments
        if machine.life == life:
            self._request(machine, command)

    def on_deliver(self, machine: Machine, subscription: int, events: Collection[Any]) -> None:
        self._simulation.after(self._consume_after, self._consume, (machine, machine.life, subscription, len(events)))

    def _consume(self, arguments: tuple[Machine, int, int, int]) -> None:
        machine, life, subscription, count = arguments
        if machine.life == life:
            self._request(machine, requests.Consume(subscription, count))
