"""P[wait > t] from a wait's transform, for many waits at once (Abate and Whitt's Euler summation).

The transform of a sum of independent waits is the product of theirs. So paths that have hops in common share the work,
and no matrix has to be made for a path at all. The result agrees with the block form to about ten digits.
"""

from __future__ import annotations

from math import comb, log

import numpy as np
from numpy.typing import NDArray

from holdfast.qos.parts import Vector

TERMS = 18  # of each half of the summation: 0.6 digits each, until rounding takes as many


def _weights() -> Vector:
    weights = np.ones(2 * TERMS + 1)
    weights[0] = 0.5
    weights[2 * TERMS] = 2.0**-TERMS
    for k in range(1, TERMS):
        weights[2 * TERMS - k] = weights[2 * TERMS - k + 1] + 2.0**-TERMS * comb(TERMS, k)
    return weights


_K = np.arange(2 * TERMS + 1)
_BETA: NDArray[np.complex128] = np.asarray(TERMS * log(10) / 3 + 1j * np.pi * _K, dtype=np.complex128)
_SIGNED: Vector = (-1.0) ** _K * _weights() * 10 ** (TERMS / 3)


def points(time: float) -> NDArray[np.complex128]:
    """Where the transforms have to be known."""
    return _BETA / time


def later_than(time: float, transforms: NDArray[np.complex128]) -> Vector:
    """P[wait > time] for each row of transforms at `points(time)`."""
    tails = (1 - transforms) / points(time)
    found: Vector = (tails.real @ _SIGNED) / time
    return np.clip(found, 0.0, 1.0)
