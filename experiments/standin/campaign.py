"""The paper's experiments as points: which runs there are, and what each of them came to."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Final, NamedTuple

import msgspec

from experiments.standin import in_processes, simulated
from experiments.standin.metrics import Measured, Seen, measure, speed_from
from experiments.standin.paced import Costs, Fixed
from experiments.standin.protocols import Case
from experiments.standin.setting import ITEM_US, Setting, Transport
from experiments.standin.simulated import REPLACED_MS
from experiments.standin.workload import Bias, Workload, Zipf
from holdfast.protocols.routing.network_map import StandInMode, StandInProtocol

PROCESSES: Final = "processes"  # as the product is, in processes
BATCHED: Final = "simulated"  # … and in the simulator, each broker with a processor of its own
ONE_BY_ONE: Final = "one by one"  # as the paper's brokers talk, in the simulator
ALONE: Final = "alone"  # the broker that is congested, and no stand-in

ORDERS: Final = ("table", "pending", "general")  # `[standin] order`

FAILOVER: Final = tuple(Case(protocol, StandInMode.FAILOVER) for protocol in StandInProtocol)
BASIC, SYNCH, INCREM = FAILOVER
SHARED: Final = tuple(Case(protocol, mode) for mode in (StandInMode.SHARE, StandInMode.ORDERED)
                      for protocol in StandInProtocol)  # fmt: skip


class Point(msgspec.Struct, frozen=True):
    """One run to be."""

    figure: str
    how: str
    series: str  # the protocol
    x: float
    seed: int
    workload: Workload
    neighbours: int = 1
    congestion: float = 0.0  # where work is shared
    order: str = ""

    @property
    def setting(self) -> Setting:
        case_of = "synch-ms" if self.series == ALONE else self.series.partition(" ")[0]
        protocol, _, mode = case_of.partition("-")
        case = Case(StandInProtocol(protocol), StandInMode(mode))
        transport = Transport.ONE_BY_ONE if self.how == ONE_BY_ONE else Transport.BATCHED
        return Setting(case, self.workload, self.neighbours, transport, self.order, self.seed)


class Result(msgspec.Struct, frozen=True):
    """What came of it. `indexed`: the most places that events had in wait and ready queues; `fanned`: f·|P|."""

    point: Point
    measured: Measured
    indexed: int = 0
    fanned: int = 0


class Plan(NamedTuple):
    """How much of it."""

    repetitions: int
    of_shared: int  # repetitions of Fig. 11, whose runs are long
    subscriptions: tuple[int, ...]
    pending: tuple[int, ...]
    neighbours: tuple[int, ...]
    each: int  # subscriptions of each neighbour, of Fig. 10b
    degrees: tuple[float, ...]
    congestion: tuple[float, ...]
    flow_ms: int  # of Fig. 11
    of_fanout: Workload  # Fig. 8's
    usual: int  # subscriptions of Figs. 9 and 10a
    few: int  # pending events of Figs. 7 and 10


FULL: Final = Plan(
    repetitions=3,
    of_shared=2,
    subscriptions=(100, 300, 1_000, 3_000, 10_000),
    pending=(100, 250, 500, 1_000),
    neighbours=(1, 5, 10, 20),
    each=500,
    degrees=(0.1, 0.5, 1.0, 2.0, 4.0),
    congestion=(1.0, 2.0, 3.0),
    flow_ms=2_000,
    of_fanout=Workload(1_000, 500),
    usual=1_000,
    few=100,
)
QUICK: Final = Plan(
    repetitions=1,
    of_shared=1,
    subscriptions=(40, 120),
    pending=(20, 60),
    neighbours=(1, 3),
    each=30,
    degrees=(0.5, 1.0),
    congestion=(2.0,),
    flow_ms=1_000,
    of_fanout=Workload(80, 40),
    usual=80,
    few=30,
)


def points(plan: Plan) -> list[Point]:
    return [
        msgspec.structs.replace(found, seed=seed)
        for make in (_figure_7, _figure_8, _figure_9, _figure_10, _figure_11, _orders)
        for found in make(plan)
        for seed in range(1, (plan.of_shared if found.congestion else plan.repetitions) + 1)
    ]


def _figure_7(plan: Plan) -> Iterator[Point]:
    """Subscription population (D0-E6)."""
    for count in plan.subscriptions:
        for how in (PROCESSES, BATCHED, ONE_BY_ONE):
            for case in FAILOVER:
                yield Point("fig7", how, str(case), count, 0, Workload(count, plan.few))


def _comparable(how: str) -> tuple[Case, ...]:
    """As the product is, basic loses all that waits; Fig. 7 shows that once."""
    return FAILOVER if how == ONE_BY_ONE else (SYNCH, INCREM)


def _fanouts(plan: Plan, degrees: Sequence[float]) -> Iterator[Workload]:
    """Few of the events match few of the subscriptions, and the reverse."""
    for degree in degrees:
        for published, subscribed in ((Bias.LOW, Bias.HIGH), (Bias.HIGH, Bias.LOW)):
            workload = msgspec.structs.replace(
                plan.of_fanout, published=Zipf(degree, published), subscribed=Zipf(degree, subscribed)
            )
            if workload.fanout * workload.pending >= 1:  # else nothing matches anything
                yield workload


def _figure_8(plan: Plan) -> Iterator[Point]:
    """Publication fanout (D0-E7)."""
    for workload in _fanouts(plan, plan.degrees):
        for how in (BATCHED, ONE_BY_ONE):
            for case in _comparable(how):
                yield Point("fig8", how, str(case), round(workload.fanout, 2), 0, workload)


def _figure_9(plan: Plan) -> Iterator[Point]:
    """Pending publications (D0-E8)."""
    for pending in plan.pending:
        for how in (PROCESSES, BATCHED, ONE_BY_ONE):
            for case in _comparable(how):
                yield Point("fig9", how, str(case), pending, 0, Workload(plan.usual, pending))


def _figure_10(plan: Plan) -> Iterator[Point]:
    """Neighbours, with as many subscriptions as before or with so many each (D0-E9, D0-E10)."""
    for count in plan.neighbours:
        for how in (BATCHED, ONE_BY_ONE):
            for case in (SYNCH, INCREM):
                yield Point("fig10a", how, str(case), count, 0, Workload(plan.usual, plan.few), count)
                yield Point("fig10b", how, str(case), count, 0, Workload(plan.each * count, plan.few), count)


def _figure_11(plan: Plan) -> Iterator[Point]:
    """Congestion (D0-E11)."""
    for congestion in plan.congestion:
        events = int(congestion * plan.flow_ms * 1_000 / ITEM_US)
        for how in (BATCHED, ONE_BY_ONE):
            for series in (ALONE, *map(str, SHARED)):
                workload = Workload(plan.subscriptions[0], events)
                yield Point("fig11", how, series, congestion, 0, workload, congestion=congestion)


def _orders(plan: Plan) -> Iterator[Point]:
    """The paper's order of subscriptions, and those that look at what waits (D0-F2): by fanout."""
    for workload in (*_fanouts(plan, plan.degrees[1:3] or plan.degrees), msgspec.structs.replace(plan.of_fanout)):
        for order in ORDERS:
            for how in (BATCHED, ONE_BY_ONE):
                yield Point("orders", how, f"{INCREM} {order}", round(workload.fanout, 2), 0, workload, order=order)


def play(point: Point, costs: Costs | None = None) -> Result:
    setting = point.setting
    if point.how == PROCESSES:
        return Result(point, measure(setting, in_processes.play(setting)))
    if point.congestion:
        played = simulated.play_shared(setting, point.congestion, point.series != ALONE, costs)
        measured = measure(setting, played.seen, handed=True)
        return Result(point, msgspec.structs.replace(measured, per_s=speed_from(played.seen, REPLACED_MS)))
    played = simulated.play(setting, costs)
    return Result(point, measure(setting, played.seen), played.simulation.indexed_max, _fanned(setting, played.seen))


def _fanned(setting: Setting, seen: Seen) -> int:
    thresholds = [each for wanted in setting.thresholds().values() for each in wanted]
    return sum(value > threshold for value in seen.values.values() for threshold in thresholds)


def play_all(
    wanted: Sequence[Point], jobs: int, tell: Callable[[str], None] = lambda text: None, costs: Costs | None = None
) -> list[Result]:
    """Processes one run at a time, since they have the cores to themselves; simulated ones in so many processes, the
    long ones first."""
    results: list[Result] = []
    live = [point for point in wanted if point.how == PROCESSES]
    for number, point in enumerate(live, 1):
        tell(f"{number} of {len(live)} in processes: {point.figure}, {point.series}, {point.x:g}")
        results.append(play(point))
    rest = sorted((point for point in wanted if point.how != PROCESSES), key=_weight, reverse=True)
    if jobs == 1 or len(rest) < jobs:
        for point in rest:
            results.append(play(point, costs))
        return results
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for number, result in enumerate(pool.map(play, rest, [costs] * len(rest)), 1):
            tell(f"{number} of {len(rest)} simulated: {result.point.figure}, {result.point.series}, {result.point.x:g}")
            results.append(result)
    return results


def _weight(point: Point) -> float:
    return point.workload.subscriptions * point.workload.pending * (3 if point.series.startswith("increm") else 1)


DETERMINED: Final = Fixed()  # costs of runs that are to come out the same each time
