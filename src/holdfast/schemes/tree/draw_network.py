"""Networks of brokers from seeds: a tree or a graph, clients at brokers of their own, faults of brokers and links.

Faults begin and end before `safety_ms`; near the end of the run, when all
has been well for a while, every publisher publishes once more: what a network has not recovered from is seen then.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from holdfast.broker.scheme import Links
from holdfast.kernel.settings import Written
from holdfast.protocols.routing.network_map import StandInProtocol
from holdfast.protocols.routing.settings import Reliability
from holdfast.protocols.sessions.messages import Overflow
from holdfast.schemes.tree.asked_changes import wanderers
from holdfast.schemes.tree.at_home import ONCE_AT_HOME, ORDER_AT_HOME
from holdfast.schemes.tree.settings import SIMULATED, SLA
from holdfast.sim.draw import draw_event, draw_filter, storm_of
from holdfast.sim.draw_more import Meetings, with_more
from holdfast.sim.latency import Constant, Exponential, Latency, Uniform
from holdfast.sim.scenario import (
    Action,
    Broker,
    Client,
    Cut,
    DiskFull,
    DiskSlow,
    Fault,
    HostedApplication,
    Kill,
    Network,
    Pause,
    PowerCut,
    Publish,
    Scenario,
    Subscribe,
    Unsubscribe,
)
from holdfast.topology.generators import Kind, links_of

ALWAYS: Final = ("only-matching", "at-most-once", "endings", "bounded-queues", "liveness", "network")
ORDER: Final = "publisher-order"
IF_CHANGING: Final = ("map-history", "understood")
AT_HOME: Final = {"at-most-once": ONCE_AT_HOME, ORDER: ORDER_AT_HOME}

MEETINGS: Final = Meetings(narrow=True, wipe=True, move=True)


class NetworkShape(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of what is drawn. A level, or brokers with their links and settings: those, instead of any."""

    name: str = "network"
    reliability: Reliability | None = None
    brokers: tuple[Broker, ...] = ()  # these; else as many as are drawn
    links: Links = ()
    settings: Mapping[str, Written] = {}
    brokers_max: int = 30
    clients_max: int = 6
    subscriptions_max: int = 8
    publishes_max: int = 16
    faults_max: int = 5
    safety_ms: int = 8_000  # twice as much with detours: only what has failed for a while is known to all
    quiet_ms: int = 12_000  # from when all is healed until the last publications
    end_ms: int = 6_000  # and from then on
    checkers: tuple[str, ...] | None = None  # instead of what the drawn network promises

    @property
    def application(self) -> HostedApplication | None:
        return None  # none would see all events

    def draw(self, seed: int) -> Scenario:
        return _draw(seed, self)


class _Routing(NamedTuple):
    """How the brokers of a run work together."""

    level: Reliability
    links: list[tuple[str, str]]
    settings: dict[str, Written]


def _draw(seed: int, shape: NetworkShape) -> Scenario:
    rng = Random(f"{shape.name}/{seed}")
    routing, brokers = _draw_brokers(rng, shape)
    if routing.level.detours:
        shape = replace(shape, safety_ms=2 * shape.safety_ms)
    if routing.level is Reliability.BYPASS_BUFFERED:
        usual = SIMULATED.duplicates_remembered
        few = Random(f"{shape.name}/{seed}/duplicates").choice((12, usual))
        if few != usual:
            routing.settings["duplicates_remembered"] = few
    names = [broker.id for broker in brokers]
    clients = [
        Client(
            id=f"c{number}",
            brokers=(rng.choice(names),),
            publish_window=rng.choice((1, 4, 1_024)),
            batch_events=rng.choice((1, 3, 256)),
            # Where brokers forget and do not ask for it again, who does not resubscribe waits for ever.
            resubscribe=rng.random() < 0.7 or not routing.level.refreshes,
        )
        for number in range(1, rng.randint(2, shape.clients_max) + 1)
    ]
    faults = _draw_faults(rng, shape, brokers, clients, routing.links)
    drawn = Scenario(
        name=shape.name,
        seed=seed,
        settings=routing.settings,
        links=routing.links,
        brokers=brokers,
        clients=clients,
        network=Network(latency=draw_latency(rng)),
        actions=_draw_actions(rng, shape, clients),
        faults=faults,
        safety_ms=shape.safety_ms,
        liveness_ms=shape.quiet_ms + shape.end_ms,
        down=_draw_down(seed, shape, routing, names),
        storm=storm_of(len(brokers)),
        checkers=[],
    )
    if shape.faults_max:
        drawn = with_more(drawn, routing.links, MEETINGS)
    return replace(drawn, checkers=list(shape.checkers or network_promises(drawn)))


def network_promises(scenario: Scenario) -> tuple[str, ...]:
    """Around a failure, detours may overtake, and so may events for a stand-in where nothing is stored. Who comes to
    another broker begins anew there."""
    level = Reliability(scenario.settings.get("reliability", SIMULATED.reliability.value))
    overtakes = (level.detours and scenario.faults) or (not level.buffers and _shuffles(scenario))
    # What a broker had stored comes when it has its place back: order is promised for what kept clear of it (D0-C4).
    back = {operation.told.get("id", "") for operation in scenario.operations if operation.action == "hand-back"}
    by_itself = scenario.settings.get(SLA) and (level.buffers or scenario.settings.get("congestion") != "none")
    promised: tuple[str, ...] = ALWAYS if overtakes or by_itself else (*ALWAYS, ORDER)
    if level.buffers and back:
        promised = ALWAYS if wanderers(scenario) or len(back) > 1 else (*ALWAYS, f"weak-ordered:{min(back)}")
    if not scenario.operations and not scenario.settings.get(SLA):
        return promised
    if wanderers(scenario):
        promised = tuple(AT_HOME.get(name, name) for name in promised)
    return (*promised, *IF_CHANGING)


def _shuffles(scenario: Scenario) -> bool:
    """Whether a stand-in is sent events as it comes to know of those who want them (D0-C8)."""
    protocols = [operation.told.get("protocol") for operation in scenario.operations]
    protocols += [str(scenario.settings.get("protocol"))] if scenario.settings.get(SLA) else []
    return StandInProtocol.INCREM.value in protocols


def _draw_down(seed: int, shape: NetworkShape, routing: _Routing, names: list[str]) -> list[str]:
    """A broker that stays down when all others are healed, in some runs: those beside it go on, unless their stores are
    too small for what they keep for it."""
    rng = Random(f"{shape.name}/{seed}/down")
    waits = routing.level.buffers and "store_bytes" in routing.settings
    return [rng.choice(names)] if rng.random() < 0.25 and not waits else []


def _draw_brokers(rng: Random, shape: NetworkShape) -> tuple[_Routing, list[Broker]]:
    level = rng.choice(tuple(Reliability)) if shape.reliability is None else shape.reliability
    settings = dict(shape.settings)
    if shape.links:
        links, brokers = list(shape.links), list(shape.brokers)
    else:
        # Few are large: heartbeats cost steps also when nothing else happens.
        sizes = (12, 20, 30) if rng.random() < 0.05 else (3, 3, 4, 4, 5, 5, 6, 7)
        count = min(rng.choice(sizes), shape.brokers_max)
        names = [f"b{number}" for number in range(1, count + 1)]
        brokers = [Broker(id=name) for name in names]
        kind = rng.choice((Kind.RANDOM_TREE, Kind.RANDOM_TREE, Kind.CHAIN, Kind.STAR))
        if level.detours and rng.random() < 0.8:
            kind = Kind.RANDOM_GRAPH
        links = list(links_of(kind, names, rng))
        for name in ("advertisements", "covering", "ask_neighbours"):
            if rng.random() >= 0.8:
                settings[name] = False
        if rng.random() < 0.2:  # full at once, so that publishers have to wait
            settings |= {"store_bytes": 600, "queue_bytes": 300}
    if level is not SIMULATED.reliability:
        settings["reliability"] = level.value
    durable = not shape.links and rng.random() < 0.3
    brokers = [
        replace(
            broker,
            durable=level.buffers or broker.durable or durable,
            snapshot_every=rng.choice((3, 20, 4_096)),
            sync_us=rng.choice(((100, 2_000), (20, 50), (1_000, 30_000))),
            service_us_per_message=rng.choice((0, 0, 0, 50)),
            gather_us=rng.choice((0, 0, 2_000)),
        )
        for broker in brokers
    ]
    return _Routing(level, links, settings), brokers


def draw_latency(rng: Random) -> Latency:
    return rng.choice(
        (
            Constant(delay_us=500),
            Uniform(low_us=50, high_us=5_000),
            Exponential(minimum_us=100, mean_us=2_000, maximum_us=100_000),
        )
    )


def _draw_actions(rng: Random, shape: NetworkShape, clients: list[Client]) -> list[Action]:
    actions: list[Action] = []
    last = shape.safety_ms
    for number in range(1, rng.randint(1, shape.subscriptions_max) + 1):
        client, name = rng.choice(clients), f"s{number}"
        at = rng.randint(0, last // 10 if rng.random() < 0.7 else last)
        overflow = Overflow.DISCONNECT
        actions.append(
            Subscribe(at_ms=at, client=client.id, name=name, filter=draw_filter(rng), overflow=overflow, window=1_024)
        )
        if rng.random() < 0.3:
            actions.append(Unsubscribe(at_ms=rng.randint(at, last), client=client.id, name=name))
    for _ in range(rng.randint(1, shape.publishes_max)):
        client = rng.choice(clients)
        events = [draw_event(rng) for _ in range(rng.randint(1, 4))]
        actions.append(Publish(at_ms=rng.randint(0, last), client=client.id, events=events, retry=rng.random() < 0.8))
    for client in clients:
        events = [draw_event(rng) for _ in range(2)]
        actions.append(Publish(at_ms=last + shape.quiet_ms, client=client.id, events=events))
    return sorted(actions, key=lambda action: action.at_ms)


def _draw_faults(
    rng: Random, shape: NetworkShape, brokers: list[Broker], clients: list[Client], links: list[tuple[str, str]]
) -> list[Fault]:
    kinds = ["kill", "kill", "power-cut", "pause", "cut", "cut", "client"]
    if brokers[0].durable:
        kinds += ["disk-slow", "disk-full"]
    chosen = [kind for kind in kinds if rng.random() < 0.6]
    faults: list[Fault] = []
    for _ in range(rng.randint(0, shape.faults_max) if chosen else 0):
        at = rng.randint(0, shape.safety_ms - 1)
        longest = shape.safety_ms
        length = min(rng.choice((10, 300, longest // 4, 2 * longest // 3, longest)), longest - at)
        host = rng.choice(brokers).id
        match rng.choice(chosen):
            case "kill":
                faults.append(Kill(at_ms=at, for_ms=length, host=host))
            case "power-cut":
                faults.append(PowerCut(at_ms=at, for_ms=length, host=host))
            case "pause":
                faults.append(Pause(at_ms=at, for_ms=length, host=host))
            case "cut":
                one, other = rng.choice(links)
                both = rng.random() < 0.8
                faults.append(Cut(at_ms=at, for_ms=length, source=one, target=other, both=both))
            case "client":
                client = rng.choice(clients)
                if rng.random() < 0.5:
                    faults.append(Kill(at_ms=at, for_ms=length, host=client.id))
                else:
                    faults.append(Cut(at_ms=at, for_ms=length, source=client.id, target=client.brokers[0]))
            case "disk-slow":
                faults.append(DiskSlow(at_ms=at, for_ms=length, host=host))
            case "disk-full":
                faults.append(DiskFull(at_ms=at, for_ms=length, host=host))
    return sorted(faults, key=lambda fault: fault.at_ms)
