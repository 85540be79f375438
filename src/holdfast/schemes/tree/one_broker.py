"""One broker from seeds: its disk, its limits and its pace, clients, faults."""

from __future__ import annotations

from random import Random

import msgspec

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


class OneBrokerShape(Bounds, frozen=True, kw_only=True):
    """Of brokers that know nothing of each other: as a rule one."""

    name: str = "one-broker"
    brokers: tuple[Broker, ...] = (Broker(id="b1", durable=True),)

    def draw(self, seed: int) -> Scenario:
        return self.complete(_draw_plain(seed, self), (), Meetings(), one_broker_promises)


def one_broker_promises(scenario: Scenario) -> tuple[str, ...]:
    """What a broker keeps over its own crashes, it keeps only if it remembers."""
    names = {broker.id for broker in scenario.brokers}
    forgets = any(not broker.durable for broker in scenario.brokers) and any(
        isinstance(fault, Kill | PowerCut) and fault.host in names for fault in scenario.faults
    )
    forgets = forgets or any(isinstance(fault, PowerCut) and fault.wipe for fault in scenario.faults)
    return ALWAYS if forgets else (*ALWAYS, *IF_REMEMBERED, *(IF_PATIENT if is_patient(scenario) else ()))


def _draw_plain(seed: int, shape: OneBrokerShape) -> Scenario:
    rng = Random(f"{shape.name}/{seed}")
    brokers = list(shape.brokers) if shape.fixed_brokers else [_draw_broker(rng, broker) for broker in shape.brokers]
    brokers = [draw_pace(rng, broker) for broker in brokers]
    names = tuple(broker.id for broker in brokers)
    free = [name for name in (f"c{n}" for n in range(1, shape.clients_max + len(names) + 1)) if name not in names]
    clients = [draw_client(rng, name, names) for name in free[: rng.randint(2, shape.clients_max)]]
    faults = _draw_faults(rng, shape, brokers, clients)
    network = draw_network(rng, shape)
    actions = draw_actions(rng, shape, clients)
    return Scenario(
        name=shape.name,
        seed=seed,
        brokers=brokers,
        clients=clients,
        network=network,
        actions=actions,
        faults=faults,
        safety_ms=shape.safety_ms,
        liveness_ms=shape.liveness_ms + slowest_ms(brokers, clients, actions),
        storm=storm_of(len(brokers)),
        checkers=[],
    )


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


def _draw_faults(rng: Random, shape: OneBrokerShape, brokers: list[Broker], clients: list[Client]) -> list[Fault]:
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
