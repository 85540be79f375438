"""The command line of the package."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import msgspec

from benchmarks import machine
from experiments import standin
from experiments.standin.campaign import FULL, QUICK
from experiments.standin.costs import costs
from experiments.standin.document import COMMAND, verdict_lines, write
from experiments.standin.protocols import CASES
from experiments.standin.recorded import FIGURES, Recorded, measure_all
from experiments.standin.table import Line, measure, printed
from experiments.standin.world import BROKERS_MAX, BROKERS_MIN

SEEDS = 50  # a line
RESULTS = Path(__file__).parents[2] / "docs" / "standin-results"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def figures(arguments: argparse.Namespace) -> int:
    if arguments.costs:
        print("\n".join(costs()))
        return 0
    if arguments.read:
        recorded = msgspec.json.decode(arguments.read.read_bytes(), type=Recorded)
    else:
        recorded = measure_all(QUICK if arguments.quick else FULL, arguments.only, arguments.jobs, _tell)
    for path in write(recorded, arguments.to, command_of(recorded, arguments.only)):
        print(f"written: {path}")
    print("\n".join(verdict_lines(recorded)))
    return 0


def command_of(recorded: Recorded, only: str | None) -> str:
    """What measured it."""
    quick = " --quick" if recorded.repetitions < FULL.repetitions else ""
    return f"{COMMAND}{quick}" + (f" --only {only}" if only else "")


def main(words: list[str] | None = None) -> int:
    description = (standin.__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="experiments.standin", description=description)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--table1", action="store_true", help="what each protocol guarantees")
    what.add_argument("--figures", action="store_true", help="Figs. 7 to 11, and what the paper says of them")
    what.add_argument("--costs", action="store_true", help="what turns of brokers take, by what came in")
    what.add_argument("--read", type=Path, metavar="FILE", help="a results.json: draws it again, measures nothing")
    parser.add_argument("--only", choices=FIGURES, help="one of the figures")
    parser.add_argument("--quick", action="store_true", help="small sizes, each once")
    parser.add_argument("--to", type=Path, default=RESULTS, help="where figures go (default: docs/standin-results)")
    parser.add_argument("--protocol", help="lines whose names begin so; else all that there are")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"random schedules a line (default {SEEDS})")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    arguments = parser.parse_args(words)
    if not arguments.table1:
        return figures(arguments)
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
