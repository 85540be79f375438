"""From absolute values to the paper's two tables (D4-D4)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from benchmarks.replication.paper import PUBLISHERS, REPLICAS, Row, Values


def growth_over_fewer_replicas(values: Values) -> Mapping[int, Row]:
    """Table 1: percent more than the next smaller group has with as many publishers."""
    return {
        more: tuple(100 * (values[more][count] / values[fewer][count] - 1) for count in PUBLISHERS)
        for fewer, more in pairwise(REPLICAS)
    }


def drop_from_fewer_replicas(values: Values) -> Mapping[int, Row]:
    """Table 1, throughput: percent less than the next smaller group has with as many publishers."""
    return {
        replicas: tuple(0.0 - entry for entry in row) for replicas, row in growth_over_fewer_replicas(values).items()
    }


def growth_over_fewer_publishers(values: Values) -> Mapping[int, Row]:
    """Table 2: percent more than the same group has with the next smaller number of publishers."""
    return {
        replicas: tuple(
            100 * (values[replicas][more] / values[replicas][fewer] - 1) for fewer, more in pairwise(PUBLISHERS)
        )
        for replicas in REPLICAS
    }
