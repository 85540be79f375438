"""The command line of the package."""

from __future__ import annotations

import argparse
import os
import sys

from benchmarks import machine
from experiments import standin
from experiments.standin.protocols import CASES
from experiments.standin.table import Line, measure, printed
from experiments.standin.world import BROKERS_MAX, BROKERS_MIN

SEEDS = 50  # a line


def main(words: list[str] | None = None) -> int:
    description = (standin.__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="experiments.standin", description=description)
    parser.add_argument("--table1", action="store_true", required=True, help="what each protocol guarantees")
    parser.add_argument("--protocol", help="lines whose names begin so; else all that there are")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"random schedules a line (default {SEEDS})")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    arguments = parser.parse_args(words)
    here = machine.description()
    print(", ".join(f"{name}: {value}" for name, value in here.items()), f"load: {os.getloadavg()[0]:.1f}", sep=", ")
    last = arguments.seed + arguments.seeds - 1
    print(f"random trees of {BROKERS_MIN} to {BROKERS_MAX} brokers, level none, covering = false; "
          f"seeds {arguments.seed} to {last} of each protocol")  # fmt: skip
    lines: list[Line] = []
    for case in CASES:
        if str(case).startswith(arguments.protocol or ""):
            lines.append(measure(case, range(arguments.seed, last + 1), arguments.jobs))
            print(f"done: {case}", file=sys.stderr, flush=True)
    print(printed(lines))
    return int(any(line.wrong for line in lines))


if __name__ == "__main__":
    sys.exit(main())
