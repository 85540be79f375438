"""The command line of the package."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev

import msgspec
from msgspec.structs import replace

from benchmarks import machine
from experiments import d1
from experiments.d1.measure import Result, path_availability, run
from experiments.d1.world import AVAILABILITIES, PAUSE_SHARE, Setup, pause_ms, settings_of
from holdfast.protocols.routing.settings import Reliability

FULL_EVERY_S = 60  # D1-E2
ON_TREES = (Reliability.NONE, Reliability.PERIODIC, Reliability.BUFFERED)
HEADINGS = ("graph", "brokers", "level", "runs", "mean r_s", "between runs", "path", "events", "steps", "seconds")


def _setups(arguments: argparse.Namespace) -> Iterator[Setup]:
    """One for each line of the table; its seed is the first."""
    base = Setup(
        level=Reliability(arguments.level),
        quality=arguments.brokers,
        graph=arguments.graph,
        seed=arguments.seed,
        days=arguments.days,
        every_s=FULL_EVERY_S if arguments.full else arguments.every,
        period_days=arguments.period,
        subscribers=arguments.subscribers,
        own_sessions=arguments.own_sessions,
        apart=arguments.apart,
    )
    if not arguments.all:
        yield base
        return
    for graph in (False, True):
        for level in Reliability if graph else ON_TREES:
            yield replace(base, level=level, graph=graph)


def _line(results: Sequence[Result]) -> tuple[str, ...]:
    setup, means = results[0].setup, [result.mean for result in results]
    paths = [path_availability(setup, result.world, name) for result in results for name in result.world.topics]
    return (
        "graph" if setup.graph else "tree",
        setup.quality,
        setup.level.value,
        str(len(results)),
        f"{fmean(means):.4f}",
        f"±{stdev(means):.4f}" if len(means) > 1 else "",
        f"{fmean(paths):.4f}",
        f"{sum(result.published for result in results):,}",
        f"{sum(result.steps for result in results):,}",
        f"{sum(result.seconds for result in results):.1f}",
    )


def _told(setup: Setup) -> str:
    """How time was scaled."""
    low, high = AVAILABILITIES[setup.quality]
    times = {key: value // 1000 for key, value in settings_of(setup).items() if type(value) is int}
    pause = pause_ms(setup, high)
    return (
        f"{setup.brokers} brokers of availability {low} to {high}, period {setup.period_days:g} days; links "
        f"{setup.link_availability}, {setup.link_period_s:,.0f} s; {setup.publishers} publishers, an event every "
        f"{setup.every_s} s each, lifetime {setup.lifetime_s} s; {setup.subscribers} subscribers, popularity ~ "
        f"1/rank^{setup.exponent:g}; {setup.days:g} days, stationary start\n"
        f"neighbours are dialled every {times['dial_every_ms']} s, told again every {times['refresh_ms']} s, "
        f"forgotten after {times['expire_ms']} s, sent events again after {times['retransmit_ms']} s; "
        f"heartbeats every {times['heartbeat_ms']} s; clients dial every {pause / 1000:.0f} s or more often "
        f"({PAUSE_SHARE:.0%} of the shortest repair time of a broker)"
    )


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="experiments.d1", description=(d1.__doc__ or "").splitlines()[0])
    levels = [level.value for level in Reliability]
    parser.add_argument("--level", choices=levels, default="buffered")
    parser.add_argument("--brokers", choices=tuple(AVAILABILITIES), default="low")
    parser.add_argument("--graph", action="store_true", help="a random graph of mean degree 3, not a random tree")
    parser.add_argument("--all", action="store_true", help="trees and graphs, all levels that apply")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs of each kind")
    parser.add_argument("--days", type=float, default=14)
    parser.add_argument("--period", type=float, default=7, help="of brokers, in days (D1-E4: 1 to 14)")
    parser.add_argument("--every", type=int, default=600, help="seconds between a publisher's events")
    parser.add_argument("--full", action="store_true", help=f"an event every {FULL_EVERY_S} s, as in the paper")
    parser.add_argument("--subscribers", type=int, default=500)
    parser.add_argument("--own-sessions", action="store_true", help="subscribers of one home broker share none")
    parser.add_argument("--apart", action="store_true", help="publishers publish at different moments")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes everything that was drawn and measured")
    arguments = parser.parse_args(words)
    here = machine.description()
    print(", ".join(f"{name}: {value}" for name, value in here.items()), f"load: {os.getloadavg()[0]:.1f}", sep=", ")
    setups = list(_setups(arguments))
    print(_told(setups[0]))
    lines: list[tuple[str, ...]] = [HEADINGS]
    everything: list[Result] = []
    for setup in setups:
        results = [run(replace(setup, seed=arguments.seed + number)) for number in range(arguments.seeds)]
        lines.append(_line(results))
        everything += results
        print(f"done: {setup.level.value}, {'graph' if setup.graph else 'tree'}", file=sys.stderr, flush=True)
    widths = [max(len(line[place]) for line in lines) for place in range(len(HEADINGS))]
    for line in lines:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    if arguments.json:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(everything), indent=1) + b"\n")
        print(f"written: {arguments.json}")


if __name__ == "__main__":
    main()
