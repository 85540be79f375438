"""Scenarios from seeds: the configuration, the workload and the faults are all drawn (swarm testing).

What is drawn is data, complete before anything runs. Not every seed has every kind of fault, and that is the point: a
fault that is always there hides what happens without it. A shape bounds what is drawn, so that a campaign can be made
for one question.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import Literal

import msgspec
from msgspec.structs import replace

from holdfast.protocols.paxos.ballots import tolerated
from holdfast.protocols.paxos.settings import CLASSIC, Protocol
from holdfast.protocols.sessions.messages import Overflow
from holdfast.sim.draw_more import FORMED_MS, with_more
from holdfast.sim.hosted import with_application
from holdfast.sim.latency import Constant, Exponential, Latency, Uniform
from holdfast.sim.mortal import with_lifetimes
from holdfast.sim.network import Adversary
from holdfast.sim.scenario import (
    Action,
    Broker,
    Client,
    ClockJump,
    Cut,
    DiskFull,
    DiskSlow,
    Fault,
    Group,
    HostedApplication,
    Kill,
    Network,
    Pause,
    PowerCut,
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

ALWAYS = ("only-matching", "at-most-once", "publisher-order", "no-loss", "endings", "bounded-queues", "liveness")
# Kept by a broker over its own crashes only if it remembers: one that forgot puts what is sent again in a new order.
IF_REMEMBERED = ("total-order", "complete")
# And no subscription is forgotten, unless its client stays away for longer than the broker waits.
IF_PATIENT = ("no-forgetting",)


def storm_of(brokers: int) -> Storm:
    return Storm(steps=STORM_STEPS * brokers, sent_bytes=STORM_BYTES * brokers)


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of what is drawn."""

    brokers: tuple[Broker, ...] = (Broker(id="b1", durable=True),)
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
    name: str = "one-broker"
    system: Literal["tree", "paxos"] = "tree"
    application: HostedApplication | None = None  # that the brokers host
    lifetimes: bool = False  # whether events have some
    more: bool = True  # whether rare meetings are drawn besides (`draw_more`)
    group: Group | None = None  # its protocol and its pipeline stand; else they are drawn, as the rest of it always is


def group_shape(
    names: Sequence[str] = (), protocol: Protocol | None = None, pipeline: int = 10, name: str = "group"
) -> Shape:
    """What is drawn for a group: these brokers, or 3, 5 or 7 of them; this protocol, or either.

    Runs are short, since heartbeats cost steps also when nothing else happens.
    """
    return Shape(
        name=name,
        system="paxos",
        brokers=tuple(Broker(id=broker, durable=True) for broker in names),
        fixed_brokers=bool(names),
        group=None if protocol is None else Group(protocol=protocol, pipeline=pipeline),
        clients_max=4,
        publishes_max=40,
        events_per_publish_max=30,
        subscriptions_max=6,
        faults_max=10,
        safety_ms=5_000,
        liveness_ms=20_000,
    )


def draw_scenario(seed: int, shape: Shape | None = None) -> Scenario:
    """The scenario of a seed. The same seed and shape give the same scenario."""
    shape = shape or Shape()
    if shape.lifetimes:
        return with_lifetimes(draw_scenario(seed, replace(shape, lifetimes=False)))
    if shape.application is not None:
        # The same run as without one, and what concerns the application besides.
        return with_application(draw_scenario(seed, replace(shape, application=None)), shape.application)
    drawn = _draw_plain(seed, shape)
    members = [broker.id for broker in drawn.brokers] if shape.system == "paxos" else []
    # Who wants no faults wants none of these.
    more = shape.more and shape.faults_max > 0
    return with_more(drawn, list(combinations(members, 2))) if more else drawn


def _draw_plain(seed: int, shape: Shape) -> Scenario:
    rng = Random(f"{shape.name}/{seed}")
    if shape.system == "paxos":
        return _draw_group_scenario(rng, seed, shape)
    brokers = list(shape.brokers) if shape.fixed_brokers else [_draw_broker(rng, broker) for broker in shape.brokers]
    brokers = [_draw_pace(rng, broker) for broker in brokers]
    names = tuple(broker.id for broker in brokers)
    free = [name for name in (f"c{n}" for n in range(1, shape.clients_max + len(names) + 1)) if name not in names]
    clients = [_draw_client(rng, name, names) for name in free[: rng.randint(2, shape.clients_max)]]
    faults = _draw_faults(rng, shape, brokers, clients)
    forgets = any(not broker.durable for broker in brokers) and any(
        isinstance(fault, Kill | PowerCut) and fault.host in names for fault in faults
    )
    forgets = forgets or any(isinstance(fault, PowerCut) and fault.wipe for fault in faults)
    patient = all(broker.away_ms >= shape.safety_ms + shape.liveness_ms for broker in brokers)
    promised = ALWAYS if forgets else (*ALWAYS, *IF_REMEMBERED, *(IF_PATIENT if patient else ()))
    network = _draw_network(rng, shape)
    actions = _draw_actions(rng, shape, clients)
    return Scenario(
        name=shape.name,
        seed=seed,
        brokers=brokers,
        clients=clients,
        network=network,
        actions=actions,
        faults=faults,
        safety_ms=shape.safety_ms,
        liveness_ms=shape.liveness_ms + _slowest_ms(brokers, clients, actions),
        storm=storm_of(len(brokers)),
        checkers=list(promised if shape.checkers is None else shape.checkers),
    )


def _slowest_ms(brokers: list[Broker], clients: list[Client], actions: list[Action]) -> int:
    """What the events take if each has to wait for a slow disk and for a slow application, one after the other."""
    events = sum(len(action.events) for action in actions if isinstance(action, Publish))
    sync_us = max(broker.sync_us[1] if broker.durable else 0 for broker in brokers)
    return events * (sync_us + max(client.consume_after_us for client in clients)) // 1_000


def _draw_broker(rng: Random, broker: Broker) -> Broker:
    small = rng.random() < 0.4
    return msgspec.structs.replace(
        broker,
        durable=rng.random() < 0.7,
        backlog_events=rng.choice((2, 5, 20)) if small else broker.backlog_events,
        snapshot_every=rng.choice((3, 20, 4_096)),
        away_ms=rng.choice((2_000, 120_000)),
        block_ms=rng.choice((500, 10_000)),
        sync_us=rng.choice(((100, 5_000), (20, 50), (1_000, 400_000))),
    )


def _draw_pace(rng: Random, broker: Broker) -> Broker:
    return msgspec.structs.replace(
        broker,
        service_us_per_turn=rng.choice((0, 0, 200)),
        service_us_per_message=rng.choice((0, 0, 50, 500)),
        gather_us=rng.choice((0, 0, 2_000)),
    )


def _draw_client(rng: Random, name: str, brokers: tuple[str, ...]) -> Client:
    return Client(
        id=name,
        brokers=brokers,
        publish_window=rng.choice((1, 4, 1_024)),
        batch_events=rng.choice((1, 3, 256)),
        consume_after_us=rng.choice((0, 0, 1_000, 300_000)),
        gather_us=rng.choice((0, 0, 1_000)),
    )


def _draw_network(rng: Random, shape: Shape) -> Network:
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


def _draw_actions(rng: Random, shape: Shape, clients: list[Client]) -> list[Action]:
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


def _draw_faults(rng: Random, shape: Shape, brokers: list[Broker], clients: list[Client]) -> list[Fault]:
    hosts = [broker.id for broker in brokers] * 2 + [client.id for client in clients]
    with_disk = [broker.id for broker in brokers if broker.durable]
    kinds = ["kill", "power-cut", "pause", "cut", "clock-jump", *(["disk-slow", "disk-full"] if with_disk else [])]
    # Some seeds concentrate on a few kinds of fault, some have none.
    chosen = [kind for kind in kinds if rng.random() < 0.6]
    faults: list[Fault] = []
    for _ in range(rng.randint(0, shape.faults_max) if chosen else 0):
        at = rng.randint(0, shape.safety_ms - 1)
        duration = min(rng.choice((10, 300, 3_000, 12_000)), shape.safety_ms - at)
        host = rng.choice(hosts)
        match rng.choice(chosen):
            case "kill":
                faults.append(Kill(at_ms=at, for_ms=duration, host=host))
            case "power-cut":
                wipe = host in with_disk and rng.random() < 0.15
                faults.append(PowerCut(at_ms=at, for_ms=duration, host=host, wipe=wipe))
            case "pause":
                faults.append(Pause(at_ms=at, for_ms=duration, host=host))
            case "cut":
                source, target = rng.choice(clients).id, rng.choice(brokers).id
                if rng.random() < 0.5:
                    source, target = target, source
                both = rng.random() < 0.5
                faults.append(Cut(at_ms=at, for_ms=duration, source=source, target=target, both=both))
            case "clock-jump":
                by = rng.choice((-3_600_000, -50, 50, 3_600_000))
                faults.append(ClockJump(at_ms=at, for_ms=duration, host=host, by_ms=by))
            case "disk-slow":
                faults.append(DiskSlow(at_ms=at, for_ms=duration, host=rng.choice(with_disk)))
            case "disk-full":
                faults.append(DiskFull(at_ms=at, for_ms=duration, host=rng.choice(with_disk)))
    return sorted(faults, key=lambda fault: fault.at_ms)


# ------------------------------------------------------------------------------------------------------------ groups
def _draw_group_scenario(rng: Random, seed: int, shape: Shape) -> Scenario:
    brokers = _draw_members(rng, shape)
    names = tuple(broker.id for broker in brokers)
    free = [name for name in (f"c{n}" for n in range(1, shape.clients_max + len(names) + 1)) if name not in names]
    clients = []
    for name in free[: rng.randint(2, shape.clients_max)]:
        # In an order of its own, so that not all knock at the same door first.
        client = _draw_client(rng, name, tuple(rng.sample(names, len(names))))
        clients.append(msgspec.structs.replace(client, consume_after_us=rng.choice((0, 0, 1_000, 50_000))))
    faults = _draw_group_faults(rng, shape, names, clients)
    down = _draw_down(seed, shape, names, faults)
    if down or any(isinstance(fault, PowerCut) and fault.wipe for fault in faults):
        # A disk that is wiped before all have met leaves the group unformed for good (docs/groups.md).
        share = 1 - FORMED_MS / shape.safety_ms
        faults = [msgspec.structs.replace(fault, at_ms=FORMED_MS + int(share * fault.at_ms)) for fault in faults]
    patient = all(broker.away_ms >= shape.safety_ms + shape.liveness_ms for broker in brokers)
    promised = (*ALWAYS, *IF_REMEMBERED, *(IF_PATIENT if patient else ()))
    network = _draw_network(rng, shape)
    # What a leader is told it tells to all others; a rate that is slow for one broker would be too slow to catch up.
    network = msgspec.structs.replace(network, bytes_per_second=10 * network.bytes_per_second)
    actions = _draw_actions(rng, shape, clients)
    return Scenario(
        name=shape.name,
        seed=seed,
        system="paxos",
        group=_draw_group(rng, shape.group),
        brokers=brokers,
        clients=clients,
        network=network,
        actions=actions,
        faults=faults,
        safety_ms=shape.safety_ms,
        liveness_ms=shape.liveness_ms + _slowest_ms(brokers, clients, actions),
        down=down,
        storm=storm_of(len(brokers)),
        checkers=list(promised if shape.checkers is None else shape.checkers),
    )


def _draw_down(seed: int, shape: Shape, names: tuple[str, ...], faults: list[Fault]) -> list[str]:
    """Members that stay down when all others are healed, in half of the runs: a group serves while a minority is down,
    and not only when everyone is back (D4-D1). One whose disk was wiped never votes again, and counts as down. Faults
    begin later then: until all members have met once there is no group."""
    rng = Random(f"{shape.name}/{seed}/down")
    wiped = {fault.host for fault in faults if isinstance(fault, PowerCut) and fault.wipe}
    others = [name for name in names if name not in wiped]
    most = tolerated(len(names)) - len(wiped)
    return sorted(rng.sample(others, rng.randint(1, most))) if most > 0 and rng.random() < 0.5 else []


def _draw_members(rng: Random, shape: Shape) -> list[Broker]:
    """Brokers with disks and paces of their own; what decides their state is the same for all."""
    if shape.fixed_brokers:
        members = list(shape.brokers)
    else:
        small = rng.random() < 0.4
        broker = Broker(
            id="",
            durable=True,
            backlog_events=rng.choice((2, 5, 20)) if small else Broker(id="").backlog_events,
            away_ms=rng.choice((1_500, 120_000, 120_000)),
            block_ms=rng.choice((500, 10_000)),
        )
        count = rng.choice((3, 3, 3, 3, 3, 5, 5, 7))
        members = [msgspec.structs.replace(broker, id=f"b{number}") for number in range(1, count + 1)]
    pace = _draw_pace(rng, members[0])  # of all, mostly
    drawn = []
    for member in members:
        own = _draw_pace(rng, member) if rng.random() < 0.2 else pace
        drawn.append(
            msgspec.structs.replace(own, id=member.id, sync_us=rng.choice(((100, 2_000), (20, 50), (1_000, 30_000))))
        )
    return drawn


def _draw_group(rng: Random, wanted: Group | None) -> Group:
    """Snapshots come often, so that whoever lags catches up by one, in parts."""
    protocol, pipeline = rng.choice(CLASSIC), rng.choice((1, 3, 10, 10))
    heartbeat_ms, patience_ms = rng.choice(((50, 300), (100, 400), (200, 700)))
    return Group(
        protocol=protocol if wanted is None else wanted.protocol,
        pipeline=pipeline if wanted is None else wanted.pipeline,
        batch_commands=rng.choice((2, 256)),
        heartbeat_ms=heartbeat_ms,
        patience_ms=patience_ms,
        trim_every=rng.choice((3, 10, 40, 2_000)),
        trim_keep=rng.choice((0, 2, 10, 500)),
        trim_ratio=0,
        part_bytes=rng.choice((300, 4_000, 256 * 1024)),
    )


def _draw_group_faults(rng: Random, shape: Shape, names: tuple[str, ...], clients: list[Client]) -> list[Fault]:
    hosts = list(names) * 4 + [client.id for client in clients]
    kinds = (
        "kill",
        "power-cut",
        "blackout",
        "rolling",
        "pause",
        "cut",
        "isolate",
        "clock-jump",
        "disk-slow",
        "disk-full",
    )
    chosen = [kind for kind in kinds if rng.random() < 0.6]
    # One that was wiped never votes again, and the others have to be a majority.
    wiped = rng.choice(names) if tolerated(len(names)) and rng.random() < 0.3 else ""
    faults: list[Fault] = []
    for _ in range(rng.randint(0, shape.faults_max) if chosen else 0):
        at = rng.randint(0, shape.safety_ms - 1)
        duration = min(rng.choice((10, 300, 1_000, 3_000)), shape.safety_ms - at)
        host, broker = rng.choice(hosts), rng.choice(names)
        match rng.choice(chosen):
            case "kill":
                faults.append(Kill(at_ms=at, for_ms=duration, host=host))
            case "power-cut":
                wipe = host == wiped and rng.random() < 0.7
                faults.append(PowerCut(at_ms=at, for_ms=duration, host=host, wipe=wipe))
            case "blackout":
                for name in names:
                    lasts = min(rng.choice((10, 300, 1_000)), shape.safety_ms - at)
                    faults.append(PowerCut(at_ms=at, for_ms=lasts, host=name))
            case "rolling":
                # One after the other: whoever leads is among them, and so is who led next.
                step = rng.choice((150, 500, 900))
                for place, name in enumerate(rng.sample(names, len(names))):
                    if at + place * step < shape.safety_ms:
                        faults.append(Kill(at_ms=at + place * step, for_ms=min(duration, 400), host=name))
            case "pause":
                faults.append(Pause(at_ms=at, for_ms=duration, host=host))
            case "cut":
                others = [name for name in names if name != broker] + [client.id for client in clients]
                ends = (broker, rng.choice(others))
                source, target = ends if rng.random() < 0.5 else ends[::-1]
                faults.append(Cut(at_ms=at, for_ms=duration, source=source, target=target, both=rng.random() < 0.5))
            case "isolate":
                # From the other brokers, and not from the clients: a leader that does not know what goes on.
                outward, both = rng.random() < 0.5, rng.random() < 0.6
                for other in names:
                    if other != broker:
                        source, target = (broker, other) if outward else (other, broker)
                        faults.append(Cut(at_ms=at, for_ms=duration, source=source, target=target, both=both))
            case "clock-jump":
                by = rng.choice((-3_600_000, -50, 50, 3_600_000))
                faults.append(ClockJump(at_ms=at, for_ms=duration, host=host, by_ms=by))
            case "disk-slow":
                faults.append(DiskSlow(at_ms=at, for_ms=duration, host=broker, times=rng.choice((5, 50))))
            case "disk-full":
                faults.append(DiskFull(at_ms=at, for_ms=duration, host=broker))
    return sorted(faults, key=lambda fault: fault.at_ms)
