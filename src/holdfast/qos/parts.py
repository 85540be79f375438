"""Brokers and links as things that fail and are repaired, again and again (D1-A9, D1-D0).

A part is on and off in turn. Both times are exponential unless it is said otherwise: then each is a mixture of Erlang
distributions (`ErlangMixture`), which comes as close to any distribution as one likes and keeps the part a Markov chain
(D1-F2). Times are seconds. What the papers call MTBF is the mean time that a part is on, not from failure to failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from holdfast.errors import PredictionError

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Branch(msgspec.Struct, frozen=True):
    """One of a mixture: with this probability, the time is that of so many stages of this rate each."""

    probability: float
    stages: int
    rate: float


class ErlangMixture(msgspec.Struct, frozen=True):
    """A time that is Erlang-distributed in one of several ways. One branch of one stage is exponential."""

    branches: tuple[Branch, ...]

    @property
    def mean(self) -> float:
        return sum(branch.probability * branch.stages / branch.rate for branch in self.branches)

    def with_mean(self, mean: float) -> ErlangMixture:
        """The same shape, faster or slower."""
        factor = self.mean / mean
        return ErlangMixture(tuple(Branch(b.probability, b.stages, b.rate * factor) for b in self.branches))


def exponential(mean: float) -> ErlangMixture:
    return ErlangMixture((Branch(1.0, 1, 1 / mean),))


class Part(msgspec.Struct, frozen=True):
    """A broker or a link. Without an off time it never fails."""

    on: ErlangMixture | None = None
    off: ErlangMixture | None = None

    @property
    def never_fails(self) -> bool:
        return self.on is None or self.off is None

    @property
    def availability(self) -> float:
        """The share of time that it is on (D1-D0)."""
        if self.on is None or self.off is None:
            return 1.0
        return self.on.mean / (self.on.mean + self.off.mean)

    @property
    def period(self) -> float:
        """A mean on time and a mean off time together; 0 if it never fails."""
        return 0.0 if self.on is None or self.off is None else self.on.mean + self.off.mean


NEVER_FAILS: Final = Part()


def part_of_means(mean_on: float, mean_off: float) -> Part:
    """From the mean times that it is on, and off."""
    if not (np.isfinite(mean_on) and mean_on > 0):
        raise PredictionError(f"the mean time between failures is {mean_on:g} s, and has to be above 0")
    if not (np.isfinite(mean_off) and mean_off >= 0):
        raise PredictionError(f"the mean time to repair is {mean_off:g} s, and has to be 0 or more")
    return Part(exponential(mean_on), exponential(mean_off)) if mean_off else NEVER_FAILS


def part_of_availability(availability: float, period: float) -> Part:
    """From the share of time that it is on, and the period (D1-D0)."""
    if not 0 < availability <= 1:
        raise PredictionError(f"the availability is {availability:g}, and has to be above 0 and at most 1")
    if not (np.isfinite(period) and period > 0):
        raise PredictionError(f"the period is {period:g} s, and has to be above 0")
    return part_of_means(availability * period, (1 - availability) * period)


class Chain(msgspec.Struct, frozen=True):
    """A part as a Markov chain: rates between phases, which of them are on, and how likely each is at any time. Off
    phases come first."""

    rates: Matrix
    is_on: NDArray[np.bool_]
    stationary: Vector

    @property
    def given_on(self) -> Vector:
        """How likely each phase is at any time at which the part is on."""
        likely = np.where(self.is_on, self.stationary, 0.0)
        given: Vector = likely / likely.sum()
        return given


def chain_of(part: Part) -> Chain:
    if part.on is None or part.off is None:
        return Chain(np.zeros((1, 1)), np.array([True]), np.ones(1))
    off, on = _stages(part.off), _stages(part.on)
    count = len(off) + len(on)
    rates = np.zeros((count, count))
    _fill(rates, part.off, begin=0, following=_begins(part.on, len(off)))
    _fill(rates, part.on, begin=len(off), following=_begins(part.off, 0))
    np.fill_diagonal(rates, -rates.sum(axis=1))
    stationary = np.array([*off, *on]) / part.period
    return Chain(rates, np.arange(count) >= len(off), stationary)


def _stages(mixture: ErlangMixture) -> list[float]:
    """The mean time that is spent in each stage of each branch, in one go."""
    return [branch.probability / branch.rate for branch in mixture.branches for _ in range(branch.stages)]


def _begins(mixture: ErlangMixture, at: int) -> list[tuple[int, float]]:
    """Where the branches begin, and how likely each is."""
    begins = []
    for branch in mixture.branches:
        begins.append((at, branch.probability))
        at += branch.stages
    return begins


def _fill(rates: Matrix, mixture: ErlangMixture, begin: int, following: Sequence[tuple[int, float]]) -> None:
    at = begin
    for branch in mixture.branches:
        for stage in range(branch.stages):
            if stage + 1 < branch.stages:
                rates[at, at + 1] = branch.rate
            else:
                for place, probability in following:
                    rates[at, place] = branch.rate * probability
            at += 1
