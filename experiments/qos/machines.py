"""Brokers that fail as real machines did, held against the formulas with exponential and with fitted times (D1-F3).

    python -m experiments.qos.machines FILE                    # lanl-failures-1996-2005.csv.xz, or .csv
    python -m experiments.qos.machines FILE --system 2 --days 28 --runs 5 --level buffered
    python -m experiments.qos.machines FILE --runs 0           # the replays of all windows only, in seconds

The network is that of `experiments.d1`: ten brokers, in a tree or in a graph. Each plays one of the ten machines of a
system that failed most often, and is off when that was (`windows`). Links never fail, so that what is seen comes of the
machines. All runs have the same network, and each has another window of the records.

System 2 is the default: its ten busiest machines failed every ten days or so, and the longest of their outages took
three weeks (of system 16, one took seven months, and little else tells there). Events are published once an hour, so
that months can be simulated; neighbours are dialled every 30 s and clients dial every minute, which is little against
repair times.

What each subscriber got is compared with the ideal replay of its run, and with the formulas. Their brokers are fitted
to all records of the ten machines until the windows end, by exponential times and by mixtures: of *all* ten together,
and of *each* by itself. `--forecast` fits what was recorded before the first window only, and takes windows from the
second half. A window holds a few outages of each machine, so that most of the difference is chance. What is left when
brokers have their *own* means, those of the time that is compared, in exponential times or in the shapes of each
machine's mixtures, is that of the formulas.

They are held against the replays of all windows, too, averaged for each subscriber: as recorded, and with each machine
in another window (`windows.apart`), where no two fail together.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from benchmarks import machine
from experiments.d1.measure import run
from experiments.d1.oracle import Oracle
from experiments.d1.outages import Outage
from experiments.d1.world import DAY_S, Setup, World, draw_world, tree_of
from experiments.qos.comparison import realised
from experiments.qos.lanl import intervals, machines_of, parameters, pooled, read_outages
from experiments.qos.windows import Records, apart, records_of, spread, together, whole
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.fitting import OFF_PHASES, ON_PHASES, fitted, part_fitted
from holdfast.qos.graph import PartGraph
from holdfast.qos.parts import NEVER_FAILS, Part
from holdfast.qos.prediction import Model

LIFETIMES_S = (3_600, 6 * 3_600)
LEVELS = (Reliability.PERIODIC, Reliability.BUFFERED, Reliability.BYPASS_BUFFERED)

Parts = dict[str, dict[str, Part]]  # by what they are fitted to, and how; then by broker


class Point(msgspec.Struct, frozen=True):
    """Of one subscriber. `measured` is what is compared with; predictions are by name."""

    measured: float
    replayed: float
    predicted: dict[str, float]


class Result(msgspec.Struct, frozen=True):
    """Of one run, or of the replays of all windows, in which `measured` is a mean of replays. `what` says which."""

    setup: Setup
    what: str
    points: list[Point]
    seconds: float
    windows: int = 1


class Kind(NamedTuple):
    level: Reliability
    lifetime_s: int


def kinds(levels: Sequence[Reliability]) -> Iterator[Kind]:
    """Levels that do not buffer have one lifetime: theirs is no different with another."""
    for level in levels:
        for lifetime in LIFETIMES_S if level.buffers else LIFETIMES_S[:1]:
            yield Kind(level, lifetime)


def setup_of(kind: Kind, days: float, brokers: int, subscribers: int, every_s: int, seed: int) -> Setup:
    """Levels with detours have a graph, and the others a tree."""
    return Setup(
        level=kind.level,
        graph=kind.level.detours,
        seed=seed,
        brokers=brokers,
        subscribers=subscribers,
        days=days,
        every_s=every_s,
        lifetime_s=kind.lifetime_s,
        pause_s=60,
    )


def world_of(setup: Setup, outages: dict[str, list[Outage]]) -> World:
    """Graph and homes as the seed has them; brokers with these outages, and links without any."""
    world = draw_world(setup)
    return replace(world, broker_outages=outages, link_outages={name: [] for name in world.link_outages})


def parts_of(records: Records, until: datetime) -> Parts:
    """From all that was recorded until then."""
    on, off = pooled(records.brokers.values(), until)
    each = {broker: intervals(found, until) for broker, found in records.brokers.items()}
    parts: Parts = {}
    for name, mixtures in (("exponential", False), ("mixtures", True)):
        parts[f"all, {name}"] = dict.fromkeys(records.brokers, part_fitted(on, off, mixtures))
    for name, mixtures in (("exponential", False), ("mixtures", True)):
        parts[f"each, {name}"] = {broker: part_fitted(*times, mixtures) for broker, times in each.items()}
    return parts


def with_own(parts: Parts, outages: dict[str, list[Outage]], length_s: float) -> Parts:
    """And parts with the means of these outages, in exponential times and in the shapes of each machine's mixtures."""
    own = {broker: realised(found, length_s).part for broker, found in outages.items()}
    shaped = {broker: _shaped(parts["each, mixtures"][broker], part) for broker, part in own.items()}
    return parts | {"own, exponential": own, "own, mixtures": shaped}


def _shaped(shape: Part, means: Part) -> Part:
    if shape.on is None or shape.off is None or means.on is None or means.off is None:
        return means
    return Part(shape.on.with_mean(means.on.mean), shape.off.with_mean(means.off.mean))


def _predicted(setup: Setup, world: World, parts: Parts) -> Callable[[str], dict[str, float]]:
    """What each subscriber is predicted to get, by its name."""
    links = list(world.links) if setup.level.detours else tree_of(world)
    models = {
        name: Model(PartGraph(brokers, dict.fromkeys(links, NEVER_FAILS)), setup.lifetime_s)
        for name, brokers in parts.items()
    }

    def of(subscriber: str) -> dict[str, float]:
        source, target = world.homes[world.topics[subscriber]], world.homes[subscriber]
        return {name: model.pair(setup.level, source, target) for name, model in models.items()}

    return of


def simulated(setup: Setup, outages: dict[str, list[Outage]], parts: Parts) -> Result:
    """One run of the brokers."""
    world = world_of(setup, outages)
    result = run(setup, world)
    oracle, predicted = Oracle(setup, world), _predicted(setup, world, with_own(parts, outages, setup.length_s))
    points = [
        Point(one.reliability, oracle.share(setup.level, one.name), predicted(one.name))
        for one in result.subscribers
        if one.reliability is not None
    ]
    return Result(setup, "brokers", points, result.seconds)


def long_run(setup: Setup, what: str, windows: Sequence[dict[str, list[Outage]]], parts: Parts) -> Result:
    """The mean of the replays of all windows, for each subscriber."""
    begun = time.process_time()
    sums: dict[str, float] = {}
    for outages in windows:
        world = world_of(setup, outages)
        oracle = Oracle(setup, world)
        known: dict[tuple[str, str], float] = {}  # subscribers of one home and topic get the same
        for name, topic in world.topics.items():
            key = (world.homes[name], topic)
            if key not in known:
                known[key] = oracle.share(setup.level, name)
            sums[name] = sums.get(name, 0.0) + known[key]
    predicted = _predicted(setup, world_of(setup, windows[0]), parts)
    means = {name: total / len(windows) for name, total in sums.items()}
    points = [Point(mean, mean, predicted(name)) for name, mean in means.items()]
    return Result(setup, what, points, time.process_time() - begun, len(windows))


def _cell(points: Sequence[Point], get: Callable[[Point], float]) -> str:
    errors = [get(point) - point.measured for point in points]
    rmse = sqrt(fmean(error * error for error in errors))
    return f"{fmean(map(get, points)):.4f} · {rmse:.4f} · {max(map(abs, errors)):.3f}"


def table(results: Sequence[Result]) -> str:
    """One line for each kind of run: the mean over subscribers of what was measured; and of the replay and of each
    prediction the mean, the root mean square error and the largest error."""
    grouped: dict[tuple[str, bool, str, int], list[Result]] = {}
    for one in results:
        setup = one.setup
        grouped.setdefault((one.what, setup.graph, setup.level.value, setup.lifetime_s), []).append(one)
    names = list(dict.fromkeys(name for one in results for name in one.points[0].predicted))
    heads = ["what", "graph", "level", "lifetime", "windows", "measured", "replay", *names]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for (what, graph, level, lifetime_s), runs in grouped.items():
        points = [point for one in runs for point in one.points]
        shown = [what, "graph" if graph else "tree", level]
        shown += [
            f"{lifetime_s // 3_600} h" if Reliability(level).buffers else "any",
            f"{sum(one.windows for one in runs)}",
        ]
        shown += [f"{fmean(point.measured for point in points):.4f}"]
        shown.append(_cell(points, lambda point: point.replayed) if what == "brokers" else "")
        for name in names:
            is_there = name in points[0].predicted
            shown.append(_cell(points, lambda point, name=name: point.predicted[name]) if is_there else "")  # type: ignore[misc]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def page(told: Sequence[str], arguments: argparse.Namespace, seconds: float) -> str:
    here = ", ".join(f"{name}: {value}" for name, value in machine.description().items())
    options = f"--system {arguments.system} --days {arguments.days:g} --runs {arguments.runs} --seed {arguments.seed}"
    first, parameters, *tables = told
    return f"""# Brokers that fail as real machines did

What subscribers got, and what the formulas of [qos.md](../qos.md) say of it with exponential and with fitted times.
Made by `python -m experiments.qos.machines FILE {options}`{" `--forecast`" if arguments.forecast else ""}
in {seconds / 60:.0f} minutes on {here}. FILE is the public record of failures at Los Alamos from 1996 to 2005.

S{first[1:]}. Times are not compressed, and links never fail. *exponential* and *mixture* are what is fitted:

{parameters}

Cells are mean · root mean square error · largest error, over subscribers. *all*: one fit to all ten machines; *each*:
one to each; *own*: the means of the very time that is compared, in exponential times or in the shapes of each machine's
mixtures. Two windows hold a few outages of each machine: most of the difference of *all* and *each* is chance there.

{tables[0] if tables else ""}

The same against the ideal replays of all windows, averaged; *each apart*: every machine in another window, so that no
two fail together.

{tables[1] if len(tables) > 1 else ""}
"""


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="experiments.qos.machines", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--system", default="2", help="whose machines fail")
    parser.add_argument("--level", choices=[level.value for level in LEVELS], nargs="+", help="all three unless said")
    parser.add_argument("--days", type=float, default=56, help="of a window")
    parser.add_argument("--runs", type=int, default=2, help="of each kind, in windows spread over the records")
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--subscribers", type=int, default=80)
    parser.add_argument("--every", type=int, default=3_600, help="seconds between a publisher's events")
    parser.add_argument("--seed", type=int, default=1, help="of the network")
    parser.add_argument("--forecast", action="store_true", help="fit what was recorded before the first window only")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write it all as a page, too")
    arguments = parser.parse_args(words)
    machines = machines_of(read_outages(arguments.file), arguments.system).nodes
    records = records_of(machines, arguments.brokers, arguments.days, since=0.5 if arguments.forecast else 0.0)
    until = records.windows[0] if arguments.forecast else records.until
    on, off = pooled(records.brokers.values(), until)
    told = [
        f"system {arguments.system}: {arguments.brokers} machines, {len(records.windows)} windows of "
        f"{arguments.days:g} days from {records.windows[0]:%Y-%m-%d} on, fitted to records until {until:%Y-%m-%d}",
        parameters([(arguments.system, fitted(on, ON_PHASES), fitted(off, OFF_PHASES))]),
    ]
    begun = time.monotonic()
    parts = parts_of(records, until)
    overall = with_own(parts, whole(records), len(records.windows) * arguments.days * DAY_S)
    brokers: list[Result] = []
    replays: list[Result] = []
    for kind in kinds([Reliability(level) for level in arguments.level or LEVELS]):
        setup = setup_of(
            kind, arguments.days, arguments.brokers, arguments.subscribers, arguments.every, arguments.seed
        )
        for number in spread(arguments.runs, len(records.windows)):
            brokers.append(simulated(setup, together(records, number), parts))
            print(
                f"{kind.level.value}, {kind.lifetime_s} s, from {records.windows[number]:%Y-%m-%d}: "
                f"{brokers[-1].seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
        for what, chosen in (("as recorded", together), ("each apart", apart)):
            windows = [chosen(records, number) for number in range(len(records.windows))]
            replays.append(long_run(setup, what, windows, overall))
            print(f"{kind.level.value}, {what}: {replays[-1].seconds:.0f} s", file=sys.stderr, flush=True)
    told += [table(results) for results in (brokers, replays) if results]
    print(*told, sep="\n\n")
    if arguments.page:
        arguments.page.write_text(page(told, arguments, time.monotonic() - begun))


if __name__ == "__main__":
    main()
