"""One topology over all of its runs: the means of what was measured, and what the formulas say (D1-E2, D1-E5, D1-E6).

The paper shows the mean of ten runs for each subscriber, and so does this. One run has two outages of a broker or so;
ten have twenty, from which the formulas get the realised availability and mean outage of each part.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean, variance

import msgspec

from experiments.d1.world import DAY_S, Setup, heartbeat_s
from experiments.qos.comparison import Compared, Realised
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.graph import PartGraph
from holdfast.qos.levels import eq13_as_product, eq13_printed, path_delay
from holdfast.qos.parts import part_of_availability
from holdfast.qos.prediction import Model
from holdfast.topology.graph import BrokerGraph

NOTICED_S = 20  # after which whoever has sent something on a link that is cut knows of it


class MeanPoint(msgspec.Struct, frozen=True):
    """Of `count` subscribers with the same topic and home, over all runs."""

    count: int
    measured: list[float]  # by run
    replayed: list[float]
    own: float  # by the formulas, with the parts as they were in all of the runs
    nominal: float  # … as they were asked for
    unnoticed: float  # the share that detours lose before a cut is noticed
    bound: float | None = None  # Eq. 12 in the place of the exact probability of a way, with the runs' own parts
    readings: dict[str, float] = {}  # of Eq. 13, with the runs' own parts

    @property
    def mean(self) -> float:
        return fmean(self.measured)

    @property
    def noise(self) -> float:
        """The standard error of the mean that different outages alone make, from the replays."""
        runs = len(self.replayed)
        return sqrt(variance(self.replayed) / runs) if runs > 1 else float("nan")


class Topology(msgspec.Struct, frozen=True):
    setup: Setup  # of its first run
    runs: int
    points: list[MeanPoint]


def _models(runs: Sequence[Compared]) -> tuple[Model, Model]:
    """With the runs' own parts, and with nominal ones."""
    first = runs[0]
    setup, brokers = first.setup, list(first.availabilities)
    overlay = BrokerGraph(brokers, [(one, other) for one, other in (name.split() for name in first.links)])
    tree = overlay.spanning_tree()
    links = [ends for ends in overlay.links if setup.level.detours or ends[1] in tree.neighbours(ends[0])]

    def realised(name: str, kind: str) -> Realised:
        found: list[Realised] = [getattr(one, kind)[name] for one in runs]
        total = found[0]
        for one in found[1:]:
            total += one
        return total

    names = {frozenset(name.split()): name for name in first.links}
    own = PartGraph(
        {name: realised(name, "brokers").part for name in brokers},
        {ends: realised(names[frozenset(ends)], "links").part for ends in links},
    )
    link, period = part_of_availability(setup.link_availability, setup.link_period_s), setup.period_days * DAY_S
    nominal = PartGraph(
        {name: part_of_availability(value, period) for name, value in first.availabilities.items()},
        dict.fromkeys(links, link),
    )
    return Model(own, setup.lifetime_s), Model(nominal, setup.lifetime_s)


def _unnoticed(model: Model, setup: Setup, source: str, target: str) -> float:
    """An event that is sent on a link which was cut since the last heartbeat, and is stored nowhere, is lost: each cut
    has so much time."""
    if setup.level is not Reliability.BYPASS:
        return 0.0
    path = model.tree.path(source, target)
    seconds = heartbeat_s(setup) / 2 + NOTICED_S
    links = [model.graph.link(*ends) for ends in pairwise(path)]
    cuts = sum(1 / link.period for link in links if not link.never_fails)  # in a second
    return cuts * seconds * model.graph.path_availability(path)


def over_all_runs(runs: Sequence[Compared]) -> Topology:
    """Of runs that differ in their outages only."""
    own, nominal = _models(runs)
    setup = runs[0].setup
    level, lifetime = setup.level, setup.lifetime_s
    points = []
    for place, point in enumerate(runs[0].points):
        source, target = point.source, point.target
        readings = {}
        if level is Reliability.BYPASS_BUFFERED:
            delay, way = path_delay(own.graph, own.tree.path(source, target)), own.connected(source, target)
            readings = {
                "printed": eq13_printed(way, delay, lifetime),
                "product": eq13_as_product(way, delay, lifetime),
                "corrected": own.pair(level, source, target),
            }
        points.append(
            MeanPoint(
                count=point.count,
                measured=[one.points[place].measured for one in runs],
                replayed=[one.points[place].replayed for one in runs],
                own=own.pair(level, source, target),
                nominal=nominal.pair(level, source, target),
                unnoticed=_unnoticed(own, setup, source, target),
                bound=own.bound(source, target) if level.detours else None,
                readings=readings,
            )
        )
    return Topology(setup, len(runs), points)
