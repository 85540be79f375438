"""The command line of the package."""

from __future__ import annotations

import argparse
import sys

from experiments.exactly_once.campaign import KINDS, run


def main() -> int:
    parser = argparse.ArgumentParser(description="Kills under a Spark query that reads from and writes to a broker.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all, if none is named")
    parser.add_argument("--count", type=int, default=5, help="kills of each kind")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    unknown = [kind for kind in arguments.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"there is no kind {unknown[0]!r}: {', '.join(KINDS)}")
    clean = True
    for kind in arguments.kinds or KINDS:
        outcome = run([kind] * arguments.count, 3 if kind == "leader" else 1, arguments.seed)
        print(outcome, flush=True)
        clean = clean and outcome.is_clean
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
