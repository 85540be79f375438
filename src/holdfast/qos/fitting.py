"""How a part fails, from how it has failed: rates and distributions from observed times (D1-H1, D1-F2, D1-F3).

A time that was still going on when the observation ended is *censored*: it is known to be at least so long. Leaving
such times out would make parts look worse, or repairs quicker, than they are.

A hop's Markov chain has a state for every combination of its three parts' phases. So the phases of a fitted part are
few: `ON_PHASES` and `OFF_PHASES` of them make a hop of three fitted parts one of at most 512 states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import lgamma

import msgspec
import numpy as np
from scipy.special import gammaincc
from scipy.stats import kstwo

from holdfast.errors import PredictionError
from holdfast.qos.parts import Branch, ErlangMixture, Part, Vector, exponential

BRANCHES = 3  # of a mixture, at most
ON_PHASES = 3  # in all branches together: those that wait meet parts that are off, and care for on times less
OFF_PHASES = 5
ROUNDS = 300  # of expectation and maximisation, at most


class Observed(msgspec.Struct, frozen=True, gc=False):
    """A time in seconds; censored: at least so long."""

    seconds: float
    censored: bool = False


class Fit(msgspec.Struct, frozen=True):
    """A distribution, how likely it makes what was observed (the logarithm), how many numbers were free, and how far
    what was observed is from it: Kolmogorov's and Smirnov's distance."""

    times: ErlangMixture
    log_likelihood: float
    free: int
    distance: float

    @property
    def aic(self) -> float:
        """Akaike's criterion: smaller is better."""
        return 2 * self.free - 2 * self.log_likelihood


class Fitted(msgspec.Struct, frozen=True):
    """What was observed, in short, and both fits to it: a line of the table of D1-H1. `likely` is how likely a distance
    from the exponential fit that is so large would be if times were exponential: about, since the mean is fitted."""

    ended: int
    censored: int
    seconds: float
    exponential: Fit
    mixture: Fit
    likely: float

    @property
    def rate(self) -> float:
        """Ends per second: of on times the rate of failures, of off times that of repairs."""
        return self.ended / self.seconds

    @property
    def times(self) -> ErlangMixture:
        """The mixture, with the mean that was observed: all of the time by its ends. That of the mixture itself may be
        another if many times are censored, since it takes them all for times of one part, and times of several parts of
        different quality are often given together. The share of time that a part is on has to be the observed one."""
        return self.mixture.times.with_mean(1 / self.rate)


class _Times:
    """Observed times, those that came to their ends first."""

    def __init__(self, observed: Sequence[Observed]) -> None:
        self.ended: Vector = np.array([max(one.seconds, 1e-9) for one in observed if not one.censored])
        self.censored: Vector = np.array([max(one.seconds, 1e-9) for one in observed if one.censored])
        if not len(self.ended):
            raise PredictionError("there is no time that came to its end: nothing can be fitted")
        self.all: Vector = np.concatenate((self.ended, self.censored))

    def logs(self, times: ErlangMixture) -> Vector:
        """How likely each is in each branch, by row, with the branch's probability."""
        rows = []
        for branch in times.branches:
            r, rate = branch.stages, branch.rate
            density = r * np.log(rate) + (r - 1) * np.log(self.ended) - rate * self.ended - lgamma(r)
            tail = np.log(_erlang_tail(branch, self.censored))
            rows.append(np.log(max(branch.probability, 1e-300)) + np.concatenate((density, tail)))
        return np.array(rows)

    def expected(self, branch: Branch) -> Vector:
        """What each comes to in the end, in this branch."""
        r, rate = branch.stages, branch.rate
        rest = r / rate * gammaincc(r + 1, rate * self.censored) / _erlang_tail(branch, self.censored)
        return np.concatenate((self.ended, rest))

    def fit(self, times: ErlangMixture, free: int) -> Fit:
        likelihood = float(np.logaddexp.reduce(self.logs(times), axis=0).sum())
        return Fit(times, likelihood, free, self.distance(times))

    def distance(self, times: ErlangMixture) -> float:
        """From Kaplan's and Meier's estimate, which counts a censored time as long as it is known of."""
        values, ends = np.unique(self.ended, return_counts=True)
        at_risk = len(self.all) - np.searchsorted(np.sort(self.all), values)
        still = np.cumprod(1 - ends / at_risk)
        before = np.concatenate(([1.0], still[:-1]))
        model = _tail(times, values)
        return float(np.maximum(abs(model - still), abs(model - before)).max())


def _erlang_tail(branch: Branch, seconds: Vector) -> Vector:
    tail: Vector = np.maximum(gammaincc(branch.stages, branch.rate * seconds), 1e-300)
    return tail


def _tail(times: ErlangMixture, seconds: Vector) -> Vector:
    """How likely a time is longer."""
    tail: Vector = np.sum([branch.probability * _erlang_tail(branch, seconds) for branch in times.branches], axis=0)
    return tail


def fit_exponential(observed: Sequence[Observed]) -> Fit:
    """The likeliest: as many ends as there were in all of the time."""
    return _exponential(_Times(observed))


def _exponential(times: _Times) -> Fit:
    return times.fit(exponential(float(times.all.sum()) / len(times.ended)), 1)


def fit_mixture(observed: Sequence[Observed], phases: int = OFF_PHASES, branches: int = BRANCHES) -> Fit:
    """The best mixture of up to so many Erlang distributions, of up to so many stages together, by Akaike's criterion;
    from expectation and maximisation."""
    times = _Times(observed)
    best = _exponential(times)
    for stages in _shapes(phases, branches):
        fit = times.fit(_maximise(times, stages), 2 * len(stages) - 1)
        if fit.aic < best.aic - 1e-9:
            best = fit
    return best


def _shapes(phases: int, branches: int) -> Iterator[tuple[int, ...]]:
    """Stages of each branch, the branch of short times first; the smallest first."""
    for count in range(1, branches + 1):
        for stages in product(range(1, phases + 1), repeat=count):
            if sum(stages) <= phases:
                yield stages


def _maximise(times: _Times, stages: Sequence[int]) -> ErlangMixture:
    # Branches begin at quantiles of what was observed, the shortest first.
    quantiles = np.quantile(times.all, (np.arange(len(stages)) + 0.5) / len(stages))
    mixture = ErlangMixture(
        tuple(Branch(1 / len(stages), r, r / max(float(mean), 1e-6)) for r, mean in zip(stages, quantiles, strict=True))
    )
    before = -np.inf
    for _ in range(ROUNDS):
        logs = times.logs(mixture)
        total = np.logaddexp.reduce(logs, axis=0)
        shares = np.exp(logs - total)
        made = []
        for branch, share in zip(mixture.branches, shares, strict=True):
            weight = float(share.sum())
            if weight < 1e-9:
                made.append(Branch(0.0, branch.stages, branch.rate))
                continue
            mean = float((share * times.expected(branch)).sum()) / weight
            made.append(Branch(weight / len(times.all), branch.stages, branch.stages / mean))
        mixture = ErlangMixture(tuple(made))
        now = float(total.sum())
        if now - before < 1e-9 * abs(now):
            break
        before = now
    kept = [branch for branch in mixture.branches if branch.probability > 1e-9]
    whole = sum(branch.probability for branch in kept)
    return ErlangMixture(tuple(msgspec.structs.replace(b, probability=b.probability / whole) for b in kept))


def distance_from_exponential(observed: Sequence[Observed]) -> tuple[float, float]:
    """Kolmogorov's and Smirnov's distance from the exponential distribution that fits best, and how likely one so large
    would be if times were exponential (about: the mean is fitted)."""
    times = _Times(observed)
    distance = _exponential(times).distance
    return distance, float(kstwo.sf(distance, len(times.ended)))


def fitted(observed: Sequence[Observed], phases: int) -> Fitted:
    """Both fits to observed times, and how good they are."""
    times = _Times(observed)
    plain = _exponential(times)
    return Fitted(
        ended=len(times.ended),
        censored=len(times.censored),
        seconds=float(times.all.sum()),
        exponential=plain,
        mixture=fit_mixture(observed, phases),
        likely=float(kstwo.sf(plain.distance, len(times.ended))),
    )


def part_fitted(on: Sequence[Observed], off: Sequence[Observed], mixtures: bool = True) -> Part:
    """A part that fails as the observed one did: its on and off times by mixtures, or both exponential; either way with
    the means that were observed."""
    if not mixtures:
        return Part(fit_exponential(on).times, fit_exponential(off).times)
    return Part(fitted(on, ON_PHASES).times, fitted(off, OFF_PHASES).times)
