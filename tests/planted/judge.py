"""Judges the mistakes of `fresh.py`: which swarm sees each, by which seed.

`python -m tests.planted.judge` looks at all, `python -m tests.planted.judge --seeds 300 votes-told` at those whose
names begin so. Each mistake is looked for by the swarms of its area, one after the other.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Final

from tests.planted.fresh import FRESH
from tests.planted.swarms import SeenBySwarm

OF_AREA: Final[dict[str, tuple[str, ...]]] = {
    "paxos": ("replicas", "groups", "changing groups"),
    "fast": ("fast rounds", "groups, fast rounds", "changing groups"),
    "membership": ("changing groups", "replicas", "groups", "names in groups", "fast rounds"),
    "sessions": ("one broker", "groups", "networks", "one broker, lifetimes", "groups, fast rounds"),
    "cursors": ("names", "names in groups"),
    "routing": ("networks",),
    "bypass": ("networks",),
    "stand-ins": ("replacements", "stand-ins"),
    "storage": ("one broker", "names", "replicas", "networks"),
}


def judge(seeds: int, name: str) -> tuple[str, str, int, str, float]:
    """Of one mistake: name, swarm, seed, what was said of the run, and the seconds that it took."""
    fresh = next(one for one in FRESH if one.mistake == name)
    begun = time.monotonic()
    for swarm in OF_AREA[fresh.area]:
        for seed in range(1, seeds + 1):
            mistake = SeenBySwarm(fresh, swarm)
            found = mistake.seen(seed)
            if found and not mistake.sound(seed):
                return name, swarm, seed, found, time.monotonic() - begun
    return name, "", 0, "", time.monotonic() - begun


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.planted.judge", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("prefixes", nargs="*")
    parser.add_argument("--seeds", type=int, default=100, help="of each swarm")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args(words)
    names = [one.mistake for one in FRESH if one.mistake.startswith(tuple(arguments.prefixes or [""]))]
    survived = 0
    with ProcessPoolExecutor(arguments.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for name, swarm, seed, found, seconds in pool.map(partial(judge, arguments.seeds), names):
            survived += not swarm
            verdict = f"{swarm}, seed {seed}: {found[:110]}" if swarm else "survives"
            print(f"{name}: {verdict} ({seconds:.0f} s)", flush=True)
    print(f"{len(names)} mistakes, {survived} survive {arguments.seeds} seeds of each swarm")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
