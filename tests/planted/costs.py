"""What a seed of each swarm costs, and where its time goes: `python -m tests.planted.costs`.

Seconds are the processor's, of 40 seeds. Shares are those of a profile, by package, which makes small functions look
larger than they are.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections import Counter
from pathlib import Path

from holdfast.cli.terminal import table
from tests.planted.swarms import SWARMS, said
from tests.repository import ROOT

SEEDS = range(1, 41)
PROFILED = range(1, 11)
SHOWN = 4  # packages


def package_of(file: str) -> str:
    path = Path(file)
    if not path.is_absolute() or not path.is_relative_to(ROOT):
        return "python"
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[3:4] if parts[2:3] == ("protocols",) else parts[2:3] if parts[0] == "src" else parts[:2])


def seconds_of(swarm: str) -> float:
    begun = time.process_time()
    for seed in SEEDS:
        said(swarm, seed)
    return (time.process_time() - begun) / len(SEEDS)


def shares_of(swarm: str) -> Counter[str]:
    profile = cProfile.Profile()
    profile.enable()
    for seed in PROFILED:
        said(swarm, seed)
    profile.disable()
    shares: Counter[str] = Counter()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    for (file, _, _), (_, _, own, _, _) in stats.items():
        shares[package_of(file)] += own
    return shares


def main() -> None:
    rows = [["swarm", "ms a seed", "where its time goes"]]
    for swarm in SWARMS:
        seconds, shares = seconds_of(swarm), shares_of(swarm)
        total = sum(shares.values())
        told = ", ".join(f"{name} {own / total:.0%}" for name, own in shares.most_common(SHOWN))
        rows.append([swarm, f"{seconds * 1_000:.0f}", told])
        print(f"measured: {swarm}", file=sys.stderr, flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
