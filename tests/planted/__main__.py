"""Records anew which seeds see the planted mistakes, and prints each record that changed.

`python -m tests.planted` looks at all, `python -m tests.planted networks "names: skips"` at those whose names begin so.
Run it when a change moves the draws or the timing of runs, and read the difference: a mistake that fewer seeds see than
before is a weaker swarm, which is to be explained or mended, not recorded.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.planted import records
from tests.planted.mistakes import MISTAKES


def main(prefixes: list[str]) -> int:
    known = records.read() if records.FILE.exists() else {}
    names = [name for name in MISTAKES if name.startswith(tuple(prefixes or [""]))]
    unseen = 0
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        for name, found in zip(names, pool.map(records.record, names, map(known.get, names)), strict=True):
            if found is None:
                unseen += 1
                print(f"{name}: no seed up to {records.SEED_MAX} sees it", flush=True)
            elif known.get(name) != found:
                print(f"{name}: {known.get(name)} -> {found}", flush=True)
                known[name] = found
    records.write({name: known[name] for name in MISTAKES if name in known})
    print(f"{len(names)} mistakes, {unseen} seen by no seed")
    return int(unseen > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
