"""The command line of the package."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks import machine
from experiments.replication.crash import CRASHES, SIZES, run_crash, write, write_picture
from experiments.replication.cuts import run_cuts
from experiments.replication.kills import run_kills
from experiments.replication.pauses import run_pauses
from experiments.replication.replacements import run_replacements

FAULTS = {"kills": run_kills, "pauses": run_pauses, "cuts": run_cuts, "replacements": run_replacements}
COUNTS = {"kills": 500, "pauses": 50, "cuts": 50, "replacements": 30}


def main() -> int:
    parser = argparse.ArgumentParser(description="Groups of replicas in processes of their own, while they fail.")
    parser.add_argument("what", choices=(*FAULTS, "crash"))
    parser.add_argument("--count", type=int, help="default " + ", ".join(f"{n} {what}" for what, n in COUNTS.items()))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, choices=(3, 5, 7), help="default 3; for crash 3 and 5, one by one")
    parser.add_argument("--protocol", default="batch", choices=("batch", "multi", "fast"))
    parser.add_argument("--calm", action="store_true", help="few events: nobody trims its log for minutes")
    parser.add_argument("--to", type=Path, default=Path("var/replication"), help="of crash: where its files go")
    parser.add_argument("--read", type=Path, metavar="FILE", help="of crash: a crash.csv; draws it, measures nothing")
    arguments = parser.parse_args()
    if arguments.read:
        if arguments.what != "crash":
            parser.error("--read is of crash")
        print(f"written: {write_picture(arguments.read)}")
        return 0
    here = machine.description()
    place = f"{here['processor']}, {here['cores']} cores, {here['system']}, Python {here['python']}, {here['date']}"
    place += f", load {os.getloadavg()[0]:.1f} at the start"
    command = f"python -m experiments.replication {' '.join(sys.argv[1:])}"
    print(f"{place}\n{command}", flush=True)
    if arguments.what == "crash":
        return _crash(arguments)
    run, count = FAULTS[arguments.what], arguments.count or COUNTS[arguments.what]
    result = run(count, arguments.seed, arguments.replicas or 3, arguments.protocol, arguments.calm)
    print(result)
    return 0 if result.is_clean else 1


def _crash(arguments: argparse.Namespace) -> int:
    crashes = []
    for replicas in (arguments.replicas,) if arguments.replicas else SIZES:
        for what in CRASHES if replicas > 3 else CRASHES[:2]:  # one of three is f of them
            crashes.append(run_crash(replicas, what, arguments.protocol))
            print(crashes[-1], flush=True)
    for path in write(crashes, arguments.to):
        print(f"written: {path}")
    return 0 if all(crash.result.is_clean for crash in crashes) else 1


if __name__ == "__main__":
    sys.exit(main())
