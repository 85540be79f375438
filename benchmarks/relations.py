"""How long the index takes to say which of many filters intersect with one, are covered by it, or cover it.

    .venv/bin/python -m benchmarks.relations
    .venv/bin/python -m benchmarks.relations --filters 10000,100000,1000000

The filters are advertisements of topics, `topic = 't17'`, ten to a topic, with other shapes beside them: subscriptions
below a price, which are found by topic, by range or by both. A question is of a filter that was never asked about, and
its canonical form is made in the time that is measured. Best of five rounds of a hundred questions each; beside it,
filters compared and found for each. `all` is what it takes to compare with every filter, as before ADR 15.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from benchmarks.machine import description
from holdfast import Filter, FilterIndex

ROUNDS = 5
QUESTIONS = 100
WANTED_US = {10_000: 100, 100_000: 300}


class Load(NamedTuple):
    """Filters that are held, and what is asked of them."""

    name: str
    held: Callable[[int, int, Random], str]  # number of a filter, of how many
    asked: Callable[[int, Random], str]
    ask: Callable[[FilterIndex[int], Filter], list[int]]


def _topic(number: int, count: int) -> str:
    return f"topic = 't{number % (count // 10)}'"


def _some_topic(count: int, rng: Random) -> str:
    return f"topic = 't{rng.randrange(count // 10)}'"


LOADS = (
    Load(
        "topics, intersecting with topic and price",
        lambda number, count, rng: _topic(number, count),
        lambda count, rng: f"{_some_topic(count, rng)} AND price > {rng.randrange(1_000)}",
        FilterIndex.intersecting,
    ),
    Load(
        "topic and price below, intersecting with topic",
        lambda number, count, rng: f"{_topic(number, count)} AND price < {rng.randrange(1, 1_000)}",
        lambda count, rng: _some_topic(count, rng),
        FilterIndex.intersecting,
    ),
    Load(
        "ranges of prices, intersecting with a range",
        lambda number, count, rng: f"price BETWEEN {number} AND {number + 5}",
        lambda count, rng: f"price BETWEEN {(low := rng.randrange(10, count - 20))} AND {low + 4.5}",
        FilterIndex.intersecting,
    ),
    Load(
        "prefixes of topics, intersecting with a topic",
        lambda number, count, rng: f"topic LIKE '/site/{number % (count // 10)}/%'",
        lambda count, rng: f"topic = '/site/{rng.randrange(count // 10)}/door'",
        FilterIndex.intersecting,
    ),
    Load(
        "topic and price below, covered by topic",
        lambda number, count, rng: f"{_topic(number, count)} AND price < {rng.randrange(1, 1_000)}",
        lambda count, rng: _some_topic(count, rng),
        FilterIndex.covered_by,
    ),
    Load(
        "topics, covering topic and price",
        lambda number, count, rng: _topic(number, count),
        lambda count, rng: f"{_some_topic(count, rng)} AND price > {rng.randrange(1_000)}",
        FilterIndex.covering,
    ),
)


def measure(load: Load, count: int) -> None:
    rng = Random(f"relations/{load.name}/{count}")
    index: FilterIndex[int] = FilterIndex()
    texts = [load.held(number, count, rng) for number in range(count)]
    for number, text in enumerate(texts):
        index.add(number, Filter(text))
    started = time.perf_counter()
    load.ask(index, Filter("topic = 'nobody' AND price = -1"))  # which makes the tables
    made_s = time.perf_counter() - started
    best, found = float("inf"), 0
    before = index.counters()["filters_compared"]
    for _ in range(ROUNDS):
        questions = [Filter(load.asked(count, rng)) for _ in range(QUESTIONS)]
        started = time.perf_counter()
        found += sum([len(load.ask(index, question)) for question in questions])
        best = min(best, time.perf_counter() - started)
    asked = ROUNDS * QUESTIONS
    compared = (index.counters()["filters_compared"] - before) / asked
    question = Filter(load.asked(count, rng))
    filters = [filter for _, filter in index.items()]
    started = time.perf_counter()
    for filter in filters:
        question.intersects(filter)
    all_us = (time.perf_counter() - started) * 1e6
    per_question_us = best / QUESTIONS * 1e6
    wanted = WANTED_US.get(count)
    mark = "" if wanted is None else f"   wanted {wanted}" + (", MISSED" if per_question_us > wanted else "")
    print(
        f"  {load.name:48} {per_question_us:8.1f} µs   all {all_us:9,.0f} µs   compared {compared:6.1f}   "
        f"found {found / asked:6.1f}   tables made in {made_s / count * 1e6:4.1f} µs a filter{mark}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filters", default="10000,100000", help="how many filters the index holds")
    arguments = parser.parse_args()
    print(", ".join(f"{name}: {value}" for name, value in description().items()))
    for count in map(int, arguments.filters.split(",")):
        print(f"\n{count:,} filters")
        for load in LOADS:
            measure(load, count)


if __name__ == "__main__":
    main()
