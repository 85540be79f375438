"""Synthetic workloads for the matching benchmark, all drawn from one seed.

Standard: events carry 20 attributes: i0…i9 integers in [0, 1000), f0…f4 floats in [0, 1000), s0…s4 strings of 200
values. A filter has one equality (on a string) and two ranges (on two different numbers). Strings are drawn
uniformly or by Zipf's law (exponent 1), for events and filters alike; the width of the ranges is set so that a filter
matches an event with the wanted probability.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

INTEGERS = [f"i{n}" for n in range(10)]
FLOATS = [f"f{n}" for n in range(5)]
NUMBERS = INTEGERS + FLOATS
STRINGS = [f"s{n}" for n in range(5)]
VALUES = [f"value-{n:03d}" for n in range(200)]
NUMBER_RANGE = 1000

Event = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """Filters as texts, events as dicts, and the settings that they were drawn with."""

    name: str
    settings: dict[str, Any]
    filters: list[str]
    events: list[Event]


class Draw:
    """Draws values of the standard workload."""

    def __init__(self, seed: int, distribution: str) -> None:
        self.random = random.Random(seed)
        weights = [1 / (rank + 1) if distribution == "zipf" else 1.0 for rank in range(len(VALUES))]
        self.cumulative = list(itertools.accumulate(weights))
        total = self.cumulative[-1]
        self.same_value = sum((weight / total) ** 2 for weight in weights)

    def string(self) -> str:
        return self.random.choices(VALUES, cum_weights=self.cumulative)[0]

    def event(self) -> Event:
        event: Event = {name: self.random.randrange(NUMBER_RANGE) for name in INTEGERS}
        event.update({name: self.random.uniform(0, NUMBER_RANGE) for name in FLOATS})
        event.update({name: self.string() for name in STRINGS})
        return event

    def range(self, name: str, share: float) -> str:
        """A range that holds a value of the attribute with probability `share`."""
        if name in INTEGERS:
            width = max(1, round(share * NUMBER_RANGE))
            low = self.random.randrange(NUMBER_RANGE - width + 1)
            return f"{name} BETWEEN {low} AND {low + width - 1}"
        low_float = self.random.uniform(0, NUMBER_RANGE * (1 - share))
        return f"{name} BETWEEN {low_float:.4f} AND {low_float + NUMBER_RANGE * share:.4f}"


def standard(count: int, ratio: float, distribution: str = "uniform", events: int = 500, seed: int = 1) -> Workload:
    draw = Draw(seed, distribution)
    share = min(1.0, math.sqrt(ratio / draw.same_value))

    def text() -> str:
        first, second = draw.random.sample(NUMBERS, 2)
        equality = f"{draw.random.choice(STRINGS)} = '{draw.string()}'"
        return f"{equality} AND {draw.range(first, share)} AND {draw.range(second, share)}"

    settings = {"filters": count, "ratio": ratio, "distribution": distribution, "range_share": round(share, 4)}
    return _workload("standard", settings, count, events, seed, draw, text)


def numbers_alone(count: int, ratio: float, events: int = 200, seed: int = 2) -> Workload:
    draw = Draw(seed, "uniform")
    share = ratio ** (1 / 3)

    def text() -> str:
        return " AND ".join(draw.range(name, share) for name in draw.random.sample(NUMBERS, 3))

    return _workload("three ranges of numbers", {"filters": count, "ratio": ratio}, count, events, seed, draw, text)


def thresholds_alone(count: int, ratio: float, events: int = 200, seed: int = 3) -> Workload:
    """One open end: alarms at levels that are rarely reached."""
    draw = Draw(seed, "uniform")

    def text() -> str:
        low = NUMBER_RANGE * (1 - 2 * ratio * draw.random.random())
        return f"{draw.random.choice(FLOATS)} > {low:.6f}"

    return _workload("one threshold", {"filters": count, "ratio": ratio}, count, events, seed, draw, text)


def strings_alone(count: int, events: int = 200, seed: int = 4) -> Workload:
    draw = Draw(seed, "uniform")

    def text() -> str:
        first, second = draw.random.sample(STRINGS, 2)
        low, high = sorted((draw.string(), draw.string()))
        return f"{first} = '{draw.string()}' AND {second} BETWEEN '{low}' AND '{high}'"

    return _workload("equality and range of strings", {"filters": count}, count, events, seed, draw, text)


def prefixes_alone(count: int, events: int = 200, seed: int = 5) -> Workload:
    """Keys like customer-0012345; a filter asks for all keys that begin with some of their digits."""
    draw = Draw(seed, "uniform")
    digits = max(3, len(str(count)))

    def key() -> str:
        return f"customer-{draw.random.randrange(10**digits):0{digits}d}"

    def text() -> str:
        return f"key LIKE '{key()[: -draw.random.randrange(1, 3)]}%'"

    workload = _workload("prefix LIKE", {"filters": count}, count, events, seed, draw, text)
    for event in workload.events:
        event["key"] = key()
    return workload


def lists_alone(count: int, size: int = 10, events: int = 200, seed: int = 6) -> Workload:
    draw = Draw(seed, "uniform")
    keys = [f"key-{n}" for n in range(max(200, count))]

    def text() -> str:
        values = ", ".join(f"'{key}'" for key in draw.random.sample(keys, size))
        return f"key IN ({values})"

    workload = _workload("IN lists", {"filters": count, "values": size}, count, events, seed, draw, text)
    for event in workload.events:
        event["key"] = draw.random.choice(keys)
    return workload


def keys(count: int = 10_000, events: int = 1000, seed: int = 7) -> Workload:
    """Distinct keys, one match for each event; events carry the key, a price and nothing else."""
    draw = random.Random(seed)
    filters = [f"key = 'key-{n}' AND price > {draw.uniform(0, 10):.2f}" for n in range(count)]
    drawn = [{"key": f"key-{draw.randrange(count)}", "price": draw.uniform(10, 100)} for _ in range(events)]
    return Workload("keys", {"filters": count, "seed": seed}, filters, drawn)


def _workload(
    name: str, settings: dict[str, Any], count: int, events: int, seed: int, draw: Draw, text: Callable[[], str]
) -> Workload:
    filters = [text() for _ in range(count)]
    return Workload(name, {**settings, "seed": seed}, filters, [draw.event() for _ in range(events)])
