"""Scenarios from seeds: the configuration, the workload and the faults are all drawn (swarm testing).

What is drawn is data, complete before anything runs. Not every seed has every kind of fault, and that is the point: a
fault that is always there hides what happens without it. A shape bounds what is drawn, so that a campaign can be made
for one question. Here is what the draws of all schemes have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.protocols.sessions.messages import Overflow
from holdfast.sim.draw_more import Meetings, with_more
from holdfast.sim.hosted import with_application
from holdfast.sim.latency import Constant, Exponential, Latency, Uniform
from holdfast.sim.mortal import with_lifetimes
from holdfast.sim.network import Adversary
from holdfast.sim.scenario import (
    Action,
    Broker,
    Client,
    HostedApplication,
    Network,
    Publish,
    Scenario,
    ScenarioEvent,
    Storm,
    Subscribe,
    Unsubscribe,
)

# For each broker of a run: several times the most that was ever seen.
STORM_STEPS = 40_000
STORM_BYTES = 2 * 1024 * 1024

SYMBOLS = ("ACME", "BOLT", "CORE", "DUNE")
TOPICS = ("stock", "news", "")

ALWAYS: Final = ("only-matching", "at-most-once", "publisher-order", "no-loss", "endings", "bounded-queues", "liveness")
# Kept by a broker over its own crashes only if it remembers: one that forgot puts what is sent again in a new order.
IF_REMEMBERED: Final = ("total-order", "complete")
# And no subscription is forgotten, unless its client stays away for longer than the broker waits.
IF_PATIENT: Final = ("no-forgetting",)


def storm_of(brokers: int) -> Storm:
    return Storm(steps=STORM_STEPS * brokers, sent_bytes=STORM_BYTES * brokers)


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Of what is drawn."""

    brokers: tuple[Broker, ...] = ()
    fixed_brokers: bool = False  # as they are, but for their pace; else durability and limits are drawn too
    clients_max: int = 5
    publishes_max: int = 25
    events_per_publish_max: int = 60  # rarely; mostly there are few
    subscriptions_max: int = 8
    faults_max: int = 6
    safety_ms: int = 20_000
    liveness_ms: int = 60_000
    adversary: bool = True
    checkers: tuple[str, ...] | None = None  # instead of what the drawn brokers promise
    application: HostedApplication | None = None  # that the brokers host
    lifetimes: bool = False  # whether events have some
    more: bool = True  # whether rare meetings are drawn besides (`draw_more`)

    def complete(
        self,
        drawn: Scenario,
        pairs: Sequence[tuple[str, str]],
        meetings: Meetings,
        promises: Callable[[Scenario], tuple[str, ...]],
    ) -> Scenario:
        """The scenario with what it promises, and all that these bounds want besides, each with a source of randomness
        of its own: what was drawn before stays as it is. `pairs` are brokers with a link between them."""
        # Who wants no faults wants none of these.
        if self.more and self.faults_max > 0:
            drawn = with_more(drawn, pairs, meetings)
        drawn = replace(drawn, checkers=list(promises(drawn) if self.checkers is None else self.checkers))
        if self.application is not None:
            drawn = with_application(drawn, self.application)
        return with_lifetimes(drawn) if self.lifetimes else drawn


def is_patient(scenario: Scenario) -> bool:
    """Whether brokers wait longer for clients than faults keep any away."""
    return all(broker.away_ms >= 2 * scenario.safety_ms for broker in scenario.brokers)


def slowest_ms(brokers: list[Broker], clients: list[Client], actions: list[Action]) -> int:
    """What the events take if each has to wait for a slow disk and for a slow application, one after the other."""
    events = sum(len(action.events) for action in actions if isinstance(action, Publish))
    sync_us = max(broker.sync_us[1] if broker.durable else 0 for broker in brokers)
    return events * (sync_us + max(client.consume_after_us for client in clients)) // 1_000


def draw_pace(rng: Random, broker: Broker) -> Broker:
    return msgspec.structs.replace(
        broker,
        service_us_per_turn=rng.choice((0, 0, 200)),
        service_us_per_message=rng.choice((0, 0, 50, 500)),
        gather_us=rng.choice((0, 0, 2_000)),
    )


def draw_client(rng: Random, name: str, brokers: tuple[str, ...]) -> Client:
    return Client(
        id=name,
        brokers=brokers,
        publish_window=rng.choice((1, 4, 1_024)),
        batch_events=rng.choice((1, 3, 256)),
        consume_after_us=rng.choice((0, 0, 1_000, 300_000)),
        gather_us=rng.choice((0, 0, 1_000)),
    )


def draw_network(rng: Random, shape: Bounds) -> Network:
    latency: Latency = rng.choice(
        (
            Constant(delay_us=500),
            Uniform(low_us=50, high_us=5_000),
            Exponential(minimum_us=100, mean_us=2_000, maximum_us=500_000),
        )
    )
    adversary = None
    if shape.adversary and rng.random() < 0.3:
        adversary = Adversary(
            loss=rng.choice((0.0, 0.05, 0.3)),
            duplication=rng.choice((0.0, 0.1, 0.3)),
            reordering=rng.choice((0.0, 0.1, 0.5)),
            late_us_max=rng.choice((2_000, 50_000, 3_000_000)),
        )
    return Network(latency=latency, adversary=adversary, bytes_per_second=rng.choice((0, 0, 0, 20_000)))


def draw_filter(rng: Random) -> str:
    symbol, price = rng.choice(SYMBOLS), rng.randint(0, 100)
    return rng.choice(
        (
            "",
            f"price > {price}",
            f"symbol = '{symbol}'",
            f"symbol = '{symbol}' AND price < {price}",
            "topic = 'stock'",
            f"topic = 'news' OR price BETWEEN {price // 2} AND {price}",
            "symbol LIKE 'B%'",
            f"NOT (price > {price})",
        )
    )


def draw_event(rng: Random) -> ScenarioEvent:
    attributes: dict[str, int | float | str | bool] = {}
    if rng.random() < 0.9:
        attributes["symbol"] = rng.choice(SYMBOLS)
    if rng.random() < 0.9:
        attributes["price"] = rng.randint(0, 100) if rng.random() < 0.5 else rng.random() * 100
    payload = 2_000 if rng.random() < 0.05 else 0
    return ScenarioEvent(attributes=attributes, topic=rng.choice(TOPICS), payload_bytes=payload)


def draw_actions(rng: Random, shape: Bounds, clients: list[Client]) -> list[Action]:
    actions: list[Action] = []
    last = shape.safety_ms
    for number in range(1, rng.randint(1, shape.subscriptions_max) + 1):
        client = rng.choice(clients)
        early = rng.random() < 0.7
        at = rng.randint(0, last // 20 if early else last)
        name = f"s{number}"
        overflow = rng.choice((Overflow.DISCONNECT, Overflow.DISCONNECT, Overflow.DROP_OLDEST, Overflow.BLOCK))
        window = rng.choice((1, 3, 1_024))
        actions.append(
            Subscribe(at_ms=at, client=client.id, name=name, filter=draw_filter(rng), overflow=overflow, window=window)
        )
        if rng.random() < 0.2:
            actions.append(Unsubscribe(at_ms=rng.randint(at, last), client=client.id, name=name))
    retry = rng.random() < 0.9
    for _ in range(rng.randint(1, shape.publishes_max)):
        most = shape.events_per_publish_max if rng.random() < 0.05 else min(6, shape.events_per_publish_max)
        events = [draw_event(rng) for _ in range(rng.randint(1, most))]
        client = rng.choice(clients)
        actions.append(Publish(at_ms=rng.randint(0, last), client=client.id, events=events, retry=retry))
    return sorted(actions, key=lambda action: action.at_ms)
