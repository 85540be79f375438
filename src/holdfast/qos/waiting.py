"""How long an event waits until all that it needs is on: an atom at zero, and a phase-type distribution (D1-D5 to D12).

The wait for some parts is the time in which a Markov chain of them gets to where enough of them are on. Waits one after
the other, independent of each other, add up to a distribution of the same kind: its phases are theirs in a row. With
exponential times the waits of a path's hops *are* independent, and the result is exact (D1-C9); with others the first
part of a hop is taken to be in the phase in which it is at any time that it is on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from holdfast.qos.parts import Matrix, Part, Vector, chain_of


class Wait(msgspec.Struct, frozen=True):
    """Zero with the probability `at_once`; else the time until the chain leaves its phases, of which each is the first
    with a probability in `begins`. `rates` are those between the phases."""

    at_once: float
    begins: Vector
    rates: Matrix

    @property
    def leaves(self) -> Vector:
        """The rates at which the wait ends, by phase (D1-D8)."""
        ends: Vector = -self.rates.sum(axis=1)
        return ends

    def within(self, time: float) -> float:
        """P[wait ≤ time] (D1-D12)."""
        if time < 0:
            return 0.0
        if not len(self.begins):
            return 1.0
        still = float(((1 - self.at_once) * self.begins) @ expm(self.rates * time) @ np.ones(len(self.begins)))
        return 1 - still

    def within_if_positive(self, time: float) -> float:
        """P[wait ≤ time | wait > 0] (D1-D9, D1-D10)."""
        waits = 1 - self.at_once
        return 1.0 if waits <= 0 else (self.within(time) - self.at_once) / waits

    @property
    def mean(self) -> float:
        if not len(self.begins):
            return 0.0
        return float((1 - self.at_once) * self.begins @ np.linalg.solve(-self.rates, np.ones(len(self.begins))))

    def percentile(self, share: float) -> float:
        """The time within which that share of events gets through."""
        if share <= self.at_once:
            return 0.0
        high = max(self.mean, 1e-9)
        while self.within(high) < share:
            high *= 2
        low = 0.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if self.within(middle) < share else (low, middle)
        return high

    def transform(self, points: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """E[exp(-s · wait)] at each of the points."""
        size = len(self.begins)
        if not size:
            return np.ones(len(points), dtype=complex)
        matrices = points[:, None, None] * np.eye(size) - self.rates
        ends = np.linalg.solve(matrices, np.broadcast_to(self.leaves[:, None], (len(points), size, 1)).astype(complex))
        found: NDArray[np.complex128] = self.at_once + (1 - self.at_once) * (ends[:, :, 0] @ self.begins)
        return found


NO_WAIT = Wait(1.0, np.zeros(0), np.zeros((0, 0)))
Enough = Callable[[NDArray[np.bool_]], NDArray[np.bool_]]


def _all(on: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.logical_and.reduce(on, axis=1)  # type: ignore[no-any-return]


def wait_for(parts: Sequence[Part], now_on: Sequence[Part] = (), enough: Enough = _all) -> Wait:
    """The wait until enough of the parts are on, from any time at which those of `now_on` are.

    `enough` gets, for every state, which parts are on: those of `parts` first, then those of `now_on`. The state of the
    last part changes fastest, as D1-D7 numbers the states of a hop.
    """
    chains = [chain_of(part) for part in (*parts, *now_on)]
    begins = [chain.stationary for chain in chains[: len(parts)]] + [chain.given_on for chain in chains[len(parts) :]]
    first: Vector = np.ones(1)
    for begin in begins:
        first = np.outer(first, begin).ravel()
    rates = np.zeros((len(first), len(first)))
    before, after = 1, len(first)
    for chain in chains:
        size = len(chain.is_on)
        after //= size
        rates += np.kron(np.kron(np.eye(before), chain.rates), np.eye(after))
        before *= size
    on = np.stack(np.meshgrid(*[chain.is_on for chain in chains], indexing="ij"), axis=-1).reshape(-1, len(chains))
    done = enough(on)
    waiting = ~done
    late = float(first[waiting].sum())
    if late <= 0:  # exactly, where the sum of the others may be rounded to less than 1
        return NO_WAIT
    return Wait(float(first[done].sum()), first[waiting] / late, rates[np.ix_(waiting, waiting)])


def hop(here: Part, link: Part, following: Part) -> Wait:
    """The wait of an event that is at a broker until that, the link and the next broker are on (D1-D5 to D10)."""
    return wait_for((following, link), now_on=(here,))


def one_after_the_other(waits: Sequence[Wait]) -> Wait:
    """The sum of independent waits, as one (D1-D11, D1-D12)."""
    waits = [wait for wait in waits if len(wait.begins)]
    sizes = [len(wait.begins) for wait in waits]
    total = sum(sizes)
    rates, begins = np.zeros((total, total)), np.zeros(total)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(int)
    passed = 1.0  # the probability that all waits so far are zero
    for place, wait in enumerate(waits):
        own = slice(starts[place], starts[place + 1])
        rates[own, own] = wait.rates
        begins[own] = passed * (1 - wait.at_once) * wait.begins
        passed *= wait.at_once
        through = 1.0  # … that all between are
        for later in range(place + 1, len(waits)):
            following = waits[later]
            other = slice(starts[later], starts[later + 1])
            rates[own, other] = np.outer(wait.leaves, through * (1 - following.at_once) * following.begins)
            through *= following.at_once
    waiting = 1 - passed
    return Wait(passed, begins / waiting, rates) if total and waiting > 0 else NO_WAIT
