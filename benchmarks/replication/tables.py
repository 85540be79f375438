"""From absolute values to the paper's two tables (D4-D4): each group, or number of publishers, and the next smaller."""

from __future__ import annotations

from itertools import pairwise

from benchmarks.replication.paper import Values


def growth_over_fewer_replicas(values: Values) -> Values:
    """Table 1: percent more than the next smaller group has with as many publishers."""
    return {
        more: {count: 100 * (value / values[fewer][count] - 1) for count, value in values[more].items()}
        for fewer, more in pairwise(values)
    }


def drop_from_fewer_replicas(values: Values) -> Values:
    """Table 1, throughput: percent less than the next smaller group has with as many publishers."""
    return {
        replicas: {count: 0.0 - entry for count, entry in row.items()}
        for replicas, row in growth_over_fewer_replicas(values).items()
    }


def growth_over_fewer_publishers(values: Values) -> Values:
    """Table 2: percent more than the same group has with the next smaller number of publishers."""
    return {
        replicas: {more: 100 * (row[more] / row[fewer] - 1) for fewer, more in pairwise(row)}
        for replicas, row in values.items()
    }
