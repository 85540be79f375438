"""What a seed stands for: graph, homes, topics, availabilities and outages; and the scenario that plays it."""

from __future__ import annotations

from itertools import accumulate
from random import Random
from typing import Literal

import msgspec

from experiments.d1.outages import Component, Outage, outages
from holdfast.kernel.settings import Written
from holdfast.protocols.routing.settings import Reliability
from holdfast.sim.scenario import (
    Action,
    Broker,
    Client,
    Cut,
    Fault,
    Kill,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
)
from holdfast.topology.generators import Kind, links_of
from holdfast.topology.graph import BrokerGraph

DAY_S = 86_400
WARM_UP_S = 60  # everyone has subscribed by then
SUBSCRIBE_S = 10
HOURS_6_MS = 6 * 3_600 * 1_000
FOR_EVER_MS = 10**10
HEARTBEAT_S_MAX = 300
GATHER_US = 5_000  # so that what is published at one time makes its way together
PAUSE_SHARE = 0.02  # of a broker's repair time: how long a client waits at most before it tries again

Quality = Literal["low", "high"]
AVAILABILITIES: dict[Quality, tuple[float, float]] = {"low": (0.90, 0.95), "high": (0.99, 0.999)}  # D1-E3


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration; the defaults are D1-E2's, but for the publishing interval."""

    level: Reliability
    quality: Quality = "low"
    graph: bool = False  # a random graph, and not a tree
    seed: int = 1  # of graph, homes, topics and availabilities
    run: int = 0  # of so many with the same seed: each has outages of its own
    brokers: int = 10
    publishers: int = 10
    subscribers: int = 500
    days: float = 14
    every_s: int = 600
    lifetime_s: int = 3_600
    period_days: float = 7  # of brokers
    exponent: float = 1.0  # of the topics' popularity
    link_availability: float = 0.99
    link_period_s: float = 60_000
    pause_s: float | None = None  # how long clients wait at most before they try again; else by repair times
    # What costs less, and changes nothing for a subscriber, who knows one publisher and one broker:
    own_sessions: bool = False  # each subscriber has one; else those of one home broker share it, and one subscription
    # for each topic
    apart: bool = False  # publishers publish at times of their own; else all at the same

    @property
    def length_s(self) -> float:
        return self.days * DAY_S

    @property
    def end_ms(self) -> int:
        return round((WARM_UP_S + self.length_s) * 1_000)


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What was drawn. Homes are by publisher and by subscriber; a topic is called as its publisher."""

    links: tuple[tuple[str, str], ...]
    availabilities: dict[str, float]
    homes: dict[str, str]
    topics: dict[str, str]  # of subscribers, and of nobody else
    broker_outages: dict[str, list[Outage]]
    link_outages: dict[str, list[Outage]]  # by "a b"


def draw_world(setup: Setup) -> World:
    """The level has no part in it: all levels are measured in the same world."""
    rng = Random(f"d1/{setup.seed}/{setup.quality}/{setup.graph}")
    names = [f"b{number}" for number in range(setup.brokers)]
    links = links_of(Kind.RANDOM_GRAPH if setup.graph else Kind.RANDOM_TREE, names, rng)
    low, high = AVAILABILITIES[setup.quality]
    availabilities = {name: rng.uniform(low, high) for name in names}
    publishers = [f"p{number}" for number in range(setup.publishers)]
    weights = list(accumulate((rank + 1) ** -setup.exponent for rank in range(setup.publishers)))
    subscribers = [f"s{number}" for number in range(setup.subscribers)]
    homes = {client: rng.choice(names) for client in (*publishers, *subscribers)}
    topics = {client: rng.choices(publishers, cum_weights=weights)[0] for client in subscribers}
    if setup.run:
        rng = Random(f"d1/{setup.seed}/{setup.quality}/{setup.graph}/{setup.run}")
    broker_outages = {
        name: outages(Component(name, availability, setup.period_days * DAY_S), setup.length_s, rng)
        for name, availability in availabilities.items()
    }
    link_outages = {
        (name := f"{one} {other}"): outages(
            Component(name, setup.link_availability, setup.link_period_s), setup.length_s, rng
        )
        for one, other in links
    }
    return World(
        links=links,
        availabilities=availabilities,
        homes=homes,
        topics=topics,
        broker_outages=broker_outages,
        link_outages=link_outages,
    )


def session_of(setup: Setup, world: World, subscriber: str) -> str:
    """The client that subscribes for it."""
    return subscriber if setup.own_sessions else f"at-{world.homes[subscriber]}"


def subscribing_for(setup: Setup, world: World) -> dict[str, str]:
    """Who subscribes for each subscriber: the first with the same topic and home, or each for itself."""
    first: dict[tuple[str, str], str] = {}
    return {
        name: name if setup.own_sessions else first.setdefault((topic, world.homes[name]), name)
        for name, topic in world.topics.items()
    }


def tree_of(world: World) -> list[tuple[str, str]]:
    """The links along which events are routed while nothing is wrong."""
    tree = BrokerGraph(list(world.availabilities), world.links).spanning_tree()
    return [pair for pair in world.links if pair[1] in tree.neighbours(pair[0])]


def pause_ms(setup: Setup, availability: float) -> int:
    """How long clients wait at most before they try again to reach the best of the brokers."""
    if setup.pause_s is not None:
        return round(setup.pause_s * 1_000)
    return max(5_000, round((1 - availability) * setup.period_days * DAY_S * 1_000 * PAUSE_SHARE))


def heartbeat_s(setup: Setup) -> int:
    """Half the publishing interval, if that is short."""
    return min(setup.every_s // 2, HEARTBEAT_S_MAX)


def settings_of(setup: Setup) -> dict[str, Written]:
    return {
        "reliability": setup.level.value,
        "advertisements": False,
        "refresh_ms": 600_000,
        "expire_ms": 2_100_000,
        "dial_every_ms": 30_000,
        "retransmit_ms": 60_000,
        "heartbeat_ms": heartbeat_s(setup) * 1_000,
        "suspect_ms_min": heartbeat_s(setup) * 2_500,
        "suspect_ms_max": heartbeat_s(setup) * 5_000,
    }


def scenario_of(setup: Setup, world: World) -> Scenario:
    level = setup.level
    links = list(world.links) if level.detours else tree_of(world)
    pause = pause_ms(setup, max(AVAILABILITIES[setup.quality]))
    brokers = [
        Broker(
            id=name,
            durable=level.buffers,
            away_ms=FOR_EVER_MS,
            tick_ms=HOURS_6_MS,
            silent_ms=3 * HOURS_6_MS,
            repeat_ms=2 * HOURS_6_MS,
            retain_ms=HOURS_6_MS,
            gather_us=GATHER_US,
        )
        for name in world.availabilities
    ]
    homes = {
        session_of(setup, world, name) if name in world.topics else name: (name in world.topics, home)
        for name, home in world.homes.items()
    }
    clients = [
        Client(
            id=name,
            brokers=(home,),
            resubscribe=False,
            ping_ms=HOURS_6_MS,
            report_ms=HOURS_6_MS,
            pause_ms_max=pause,
            light=light,
        )
        for name, (light, home) in homes.items()
    ]
    return Scenario(
        name=f"d1-{level.value.replace('+', '-')}-{setup.quality}-{'graph' if setup.graph else 'tree'}",
        seed=setup.seed,
        settings=settings_of(setup),
        links=links,
        brokers=brokers,
        clients=clients,
        actions=_actions(setup, world),
        faults=_faults(world, links),
        safety_ms=setup.end_ms,
        liveness_ms=0,
        checkers=["at-most-once"],
    )


def _actions(setup: Setup, world: World) -> list[Action]:
    subscribes = subscribing_for(setup, world)
    actions: list[Action] = [
        Subscribe(
            at_ms=SUBSCRIBE_S * 1_000, client=session_of(setup, world, name), name=name, filter=f"topic = '{topic}'"
        )
        for name, topic in world.topics.items()
        if subscribes[name] == name
    ]
    rng = Random(f"d1/{setup.seed}/phases{setup.run or ''}")
    every_ms = setup.every_s * 1_000
    together = int(rng.random() * every_ms)
    for name in (name for name in world.homes if name not in world.topics):
        first = WARM_UP_S * 1_000 + (int(rng.random() * every_ms) if setup.apart else together)
        event = ScenarioEvent(topic=name, lifetime_ms=setup.lifetime_s * 1_000)
        actions += [
            Publish(at_ms=at, client=name, events=[event], retry=False) for at in range(first, setup.end_ms, every_ms)
        ]
    return actions


def _faults(world: World, links: list[tuple[str, str]]) -> list[Fault]:
    begin = WARM_UP_S * 1_000
    faults: list[Fault] = [
        Kill(at_ms=begin + one.begin, for_ms=one.end - one.begin, host=name)
        for name, found in world.broker_outages.items()
        for one in found
    ]
    for source, target in links:
        for one in world.link_outages[f"{source} {target}"]:
            faults.append(Cut(at_ms=begin + one.begin, for_ms=one.end - one.begin, source=source, target=target))
    return faults
