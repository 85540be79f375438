"""What a trace holds, in a few lines: rows by kind, deliveries, and how long they took from publication to delivery.

Latencies are exact, not estimated: the whole is sorted. First deliveries count; a redelivery says nothing of the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from holdfast.trace.schema import KINDS, Delivered, Header, Published, Row


def summary(header: Header, rows: Iterable[Row]) -> list[str]:
    """The summary of a run, line by line."""
    counts: Counter[type[Row]] = Counter()
    published: dict[str, int] = {}
    latencies: list[int] = []
    subscriptions: dict[str, None] = {}
    begin = end = None
    for row in rows:
        counts[row.__class__] += 1
        begin = row.t if begin is None else begin
        end = row.t
        if isinstance(row, Published):
            published[row.event] = row.t
        elif isinstance(row, Delivered):
            subscriptions[row.subscription] = None
            if row.attempt == 1 and row.event in published:
                latencies.append(row.t - published[row.event])
    lines = [f"run {header.run}, system {header.system}, seed {header.seed}{', sampled' if header.sampled else ''}"]
    lines.append("empty" if begin is None or end is None else f"from {begin / 1e6:.3f} to {end / 1e6:.3f} ms")
    lines += ["", *(f"{counts[KINDS[kind]]:12,}  {kind}" for kind in KINDS if counts[KINDS[kind]]), ""]
    lines.append(f"deliveries: {counts[Delivered]:,}, subscriptions that got any: {len(subscriptions):,}")
    if latencies:
        latencies.sort()
        p50, p99 = (percentile(latencies, share) / 1e6 for share in (0.50, 0.99))
        lines.append(
            f"from publication to delivery: p50 {p50:.3f} ms, p99 {p99:.3f} ms, max {latencies[-1] / 1e6:.3f} ms"
        )
    return lines


def percentile(ascending: Sequence[int], share: float) -> int:
    """The smallest value that at least this share of the values does not exceed (nearest rank)."""
    rank = -(-len(ascending) * round(share * 1000) // 1000)
    return ascending[max(rank, 1) - 1]
