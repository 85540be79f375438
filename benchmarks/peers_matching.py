"""Other ways to ask the same question, as far as they are installed: which of these filters match this event?

- sqlite3 (always there): one row a filter, an index over the equality, the ranges checked in SQL. It knows the shape
  of the filters in advance, which no broker does.
- rule-engine (`pip install rule-engine`): expressions like ours, each evaluated by itself.
"""

from __future__ import annotations

import importlib.util
import sqlite3
import time
from collections.abc import Callable
from typing import Any

from benchmarks import workloads
from holdfast import Filter, FilterIndex
from holdfast.model.syntax import And, Attribute, Between, Comparison, Literal

COUNT = 1000
ROUNDS = 5


def rows() -> list[dict[str, Any]]:
    workload = workloads.standard(COUNT, 0.003, "zipf", events=100)
    filters = [Filter(text) for text in workload.filters]
    index: FilterIndex[int] = FilterIndex()
    for id, filter in enumerate(filters):
        index.add(id, filter)
    expected = [index.match(event) for event in workload.events]
    own = _seconds(index.match, workload.events)
    result = [{"peer": "Holdfast", "match_us": round(own * 1e6, 1), "times_holdfast": 1.0}]
    peers: list[tuple[str, str | None, Callable[[workloads.Workload], Callable[[workloads.Event], list[int]]]]] = [
        ("sqlite3", None, _sqlite),
        ("rule-engine", "rule_engine", _rule_engine),
    ]
    for name, module, make in peers:
        if module and importlib.util.find_spec(module) is None:
            result.append({"peer": f"{name}: not installed", "match_us": "", "times_holdfast": ""})
            continue
        match = make(workload)
        if [match(event) for event in workload.events] != expected:
            raise AssertionError(f"{name} finds other filters")
        seconds = _seconds(match, workload.events)
        result.append({"peer": name, "match_us": round(seconds * 1e6, 1), "times_holdfast": round(seconds / own, 1)})
    return result


def _seconds(match: Callable[[workloads.Event], list[int]], events: list[workloads.Event]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for event in events:
            match(event)
        best = min(best, time.perf_counter() - start)
    return best / len(events)


def _shape(text: str) -> tuple[str, Any, list[tuple[str, Any, Any]]]:
    """The equality and the two ranges of a filter of the standard workload."""
    root = Filter(text).root
    assert isinstance(root, And)
    equality, *ranges = root.operands
    assert isinstance(equality, Comparison)
    assert isinstance(equality.left, Attribute)
    assert isinstance(equality.right, Literal)
    bounds = []
    for part in ranges:
        assert isinstance(part, Between)
        assert isinstance(part.operand, Attribute)
        assert isinstance(part.low, Literal)
        assert isinstance(part.high, Literal)
        bounds.append((part.operand.name, part.low.value, part.high.value))
    return equality.left.name, equality.right.value, bounds


def _sqlite(workload: workloads.Workload) -> Callable[[workloads.Event], list[int]]:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE filters (id INTEGER, name, value, n1, low1, high1, n2, low2, high2)")
    for id, text in enumerate(workload.filters):
        name, value, bounds = _shape(text)
        database.execute("INSERT INTO filters VALUES (?,?,?,?,?,?,?,?,?)", (id, name, value, *bounds[0], *bounds[1]))
    database.execute("CREATE INDEX equality ON filters (name, value)")
    database.execute("CREATE TEMP TABLE event (name PRIMARY KEY, value) WITHOUT ROWID")
    query = """SELECT f.id FROM event e CROSS JOIN filters f ON f.name = e.name AND f.value = e.value
               WHERE (SELECT value FROM event WHERE name = f.n1) BETWEEN f.low1 AND f.high1
                 AND (SELECT value FROM event WHERE name = f.n2) BETWEEN f.low2 AND f.high2 ORDER BY f.id"""

    def match(event: workloads.Event) -> list[int]:
        database.execute("DELETE FROM event")
        database.executemany("INSERT INTO event VALUES (?, ?)", event.items())
        return [row[0] for row in database.execute(query)]

    return match


def _rule_engine(workload: workloads.Workload) -> Callable[[workloads.Event], list[int]]:
    import rule_engine  # type: ignore[import-not-found, unused-ignore]

    rules = []
    for text in workload.filters:
        name, value, bounds = _shape(text)
        ranges = " and ".join(f"{n} >= {low} and {n} <= {high}" for n, low, high in bounds)
        rules.append(rule_engine.Rule(f"{name} == '{value}' and {ranges}"))

    def match(event: workloads.Event) -> list[int]:
        return [id for id, rule in enumerate(rules) if rule.matches(event)]

    return match
