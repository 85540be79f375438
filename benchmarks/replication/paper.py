"""What the paper measured, on machines and a network of its own (D4-E1), and what is wanted here.

PRINTED is in the paper. INFERRED is not: these absolute values were found such that the percentages come out (D4-E6),
and wherever they are shown they are called inferred.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

# By replicas, then by publishers; of steps from one number of publishers to the next, by the larger one.
Values: TypeAlias = Mapping[int, Mapping[int, float]]

REPLICAS = (1, 3, 5, 7)
PUBLISHERS = (1, 3, 6, 12, 24)

# What the publishers offer together, a second. The paper says that each offers 10 (D4-E7), and its baseline carried
# 70 and 90 with 12 and 24 of them (D4-E6), neither more nor, as its latency shows, at its limit.
OFFERED: Mapping[int, float] = dict(zip(PUBLISHERS, (10.0, 30.0, 60.0, 70.0, 90.0), strict=True))


class Printed(NamedTuple):
    """The paper's tables, in percent (D4-E4, D4-E5)."""

    latency_1: Values  # growth over the next smaller group
    throughput_1: Values  # drop against the next smaller group
    latency_2: Values  # growth over the next smaller number of publishers
    throughput_2: Values


def _by_publishers(rows: Mapping[int, tuple[float, ...]], publishers: tuple[int, ...] = PUBLISHERS) -> Values:
    return {replicas: dict(zip(publishers, row, strict=True)) for replicas, row in rows.items()}


PRINTED = Printed(
    latency_1=_by_publishers(
        {
            3: (29.29, 33.1, 38.30, 41.12, 40.08),
            5: (3.51, 1.88, 3.59, 6.95, 6.46),
            7: (4.52, 5.18, 1.38, 4.95, 2.60),
        }
    ),
    throughput_1=_by_publishers(
        {
            3: (2.50, 1.25, 4.58, 5.71, 11.11),
            5: (0.0, 0.0, 4.80, 5.68, 3.43),
            7: (0.0, 0.0, 4.12, 3.61, 2.91),
        }
    ),
    latency_2=_by_publishers(
        {
            1: (0.50, 1.00, 6.46, 8.41),
            3: (3.51, 4.90, 8.63, 7.61),
            5: (1.89, 6.66, 12.15, 7.12),
            7: (2.55, 2.81, 16.09, 4.71),
        },
        PUBLISHERS[1:],
    ),
    throughput_2=_by_publishers(
        {
            1: (200.0, 100.0, 16.66, 28.57),
            3: (205.12, 92.43, 15.38, 21.21),
            5: (205.12, 83.19, 14.22, 24.09),
            7: (205.12, 75.63, 14.83, 25.00),
        },
        PUBLISHERS[1:],
    ),
)
# The two entries that no absolute values agree with: (table, replicas, publishers).
AT_ODDS = {("throughput_1", 3, 3), ("throughput_2", 3, 12)}

# Absolute values that the paper does print (D4-E2, D4-E3).
PRINTED_LATENCY_MS: Values = {1: {1: 1.98, 24: 2.32}}
PRINTED_PER_S: Values = {1: {24: 90.00}, 3: {24: 80.04}, 5: {24: 77.25}, 7: {24: 75.03}}

INFERRED_LATENCY_MS = _by_publishers(
    {
        1: (1.98, 1.99, 2.01, 2.14, 2.32),
        3: (2.56, 2.65, 2.78, 3.02, 3.25),
        5: (2.65, 2.70, 2.88, 3.23, 3.46),
        7: (2.77, 2.84, 2.92, 3.39, 3.55),
    }
)
INFERRED_PER_S = _by_publishers(
    {
        1: (10.0, 30.0, 60.0, 70.0, 90.0),
        3: (9.75, 29.75, 57.25, 66.0, 80.0),
        5: (9.75, 29.75, 54.5, 62.25, 77.25),
        7: (9.75, 29.75, 52.25, 60.0, 75.0),
    }
)

# Wanted of three replicas: what the paper says that replicas add (0.58 ms with light load, 1.23 ms with high load, the
# latter with seven of them), and the smallest loss of throughput that it names (1.25%), here at every load.
ADDED_MS_MAX: Mapping[int, float] = {1: 0.6, 24: 1.25}
DROP_PERCENT_MAX = 1.25
SATURATED_PER_S_MIN = 30_000.0
