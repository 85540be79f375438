"""How runs of flooded networks are drawn and judged."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from holdfast.broker.scheme import Links
from holdfast.broker.site import Site
from holdfast.kernel.settings import Written, written
from holdfast.sim.draw import (
    ALWAYS,
    Bounds,
    draw_actions,
    draw_client,
    draw_network,
    draw_pace,
    slowest_ms,
    storm_of,
)
from holdfast.sim.draw_more import Meetings
from holdfast.sim.scenario import Broker, Cut, DiskSlow, Fault, Kill, Pause, PowerCut, Scenario
from holdfast.sim.swarm import Refuse, Shape
from holdfast.topology.generators import Kind, links_of
from holdfast.trace.checkers.registry import Known
from tests.schemes.flood import KIND
from tests.schemes.flood.settings import DEFAULTS, FloodSettings
from tests.schemes.flood.stored_beside import StoredBeside

STORED_BESIDE: Final = "stored-beside"


class FloodShape(Bounds, frozen=True, kw_only=True):
    name: str = KIND
    links: Links = ()
    settings: Mapping[str, Written] = {}
    safety_ms: int = 10_000
    liveness_ms: int = 60_000

    def draw(self, seed: int) -> Scenario:
        rng = Random(f"{self.name}/{seed}")
        brokers, links = list(self.brokers), list(self.links)
        if not brokers:
            brokers = [Broker(id=f"b{number}", durable=True) for number in range(1, rng.choice((1, 2, 3, 4, 5)) + 1)]
            if len(brokers) > 1:
                links = list(links_of(Kind.RANDOM_GRAPH, [broker.id for broker in brokers], rng))
        brokers = [replace(draw_pace(rng, broker), snapshot_every=rng.choice((3, 4_096))) for broker in brokers]
        names = [broker.id for broker in brokers]
        clients = [draw_client(rng, f"c{n}", (rng.choice(names),)) for n in range(1, rng.randint(2, 5) + 1)]
        actions = draw_actions(rng, self, clients)
        drawn = Scenario(
            name=self.name,
            seed=seed,
            system=KIND,
            settings=dict(self.settings),
            links=links,
            brokers=brokers,
            clients=clients,
            network=replace(draw_network(rng, self), adversary=None),
            actions=actions,
            faults=_draw_faults(rng, self, names, links, [client.id for client in clients]),
            safety_ms=self.safety_ms,
            liveness_ms=self.liveness_ms + len(names) * slowest_ms(brokers, clients, actions),
            storm=storm_of(len(brokers)),
            checkers=[],
        )
        return self.complete(drawn, links, Meetings(), promises)


def promises(scenario: Scenario) -> tuple[str, ...]:
    return (*ALWAYS, STORED_BESIDE)


def _draw_faults(rng: Random, shape: FloodShape, names: list[str], links: list[Any], clients: list[str]) -> list[Fault]:
    faults: list[Fault] = []
    for _ in range(rng.randint(0, shape.faults_max)):
        at = rng.randint(0, shape.safety_ms - 1)
        length, host = min(rng.choice((10, 300, 3_000)), shape.safety_ms - at), rng.choice([*names, *names, *clients])
        match rng.choice(("kill", "power-cut", "pause", "cut", "disk-slow")):
            case "kill":
                faults.append(Kill(at_ms=at, for_ms=length, host=host))
            case "power-cut":
                faults.append(PowerCut(at_ms=at, for_ms=length, host=host))
            case "pause":
                faults.append(Pause(at_ms=at, for_ms=length, host=host))
            case "cut" if links:
                one, other = rng.choice(links)
                faults.append(Cut(at_ms=at, for_ms=length, source=one, target=other, both=rng.random() < 0.7))
            case _:
                faults.append(DiskSlow(at_ms=at, for_ms=length, host=rng.choice(names)))
    return sorted(faults, key=lambda fault: fault.at_ms)


class FloodSwarm:
    settings: FloodSettings = DEFAULTS
    shapes: Mapping[str, Shape] = {KIND: FloodShape()}
    checkers: Mapping[str, Known] = {
        STORED_BESIDE: Known(lambda _: StoredBeside(), "what is acknowledged is stored at all neighbours of its broker")
    }

    operations: Mapping[str, Collection[str]] = {}

    def shape_of(self, site: Site, brokers: Sequence[Broker]) -> Shape:
        return FloodShape(name=site.name, brokers=tuple(brokers), links=site.links, settings=written(site.settings))

    def check(self, scenario: Scenario, refuse: Refuse) -> None:
        for broker in scenario.brokers:
            if not broker.durable:
                refuse(f"broker {broker.id!r} has no disk", 'say "durable": true')

    def promises(self, scenario: Scenario) -> tuple[str, ...]:
        return promises(scenario)

    def header(self, scenario: Scenario) -> dict[str, Any]:
        return {"links": scenario.links}


SWARM: Final = FloodSwarm()
