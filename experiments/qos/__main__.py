"""The command line of the package."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path

from benchmarks import machine
from experiments import qos
from experiments.d1.world import Setup
from experiments.qos.comparison import Compared, compare
from experiments.qos.report import bounds, by_kind, figure, readings, tables
from holdfast.protocols.routing.settings import Reliability

ON_TREES = (Reliability.PERIODIC, Reliability.BUFFERED)
ON_GRAPHS = (*ON_TREES, Reliability.BYPASS, Reliability.BYPASS_BUFFERED)


def _setups(arguments: argparse.Namespace) -> Iterator[Setup]:
    for graph, levels in ((False, ON_TREES), (True, ON_GRAPHS)):
        for quality in ("low", "high"):
            for level in levels:
                for seed in range(arguments.seed, arguments.seed + arguments.runs):
                    yield Setup(
                        level=level,
                        quality=quality,
                        graph=graph,
                        seed=seed,
                        days=arguments.days,
                        every_s=arguments.every,
                        period_days=arguments.period,
                        subscribers=arguments.subscribers,
                    )


def page(compared: list[Compared], arguments: argparse.Namespace, seconds: float) -> str:
    kinds = by_kind(compared)
    here = ", ".join(f"{name}: {value}" for name, value in machine.description().items())
    words = f"--runs {arguments.runs} --days {arguments.days:g} --seed {arguments.seed}"
    return f"""# The model held against the brokers

Predicted and measured reliability of each subscriber: what the formulas of [qos.md](../qos.md) say, and what the
brokers did in the simulator. Made by `python -m experiments.qos {words}` in {seconds / 60:.0f} minutes on {here}.

{arguments.runs} runs of {arguments.days:g} days of each kind, {arguments.subscribers} subscribers each; brokers with a
period of {arguments.period:g} days; `experiments/d1` has the rest of the set-up. The failures are synthetic:
exponential on and off times.

![Trees: predicted and measured](trees.png)

![Graphs: predicted and measured](graphs.png)

## How far they agree

*Replay*: what could have been delivered in the same run, seen from outside. *Own parts*: the formulas with availability
and mean outage as they were in the run. *Nominal*: with those that were asked for, as the paper shows it: in 14 days a
broker with a period of a week has about two outages, so that most of that difference is chance. ± is a 95% interval
over runs; each of the three has its root mean square error and its largest error over all subscribers.

From an ideal replay the brokers differ most at `bypass`, where what is published before a failure is noticed is lost:
heartbeats go every {arguments.every // 2} s here, so that days can be simulated. With the run's own parts the formulas
differ by what 14 days hold: low-end brokers are off for half a day twice, and whether two of them are off at the same
time is chance.

{tables(kinds)}

## Eq. 12 and the exact probability

{bounds(kinds)}

## Which reading of Eq. 13 the brokers support

With the exact probability of a way, and the run's own parts.

{readings(kinds)}
"""


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="experiments.qos", description=(qos.__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="of each kind")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--days", type=float, default=14)
    parser.add_argument("--every", type=int, default=600, help="seconds between a publisher's events")
    parser.add_argument("--period", type=float, default=7, help="of brokers, in days (D1-E4)")
    parser.add_argument("--subscribers", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/qos-results"))
    arguments = parser.parse_args(words)
    setups = list(_setups(arguments))
    begun = time.monotonic()
    compared: list[Compared] = []
    with get_context("spawn").Pool(arguments.jobs) as pool:
        for one in pool.imap(compare, setups):
            compared.append(one)
            what = f"{one.setup.level.value}, {one.setup.quality}-end, seed {one.setup.seed}"
            print(f"{len(compared)} of {len(setups)}: {what}", flush=True)
    arguments.out.mkdir(parents=True, exist_ok=True)
    kinds = by_kind(compared)
    figure(kinds, False, str(arguments.out / "trees.png"))
    figure(kinds, True, str(arguments.out / "graphs.png"))
    (arguments.out / "README.md").write_text(page(compared, arguments, time.monotonic() - begun))
    print(f"written: {arguments.out}")


if __name__ == "__main__":
    main()
