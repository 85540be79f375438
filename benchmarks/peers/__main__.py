"""Runs everything and prints the report: `.venv/bin/python -m benchmarks.peers`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from benchmarks import peers
from benchmarks.machine import description
from benchmarks.peers.loads import Load
from benchmarks.peers.measure import Outcome, measure
from benchmarks.peers.report import OWN, Results, all_loads, lines
from benchmarks.peers.servers import running
from benchmarks.peers.system import System
from benchmarks.peers.systems import SYSTEMS

ROUNDS = 5
EVENTS = 100_000  # of a system of ordinary speed, in one run
LATENCY_EVENTS = 3_000
CLIENTS_TOGETHER = 50  # for 1,000 clients each
CLIENTS_IN_TURN = 30_000  # for one of them each


def events_of(load: Load, system: System, quick: bool) -> int:
    """How many events make a run of about a second."""
    if load.kind == "clients":
        return (CLIENTS_IN_TURN if load.in_turn else CLIENTS_TOGETHER) // (5 if quick else 1)
    if load.kind == "latency":
        return LATENCY_EVENTS // (3 if quick else 1)
    count = EVENTS * system.speed
    if load.form == "jetstream":
        count /= 15
    if load.kind == "filters" and not load.one_key:
        count /= load.subscriptions**0.3  # half as many a second with ten times as many, about
    if load.kind == "throughput":
        count /= (1 if load.size == 60 else 2) * (1 if load.subscriptions == 1 else 5)
    return max(1_000, int(count) // (5 if quick else 1) // 1_000 * 1_000)


def chosen(only: str) -> list[System]:
    """The systems to measure, with Holdfast always among them; those that are not installed are named."""
    names = {OWN, *only.split(",")} if only else set(SYSTEMS)
    for unknown in sorted(names - set(SYSTEMS)):
        raise SystemExit(f"there is no {unknown!r}; there are: {', '.join(SYSTEMS)}")
    systems = []
    for name in (name for name in SYSTEMS if name in names):
        missing = SYSTEMS[name].missing()
        if missing:
            print(f"{name}: left out, since {', '.join(missing)} is not installed (see benchmarks/peers/__init__.py)")
        else:
            systems.append(SYSTEMS[name])
    return systems


def run_once(system: System, port: int, server: int, load: Load, quick: bool) -> Outcome | None:
    events = events_of(load, system, quick)
    try:
        outcome = measure(system.name, port, server, load, events)
    except ChildProcessError as error:
        print(f"{system.name}, {load.name}: {error}", file=sys.stderr)
        return None
    shown = f"p50 {outcome.p50_us:,.0f} µs" if outcome.p50_us is not None else f"{outcome.rate:,.0f} events/s"
    print(f"  {load.name:36} {system.name:10} {shown}", file=sys.stderr, flush=True)
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.peers", description=(peers.__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of all loads; {ROUNDS} if not said")
    parser.add_argument("--only", default="", metavar="NAMES", help="these systems and Holdfast, with commas between")
    parser.add_argument("--loads", default="", metavar="TEXT", help="only loads whose name begins so")
    parser.add_argument("--quick", action="store_true", help="a fifth of the events")
    arguments = parser.parse_args()
    print(", ".join(f"{name}: {value}" for name, value in description().items()))
    systems = chosen(arguments.only)
    for system in systems:
        print(f"{system.name:10} {system.versions()}\n{'':10} {system.form}\n{'':10} guarantees: {system.guarantee}")
    results: Results = {}
    with contextlib.ExitStack() as servers:
        started = [(system, *servers.enter_context(running(system))) for system in systems]
        for number in range(arguments.rounds):
            print(f"round {number + 1} of {arguments.rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
            for load, only in all_loads():
                for system, port, server in started:
                    meant = only == system.name or (not only and load.kind in system.kinds)
                    if meant and load.name.startswith(arguments.loads):
                        outcome = run_once(system, port, server, load, arguments.quick)
                        results.setdefault((load.name, system.name), []).append(outcome)
    print(f"\n{arguments.rounds} rounds; one event is one application message on every side: a hundred events packed")
    print("into one message of any of these systems would beat all of this")
    for line in lines(results, [system.name for system in systems]):
        print(line)


if __name__ == "__main__":
    main()
