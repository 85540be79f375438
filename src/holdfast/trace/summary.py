"""What a trace holds, in a few lines: rows by kind, deliveries, and how long they took from publication to delivery.

Latencies are exact, not estimated: the whole is sorted. First deliveries count; a redelivery says nothing of the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from holdfast.trace.schema import KINDS, Delivered, Header, Published, Row


def summary(header: Header, rows: Iterable[Row], moment: Callable[[int], str] | None = None) -> list[str]:
    """The summary of a run, line by line. `moment` says when a time was, for people."""
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
    if header.is_live:
        lines = [f"brokers {header.run}, system {header.system}, {left_out(header)}"]
    else:
        lines = [f"run {header.run}, system {header.system}, seed {header.seed}{', sampled' if header.sampled else ''}"]
    if begin is None or end is None:
        lines.append("empty")
    elif moment is None:
        lines.append(f"from {begin / 1e6:.3f} to {end / 1e6:.3f} ms")
    else:
        lines.append(f"from {moment(begin)} to {moment(end)}")
    lines += ["", *(f"{counts[KINDS[kind]]:12,}  {kind}" for kind in KINDS if counts[KINDS[kind]]), ""]
    if not header.is_live:
        lines.append(f"deliveries: {counts[Delivered]:,}, subscriptions that got any: {len(subscriptions):,}")
    if latencies:
        latencies.sort()
        p50, p99 = (percentile(latencies, share) / 1e6 for share in (0.50, 0.99))
        lines.append(
            f"from publication to delivery: p50 {p50:.3f} ms, p99 {p99:.3f} ms, max {latencies[-1] / 1e6:.3f} ms"
        )
    return lines


def left_out(header: Header) -> str:
    """What a trace that brokers wrote does not tell."""
    parts = ["of clients, what they published and were sent"]
    if header.sampled:
        parts.append(f"sampled: {header.share:.4%} of the events, and no queues".replace(".0000%", "%"))
    if header.settings.get("continues"):
        parts.append("older rows are in older files, or gone")
    return "; ".join(parts)


def percentile(ascending: Sequence[int], share: float) -> int:
    """The smallest value that at least this share of the values does not exceed (nearest rank)."""
    rank = -(-len(ascending) * round(share * 1000) // 1000)
    return ascending[max(rank, 1) - 1]
