"""One run, and the numbers that its subscribers are compared with."""

from __future__ import annotations

import msgspec

from experiments.d1.measure import run
from experiments.d1.oracle import Oracle
from experiments.d1.outages import Outage
from experiments.d1.world import DAY_S, Setup, World, tree_of
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.graph import PartGraph
from holdfast.qos.levels import eq13_as_product, eq13_printed, path_delay
from holdfast.qos.parts import NEVER_FAILS, Part, part_of_availability, part_of_means
from holdfast.qos.prediction import Model


class Point(msgspec.Struct, frozen=True):
    """Of one subscriber of one run. `readings` are those of Eq. 13, by name, with the run's own parts."""

    measured: float
    replayed: float
    paired: float
    nominal: float
    bound: float | None = None  # Eq. 12 in the place of the exact probability of a way, with the run's own parts
    readings: dict[str, float] = {}


class Compared(msgspec.Struct, frozen=True):
    setup: Setup
    points: list[Point]
    seconds: float


def _realised(outages: list[Outage], length_s: float) -> Part:
    """A part as it was in the run."""
    off = sum(outage.end - outage.begin for outage in outages) / 1_000
    return part_of_means((length_s - off) / len(outages), off / len(outages)) if outages else NEVER_FAILS


def _graph(setup: Setup, world: World, realised: bool) -> PartGraph:
    links = list(world.links) if setup.level.detours else tree_of(world)
    if realised:
        return PartGraph(
            {name: _realised(found, setup.length_s) for name, found in world.broker_outages.items()},
            {(a, b): _realised(world.link_outages[f"{a} {b}"], setup.length_s) for a, b in links},
        )
    link = part_of_availability(setup.link_availability, setup.link_period_s)
    period = setup.period_days * DAY_S
    return PartGraph(
        {name: part_of_availability(value, period) for name, value in world.availabilities.items()},
        dict.fromkeys(links, link),
    )


def _replayed(oracle: Oracle, level: Reliability, subscriber: str) -> float:
    match level:
        case Reliability.PERIODIC:
            return oracle.path_up(subscriber)
        case Reliability.BUFFERED:
            return oracle.in_time(subscriber)
        case Reliability.BYPASS:
            return oracle.connected(subscriber)
        case Reliability.BYPASS_BUFFERED:
            return oracle.connected_or_in_time(subscriber)
    raise ValueError(f"{level} promises nothing that could be replayed")


def compare(setup: Setup) -> Compared:
    result = run(setup)
    world, level = result.world, setup.level
    oracle = Oracle(setup, world)
    own, nominal = (Model(_graph(setup, world, realised), setup.lifetime_s) for realised in (True, False))
    known: dict[tuple[str, str], Point] = {}
    points = []
    for one in result.subscribers:
        if one.reliability is None:
            continue
        source, target = world.homes[one.topic], one.home
        if (one.topic, target) not in known:
            bound, readings = None, {}
            if level.detours:
                bound = own.bound(source, target)
            if level is Reliability.BYPASS_BUFFERED:
                delay = path_delay(own.graph, own.tree.path(source, target))
                way, lifetime = own.connected(source, target), setup.lifetime_s
                readings = {
                    "printed": eq13_printed(way, delay, lifetime),
                    "product": eq13_as_product(way, delay, lifetime),
                    "corrected": own.pair(level, source, target),
                }
            known[one.topic, target] = Point(
                measured=0.0,
                replayed=_replayed(oracle, level, one.name),
                paired=own.pair(level, source, target),
                nominal=nominal.pair(level, source, target),
                bound=bound,
                readings=readings,
            )
        points.append(msgspec.structs.replace(known[one.topic, target], measured=one.reliability))
    return Compared(setup, points, result.seconds)
