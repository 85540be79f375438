"""Groups from seeds: how many replicas, how they agree, clients, faults."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random
from typing import Final

import msgspec

from holdfast.kernel.settings import Written
from holdfast.schemes.paxos.ballots import tolerated
from holdfast.schemes.paxos.settings import CLASSIC, Protocol
from holdfast.sim.draw import (
    ALWAYS,
    IF_PATIENT,
    IF_REMEMBERED,
    Bounds,
    draw_actions,
    draw_client,
    draw_network,
    draw_pace,
    is_patient,
    slowest_ms,
    storm_of,
)
from holdfast.sim.draw_more import Meetings
from holdfast.sim.scenario import (
    Broker,
    Client,
    ClockJump,
    Cut,
    DiskFull,
    DiskSlow,
    Fault,
    Kill,
    Pause,
    PowerCut,
    Scenario,
)

FORMED_MS: Final = 1_500  # when the members of a group have met
MEETINGS: Final = Meetings(formed_ms=FORMED_MS, late_share=8)


class GroupShape(Bounds, frozen=True, kw_only=True):
    """Of groups: these brokers, or 3, 5 or 7 of them; this protocol and pipeline, or any.

    Runs are short, since heartbeats cost steps also when nothing else happens.
    """

    name: str = "group"
    protocol: Protocol | None = None
    pipeline: int = 10  # with a protocol
    clients_max: int = 4
    publishes_max: int = 40
    events_per_publish_max: int = 30
    subscriptions_max: int = 6
    faults_max: int = 10
    safety_ms: int = 5_000
    liveness_ms: int = 20_000

    def draw(self, seed: int) -> Scenario:
        drawn = _draw_plain(Random(f"{self.name}/{seed}"), seed, self)
        pairs = list(combinations([broker.id for broker in drawn.brokers], 2))
        return self.complete(drawn, pairs, MEETINGS, group_promises)


def group_shape(
    names: Sequence[str] = (), protocol: Protocol | None = None, pipeline: int = 10, name: str = "group"
) -> GroupShape:
    """The shape of a group of these brokers, or of any."""
    brokers = tuple(Broker(id=broker, durable=True) for broker in names)
    return GroupShape(name=name, brokers=brokers, fixed_brokers=bool(names), protocol=protocol, pipeline=pipeline)


def group_promises(scenario: Scenario) -> tuple[str, ...]:
    return (*ALWAYS, *IF_REMEMBERED, *(IF_PATIENT if is_patient(scenario) else ()))


def _draw_plain(rng: Random, seed: int, shape: GroupShape) -> Scenario:
    brokers = _draw_members(rng, shape)
    names = tuple(broker.id for broker in brokers)
    free = [name for name in (f"c{n}" for n in range(1, shape.clients_max + len(names) + 1)) if name not in names]
    clients = []
    for name in free[: rng.randint(2, shape.clients_max)]:
        # In an order of its own, so that not all knock at the same door first.
        client = draw_client(rng, name, tuple(rng.sample(names, len(names))))
        clients.append(msgspec.structs.replace(client, consume_after_us=rng.choice((0, 0, 1_000, 50_000))))
    faults = _draw_faults(rng, shape, names, clients)
    down = _draw_down(seed, shape, names, faults)
    if down or any(isinstance(fault, PowerCut) and fault.wipe for fault in faults):
        # A disk that is wiped before all have met leaves the group unformed for good (docs/groups.md).
        share = 1 - FORMED_MS / shape.safety_ms
        faults = [msgspec.structs.replace(fault, at_ms=FORMED_MS + int(share * fault.at_ms)) for fault in faults]
    network = draw_network(rng, shape)
    # What a leader is told it tells to all others; a rate that is slow for one broker would be too slow to catch up.
    network = msgspec.structs.replace(network, bytes_per_second=10 * network.bytes_per_second)
    actions = draw_actions(rng, shape, clients)
    return Scenario(
        name=shape.name,
        seed=seed,
        system="paxos",
        settings=_draw_settings(rng, shape),
        brokers=brokers,
        clients=clients,
        network=network,
        actions=actions,
        faults=faults,
        safety_ms=shape.safety_ms,
        liveness_ms=shape.liveness_ms + slowest_ms(brokers, clients, actions),
        down=down,
        storm=storm_of(len(brokers)),
        checkers=[],
    )


def _draw_down(seed: int, shape: GroupShape, names: tuple[str, ...], faults: list[Fault]) -> list[str]:
    """Members that stay down when all others are healed, in half of the runs: a group serves while a minority is down,
    and not only when everyone is back (D4-D1). One whose disk was wiped never votes again, and counts as down. Faults
    begin later then: until all members have met once there is no group."""
    rng = Random(f"{shape.name}/{seed}/down")
    wiped = {fault.host for fault in faults if isinstance(fault, PowerCut) and fault.wipe}
    others = [name for name in names if name not in wiped]
    most = tolerated(len(names)) - len(wiped)
    return sorted(rng.sample(others, rng.randint(1, most))) if most > 0 and rng.random() < 0.5 else []


def _draw_members(rng: Random, shape: GroupShape) -> list[Broker]:
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
    pace = draw_pace(rng, members[0])  # of all, mostly
    drawn = []
    for member in members:
        own = draw_pace(rng, member) if rng.random() < 0.2 else pace
        drawn.append(
            msgspec.structs.replace(own, id=member.id, sync_us=rng.choice(((100, 2_000), (20, 50), (1_000, 30_000))))
        )
    return drawn


def _draw_settings(rng: Random, shape: GroupShape) -> dict[str, Written]:
    """Snapshots come often, so that whoever lags catches up by one, in parts."""
    protocol, pipeline = rng.choice(CLASSIC), rng.choice((1, 3, 10, 10))
    heartbeat_ms, patience_ms = rng.choice(((50, 300), (100, 400), (200, 700)))
    return {
        "protocol": (shape.protocol or protocol).value,
        "pipeline": pipeline if shape.protocol is None else shape.pipeline,
        "batch_commands": rng.choice((2, 256)),
        "heartbeat_ms": heartbeat_ms,
        "patience_ms": patience_ms,
        "trim_every": rng.choice((3, 10, 40, 2_000)),
        "trim_keep": rng.choice((0, 2, 10, 500)),
        "trim_ratio": 0,
        "part_bytes": rng.choice((300, 4_000, 256 * 1024)),
    }


def _draw_faults(rng: Random, shape: GroupShape, names: tuple[str, ...], clients: list[Client]) -> list[Fault]:
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
