"""Times that were observed, and distributions that fit them; with real failures of real machines, where they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from experiments.qos.lanl import intervals_of, read_outages, within
from holdfast.errors import PredictionError
from holdfast.qos.fitting import (
    Observed,
    distance_from_exponential,
    fit_exponential,
    fit_mixture,
    part_fitted,
)
from holdfast.qos.waiting import wait_for


def drawn(seed: int, count: int = 1_500) -> list[Observed]:
    """Most repairs take minutes, some take hours, in four steps."""
    rng = Random(seed)
    return [
        Observed(sum(rng.expovariate(1 / 3_600) for _ in range(4)) if rng.random() < 0.2 else rng.expovariate(1 / 300))
        for _ in range(count)
    ]


def test_the_exponential_fit_counts_censored_time() -> None:
    """D1-H1"""
    fit = fit_exponential([Observed(10), Observed(20), Observed(30, censored=True)])
    assert fit.times.mean == pytest.approx(30)


def test_a_mixture_is_found_again() -> None:
    observed = drawn(1)
    fit = fit_mixture(observed)
    assert fit.times.mean == pytest.approx(sum(one.seconds for one in observed) / len(observed), rel=1e-3)
    assert fit.aic < fit_exponential(drawn(1)).aic - 100
    short = min(fit.times.branches, key=lambda branch: branch.stages / branch.rate)
    assert short.probability == pytest.approx(0.8, abs=0.05)
    assert short.stages == 1
    assert 1 / short.rate == pytest.approx(300, rel=0.15)


def test_exponential_times_are_fitted_by_one_branch() -> None:
    rng = Random(3)
    observed = [Observed(rng.expovariate(1 / 600)) for _ in range(800)]
    fit = fit_mixture(observed)
    assert fit.aic >= fit_exponential(observed).aic - 8
    assert fit.times.mean == pytest.approx(600, rel=0.1)
    assert distance_from_exponential(observed)[1] > 0.05
    assert distance_from_exponential(drawn(1))[1] < 1e-6


def test_censored_times_are_not_taken_for_short_ones() -> None:
    rng = Random(4)
    times = [rng.expovariate(1 / 1_000) for _ in range(3_000)]
    observed = [Observed(min(time, 800), censored=time > 800) for time in times]
    assert fit_exponential(observed).times.mean == pytest.approx(1_000, rel=0.06)
    assert fit_mixture(observed, branches=1).times.mean == pytest.approx(1_000, rel=0.1)


def test_nothing_can_be_fitted_to_nothing() -> None:
    for fit in (fit_exponential, fit_mixture, distance_from_exponential):
        with pytest.raises(PredictionError, match="nothing can be fitted"):
            fit([])
        with pytest.raises(PredictionError, match="nothing can be fitted"):
            fit([Observed(3, censored=True)])


def test_real_machines_are_repaired_otherwise_than_exponentially(data_file: Callable[[str], Path]) -> None:
    """D1-F3: what a fitted part predicts is nearer to what those machines did than an exponential one."""
    outages = read_outages(data_file("lanl-failures-1996-2005.csv.xz"))
    assert len(outages) > 20_000
    on, off = intervals_of(outages, system="20")
    assert len(off) > 1_000
    assert distance_from_exponential(off)[1] < 1e-6
    plain, fitted = part_fitted(on, off, mixtures=False), part_fitted(on, off)
    assert plain.availability == pytest.approx(fitted.availability, abs=0.003)
    for lifetime in (600, 3_600, 6 * 3_600):
        real = within(on, off, lifetime)
        errors = [abs(wait_for([part]).within(lifetime) - real) for part in (plain, fitted)]
        assert errors[1] < 2e-4
        assert errors[1] < errors[0] / 2 or errors[0] < 2e-5
