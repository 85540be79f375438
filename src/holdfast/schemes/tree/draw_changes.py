"""Networks that change, from seeds: brokers and links come and go under load, while brokers and links fail.

Every client has a broker that stays, but for a few whose only one goes. Clients with another one beside it have to
move: as publishers they repeat nothing, or their events might be published twice; as subscribers they begin anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.kernel.settings import Written
from holdfast.protocols.routing.network_map import NetworkMember, founding_map
from holdfast.protocols.routing.settings import Reliability
from holdfast.schemes.tree.asked_changes import wanderers
from holdfast.schemes.tree.draw_network import draw_latency, network_promises
from holdfast.schemes.tree.draw_operations import Plan, draw_plan
from holdfast.schemes.tree.settings import SIMULATED
from holdfast.sim.draw import draw_event, draw_filter, storm_of
from holdfast.sim.draw_more import Meetings, with_more
from holdfast.sim.latency import Latency, Uniform
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

MEETINGS: Final = Meetings()
STORM_GROWS: Final = 2  # runs are longer than those of networks that stay as they are


class ChangingShape(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of what is drawn."""

    name: str = "changing"
    reliability: Reliability | None = None  # this level; else any
    brokers_max: int = 7
    spares_max: int = 3
    changes_max: int = 6
    clients_max: int = 6
    subscriptions_max: int = 8
    publishes_max: int = 24
    faults_max: int = 4
    begin_ms: int = 3_000  # the first change
    safety_ms: int = 14_000  # more with detours: only what has failed for a while is known to all
    quiet_ms: int = 24_000  # from when all is healed until the last publications
    end_ms: int = 6_000  # and from then on
    checkers: tuple[str, ...] | None = None  # instead of what the drawn network promises

    @property
    def application(self) -> HostedApplication | None:
        return None  # none would see all events

    def draw(self, seed: int) -> Scenario:
        return _draw(seed, self)


def _draw(seed: int, shape: ChangingShape) -> Scenario:
    rng = Random(f"{shape.name}/{seed}")
    level = rng.choice(tuple(Reliability)) if shape.reliability is None else shape.reliability
    if level.detours:
        shape = replace(shape, safety_ms=shape.safety_ms * 3 // 2)
    settings = _draw_settings(rng, level) | _draw_window(Random(f"{shape.name}/{seed}/window"))
    members = [f"b{number}" for number in range(1, min(rng.choice((3, 3, 4, 4, 5, 5, 6, 7)), shape.brokers_max) + 1)]
    spares = [f"s{number}" for number in range(1, rng.randint(0, shape.spares_max) + 1)]
    brokers = _draw_brokers(rng, level, members, spares)
    kind = rng.choice((Kind.RANDOM_TREE, Kind.RANDOM_TREE, Kind.CHAIN, Kind.STAR))
    if level.detours and rng.random() < 0.8:
        kind = Kind.RANDOM_GRAPH
    links = list(links_of(kind, members, rng))
    with_faults = shape.faults_max > 0 and rng.random() < 0.65
    founding = founding_map([NetworkMember(name, name, name) for name in members], links)
    between = (shape.begin_ms, shape.safety_ms - 2_000)
    plan = draw_plan(rng, founding, spares, shape.changes_max, between, level.detours, with_faults)
    clients = _draw_clients(rng, shape, level, brokers, plan)
    faults = _draw_losses(rng, plan)
    if with_faults:
        faults += _draw_faults(rng, shape, brokers, clients, plan)
        faults += _draw_disturbances(Random(f"{shape.name}/{seed}/middle"), shape, plan)
    crowded = Random(f"{shape.name}/{seed}/crowd")
    crowd = _draw_crowd(crowded, clients, plan) if "window_bytes" in settings else []
    drawn = Scenario(
        name=shape.name,
        seed=seed,
        settings=settings,
        links=links,
        brokers=brokers,
        clients=clients,
        network=Network(latency=_draw_latency(rng, Random(f"{shape.name}/{seed}/slow"))),
        actions=_in_order(_draw_actions(rng, shape, clients, plan), crowd),
        operations=plan.operations,
        faults=sorted(faults, key=lambda fault: fault.at_ms),
        safety_ms=shape.safety_ms,
        liveness_ms=shape.quiet_ms + shape.end_ms,
        down=_draw_down(rng, settings, members, plan) if with_faults else [],
        storm=_storm_of(len(brokers)),
        checkers=[],
    )
    if with_faults:
        drawn = with_more(drawn, plan.pairs, MEETINGS)
    drawn = _without_repetition(drawn)
    return replace(drawn, checkers=list(shape.checkers or network_promises(drawn)))


def _storm_of(brokers: int) -> Storm:
    storm = storm_of(brokers)
    return replace(storm, steps=STORM_GROWS * storm.steps, sent_bytes=STORM_GROWS * storm.sent_bytes)


def _draw_settings(rng: Random, level: Reliability) -> dict[str, Written]:
    settings: dict[str, Written] = {}
    for name in ("advertisements", "covering", "ask_neighbours"):
        if rng.random() >= 0.8:
            settings[name] = False
    if rng.random() < 0.15:  # full at once, so that publishers have to wait
        settings |= {"store_bytes": 600, "queue_bytes": 300}
    if level is not SIMULATED.reliability:
        settings["reliability"] = level.value
    return settings


def _draw_window(rng: Random) -> dict[str, Written]:
    """In some runs most of what is sent waits, so that there is something to be moved to another neighbour."""
    return {"window_bytes": rng.choice((1, 1, 200, 1_000))} if rng.random() < 0.5 else {}


def _draw_latency(rng: Random, slow: Random) -> Latency:
    """On slow links more waits, and a move takes its time."""
    usual = draw_latency(rng)
    return Uniform(low_us=5_000, high_us=30_000) if slow.random() < 0.4 else usual


def _draw_brokers(rng: Random, level: Reliability, members: list[str], spares: list[str]) -> list[Broker]:
    durable = level.buffers or rng.random() < 0.5
    keepers = members[:2]  # without a disk, nobody makes a map
    return [
        Broker(
            id=name,
            durable=durable or name in keepers,
            snapshot_every=rng.choice((3, 20, 4_096)),
            sync_us=rng.choice(((100, 2_000), (20, 50), (1_000, 30_000))),
            service_us_per_message=rng.choice((0, 0, 0, 50)),
            gather_us=rng.choice((0, 0, 2_000)),
            spare=name in spares,
        )
        for name in (*members, *spares)
    ]


# ------------------------------------------------------------------------------------------------------------- clients
def _draw_clients(
    rng: Random, shape: ChangingShape, level: Reliability, brokers: list[Broker], plan: Plan
) -> list[Client]:
    """Whoever may go is nobody's only home, but for a few."""
    names = [broker.id for broker in brokers]
    going = {operation.told.get("id", "") for operation in plan.operations if operation.action == "remove-broker"}
    passing = going | {broker.id for broker in brokers if broker.spare}
    staying = [name for name in names if name not in passing]
    clients = []
    for number in range(1, rng.randint(2, shape.clients_max) + 1):
        home = rng.choice(names)
        homes: tuple[str, ...] = (home,)
        if home in passing:
            stays = rng.choice(staying) if staying else ""
            alone = home in going and rng.random() < 0.1
            if stays and not alone:
                homes = (home, stays) if rng.random() < 0.6 else (stays,)
        clients.append(
            Client(
                id=f"c{number}",
                brokers=homes,
                publish_window=rng.choice((1, 4, 1_024)),
                batch_events=rng.choice((1, 3, 256)),
                # Where brokers forget and do not ask for it again, who does not resubscribe waits for ever.
                resubscribe=rng.random() < 0.7 or not level.refreshes or len(homes) > 1 or home in passing,
            )
        )
    return clients


def _draw_actions(rng: Random, shape: ChangingShape, clients: list[Client], plan: Plan) -> list[Action]:
    actions: list[Action] = []
    last = shape.safety_ms
    for number in range(1, rng.randint(2, shape.subscriptions_max) + 1):
        client, name = rng.choice(clients), f"s{number}"
        at = rng.randint(0, 500 if rng.random() < 0.7 else last)
        actions.append(Subscribe(at_ms=at, client=client.id, name=name, filter=draw_filter(rng)))
        if rng.random() < 0.2:
            actions.append(Unsubscribe(at_ms=rng.randint(at, last), client=client.id, name=name))
    for _ in range(rng.randint(4, shape.publishes_max)):
        client = rng.choice(clients)
        actions.append(_publication(rng, client, rng.randint(0, last)))
    for operation in plan.operations:  # one after the other, while it is carried out
        client, at = rng.choice(clients), operation.at_ms - 100
        step = rng.choice((3, 15, 60, 150))
        for _ in range(rng.choice((0, 8, 20))):
            actions.append(_publication(rng, client, at, 2))
            at += rng.randint(1, step)
    for client in clients:
        actions.append(_publication(rng, client, last + shape.quiet_ms, 2))
    return actions


def _draw_crowd(rng: Random, clients: list[Client], plan: Plan) -> list[Action]:
    """Everybody publishes while a link moves, more than goes out at once; and some want all of it."""
    actions: list[Action] = []
    for client in rng.sample(clients, 2):
        actions.append(Subscribe(at_ms=rng.randint(0, 300), client=client.id, name="all", filter=""))
    for asked in dict.fromkeys(asked for asked, _ in plan.moves):
        at = asked + rng.randint(0, 100)
        for _ in range(rng.choice((0, 20, 60))):
            actions.append(_publication(rng, rng.choice(clients), at, 1))
            at += rng.randint(1, 6)
    return actions


def _in_order(*actions: list[Action]) -> list[Action]:
    return sorted(chain(*actions), key=lambda action: action.at_ms)


def _publication(rng: Random, client: Client, at: int, most: int = 4) -> Publish:
    events = [draw_event(rng) for _ in range(rng.randint(1, most))]
    return Publish(at_ms=at, client=client.id, events=events, retry=rng.random() < 0.8)


def _without_repetition(drawn: Scenario) -> Scenario:
    """Who may come to another broker does not publish again there what it may have published before."""
    moving = set(wanderers(drawn))
    actions: list[Action] = [
        replace(action, retry=False) if isinstance(action, Publish) and action.client in moving else action
        for action in drawn.actions
    ]
    return replace(drawn, actions=actions)


# -------------------------------------------------------------------------------------------------------------- faults
def _draw_losses(rng: Random, plan: Plan) -> list[Fault]:
    """Who is declared lost is, before that."""
    losses: list[Fault] = []
    for name, at in plan.lost.items():
        if rng.random() < 0.5:
            losses.append(Kill(at_ms=at, for_ms=0, host=name, for_ever=True))
        else:
            losses.append(PowerCut(at_ms=at, for_ms=0, host=name, wipe=rng.random() < 0.5, for_ever=True))
    return losses


def _draw_faults(
    rng: Random, shape: ChangingShape, brokers: list[Broker], clients: list[Client], plan: Plan
) -> list[Fault]:
    kinds = ["kill", "kill", "power-cut", "pause", "cut", "cut", "client", "disk-slow", "disk-full"]
    chosen = [kind for kind in kinds if rng.random() < 0.6] or ["kill"]
    return [
        _draw_fault(rng, rng.choice(chosen), _moment(rng, shape, plan.operations), shape, brokers, clients, plan)
        for _ in range(rng.randint(0, shape.faults_max))
    ]


def _moment(rng: Random, shape: ChangingShape, operations: Sequence[Operate]) -> int:
    """Mostly while something is changed."""
    if not operations or rng.random() < 0.3:
        return rng.randint(0, shape.safety_ms - 1)
    return min(
        max(0, rng.choice(operations).at_ms + rng.randint(-200, rng.choice((50, 200, 1_500)))), shape.safety_ms - 1
    )


def _draw_disturbances(rng: Random, shape: ChangingShape, plan: Plan) -> list[Fault]:
    """Of the three brokers of a move, or of two of them, while it is carried out."""
    faults: list[Fault] = []
    for asked, move in plan.moves:
        if rng.random() >= 0.6:
            continue
        at = asked + rng.randint(20, rng.choice((60, 150, 400)))
        one, other = rng.sample((move.broker, move.old, move.new), 2)
        length = rng.choice((1, 10, 300, 1_500))
        kind = rng.choice(("reset", "reset", "reset", "kill", "kill", "power-cut", "cut"))
        match kind:
            case "reset":
                faults.append(Reset(at_ms=at, for_ms=0, source=one, target=other))
            case "kill":
                faults.append(Kill(at_ms=at, for_ms=length, host=one))
            case "power-cut":
                faults.append(PowerCut(at_ms=at, for_ms=length, host=one))
            case _:
                faults.append(Cut(at_ms=at, for_ms=length, source=one, target=other, both=rng.random() < 0.8))
    return [fault for fault in faults if fault.at_ms + fault.for_ms < shape.safety_ms]


def _draw_fault(
    rng: Random,
    kind: str,
    at: int,
    shape: ChangingShape,
    brokers: list[Broker],
    clients: list[Client],
    plan: Plan,
) -> Fault:
    longest = shape.safety_ms
    length = min(rng.choice((10, 300, 1_500, longest // 4, longest // 2)), longest - at)
    host = rng.choice([broker for broker in brokers if broker.durable or not kind.startswith("disk")]).id
    match kind:
        case "kill":
            return Kill(at_ms=at, for_ms=length, host=host)
        case "power-cut":
            return PowerCut(at_ms=at, for_ms=length, host=host)
        case "pause":
            return Pause(at_ms=at, for_ms=length, host=host)
        case "disk-slow":
            return DiskSlow(at_ms=at, for_ms=length, host=host)
        case "disk-full":
            return DiskFull(at_ms=at, for_ms=length, host=host)
        case "cut":
            one, other = rng.choice(plan.pairs)
            return Cut(at_ms=at, for_ms=length, source=one, target=other, both=rng.random() < 0.8)
        case _:
            client = rng.choice(clients)
            if rng.random() < 0.5:
                return Kill(at_ms=at, for_ms=length, host=client.id)
            return Cut(at_ms=at, for_ms=length, source=client.id, target=client.brokers[0])


def _draw_down(rng: Random, settings: dict[str, Written], members: list[str], plan: Plan) -> list[str]:
    """A broker that stays down when all others are healed, in some runs. What it would have to take part in then is
    never done; so it is nobody of whom something is asked by name."""
    named = {name for operation in plan.operations for text in operation.told.values() for name in text.split(",")}
    candidates = [name for name in members if name not in named]
    if not candidates or "store_bytes" in settings or rng.random() >= 0.08:
        return []
    return [rng.choice(candidates)]
