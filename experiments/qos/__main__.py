"""The command line of the package."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path

from benchmarks import machine
from experiments import qos
from experiments.d1.world import Quality, Setup, heartbeat_s
from experiments.qos.comparison import Compared, compare
from experiments.qos.report import bounds, by_kind, figure, order_table, orders, readings, sweep, tables, unnoticed
from holdfast.protocols.routing.settings import Reliability

DPI = 120  # of figures
ON_TREES = (Reliability.PERIODIC, Reliability.BUFFERED)
ON_GRAPHS = (*ON_TREES, Reliability.BYPASS, Reliability.BYPASS_BUFFERED)
KINDS: tuple[tuple[bool, Quality, tuple[Reliability, ...]], ...] = (
    (False, "low", ON_TREES),
    (False, "high", ON_TREES),
    (True, "low", ON_GRAPHS),
    (True, "high", ON_GRAPHS),
)


def _setups(arguments: argparse.Namespace) -> Iterator[Setup]:
    for graph, quality, levels in KINDS:
        for level in levels:
            yield from _runs(arguments, graph, quality, level, arguments.period, arguments.runs)
    for period in arguments.sweep:
        if period != arguments.period:
            for level in ON_GRAPHS:
                yield from _runs(arguments, True, "low", level, period, min(arguments.runs, arguments.sweep_runs))


def _runs(
    arguments: argparse.Namespace, graph: bool, quality: Quality, level: Reliability, period: float, runs: int
) -> Iterator[Setup]:
    for seed in range(arguments.seed, arguments.seed + arguments.topologies):
        for run in range(runs):
            yield Setup(
                level=level,
                quality=quality,
                graph=graph,
                seed=seed,
                run=run,
                days=arguments.days,
                every_s=arguments.every,
                period_days=period,
                subscribers=arguments.subscribers,
            )


def page(compared: list[Compared], arguments: argparse.Namespace, seconds: float) -> str:
    everything = by_kind(compared)
    kinds = {kind: found for kind, found in everything.items() if kind[3] == arguments.period}
    here = ", ".join(f"{name}: {value}" for name, value in machine.description().items())
    words = f"--topologies {arguments.topologies} --runs {arguments.runs} --days {arguments.days:g}"
    return f"""# The model held against the brokers

Predicted and measured reliability of subscribers: what the formulas of [qos.md](../qos.md) say, and what the brokers
did in the simulator. Made by `python -m experiments.qos {words}`
in {seconds / 60:.0f} minutes on {here}.

{arguments.runs} runs of {arguments.days:g} days of each kind on {arguments.topologies} topology or topologies, with
{arguments.subscribers} subscribers and an event every {arguments.every} s of each publisher; brokers with a period of
{arguments.period:g} days. `experiments/d1` has the rest of the set-up. The failures are synthetic: exponential on and
off times. As in the paper, a subscriber's value is the mean of its runs.

![Trees: predicted and measured](trees.png)

![Graphs: predicted and measured](graphs.png)

## How far they agree

| | measured is compared with |
|---|---|
| replay | the events that could have come on time in the same run, seen from outside; run by run |
| own parts | the formulas, with each part's availability and mean outage as they were in all of the runs |
| nominal | the formulas, with those that were asked for, as the paper shows it |
| chance | how far the mean of so many runs is from nominal parts by chance alone: the standard error of the replays |

± is a 95% interval over runs. Errors are over all subscribers: the root of their mean square, and the largest. The
slope is that of measured over nominal values, with its 95% interval from runs that are drawn again.

{tables(kinds)}

With detours alone, an event that is sent on a link which was cut since the last heartbeat is lost. Heartbeats go every
{heartbeat_s(compared[0].setup)} s here, so that days can be simulated:

{unnoticed(kinds)}

## The order of levels

The paper's claims on measured means. *Open*: the runs do not decide it.

{order_table(orders(kinds, arguments.period))}

## The period of brokers

The paper's is lost (D1-E4). Graphs with low-end brokers: measured / own parts / nominal, means over all subscribers.

{sweep(everything)}

## Eq. 12 and the exact probability

With the runs' own parts.

{bounds(kinds)}

## Which reading of Eq. 13 the brokers support

With the exact probability of a way, and the runs' own parts.

{readings(kinds)}
"""


def _compared(setups: Sequence[Setup], jobs: int, on_spark: bool, parquet: Path | None) -> Iterator[Compared]:
    if on_spark:
        from experiments.qos.on_spark import compare_on_spark, session

        yield from compare_on_spark(session(jobs), setups, None if parquet is None else str(parquet))
        return
    with get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(compare, setups)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="experiments.qos", description=(qos.__doc__ or "").splitlines()[0])
    parser.add_argument("--topologies", type=int, default=1, help="of each kind")
    parser.add_argument("--runs", type=int, default=10, help="of each topology")
    parser.add_argument("--seed", type=int, default=1, help="of the first topology")
    parser.add_argument("--days", type=float, default=14)
    parser.add_argument("--every", type=int, default=900, help="seconds between a publisher's events")
    parser.add_argument("--period", type=float, default=7, help="of brokers, in days (D1-E4)")
    parser.add_argument("--sweep", type=float, nargs="*", default=[1, 3, 14], help="other periods, on graphs")
    parser.add_argument("--sweep-runs", type=int, default=1, help="of each of them")
    parser.add_argument("--subscribers", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--spark", action="store_true", help="run them as tasks of Spark")
    parser.add_argument("--parquet", type=Path, metavar="DIR", help="with --spark: keep all points there")
    parser.add_argument("--out", type=Path, default=Path("docs/qos-results"))
    arguments = parser.parse_args(words)
    if arguments.parquet and not arguments.spark:
        parser.error("--parquet is of --spark")
    if arguments.parquet and arguments.parquet.exists():
        parser.error(f"--parquet: {str(arguments.parquet)!r} is there already")
    setups = list(_setups(arguments))
    begun = time.monotonic()
    compared: list[Compared] = []
    for one in _compared(setups, arguments.jobs, arguments.spark, arguments.parquet):
        compared.append(one)
        what = f"{one.setup.level.value}, {one.setup.quality}-end, topology {one.setup.seed}, run {one.setup.run}"
        print(f"{len(compared)} of {len(setups)}: {what}", flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    kinds = {kind: found for kind, found in by_kind(compared).items() if kind[3] == arguments.period}
    figure(kinds, False).savefig(arguments.out / "trees.png", dpi=DPI)
    figure(kinds, True).savefig(arguments.out / "graphs.png", dpi=DPI)
    (arguments.out / "README.md").write_text(page(compared, arguments, time.monotonic() - begun))
    print(f"written: {arguments.out}")


if __name__ == "__main__":
    main()
