"""Everything that was measured, and medians of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final, NamedTuple, TypeAlias

import msgspec

from benchmarks.machine import description
from experiments.standin.campaign import Plan, Result, play_all, points

Metric: TypeAlias = str  # a field of `Measured`
FIGURES: Final = ("fig7", "fig8", "fig9", "fig10a", "fig10b", "fig11", "orders")


class Recorded(msgspec.Struct, frozen=True):
    """`load` is that before and after."""

    machine: dict[str, str | int]
    load: tuple[float, float]
    repetitions: int
    results: list[Result]


class Spread(NamedTuple):
    """Of the repetitions of one point."""

    middle: float
    low: float
    high: float


def measure_all(plan: Plan, only: str | None, jobs: int, tell: Callable[[str], None]) -> Recorded:
    wanted = [point for point in points(plan) if only is None or point.figure == only]
    before = os.getloadavg()[0]
    results = play_all(wanted, jobs, tell)
    load = (round(before, 1), round(os.getloadavg()[0], 1))
    ordered = sorted(results, key=lambda result: wanted.index(result.point))
    return Recorded(description(), load, plan.repetitions, ordered)


class Series:
    """The points of one line of a figure."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._by_x: dict[float, list[Result]] = {}
        for result in results:
            self._by_x.setdefault(result.point.x, []).append(result)

    @property
    def xs(self) -> list[float]:
        return sorted(self._by_x)

    def at(self, x: float, metric: Metric) -> Spread | None:
        found = [getattr(result.measured, metric) for result in self._by_x.get(x, ())]
        values = [value for value in found if value is not None]
        return Spread(median(values), min(values), max(values)) if values else None

    def spreads(self, metric: Metric) -> Iterator[tuple[float, Spread]]:
        for x in self.xs:
            if (spread := self.at(x, metric)) is not None:
                yield x, spread

    def middles(self, metric: Metric) -> dict[float, float]:
        return {x: spread.middle for x, spread in self.spreads(metric)}

    def values(self, metric: Metric) -> list[float]:
        return list(self.middles(metric).values())


class Table:
    """What there is, by figure, by how it was run, by line."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = results

    def hows(self, figure: str) -> list[str]:
        return list(dict.fromkeys(result.point.how for result in self._of(figure)))

    def names(self, figure: str) -> list[str]:
        return list(dict.fromkeys(result.point.series for result in self._of(figure)))

    def series(self, figure: str, how: str, name: str) -> Series:
        found = [result for result in self._of(figure) if (result.point.how, result.point.series) == (how, name)]
        return Series(found)

    def _of(self, figure: str) -> list[Result]:
        return [result for result in self._results if result.point.figure == figure]
