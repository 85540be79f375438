"""Times that were observed, and distributions that fit them; with real failures of real machines, where they are."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from pathlib import Path
from random import Random

import pytest

from experiments.qos.lanl import intervals_of, read_outages, within
from holdfast.errors import PredictionError
from holdfast.qos.fitting import (
    OFF_PHASES,
    ON_PHASES,
    Observed,
    distance_from_exponential,
    fit_exponential,
    fit_mixture,
    fitted,
    part_fitted,
)
from holdfast.qos.parts import Branch, ErlangMixture, Part, chain_of
from holdfast.qos.waiting import hop, wait_for

# Fails again soon, or stays on for a week; is mostly back in half an hour, in two steps, and else in some hours.
MACHINE = Part(
    ErlangMixture((Branch(0.4, 1, 1 / 20_000), Branch(0.6, 1, 1 / 600_000))),
    ErlangMixture((Branch(0.7, 2, 2 / 1_800), Branch(0.3, 1, 1 / 20_000))),
)


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


def drawn_from(times: ErlangMixture, rng: Random) -> float:
    branch = rng.choices(times.branches, weights=[branch.probability for branch in times.branches])[0]
    return sum(rng.expovariate(branch.rate) for _ in range(branch.stages))


def looked_at(part: Part, length: float, rng: Random) -> tuple[list[Observed], list[Observed]]:
    """On and off times in turn, until the observation ends in the midst of one."""
    assert part.on is not None
    assert part.off is not None
    found: tuple[list[Observed], list[Observed]] = ([], [])
    time, place = 0.0, 0
    while time < length:
        took = drawn_from((part.on, part.off)[place], rng)
        found[place].append(Observed(min(took, length - time), censored=time + took > length))
        time, place = time + took, 1 - place
    return found


def test_on_and_off_times_of_many_machines_are_found_again() -> None:
    """D1-F2, D1-H1: two hundred of them, the last time of each censored. So many repairs have a mean that is right to
    3% or so."""
    rng = Random(5)
    on, off = [], []
    for _ in range(200):
        some_on, some_off = looked_at(MACHINE, 8_000_000, rng)
        on += some_on
        off += some_off
    assert sum(one.censored for one in (*on, *off)) == 200
    soon, late = fit_mixture(on, ON_PHASES, branches=2).times.branches
    assert (soon.stages, late.stages) == (1, 1)
    assert soon.probability == pytest.approx(0.4, abs=0.04)
    assert (1 / soon.rate, 1 / late.rate) == pytest.approx((20_000, 600_000), rel=0.12)
    quick, slow = fit_mixture(off, OFF_PHASES, branches=2).times.branches
    assert (quick.stages, slow.stages) == (2, 1)
    assert quick.probability == pytest.approx(0.7, abs=0.04)
    assert (2 / quick.rate, 1 / slow.rate) == pytest.approx((1_800, 20_000), rel=0.12)
    part = part_fitted(on, off)
    assert part.availability == pytest.approx(MACHINE.availability, abs=0.002)
    for lifetime in (600, 3_600, 6 * 3_600):
        expected = hop(MACHINE, MACHINE, MACHINE).within(lifetime)
        assert hop(part, part, part).within(lifetime) == pytest.approx(expected, abs=0.003)


def test_times_that_are_mostly_censored_are_found_again() -> None:
    """Half of them, each when someone looked; the mean of the exponential fit is far too small then."""
    rng = Random(6)
    assert MACHINE.on is not None
    observed = []
    for _ in range(4_000):
        time, looked = drawn_from(MACHINE.on, rng), rng.uniform(0, 800_000)
        observed.append(Observed(min(time, looked), censored=time > looked))
    assert sum(one.censored for one in observed) > 1_200
    fit = fit_mixture(observed, ON_PHASES)
    assert fit.times.mean == pytest.approx(MACHINE.on.mean, rel=0.08)
    assert fit.distance < 0.02 < fit_exponential(observed).distance


def test_a_fitted_part_has_few_phases() -> None:
    """A hop of three of them stays one of at most 512 states."""
    rng = Random(7)
    on, off = looked_at(MACHINE, 30_000_000, rng)
    chain = chain_of(part_fitted(on, off))
    assert chain.is_on.sum() <= ON_PHASES
    assert (~chain.is_on).sum() <= OFF_PHASES
    assert (ON_PHASES + OFF_PHASES) ** 3 <= 512


def test_how_good_a_fit_is() -> None:
    """D1-H1: the rate of ends, both criteria, both distances."""
    found = fitted([*drawn(1), Observed(50_000, censored=True)], OFF_PHASES)
    assert (found.ended, found.censored) == (1_500, 1)
    assert found.rate == pytest.approx(1 / found.exponential.times.mean)
    assert found.times.mean == pytest.approx(1 / found.rate)
    assert found.mixture.aic < found.exponential.aic - 100
    assert found.mixture.distance < 0.025 < 0.2 < found.exponential.distance
    assert found.likely < 1e-6


def test_the_distance_counts_censored_times_as_long_as_they_are_known_of() -> None:
    """Of ends at 1 and 3 and someone who left at 2, half are still on after 1 and none after 3."""
    observed = [Observed(1.0), Observed(2.0, censored=True), Observed(3.0), Observed(1.0)]
    fit = fit_exponential(observed)
    assert fit.times.mean == pytest.approx(7 / 3)
    assert fit.distance == pytest.approx(max(1 - exp(-3 / 7), exp(-3 / 7) - 0.5, 0.5 - exp(-9 / 7), exp(-9 / 7)))


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
    plain, mixed = part_fitted(on, off, mixtures=False), part_fitted(on, off)
    assert plain.availability == pytest.approx(mixed.availability, abs=1e-6)
    for lifetime in (600, 3_600, 6 * 3_600):
        real = within(on, off, lifetime)
        errors = [abs(wait_for([part]).within(lifetime) - real) for part in (plain, mixed)]
        assert errors[1] < 1e-5
        assert errors[1] < errors[0] / 2 or errors[0] < 2e-5
