"""How fast filters are parsed, evaluated and found in the index.

    .venv/bin/python -m benchmarks.matching                    everything, a million filters included (about 10 minutes)
    .venv/bin/python -m benchmarks.matching --largest 100000   without the million (about 2 minutes)
    .venv/bin/python -m benchmarks.matching --json results.json

Times are the best of five rounds over the same events, each round's mean for one event; the naive time is that of
`Filter.matches` over all the filters, in the same run. All data is synthetic (benchmarks/workloads.py).
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow

from benchmarks import machine, peers_matching, workloads
from benchmarks.workloads import Workload
from holdfast import Filter, FilterIndex
from holdfast.matching import ENGINE

ROUNDS = 5
NAIVE_SECONDS_MAX = 1.0
TARGETS_US = {1_000: 8.0, 10_000: 20.0, 100_000: 120.0, 1_000_000: 1200.0}
TARGETS_RATIO = {1_000: 30, 10_000: 120, 100_000: 200, 1_000_000: 200}
FIXED_MATCHES = 30

Row = dict[str, Any]


def best_of_five(action: Callable[[], object], operations: int) -> float:
    """Seconds for one operation, in the fastest round."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best / operations


def parsed(workload: Workload) -> list[Filter]:
    return [Filter(text) for text in workload.filters]


def loaded(filters: Iterable[Filter]) -> FilterIndex[int]:
    index: FilterIndex[int] = FilterIndex()
    for id, filter in enumerate(filters):
        index.add(id, filter)
    return index


def naive_seconds(filters: list[Filter], events: list[workloads.Event]) -> float:
    """Seconds for one event over all filters."""

    def evaluate(sample: list[workloads.Event]) -> None:
        for event in sample:
            for filter in filters:
                filter.matches(event)

    start = time.perf_counter()
    evaluate(events[:1])
    once = time.perf_counter() - start
    sample = events[: max(1, int(NAIVE_SECONDS_MAX / once))]
    return best_of_five(lambda: evaluate(sample), len(sample))


def measured(workload: Workload, filters: list[Filter], index: FilterIndex[int]) -> Row:
    """One row of a table: the index, and naive evaluation of the same filters."""
    events = workload.events
    for event in events[:2]:
        if index.match(event) != [id for id, filter in enumerate(filters) if filter.matches(event)]:
            raise AssertionError("index and oracle differ")

    def match() -> None:
        for event in events:
            index.match(event)

    seconds = best_of_five(match, len(events))
    before = index.counters()["rows_scanned"]
    matches = sum(map(len, index.match_batch(events))) / len(events)
    rows = (index.counters()["rows_scanned"] - before) / len(events)
    naive = naive_seconds(filters, events)
    return {
        "workload": workload.name,
        **workload.settings,
        "match_us": round(seconds * 1e6, 2),
        "matches": round(matches, 1),
        "rows_scanned": round(rows, 1),
        "naive_us": round(naive * 1e6, 1),
        "ratio_to_naive": round(naive / seconds),
    }


# ---- the parts of the report


def filter_rows() -> list[Row]:
    draw = random.Random(8)
    texts = workloads.standard(2000, 0.003).filters
    event = workloads.Draw(1, "uniform").event()
    symbol = "topic = 'stock' AND price BETWEEN 10 AND 20 AND NOT symbol LIKE 'X%'"
    quote = {"symbol": "IBM", "price": 12.5, "volume": draw.randrange(1000)}
    rows = []
    for name, sample, matched, topic in (
        ("standard", texts, event, ""),
        ("from the README", [symbol] * 500, quote, "stock"),
    ):
        filters = [Filter(text) for text in sample]
        matching = [f for f in filters if f.matches(matched, topic)] or filters[:1]

        def parse(sample: list[str] = sample) -> None:
            for text in sample:
                Filter(text)

        def evaluate(filter: Filter = matching[0], matched: workloads.Event = matched, topic: str = topic) -> None:
            for _ in range(2000):
                filter.matches(matched, topic)

        rows.append(
            {
                "filter of three predicates": name,
                "parse_us": round(best_of_five(parse, len(sample)) * 1e6, 1),
                "parse_target_us": 60,
                "matches_us": round(best_of_five(evaluate, 2000) * 1e6, 2),
                "matches_target_us": 1.5,
            }
        )
    return rows


def standard_rows(largest: int) -> list[Row]:
    rows = []
    for count, target in TARGETS_US.items():
        for distribution in ("uniform", "zipf"):
            if count > largest:
                continue
            workload = workloads.standard(count, 0.003, distribution, events=500 if count < 1_000_000 else 200)
            filters = parsed(workload)
            row = measured(workload, filters, loaded(filters))
            ratio_target = TARGETS_RATIO[count]
            met = row["match_us"] <= target and row["ratio_to_naive"] >= ratio_target
            rows.append({**row, "target_us": target, "target_ratio": ratio_target, "met": met})
            del filters
            gc.collect()
    return rows


def batch_rows() -> list[Row]:
    workload = workloads.keys()
    index = loaded(parsed(workload))
    seconds = best_of_five(lambda: index.match_batch(workload.events), len(workload.events))
    keys = {"call": "match_batch", "workload": "keys", "filters": 10_000, "us_an_event": round(seconds * 1e6, 2)}
    sparse = workloads.standard(10_000, 0.0001, events=2000)
    index = loaded(parsed(sparse))
    batch = pyarrow.RecordBatch.from_pylist(sparse.events)
    seconds = best_of_five(lambda: index.match_columns(batch), len(sparse.events))
    columns = {"call": "match_columns", "workload": "standard, ratio 0.01%", "filters": 10_000}
    return [{**keys, "target_us": 3}, {**columns, "us_an_event": round(seconds * 1e6, 2), "target_us": 4}]


def growth_rows(largest: int) -> list[Row]:
    """More filters, the same number of matches: the time must grow far less than the filters."""
    rows = []
    for count in (10_000, 100_000, 1_000_000):
        if count > largest:
            continue
        workload = workloads.standard(count, FIXED_MATCHES / count, "zipf", events=300)
        index = loaded(parsed(workload))

        def match(index: FilterIndex[int] = index, workload: Workload = workload) -> None:
            for event in workload.events:
                index.match(event)

        seconds = best_of_five(match, len(workload.events))
        rows.append({"filters": count, "matches": FIXED_MATCHES, "match_us": round(seconds * 1e6, 2)})
    return [{**row, "times_the_first": round(row["match_us"] / rows[0]["match_us"], 1)} for row in rows]


def shape_rows(largest: int) -> list[Row]:
    rows = []
    for count in (10_000, 100_000):
        if count > largest:
            continue
        for workload in (
            workloads.numbers_alone(count, 0.003),
            workloads.thresholds_alone(count, 0.003),
            workloads.strings_alone(count),
            workloads.prefixes_alone(count),
            workloads.lists_alone(count),
            workloads.keys(count),
        ):
            filters = parsed(workload)
            rows.append(measured(workload, filters, loaded(filters)))
    return rows


def change_rows(count: int) -> list[Row]:
    """Adding everything, then adding and removing while matching goes on: total time, longest pause, memory.

    The same operations are run twice. The first time, pauses include the machine's own and the first touch of fresh
    memory; a pause that comes back at the same operation the second time is the index's.
    """
    workload = workloads.standard(count, 0.003, "zipf", events=100)
    gc.collect()
    held = machine.resident_bytes()
    filters = parsed(workload)
    filter_bytes = (machine.resident_bytes() - held) / count
    gc.collect()
    held = machine.resident_bytes()
    index, adding, first = changes(workload, filters)
    index_bytes = (machine.resident_bytes() - held - 8 * sum(map(len, first.values()))) / count
    del index
    gc.collect()
    _, again, second = changes(workload, filters)
    longest = {what: max(first[what]) for what in first}
    repeated = max(max(map(min, first[what], second[what])) for what in first)
    return [
        {
            "filters": count,
            "adding_all_s": round(min(adding, again), 1),
            "adding_target_s": round(60 * count / 1_000_000, 1),
            "index_bytes_a_filter": round(index_bytes),
            "bytes_target": 700,
            "filter_bytes": round(filter_bytes),
            **{f"longest_{what}_ms": round(pause * 1e3, 2) for what, pause in longest.items()},
            "longest_repeated_ms": round(repeated * 1e3, 2),
            "pause_target_ms": 50,
        }
    ]


def changes(workload: Workload, filters: list[Filter]) -> tuple[FilterIndex[int], float, dict[str, array[float]]]:
    """An index with all filters, the seconds that adding them took, and the time of every single operation."""
    index: FilterIndex[int] = FilterIndex()
    times = {what: array("d") for what in ("add", "remove", "match")}

    def timed(what: str, action: Callable[..., object], *arguments: object) -> None:
        start = time.perf_counter()
        action(*arguments)
        times[what].append(time.perf_counter() - start)

    began = time.perf_counter()
    for id, filter in enumerate(filters):
        timed("add", index.add, id, filter)
    adding = time.perf_counter() - began
    draw = random.Random(1)
    for step in range(100_000):
        id = draw.randrange(len(filters))
        timed("remove", index.remove, id)
        timed("add", index.add, id, filters[id])
        if step % 100 == 0:
            timed("match", index.match, workload.events[step % 100])
    return index, adding, times


def start_rows() -> list[Row]:
    seconds = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import holdfast"], check=True)
        seconds = min(seconds, time.perf_counter() - start)
    return [{"import holdfast, interpreter included, s": round(seconds, 3), "target_s": 0.5}]


# ---- printing


def print_table(title: str, rows: list[Row]) -> None:
    print(f"\n{title}")
    if not rows:
        print("  nothing measured")
        return
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[str(row.get(name, "")) for name in columns] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(columns)]
    print("  " + "  ".join(name.ljust(width) for name, width in zip(columns, widths, strict=True)))
    for line in cells:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)), flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--largest", type=int, default=1_000_000, help="leave out larger indexes")
    arguments.add_argument("--json", type=Path, help="write the results here too")
    options = arguments.parse_args()
    results: dict[str, Any] = {"machine": machine.description(), "engine": ENGINE, "rounds": ROUNDS}
    print(f"Holdfast, filters and matching. Engine: {ENGINE}.")
    print(", ".join(f"{name}: {value}" for name, value in results["machine"].items()))
    largest: int = options.largest
    for title, part in (
        ("one filter", filter_rows),
        ("standard workload: match, from dict to list of ids", lambda: standard_rows(largest)),
        ("batches", batch_rows),
        ("growth at a fixed number of matches (zipf)", lambda: growth_rows(largest)),
        ("filters of one kind", lambda: shape_rows(largest)),
        ("changes", lambda: change_rows(largest)),
        ("start", start_rows),
        ("peers, 1,000 filters of the standard workload", peers_matching.rows),
    ):
        results[title] = part()
        print_table(title, results[title])
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
