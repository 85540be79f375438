"""How a part fails, from how it has failed: rates and distributions from observed times (D1-H1, D1-F2, D1-F3).

A time that was still going on when the observation ended is *censored*: it is known to be at least so long. Leaving
such times out would make parts look worse, or repairs quicker, than they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import lgamma

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc
from scipy.stats import kstest

from holdfast.errors import PredictionError
from holdfast.qos.parts import Branch, ErlangMixture, Part, Vector, exponential

STAGES = (1, 2, 4, 8)  # of branches that are tried
ROUNDS = 300  # of expectation and maximisation, at most


class Observed(msgspec.Struct, frozen=True, gc=False):
    """A time in seconds; censored: at least so long."""

    seconds: float
    censored: bool = False


class Fit(msgspec.Struct, frozen=True):
    """A distribution, how likely it makes what was observed (the logarithm), and how many numbers were free."""

    times: ErlangMixture
    log_likelihood: float
    free: int

    @property
    def aic(self) -> float:
        """Akaike's criterion: smaller is better."""
        return 2 * self.free - 2 * self.log_likelihood


def _arrays(observed: Sequence[Observed]) -> tuple[Vector, NDArray[np.bool_]]:
    seconds = np.array([max(one.seconds, 1e-9) for one in observed])
    censored = np.array([one.censored for one in observed], dtype=bool)
    if not len(seconds) or censored.all():
        raise PredictionError("there is no time that came to its end: nothing can be fitted")
    return seconds, censored


def fit_exponential(observed: Sequence[Observed]) -> Fit:
    """The likeliest: as many ends as there were in all of the time."""
    seconds, censored = _arrays(observed)
    mean = float(seconds.sum() / (~censored).sum())
    times = exponential(mean)
    return Fit(times, _log_likelihood(times, seconds, censored), 1)


def fit_mixture(observed: Sequence[Observed], branches: int = 3) -> Fit:
    """The best mixture of up to so many Erlang distributions, by Akaike's criterion, from expectation and
    maximisation."""
    seconds, censored = _arrays(observed)
    best = fit_exponential(observed)
    for count in range(1, branches + 1):
        for stages in combinations_with_replacement(STAGES, count):
            times = _maximise(seconds, censored, stages)
            fit = Fit(times, _log_likelihood(times, seconds, censored), 2 * count - 1)
            if fit.aic < best.aic - 1e-9:
                best = fit
    return best


def _log_densities(times: ErlangMixture, seconds: Vector) -> Vector:
    """Of each branch, with its probability, by row."""
    rows = []
    for branch in times.branches:
        r, rate = branch.stages, branch.rate
        log = r * np.log(rate) + (r - 1) * np.log(seconds) - rate * seconds - lgamma(r)
        rows.append(np.log(max(branch.probability, 1e-300)) + log)
    return np.array(rows)


def _log_tails(times: ErlangMixture, seconds: Vector) -> Vector:
    rows = []
    for branch in times.branches:
        tail = np.maximum(gammaincc(branch.stages, branch.rate * seconds), 1e-300)
        rows.append(np.log(max(branch.probability, 1e-300)) + np.log(tail))
    return np.array(rows)


def _log_likelihood(times: ErlangMixture, seconds: Vector, censored: NDArray[np.bool_]) -> float:
    logs = np.where(censored, _log_tails(times, seconds), _log_densities(times, seconds))
    return float(np.logaddexp.reduce(logs, axis=0).sum())


def _maximise(seconds: Vector, censored: NDArray[np.bool_], stages: Sequence[int]) -> ErlangMixture:
    # Branches begin at quantiles of what was observed, the shortest first.
    quantiles = np.quantile(seconds, (np.arange(len(stages)) + 0.5) / len(stages))
    times = ErlangMixture(
        tuple(Branch(1 / len(stages), r, r / max(float(mean), 1e-6)) for r, mean in zip(stages, quantiles, strict=True))
    )
    before = -np.inf
    for _ in range(ROUNDS):
        logs = np.where(censored, _log_tails(times, seconds), _log_densities(times, seconds))
        total = np.logaddexp.reduce(logs, axis=0)
        shares = np.exp(logs - total)
        made = []
        for place, branch in enumerate(times.branches):
            r, rate = branch.stages, branch.rate
            # What a censored time comes to in the end, in this branch.
            tail = np.maximum(gammaincc(r, rate * seconds), 1e-300)
            expected = np.where(censored, r / rate * gammaincc(r + 1, rate * seconds) / tail, seconds)
            weight = float(shares[place].sum())
            if weight < 1e-9:
                made.append(Branch(0.0, r, rate))
                continue
            made.append(Branch(weight / len(seconds), r, r * weight / float((shares[place] * expected).sum())))
        times = ErlangMixture(tuple(made))
        now = float(total.sum())
        if now - before < 1e-9 * abs(now):
            break
        before = now
    kept = [branch for branch in times.branches if branch.probability > 1e-9]
    whole = sum(branch.probability for branch in kept)
    return ErlangMixture(tuple(msgspec.structs.replace(b, probability=b.probability / whole) for b in kept))


def distance_from_exponential(observed: Sequence[Observed]) -> tuple[float, float]:
    """Kolmogorov's and Smirnov's distance of the times that came to their ends from the exponential distribution of the
    same mean, and how likely one so large would be if they were exponential (about: the mean is fitted)."""
    ended = np.array([one.seconds for one in observed if not one.censored])
    if not len(ended):
        raise PredictionError("there is no time that came to its end: nothing can be fitted")
    found = kstest(ended, "expon", args=(0, float(ended.mean())))
    return float(found.statistic), float(found.pvalue)


def part_fitted(on: Sequence[Observed], off: Sequence[Observed], mixtures: bool = True) -> Part:
    """A part that fails as the observed one did: its off times by a mixture, or exponential; its on times exponential,
    since how they are distributed hardly matters to whoever waits."""
    off_fit = fit_mixture(off) if mixtures else fit_exponential(off)
    return Part(fit_exponential(on).times, off_fit.times)
