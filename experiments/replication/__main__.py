"""The command line of the package."""

from __future__ import annotations

import argparse
import os
import sys

from benchmarks import machine
from experiments.replication.cuts import run_cuts
from experiments.replication.kills import run_kills
from experiments.replication.pauses import run_pauses

WHAT = {"kills": run_kills, "pauses": run_pauses, "cuts": run_cuts}
COUNTS = {"kills": 500, "pauses": 50, "cuts": 50}


def main() -> int:
    parser = argparse.ArgumentParser(description="Groups of replicas in processes of their own, while they fail.")
    parser.add_argument("what", choices=WHAT)
    parser.add_argument("--count", type=int, help="default " + ", ".join(f"{n} {what}" for what, n in COUNTS.items()))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=3, choices=(3, 5, 7))
    parser.add_argument("--protocol", default="batch", choices=("batch", "multi"))
    parser.add_argument("--calm", action="store_true", help="few events, so that dead replicas do not miss many")
    arguments = parser.parse_args()
    where = machine.description()
    print(
        f"{where['processor']}, {where['cores']} cores, {where['system']}, Python {where['python']}, {where['date']}, "
        f"load {os.getloadavg()[0]:.1f} at the start"
    )
    print(f"python -m experiments.replication {' '.join(sys.argv[1:])}")
    count = arguments.count or COUNTS[arguments.what]
    result = WHAT[arguments.what](count, arguments.seed, arguments.replicas, arguments.protocol, arguments.calm)
    print(result)
    return 0 if result.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
