"""Networks in which brokers are replaced by stand-ins and have their places back, from seeds, while brokers and links
fail: the faulty one, its stand-in, and their neighbours in the middle of it.

A broker is replaced when it has failed: for good, or for a while, and then it may have its place back, or hear that it
has none. Everybody else keeps their broker. Clients of one that is replaced have another one beside it, or stay with
it, and are as well off as it is.
"""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from holdfast.kernel.settings import Written
from holdfast.protocols.routing.network_map import (
    Change,
    HandBack,
    Link,
    NetworkMap,
    NetworkMember,
    ReplaceBroker,
    StandInProtocol,
    done,
    founding_map,
    planned,
)
from holdfast.protocols.routing.objections import objection
from holdfast.protocols.routing.settings import Reliability, SubscriptionOrder
from holdfast.schemes.tree.asked_changes import operation_of, wanderers
from holdfast.schemes.tree.draw_network import draw_latency, network_promises
from holdfast.schemes.tree.settings import SIMULATED
from holdfast.sim.draw import draw_event, draw_filter, storm_of
from holdfast.sim.scenario import (
    Action,
    Broker,
    Client,
    Cut,
    DiskSlow,
    Fault,
    HostedApplication,
    Kill,
    Network,
    Operate,
    Pause,
    PowerCut,
    Publish,
    Reset,
    Scenario,
    Storm,
    Subscribe,
    Unsubscribe,
)
from holdfast.topology.generators import Kind, links_of

LEVELS: Final = (Reliability.NONE, *2 * (Reliability.PERIODIC, Reliability.BUFFERED))
ORDERS: Final = tuple(SubscriptionOrder)
STORM_GROWS: Final = 2


class StandingInShape(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of what is drawn."""

    name: str = "standing-in"
    reliability: Reliability | None = None  # this level; else any that stand-ins are for
    protocol: StandInProtocol | None = None
    brokers_max: int = 8
    spares_max: int = 3
    changes_max: int = 4
    clients_max: int = 6
    subscriptions_max: int = 9
    publishes_max: int = 24
    faults_max: int = 4  # beside those of brokers that are replaced
    begin_ms: int = 2_500  # the first failure
    safety_ms: int = 16_000
    quiet_ms: int = 24_000  # from when all is healed until the last publications
    end_ms: int = 6_000  # and from then on
    checkers: tuple[str, ...] | None = None

    @property
    def application(self) -> HostedApplication | None:
        return None  # none would see all events

    def draw(self, seed: int) -> Scenario:
        return _draw(seed, self)


class _Plan(NamedTuple):
    """What operators ask for, on the map that all before leaves, and what fails so that they do."""

    operations: list[Operate]
    failures: list[Fault]
    pairs: list[Link]  # brokers that are joined at some time, if all goes well
    middles: list[tuple[int, tuple[str, ...]]]  # when something was asked for, and who takes part in it


def _draw(seed: int, shape: StandingInShape) -> Scenario:
    rng = Random(f"{shape.name}/{seed}")
    level = rng.choice(LEVELS) if shape.reliability is None else shape.reliability
    settings: dict[str, Written] = {"stand_ins": True, "patience_ms": rng.choice((1_500, 3_000))}
    for name in ("advertisements", "covering", "ask_neighbours"):
        if rng.random() >= 0.85:
            settings[name] = False
    if rng.random() < 0.4:  # much waits, so that there is something to be moved
        settings["window_bytes"] = rng.choice((1, 200, 1_000))
    order = Random(f"{shape.name}/{seed}/order").choice(ORDERS)  # of its own: what else is drawn stays as it was
    if order is not SIMULATED.stand_ins.order:
        settings["order"] = order.value
    if level is not SIMULATED.reliability:
        settings["reliability"] = level.value
    members = [f"b{number}" for number in range(1, rng.choice((3, 4, 4, 5, 5, 6, 8)) + 1)][: shape.brokers_max]
    spares = [f"s{number}" for number in range(1, rng.randint(1, shape.spares_max) + 1)]
    kind = rng.choice((Kind.RANDOM_TREE, Kind.RANDOM_TREE, Kind.CHAIN, Kind.STAR, Kind.STAR))
    links = list(links_of(kind, members, rng))
    # A slow broker behind a narrow link would take minutes for what waits there.
    slowest_us = 2_000 if "window_bytes" in settings else 300_000
    brokers = draw_brokers(rng, level, members, spares, slowest_us)
    founding = founding_map([NetworkMember(name, name, name) for name in members], links)
    plan = _draw_plan(rng, shape, founding, spares, _protocols(shape, level))
    clients = _draw_clients(rng, shape, level, members, plan)
    faults = [*plan.failures, *_draw_faults(rng, shape, brokers, clients, plan)] if shape.faults_max else plan.failures
    drawn = Scenario(
        name=shape.name,
        seed=seed,
        settings=settings,
        links=links,
        brokers=brokers,
        clients=clients,
        network=Network(latency=draw_latency(rng)),
        actions=sorted(_draw_actions(rng, shape, clients, plan), key=lambda action: action.at_ms),
        operations=plan.operations,
        faults=sorted(faults, key=lambda fault: fault.at_ms),
        safety_ms=shape.safety_ms,
        liveness_ms=shape.quiet_ms + shape.end_ms,
        storm=long_storm_of(len(brokers)),
        checkers=[],
    )
    drawn = without_repetition(drawn)
    return replace(drawn, checkers=list(shape.checkers or network_promises(drawn)))


def long_storm_of(brokers: int) -> Storm:
    storm = storm_of(brokers)
    return replace(storm, steps=STORM_GROWS * storm.steps, sent_bytes=STORM_GROWS * storm.sent_bytes)


def draw_brokers(
    rng: Random, level: Reliability, members: list[str], spares: list[str], slowest_us: int
) -> list[Broker]:
    """Who may come to make a map needs a disk: the first two members, and whoever stands in for one."""
    durable = level.buffers or rng.random() < 0.6
    return [
        Broker(
            id=name,
            durable=durable or name in members[:2] or name in spares,
            snapshot_every=rng.choice((3, 20, 4_096)),
            sync_us=rng.choice(((100, 2_000), (20, 50), (1_000, 30_000))),
            service_us_per_message=rng.choice((0, 0, 0, 50)),
            gather_us=min(slowest_us, rng.choice((0, 0, 2_000, 100_000, 300_000))),
            spare=name in spares,
        )
        for name in (*members, *spares)
    ]


# ------------------------------------------------------------------------------------------------------------ the plan
def _protocols(shape: StandingInShape, level: Reliability) -> tuple[StandInProtocol, ...]:
    """Where events are stored, they keep their order."""
    kept = (StandInProtocol.BASIC, StandInProtocol.SYNCH)
    return (shape.protocol,) if shape.protocol is not None else kept if level.buffers else tuple(StandInProtocol)


def _draw_plan(
    rng: Random,
    shape: StandingInShape,
    founding: NetworkMap,
    spares: list[str],
    protocols: tuple[StandInProtocol, ...],
) -> _Plan:
    plan = _Plan([], [], list(founding.tree), [])
    network, at, last = founding, shape.begin_ms + rng.randint(0, 1_500), shape.safety_ms - 3_000
    comes_back: dict[str, int] = {}  # brokers that are replaced and are there again → from when on
    gone: set[str] = set()
    for _ in range(rng.randint(1, shape.changes_max)):
        free = [name for name in spares if network.find(name) is None and name not in gone]
        back = [name for name, since in comes_back.items() if network.stand_in(name) and network.find(name) is None]
        if back and (not free or rng.random() < 0.5):
            name = rng.choice(back)
            at = max(at, comes_back[name] + rng.choice((10, 500, 1_500)))
            change: Change = HandBack(name, name, name)
        elif free:
            alive = [name for name in network.names if name not in gone]
            inner = [name for name in alive if len(network.spanning_tree.neighbours(name)) > 2]
            faulty = rng.choice(inner if inner and rng.random() < 0.4 else alive)
            by = rng.choice(free)
            change = ReplaceBroker(faulty, by, by, by, rng.choice(protocols))
            failure = _draw_failure(rng, faulty, at, last, for_good=faulty in network.names[:2])
            plan.failures.append(failure)
            if isinstance(failure, Kill | PowerCut) and failure.for_ever:
                gone.add(faulty)
            else:
                comes_back[faulty] = failure.at_ms + failure.for_ms
            at += rng.choice((0, 20, 300, 1_000, 2_500))
        else:
            break
        if at > last:
            break
        plan.operations.append(operation_of(change, at))
        network = _changed(network, change, at, plan)
        at += rng.choice((0, 50, 400, 1_500, 3_000))
    return plan


def _changed(network: NetworkMap, change: Change, at: int, plan: _Plan) -> NetworkMap:
    """The map when everything is done; whoever takes part is remembered."""
    if objection(network, change, False):
        return network
    network = planned(network, change)
    while True:
        plan.pairs.extend(link for link in network.tree if link not in plan.pairs)
        if network.step is None:
            return network
        broker = network.step.broker
        plan.middles.append((at, (broker, *network.spanning_tree.neighbours(broker))))
        network = done(network)


def _draw_failure(rng: Random, faulty: str, at: int, last: int, for_good: bool) -> Fault:
    """Of the first two members, who make maps when they are asked, for good: one that is replaced and runs again might
    be asked before it hears of that."""
    length = min(rng.choice((1_500, 3_000, 5_000)), last + 2_500 - at)
    kinds = ("kill for ever", "power cut for ever", "kill", "kill", "power cut", "pause")
    match rng.choice(kinds[:2] if for_good else kinds):
        case "kill for ever":
            return Kill(at_ms=at, for_ms=0, host=faulty, for_ever=True)
        case "power cut for ever":
            return PowerCut(at_ms=at, for_ms=0, host=faulty, for_ever=True)
        case "kill":
            return Kill(at_ms=at, for_ms=length, host=faulty)
        case "power cut":
            return PowerCut(at_ms=at, for_ms=length, host=faulty)
        case _:
            return Pause(at_ms=at, for_ms=length, host=faulty)


# ------------------------------------------------------------------------------------------------------------- clients
def _draw_clients(
    rng: Random, shape: StandingInShape, level: Reliability, members: list[str], plan: _Plan
) -> list[Client]:
    replaced = {operation.told["id"] for operation in plan.operations}
    staying = [name for name in members if name not in replaced]
    clients = []
    for number in range(1, rng.randint(3, shape.clients_max) + 1):
        homes: tuple[str, ...] = (rng.choice(staying if staying and rng.random() < 0.8 else members),)
        if homes[0] in replaced and staying and rng.random() < 0.5:
            homes = (*homes, rng.choice(staying))
        clients.append(
            Client(
                id=f"c{number}",
                brokers=homes,
                publish_window=rng.choice((1, 4, 1_024)),
                batch_events=rng.choice((1, 3, 256)),
                resubscribe=rng.random() < 0.7 or not level.refreshes or homes[0] in replaced,
            )
        )
    return clients


def _draw_actions(rng: Random, shape: StandingInShape, clients: list[Client], plan: _Plan) -> list[Action]:
    actions: list[Action] = []
    last = shape.safety_ms
    for number in range(1, rng.randint(3, shape.subscriptions_max) + 1):
        client, name = rng.choice(clients), f"s{number}"
        at = rng.randint(0, 500 if rng.random() < 0.75 else last)
        actions.append(Subscribe(at_ms=at, client=client.id, name=name, filter=draw_filter(rng)))
        if rng.random() < 0.15:
            actions.append(Unsubscribe(at_ms=rng.randint(at, last), client=client.id, name=name))
    actions.append(Subscribe(at_ms=rng.randint(0, 300), client=rng.choice(clients).id, name="all", filter=""))
    for _ in range(rng.randint(4, shape.publishes_max)):
        actions.append(publication(rng, rng.choice(clients), rng.randint(0, last)))
    for operation in plan.operations:  # one after the other, from before it is asked for
        client, at = rng.choice(clients), operation.at_ms - rng.choice((100, 1_000))
        step = rng.choice((3, 15, 60, 150))
        for _ in range(rng.choice((8, 20, 40))):
            actions.append(publication(rng, client, at, 2))
            at += rng.randint(1, step)
    for client in clients:
        actions.append(publication(rng, client, last + shape.quiet_ms, 2))
    return actions


def publication(rng: Random, client: Client, at: int, most: int = 4) -> Publish:
    events = [draw_event(rng) for _ in range(rng.randint(1, most))]
    return Publish(at_ms=at, client=client.id, events=events, retry=rng.random() < 0.8)


def without_repetition(drawn: Scenario) -> Scenario:
    """Who may come to another broker does not publish again there what it may have published before."""
    moving = set(wanderers(drawn))
    actions: list[Action] = [
        replace(action, retry=False) if isinstance(action, Publish) and action.client in moving else action
        for action in drawn.actions
    ]
    return replace(drawn, actions=actions)


# -------------------------------------------------------------------------------------------------------------- faults
def _draw_faults(
    rng: Random, shape: StandingInShape, brokers: list[Broker], clients: list[Client], plan: _Plan
) -> list[Fault]:
    """Mostly in the middle of a replacement, of those who take part in it; not in all runs."""
    if rng.random() < 0.3:
        return []
    gone = {fault.host for fault in plan.failures if isinstance(fault, Kill | PowerCut) and fault.for_ever}
    names = [broker.id for broker in brokers if broker.id not in gone]
    faults: list[Fault] = []
    for _ in range(rng.randint(1, shape.faults_max)):
        at, concerned = rng.randint(0, shape.safety_ms - 1), names
        if plan.middles and rng.random() < 0.8:
            asked, those = rng.choice(plan.middles)
            at = asked + rng.randint(0, rng.choice((30, 150, 400, 1_500)))
            concerned = [name for name in those if name not in gone] or names
        at = min(at, shape.safety_ms - 1)
        length = min(rng.choice((1, 10, 300, 1_500, 4_000)), shape.safety_ms - at)
        host = rng.choice(concerned)
        one, other = rng.choice([pair for pair in plan.pairs if host in pair] or plan.pairs)
        match rng.choice(("kill", "kill", "power cut", "pause", "cut", "reset", "reset", "disk slow", "client")):
            case "kill":
                faults.append(Kill(at_ms=at, for_ms=length, host=host))
            case "power cut":
                faults.append(PowerCut(at_ms=at, for_ms=length, host=host))
            case "pause":
                faults.append(Pause(at_ms=at, for_ms=length, host=host))
            case "cut":
                faults.append(Cut(at_ms=at, for_ms=length, source=one, target=other, both=rng.random() < 0.8))
            case "reset":
                faults.append(Reset(at_ms=at, source=one, target=other))
            case "disk slow":
                disks = [broker.id for broker in brokers if broker.durable]
                faults.append(DiskSlow(at_ms=at, for_ms=length, host=rng.choice(disks)))
            case _:
                faults.append(Kill(at_ms=at, for_ms=length, host=rng.choice(clients).id))
    return faults
