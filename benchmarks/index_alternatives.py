"""The classic matching methods in their barest form, on the standard workload: why the index is built as it is.

    .venv/bin/python -m benchmarks.index_alternatives          needs a C compiler; about a minute

Each method gets filters of one equality and two ranges as plain numbers and does nothing but search. Times are the best
of five, for one event. See docs/adr/0002.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.workloads import NUMBER_RANGE, NUMBERS, STRINGS, VALUES, Draw

SOURCE = Path(__file__).with_suffix(".c")
SLOTS = len(STRINGS) + len(NUMBERS)
ROUNDS = 5
EVENTS = 20


class CFilter(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("eq_slot", "slot1", "slot2")),
        *((name, ctypes.c_double) for name in ("value", "low1", "high1", "low2", "high2")),
    )


def compiled(folder: str) -> ctypes.CDLL:
    target = Path(folder) / "alternatives.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O3", "-std=c11", "-shared", "-fPIC", str(SOURCE), "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))
    library.lists_new.restype = library.clusters_new.restype = ctypes.c_void_p
    for name in ("lists_free", "clusters_free"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    return library


def drawn(count: int, ratio: float) -> tuple[Any, list[Any]]:
    """Filters and events of the standard workload with Zipf's law, as numbers."""
    draw = Draw(1, "zipf")
    share = (ratio / draw.same_value) ** 0.5
    number = {value: float(n) for n, value in enumerate(VALUES)}
    filters = (CFilter * count)()
    for target in filters:
        first, second = draw.random.sample(range(len(STRINGS), SLOTS), 2)
        lows = [draw.random.uniform(0, NUMBER_RANGE * (1 - share)) for _ in range(2)]
        target.eq_slot, target.value = draw.random.randrange(len(STRINGS)), number[draw.string()]
        target.slot1, target.low1, target.high1 = first, lows[0], lows[0] + NUMBER_RANGE * share
        target.slot2, target.low2, target.high2 = second, lows[1], lows[1] + NUMBER_RANGE * share
    events = []
    for _ in range(EVENTS):
        strings = [number[draw.string()] for _ in STRINGS]
        events.append((ctypes.c_double * SLOTS)(*strings, *(draw.random.uniform(0, NUMBER_RANGE) for _ in NUMBERS)))
    return filters, events


def measure(library: ctypes.CDLL, count: int, ratio: float) -> dict[str, Any]:
    filters, events = drawn(count, ratio)
    out = (ctypes.c_uint32 * (count + 1))()
    arguments = (filters, count, SLOTS, len(VALUES))
    lists, clusters = ctypes.c_void_p(library.lists_new(*arguments)), ctypes.c_void_p(library.clusters_new(*arguments))
    methods: dict[str, Callable[[Any], int]] = {
        "scan_us": lambda event: library.scan_match(filters, count, event, out),
        "counting_us": lambda event: library.counting_match(lists, event, len(STRINGS), out),
        "marking_us": lambda event: library.marking_match(lists, event, len(STRINGS), out),
        "clusters_us": lambda event: library.clusters_match(clusters, event, len(STRINGS), out),
    }
    row: dict[str, Any] = {"filters": count, "ratio": ratio}
    found: dict[str, list[list[int]]] = {}
    for name, match in methods.items():
        best = float("inf")
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for event in events:
                match(event)
            best = min(best, (time.perf_counter() - start) / len(events))
        found[name] = [sorted(out[: match(event)]) for event in events]
        row[name] = round(best * 1e6, 1)
    library.lists_free(lists)
    library.clusters_free(clusters)
    if any(answers != found["scan_us"] for answers in found.values()):
        raise AssertionError("the methods disagree")
    return row


def main() -> None:
    print("Matching methods in their barest form, standard workload (zipf), microseconds an event")
    print(", ".join(f"{name}: {value}" for name, value in machine.description().items()))
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(folder)
        for count in (1_000, 10_000, 100_000, 1_000_000):
            print("  " + json.dumps(measure(library, count, 0.003)), flush=True)


if __name__ == "__main__":
    main()
