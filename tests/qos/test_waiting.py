"""Waits as phase-type distributions: the papers' numbers to the last digit, and independent ways to the same ones."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from scipy.linalg import expm

from holdfast.errors import PredictionError
from holdfast.qos.parts import (
    NEVER_FAILS,
    Branch,
    ErlangMixture,
    Part,
    chain_of,
    exponential,
    part_of_availability,
    part_of_means,
)
from holdfast.qos.waiting import NO_WAIT, hop, one_after_the_other, wait_for

DAY, LIFETIME = 86_400, 3_600
LINK = part_of_availability(0.99, 60_000)

# D1-D15: broker's availability and period, brokers of the path, P[d = 0], P[d < D], Eq. 3, Eq. 4
GOLDEN = [
    (0.90, 7 * DAY, 2, 0.8910000000, 0.9057102753, 0.8019000000, 0.8151392477),
    (0.90, 7 * DAY, 3, 0.7938810000, 0.8202773578, 0.7144929000, 0.7382496220),
    (0.90, 7 * DAY, 5, 0.6302470422, 0.6727452636, 0.5672223379, 0.6054707373),
    (0.95, 1 * DAY, 3, 0.8845402500, 0.9558201046, 0.8403132375, 0.9080290993),
    (0.99, 7 * DAY, 3, 0.9605960100, 0.9888800629, 0.9509900499, 0.9789912623),
    (0.999, 14 * DAY, 3, 0.9781407801, 0.9998432464, 0.9771626393, 0.9988434032),
    (0.90, 60_000, 2, 0.8910000000, 0.9440219811, 0.8019000000, 0.8496197830),
    (0.90, 60_000, 3, 0.7938810000, 0.8902989511, 0.7144929000, 0.8012690560),
    (0.90, 60_000, 5, 0.6302470422, 0.7896668620, 0.5672223379, 0.7107001758),
]


@pytest.mark.parametrize(("availability", "period", "brokers", "at_once", "within", "eq3", "eq4"), GOLDEN)
def test_the_golden_values(
    availability: float, period: float, brokers: int, at_once: float, within: float, eq3: float, eq4: float
) -> None:
    """D1-D15"""
    broker = part_of_availability(availability, period)
    delay = one_after_the_other([hop(broker, LINK, broker)] * (brokers - 1))
    assert delay.at_once == pytest.approx(at_once, abs=1e-10)
    assert delay.within(LIFETIME) == pytest.approx(within, abs=1e-10)
    assert broker.availability * delay.at_once == pytest.approx(eq3, abs=1e-10)
    assert broker.availability * delay.within(LIFETIME) == pytest.approx(eq4, abs=1e-10)


def test_one_hop_has_the_papers_states_and_beginning() -> None:
    """D1-D7, D1-D9"""
    broker = part_of_availability(0.9, 60_000)
    wait = hop(broker, LINK, broker)
    assert wait.begins == pytest.approx([0, 0.00917431, 0, 0.90825688, 0, 0.08256881, 0], abs=5e-9)
    assert wait.within_if_positive(LIFETIME) == pytest.approx(0.4864401936, abs=1e-10)
    g, s = 1 / 54_000, 1 / 6_000
    gl, sl = 1 / 59_400, 1 / 600
    printed = [
        [0, s, sl, 0, s, 0, 0],
        [g, 0, 0, sl, 0, s, 0],
        [gl, 0, 0, s, 0, 0, s],
        [0, gl, g, 0, 0, 0, 0],
        [g, 0, 0, 0, 0, s, sl],
        [0, g, 0, 0, g, 0, 0],
        [0, 0, g, 0, gl, 0, 0],
    ]
    leaves = [0, 0, 0, s, 0, sl, s]
    rates = wait.rates - np.diag(np.diag(wait.rates))
    assert rates == pytest.approx(np.array(printed), rel=1e-12)
    assert wait.leaves == pytest.approx(leaves, rel=1e-9, abs=1e-18)


@pytest.mark.parametrize("brokers", [2, 3, 4])
def test_the_waits_of_a_path_are_independent(brokers: int) -> None:
    """D1-C9: the same from one chain of all parts and of where the event is."""
    parts = [part_of_availability(a, p) for a, p in [(0.9, 50_000), (0.8, 9_000), (0.95, 70_000), (0.7, 3_000)]][
        :brokers
    ]
    links = [part_of_availability(a, p) for a, p in [(0.99, 60_000), (0.9, 20_000), (0.97, 5_000)]][: brokers - 1]
    delay = one_after_the_other([hop(parts[i], links[i], parts[i + 1]) for i in range(brokers - 1)])
    for time in (0.0, 600.0, 3_600.0, 50_000.0):
        assert delay.within(time) == pytest.approx(_joint(parts, links, time), abs=1e-12)


def _joint(parts: list[Part], links: list[Part], time: float) -> float:
    """P[the event is at the last broker by then | the first was on], from a chain of all parts and its place."""
    chains = [chain_of(part) for part in (*parts, *links)]
    states = list(product(*[range(len(chain.is_on)) for chain in chains]))
    index = {(state, place): n for n, (state, place) in enumerate(product(states, range(len(parts))))}

    def move(state: tuple[int, ...], place: int) -> int:
        def on(number: int) -> bool:
            return bool(chains[number].is_on[state[number]])

        while place + 1 < len(parts) and on(place) and on(len(parts) + place) and on(place + 1):
            place += 1
        return place

    rates = np.zeros((len(index), len(index)))
    for (state, place), at in index.items():
        for number, chain in enumerate(chains):
            for phase in range(len(chain.is_on)):
                if phase != state[number] and chain.rates[state[number], phase]:
                    other = (*state[:number], phase, *state[number + 1 :])
                    rates[at, index[other, move(other, place)]] += chain.rates[state[number], phase]
    np.fill_diagonal(rates, rates.diagonal() - rates.sum(axis=1))
    begins = [chains[0].given_on, *(chain.stationary for chain in chains[1:])]
    begin = np.zeros(len(index))
    for state in states:
        begin[index[state, move(state, 0)]] += prod(one[value] for one, value in zip(begins, state, strict=True))
    reached = np.array([place == len(parts) - 1 for _, place in index])
    return float((begin @ expm(rates * time))[reached].sum())


def test_waits_for_parts_with_other_times_are_exact_for_one_hop_and_nearly_for_several() -> None:
    """D1-F2: who has just been waited for is on, but not in the phase of any time. Most of these parts fail again soon
    after they are repaired, or stay on for long."""
    part = Part(
        ErlangMixture((Branch(0.6, 1, 1 / 20_000), Branch(0.4, 1, 1 / 400_000))),
        ErlangMixture((Branch(0.9, 1, 1 / 2_000), Branch(0.1, 1, 1 / 60_000))),
    )
    wait = hop(part, NEVER_FAILS, part)
    two = one_after_the_other([wait, wait])
    errors = []
    for time in (0.0, 600.0, 3_600.0, 20_000.0):
        assert wait.within(time) == pytest.approx(_joint([part] * 2, [NEVER_FAILS], time), abs=1e-12)
        errors.append(two.within(time) - _joint([part] * 3, [NEVER_FAILS] * 2, time))
    assert errors[0] == pytest.approx(0, abs=1e-12)
    assert max(map(abs, errors)) < 1e-5


def test_parts_that_never_fail_cost_nothing() -> None:
    """D1-D11: the last hop, and local links."""
    broker = part_of_availability(0.9, 60_000)
    assert hop(broker, NEVER_FAILS, NEVER_FAILS) == NO_WAIT
    on = ErlangMixture(tuple(Branch(share, 1, rate) for share, rate in ((0.1, 1.0), (0.1, 5.0), (0.8, 0.1))))
    rounded = Part(on, exponential(1))
    assert chain_of(rounded).given_on.sum() < 1
    assert hop(rounded, NEVER_FAILS, NEVER_FAILS) == NO_WAIT
    assert NO_WAIT.within(0) == 1
    assert one_after_the_other([]) == NO_WAIT
    single, double = hop(broker, LINK, broker), one_after_the_other([hop(broker, LINK, broker), NO_WAIT])
    assert double.within(LIFETIME) == pytest.approx(single.within(LIFETIME), abs=1e-14)
    perfect = hop(broker, LINK, NEVER_FAILS)
    assert perfect.at_once == pytest.approx(0.99)
    assert perfect.within(1e9) == pytest.approx(1)


def test_mean_and_percentiles() -> None:
    only_off = wait_for([part_of_means(90, 10)])
    assert only_off.at_once == pytest.approx(0.9)
    assert only_off.mean == pytest.approx(0.1 * 10)
    assert only_off.within(10) == pytest.approx(1 - 0.1 * np.exp(-1))
    assert only_off.percentile(0.5) == 0
    assert only_off.percentile(0.99) == pytest.approx(10 * np.log(10))
    assert only_off.within(-1) == 0


def test_times_that_are_not_exponential() -> None:
    """D1-F2: a repair of two equal stages is more regular than an exponential one of the same mean."""
    regular = Part(exponential(90), ErlangMixture((Branch(1.0, 2, 0.2),)))
    assert regular.availability == pytest.approx(0.9)
    chain = chain_of(regular)
    assert chain.stationary @ chain.rates == pytest.approx(np.zeros(3), abs=1e-15)
    wait = wait_for([regular])
    # The rest of an outage that is met at any time: of two stages or of one, alike.
    late = 0.5 * (np.exp(-2) * (1 + 2) + np.exp(-2))
    assert wait.within(10) == pytest.approx(1 - 0.1 * late)
    mixed = Part(exponential(80), ErlangMixture((Branch(0.75, 1, 1.0), Branch(0.25, 3, 0.25))))
    chain = chain_of(mixed)
    assert chain.stationary.sum() == pytest.approx(1)
    assert chain.stationary @ chain.rates == pytest.approx(np.zeros(len(chain.is_on)), abs=1e-15)
    assert mixed.availability == pytest.approx(80 / 83.75)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, float("nan")])
def test_an_availability_is_a_share(wrong: float) -> None:
    with pytest.raises(PredictionError, match="availability is"):
        part_of_availability(wrong, 60)


@pytest.mark.parametrize(("on", "off"), [(0, 1), (-1, 1), (float("inf"), 1), (1, -1), (1, float("nan"))])
def test_mean_times_are_numbers_above_zero(on: float, off: float) -> None:
    with pytest.raises(PredictionError, match="mean time"):
        part_of_means(on, off)
