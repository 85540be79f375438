"""The command line of the package."""

from __future__ import annotations

import argparse
import sys

from experiments.durability.kills import run_kills
from experiments.durability.power_cuts import run_power_cuts, why_impossible


def main() -> int:
    parser = argparse.ArgumentParser(description="Kills and power cuts against a real broker with a log.")
    parser.add_argument("what", choices=("kills", "power-cuts"))
    parser.add_argument("--count", type=int, help="default 200 kills, 20 power cuts")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.what == "kills":
        kills = run_kills(arguments.count or 200, arguments.seed)
        print(kills)
        return bool(kills.problems)
    impossible = why_impossible()
    if impossible:
        print(f"skipped: {impossible}")
        return 0
    cuts = run_power_cuts(arguments.count or 20, arguments.seed)
    print(cuts)
    return bool(cuts.problems)


if __name__ == "__main__":
    sys.exit(main())
