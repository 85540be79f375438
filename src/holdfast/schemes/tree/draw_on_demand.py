"""Networks that see to their stand-ins by themselves, from seeds: nobody asks for anything, and brokers fail, flap,
hang, are slow, are cut off; so do spares, and whoever sees to it.

What is promised is what a network promises whose brokers are replaced: its maps have one history, nothing is left under
way, and events reach whom the level promises them to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import msgspec
from msgspec.structs import replace

from holdfast.broker.scheme import Links
from holdfast.kernel.settings import Written
from holdfast.protocols.routing.network_map import Link, StandInProtocol
from holdfast.protocols.routing.settings import Reliability, Remedy
from holdfast.schemes.tree.draw_network import draw_latency, network_promises
from holdfast.schemes.tree.draw_standing_in import (
    LEVELS,
    draw_brokers,
    long_storm_of,
    publication,
    without_repetition,
)
from holdfast.schemes.tree.settings import SIMULATED
from holdfast.sim.draw import draw_filter
from holdfast.sim.scenario import (
    Action,
    Broker,
    Client,
    Cut,
    Fault,
    HostedApplication,
    Kill,
    Network,
    Pause,
    PowerCut,
    Reset,
    Scenario,
    Subscribe,
    Unsubscribe,
)
from holdfast.topology.generators import Kind, links_of

STANDS_STILL_MS, GOES_ON_MS = 300, 60  # in turn, of a broker that is slow


class OnDemandShape(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of what is drawn. A level, or brokers with their links and settings: those, instead of any."""

    name: str = "on-demand"
    reliability: Reliability | None = None
    brokers: tuple[Broker, ...] = ()
    links: Links = ()
    settings: Mapping[str, Written] = {}
    brokers_max: int = 8
    spares_max: int = 3
    troubles_max: int = 3
    faults_max: int = 3  # beside those
    clients_max: int = 5
    subscriptions_max: int = 8
    publishes_max: int = 20
    begin_ms: int = 2_500
    safety_ms: int = 26_000
    quiet_ms: int = 40_000  # all come back, and may have to wait for it
    end_ms: int = 6_000
    checkers: tuple[str, ...] | None = None

    @property
    def application(self) -> HostedApplication | None:
        return None

    def draw(self, seed: int) -> Scenario:
        return _draw(seed, self)


def _draw(seed: int, shape: OnDemandShape) -> Scenario:
    rng = Random(f"{shape.name}/{seed}")
    level = rng.choice(LEVELS) if shape.reliability is None else shape.reliability
    members = [f"b{number}" for number in range(1, rng.choice((3, 4, 4, 5, 5, 6, 8)) + 1)][: shape.brokers_max]
    spares = [f"s{number}" for number in range(1, rng.randint(1, shape.spares_max) + 1)]
    kind = rng.choice((Kind.RANDOM_TREE, Kind.RANDOM_TREE, Kind.CHAIN, Kind.STAR))
    links = list(links_of(kind, members, rng))
    if shape.brokers:
        members = [broker.id for broker in shape.brokers if not broker.spare]
        spares = [broker.id for broker in shape.brokers if broker.spare]
        links = list(shape.links)
    brokers = [replace(one, durable=True) for one in draw_brokers(rng, level, members, spares, 100_000)]
    brokers = [_limited(one, shape.brokers) for one in brokers]
    clients = []
    for number in range(1, rng.randint(3, shape.clients_max) + 1):
        homes = tuple(rng.sample(members, rng.choice((1, 1, 2))))
        clients.append(Client(id=f"c{number}", brokers=homes, batch_events=rng.choice((1, 256))))
    faults = _draw_faults(rng, shape, members, spares, links)
    drawn = Scenario(
        name=shape.name,
        seed=seed,
        settings=_draw_settings(rng, level) | dict(shape.settings),
        links=links,
        brokers=brokers,
        clients=clients,
        network=Network(latency=draw_latency(rng)),
        actions=sorted(_draw_actions(rng, shape, clients, faults), key=lambda action: action.at_ms),
        faults=sorted(faults, key=lambda fault: fault.at_ms),
        safety_ms=shape.safety_ms,
        liveness_ms=shape.quiet_ms + shape.end_ms,
        storm=long_storm_of(len(brokers)),
        checkers=[],
    )
    drawn = without_repetition(drawn)
    return replace(drawn, checkers=list(shape.checkers or network_promises(drawn)))


def _limited(drawn: Broker, described: Sequence[Broker]) -> Broker:
    """With the limits that a site gives it."""
    for broker in described:
        if broker.id == drawn.id:
            return replace(
                drawn,
                sessions=broker.sessions,
                subscriptions_per_session=broker.subscriptions_per_session,
                backlog_events=broker.backlog_events,
                backlog_bytes=broker.backlog_bytes,
            )
    return drawn


def _draw_settings(rng: Random, level: Reliability) -> dict[str, Written]:
    """What counts as failed and as slow is short, so that much happens in a run; and longer than it takes a broker to
    be started again, in some."""
    settings: dict[str, Written] = {"stand_ins": True, "sla": True, "patience_ms": rng.choice((1_500, 3_000))}
    settings |= {
        "unreachable_ms": rng.choice((500, 1_500, 4_000)),
        "oldest_ms": rng.choice((400, 1_500)),
        "sustained_ms": rng.choice((300, 1_000)),
        "calm_ms": rng.choice((1_000, 3_000)),
        "start_ms": 4_000,
    }
    if rng.random() < 0.3:
        settings["queue_events"] = rng.choice((3, 20))
    protocols = list(StandInProtocol) if not level.buffers else [StandInProtocol.SYNCH, StandInProtocol.BASIC]
    settings["protocol"] = rng.choice(protocols).value
    settings["congestion"] = rng.choice((Remedy.SHARE, Remedy.NOTHING)).value
    for name in ("advertisements", "covering"):
        if rng.random() >= 0.85:
            settings[name] = False
    if rng.random() < 0.3:
        settings["window_bytes"] = rng.choice((200, 1_000))
    if level is not SIMULATED.reliability:
        settings["reliability"] = level.value
    return settings


def _draw_faults(
    rng: Random, shape: OnDemandShape, members: list[str], spares: list[str], links: list[Link]
) -> list[Fault]:
    """Brokers in trouble; and, soon after, others that have to do with it."""
    faults: list[Fault] = []
    at, last = shape.begin_ms + rng.randint(0, 2_000), shape.safety_ms - 1
    for _ in range(rng.randint(1, shape.troubles_max)):
        faulty = rng.choice(members)
        near = [name for link in links for name in link if faulty in link and name != faulty]
        faults += _trouble(rng, faulty, near, at, last)
        for _ in range(rng.randint(0, shape.faults_max)):
            host = rng.choice((*members[:2], *near, *spares))
            soon = min(at + rng.randint(0, rng.choice((500, 3_000, 8_000))), last)
            faults.append(_fault(rng, host, rng.choice(links), soon, last))
        at += rng.choice((300, 2_000, 6_000, 10_000))
        if at >= last:
            break
    return faults


def _trouble(rng: Random, faulty: str, near: list[str], at: int, last: int) -> list[Fault]:
    length = min(rng.choice((800, 3_000, 8_000, 15_000)), last - at)
    match rng.choice(("down", "down", "power", "for ever", "flaps", "hangs", "slow", "slow", "alone")):
        case "down":
            return [Kill(at_ms=at, for_ms=length, host=faulty)]
        case "power":
            return [PowerCut(at_ms=at, for_ms=length, host=faulty)]
        case "for ever":
            return [Kill(at_ms=at, for_ms=0, host=faulty, for_ever=True)]
        case "flaps":
            pause = rng.choice((300, 1_500, 3_000))
            times = range(at, min(at + length, last), 2 * pause)
            return [Kill(at_ms=time, for_ms=min(pause, last - time), host=faulty) for time in times]
        case "hangs":
            return [Pause(at_ms=at, for_ms=length, host=faulty)]
        case "slow":
            times = range(at, min(at + length, last), STANDS_STILL_MS + GOES_ON_MS)
            return [Pause(at_ms=time, for_ms=min(STANDS_STILL_MS, last - time), host=faulty) for time in times]
        case _:
            return [Cut(at_ms=at, for_ms=length, source=faulty, target=peer, both=True) for peer in near]


def _fault(rng: Random, host: str, link: Link, at: int, last: int) -> Fault:
    length = min(rng.choice((10, 300, 1_500, 4_000)), last - at)
    match rng.choice(("kill", "kill", "pause", "cut", "reset")):
        case "kill":
            return Kill(at_ms=at, for_ms=length, host=host)
        case "pause":
            return Pause(at_ms=at, for_ms=length, host=host)
        case "cut":
            return Cut(at_ms=at, for_ms=length, source=link[0], target=link[1], both=rng.random() < 0.7)
        case _:
            return Reset(at_ms=at, source=link[0], target=link[1])


def _draw_actions(rng: Random, shape: OnDemandShape, clients: list[Client], faults: list[Fault]) -> list[Action]:
    last = shape.safety_ms
    actions: list[Action] = [
        Subscribe(at_ms=rng.randint(0, 300), client=rng.choice(clients).id, name="all", filter=""),
    ]
    for number in range(1, rng.randint(3, shape.subscriptions_max) + 1):
        client, name = rng.choice(clients), f"s{number}"
        at = rng.randint(0, 500 if rng.random() < 0.75 else last)
        actions.append(Subscribe(at_ms=at, client=client.id, name=name, filter=draw_filter(rng)))
        if rng.random() < 0.15:
            actions.append(Unsubscribe(at_ms=rng.randint(at, last), client=client.id, name=name))
    for _ in range(rng.randint(4, shape.publishes_max)):
        actions.append(publication(rng, rng.choice(clients), rng.randint(0, last)))
    for begun in sorted({fault.at_ms for fault in faults})[:3]:
        client, at = rng.choice(clients), begun - 500
        for _ in range(rng.choice((10, 30))):
            actions.append(publication(rng, client, at, 2))
            at += rng.randint(1, rng.choice((30, 150, 400)))
    for client in clients:
        actions.append(publication(rng, client, last + shape.quiet_ms, 2))
    return actions
