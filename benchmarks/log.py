"""How fast the log is: durable records a second beside other stores, in groups of 1, 10, 100 and 1000; and its scans.

    .venv/bin/python -m benchmarks.log [--folder FOLDER] [--slices 14] [--seconds 0.2] [--json]

Beside sqlite3 (write-ahead log, synchronous=FULL), lmdb and rocksdict, which are measured if they are installed
(`.venv/bin/pip install lmdb rocksdict`). Records have 100 bytes. Disks are noisy, so that the stores take turns: a
slice of 0.2 s each, again and again, each round begun by another store, and the median of the slices counts. A virtual
disk that is throttled after a burst makes all of them wait alike: the best slices, which are printed too, show what
the stores do between its stops, and so does the second table, in which they take turns commit by commit. Every store
makes each group durable before the next one begins, and gets it by its call for many records, if it has one. `holdfast`
commits in the caller's thread, as the others do; with `--thread` the hand-over to the writer's thread is measured too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from benchmarks.machine import description
from holdfast.storage import LogSettings, LogWriter, open_log

GROUPS = (1, 10, 100, 1000)
BODY = bytes(range(100))
OURS = ("holdfast", "holdfast, thread")
TARGETS = {1: 1.0, 10: 1.0, 100: 1.0, 1000: 0.9}
SCAN_RECORDS = 400_000


class Store(Protocol):
    """Makes groups of records durable."""

    def commit(self, records: int) -> None: ...

    def close(self) -> None: ...


class HoldfastStore:
    def __init__(self, folder: Path) -> None:
        self._log = open_log(str(folder / "holdfast"))

    def commit(self, records: int) -> None:
        self._log.append_all("events", 1, [BODY] * records)
        self._log.commit()

    def close(self) -> None:
        self._log.close()


class ThreadStore:
    """The writer's thread, asked by one caller who waits: what a hand-over costs."""

    def __init__(self, folder: Path) -> None:
        self._log = open_log(str(folder / "thread"))
        self._durable = threading.Event()
        self._token = 0
        self._writer = LogWriter(self._log, lambda token: self._durable.set(), lambda failure: None)

    def commit(self, records: int) -> None:
        self._log.append_all("events", 1, [BODY] * records)
        self._durable.clear()
        self._token += 1
        self._writer.submit(self._token)
        self._durable.wait()

    def close(self) -> None:
        self._writer.close()
        self._log.close()


class SqliteStore:
    def __init__(self, folder: Path) -> None:
        self._database = sqlite3.connect(folder / "sqlite", isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=FULL")
        self._database.execute("CREATE TABLE events (number INTEGER PRIMARY KEY, kind INTEGER, body BLOB)")

    def commit(self, records: int) -> None:
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO events (kind, body) VALUES (?, ?)", [(1, BODY)] * records)
        self._database.execute("COMMIT")

    def close(self) -> None:
        self._database.close()


class LmdbStore:
    def __init__(self, folder: Path) -> None:
        lmdb: Any = importlib.import_module("lmdb")
        self._environment = lmdb.open(str(folder / "lmdb"), map_size=8 << 30)
        self._number = 0

    def commit(self, records: int) -> None:
        with self._environment.begin(write=True) as transaction:
            numbers = range(self._number, self._number + records)
            transaction.cursor().putmulti([(number.to_bytes(8, "big"), BODY) for number in numbers], append=True)
        self._number += records

    def close(self) -> None:
        self._environment.close()


class RocksStore:
    def __init__(self, folder: Path) -> None:
        self._package: Any = importlib.import_module("rocksdict")
        options = self._package.Options(raw_mode=True)
        options.create_if_missing(True)
        self._database = self._package.Rdict(str(folder / "rocks"), options)
        self._durably = self._package.WriteOptions()
        self._durably.sync = True
        self._number = 0

    def commit(self, records: int) -> None:
        batch = self._package.WriteBatch(raw_mode=True)
        put = batch.put
        for number in range(self._number, self._number + records):
            put(number.to_bytes(8, "big"), BODY)
        self._database.write(batch, self._durably)
        self._number += records

    def close(self) -> None:
        self._database.close()


STORES: dict[str, Callable[[Path], Store]] = {
    "holdfast": HoldfastStore,
    "holdfast, thread": ThreadStore,
    "sqlite3": SqliteStore,
    "lmdb": LmdbStore,
    "rocksdict": RocksStore,
}


def measure(
    folder: Path, slices: int, seconds: float, thread: bool
) -> tuple[dict[str, dict[int, list[float]]], list[str]]:
    """Records a second in every slice, by store and group size; and the stores that are not installed."""
    rates: dict[str, dict[int, list[float]]] = {}
    stores: dict[str, Store] = {}
    missing = []
    for name, make in STORES.items():
        if make is ThreadStore and not thread:
            continue
        try:
            stores[name] = make(folder)
            rates[name] = {group: [] for group in GROUPS}
        except ImportError:
            missing.append(name)
    order = list(stores)
    for _ in range(slices):
        order.append(order.pop(0))
        for group in GROUPS:
            for name in order:
                store = stores[name]
                store.commit(group)
                commits, began = 0, time.perf_counter()
                while (now := time.perf_counter()) < began + seconds:
                    store.commit(group)
                    commits += 1
                rates[name][group].append(commits * group / (now - began))
    for store in stores.values():
        store.close()
    return rates, missing


def measure_turns(folder: Path, seconds: float) -> dict[str, dict[int, tuple[float, float]]]:
    """Stores commit in turns, one group each: the 10th percentile and the median of a commit, in milliseconds."""
    folder.mkdir()
    stores: dict[str, Store] = {}
    for name, make in STORES.items():
        if make is not ThreadStore:
            with suppress(ImportError):
                stores[name] = make(folder)
    taken: dict[str, dict[int, tuple[float, float]]] = {name: {} for name in stores}
    for group in GROUPS:
        times: dict[str, list[float]] = {name: [] for name in stores}
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            for name, store in stores.items():
                began = time.perf_counter()
                store.commit(group)
                times[name].append((time.perf_counter() - began) * 1e3)
        for name, all_times in times.items():
            cuts = statistics.quantiles(all_times, n=10)
            taken[name][group] = (cuts[0], cuts[4])
    for store in stores.values():
        store.close()
    return taken


def measure_scan(folder: Path, group: int) -> dict[str, float]:
    """Verified records a second: read in order, and opened."""
    path = str(folder / f"scan-{group}")
    log = open_log(path, LogSettings(segment_bytes=64 << 20))
    for _ in range(SCAN_RECORDS // group):
        for _ in range(group):
            log.append("events", 1, BODY)
        log.commit()
    rates = []
    for _ in range(5):
        began = time.perf_counter()
        count = sum(len(records) for records in log.scan("events"))
        rates.append(count / (time.perf_counter() - began))
    log.close()
    began = time.perf_counter()
    log = open_log(path, LogSettings(segment_bytes=64 << 20, verify="all", prepare_ahead=False))
    opened = SCAN_RECORDS / (time.perf_counter() - began)
    log.close()
    return {"scan": statistics.median(rates), "open": opened}


def _ratios(rates: dict[str, dict[int, float]]) -> dict[int, float]:
    """Ours to the best of the others."""
    return {g: rates["holdfast"][g] / max(by[g] for name, by in rates.items() if name not in OURS) for g in GROUPS}


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast the log is, beside other stores.")
    parser.add_argument("--folder", help="where to write: a folder on the disk in question (default: a temporary one)")
    parser.add_argument("--slices", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--thread", action="store_true", help="measure the writer's thread too")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-log-", dir=arguments.folder))
    try:
        rates, missing = measure(folder, arguments.slices, arguments.seconds, arguments.thread)
        turns = measure_turns(folder / "turns", arguments.slices * arguments.seconds)
        scans = {group: measure_scan(folder, group) for group in (1000, 100)}
    finally:
        shutil.rmtree(folder)
    medians = {name: {group: statistics.median(r) for group, r in by.items()} for name, by in rates.items()}
    best = {name: {group: max(r) for group, r in by.items()} for name, by in rates.items()}
    ratios, best_ratios = _ratios(medians), _ratios(best)
    if arguments.json:
        result = {
            "machine": description(), "medians": medians, "ratios": ratios, "best": best, "best ratios": best_ratios,
            "turns": turns, "scans": scans, "missing": missing,
        }  # fmt: skip
        print(json.dumps(result, indent=2))
        return
    print("  ".join(f"{key}: {value}" for key, value in description().items()))
    print(f"durable records/s, {arguments.slices} slices of {arguments.seconds} s: medians (and the best slice)")
    print(f"{'group':18}" + "".join(f"{group:>20,}" for group in GROUPS))
    for name, by in medians.items():
        print(f"{name:18}" + "".join(f"{f'{by[g]:,.0f} ({best[name][g]:,.0f})':>20}" for g in GROUPS))
    print(f"{'ratio to the best':18}" + "".join(f"{f'{ratios[g]:.2f}× ({best_ratios[g]:.2f}×)':>20}" for g in GROUPS))
    print(f"{'target':18}" + "".join(f"{f'{TARGETS[g]:.2f}×':>20}" for g in GROUPS))
    print("one commit each in turns, ms: 10th percentile / median")
    for name, by_group in turns.items():
        print(f"{name:18}" + "".join(f"{f'{by_group[g][0]:.2f} / {by_group[g][1]:.2f}':>20}" for g in GROUPS))
    speed = {name: {g: 1 / median for g, (_, median) in by_group.items()} for name, by_group in turns.items()}
    print(f"{'ratio of medians':18}" + "".join(f"{f'{ratio:.2f}×':>20}" for ratio in _ratios(speed).values()))
    for name in missing:
        print(f"{name} is not installed; the docstring says how to install it")
    for group, rate in scans.items():
        print(
            f"verified scan, groups of {group}: {rate['scan']:,.0f} records/s; "
            f"opening with all verified: {rate['open']:,.0f} records/s"
        )


if __name__ == "__main__":
    main()
