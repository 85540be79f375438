"""Results as text or Markdown: absolute values, the paper's two tables with its entries beside ours, and targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.replication import paper
from benchmarks.replication.loads import SUBSCRIBERS
from benchmarks.replication.paper import PUBLISHERS
from benchmarks.replication.results import PROTOCOLS, ROUNDS, SECONDS, Results, best_p50, best_per_s, median_per_s
from benchmarks.replication.side_by_side import (
    Table,
    absolute_tables,
    against_one_broker,
    group_name,
    markdown_table,
    paper_tables,
    processor_table,
    saturated_table,
)

BUSY_LOAD = 0.5  # of a core each: what others do there is in the figures then
IDLE_SHARE = 0.5  # of a core: a client that uses less waits for the brokers, not they for it
PROCESSOR = (
    "Saturated: processor time for an event, µs, of the replica that takes most, and of the one that takes least"
)
SATURATED = "Saturated: events of 60 bytes acknowledged a second, durable at a majority, best round"


class Target(NamedTuple):
    text: str
    measured: str
    wanted: str
    met: bool
    remark: str = ""

    def __str__(self) -> str:
        verdict = "met" if self.met else "MISSED"
        return f"{self.text}: {self.measured}, wanted {self.wanted}: {verdict}{self.remark}"


# ------------------------------------------------------------------------------------------------------------- tables
def tables(results: Results) -> Iterator[Table]:
    if results.offered:
        yield from absolute_tables(results)
        yield against_one_broker(results)
        yield from paper_tables(results.offered_values(best_p50), results.offered_values(median_per_s))
    if results.saturated:
        yield saturated_table(results, SATURATED)
        if any(run.cpu_us for run in results.saturated):
            yield processor_table(results, PROCESSOR)


# ------------------------------------------------------------------------------------------------------------ targets
def targets(results: Results) -> Iterator[Target]:
    if results.offered:
        for count, wanted in paper.ADDED_MS_MAX.items():
            added = results.added_ms(3, count)
            remark = f" (median of the differences inside rounds: {results.added_ms_in_rounds(3, count):+.2f} ms)"
            text = f"3 replicas add to the p50 at #p={count}"
            yield Target(text, f"{added:+.2f} ms", f"≤ {wanted:g} ms", added <= wanted, remark)
        drops = {count: results.drop_percent(3, count) for count in PUBLISHERS}
        worst = max(drops, key=lambda count: drops[count])
        yield Target(
            f"throughput of 3 replicas below the baseline, at worst (#p={worst})",
            f"{max(0.0, drops[worst]):.2f}%",
            f"≤ {paper.DROP_PERCENT_MAX:g}%",
            drops[worst] <= paper.DROP_PERCENT_MAX,
        )
    if results.saturated:
        for protocol in PROTOCOLS:
            rates = {count: best_per_s(results.saturated_rounds(3, protocol, count)) for count in PUBLISHERS}
            worst = min(rates, key=lambda count: rates[count])
            yield Target(
                f"saturated, 3 replicas, {protocol}, at worst (#p={worst})",
                f"{rates[worst]:,.0f}/s",
                f"≥ {paper.SATURATED_PER_S_MIN:,.0f}/s",
                rates[worst] >= paper.SATURATED_PER_S_MIN,
            )


# --------------------------------------------------------------------------------------------------------------- text
def machine_line(results: Results) -> str:
    machine = results.machine
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
        f"{machine['date']}; rounds: {results.rounds}; load {results.load_before:.1f} before the first."
    )


def remarks(results: Results, rounds: int = ROUNDS, seconds: float = SECONDS) -> Iterator[str]:
    """What a reader must know about this run; `rounds` and `seconds` are those of a full one."""
    cores = int(results.machine["cores"])
    reasons = [
        text
        for holds, text in (
            (results.load_before >= BUSY_LOAD * cores, "the machine was busy with other work"),
            (results.rounds < rounds, f"there were fewer than {rounds} rounds"),
            (results.seconds < seconds, f"loads were offered for less than {seconds:g} s (`--quick`)"),
        )
        if holds
    ]
    if reasons:
        yield f"**Preliminary**: {', and '.join(reasons)}. No verdict below is final."
    if results.seconds < seconds:
        yield (
            "Short runs flatter: the best of some medians of few publications is too low, and a saturated run of "
            f"{results.events:,} events may be over in some hundredths of a second, before the disk and the queues "
            "hold anything up. Neither is a bound."
        )
    if results.offered:
        yield (
            f"Offered loads: {results.seconds:g} s each, {SUBSCRIBERS} subscribers, Paxos of the form "
            f"`{results.protocol}` with 10 slots at once. {_sharing(cores, results.replicas[-1])} The paper's "
            "replicas ran on machines of their own, over a network, and it does not speak of writing to disk."
        )
        publishers = max(run.publisher_share for run in results.offered)
        subscribers = max(run.subscriber_share for run in results.offered)
        is_idle = max(publishers, subscribers) < IDLE_SHARE
        late = max(run.late_ms for run in results.offered)
        yield (
            f"The clients there are {'not the bound' if is_idle else 'BUSY, and may be the bound'}: publishers used at "
            f"most {100 * publishers:.0f}% of a core, subscribers {100 * subscribers:.0f}%; the median publication was "
            f"made {late:.1f} ms after it was due, at most (latency counts from when it was made). Deliveries lost: "
            f"{sum(run.lost for run in results.offered)}."
        )
    if results.saturated:
        most = max(results.saturated, key=lambda run: run.publisher_share)
        busy = sum(run.publisher_share >= IDLE_SHARE for run in results.saturated)
        yield (
            f"In saturated runs ({results.events:,} events each) the process of all publishers used at most "
            f"{100 * most.publisher_share:.0f}% of a core (replicas: {group_name(most.replicas)}; publishers: "
            f"{most.publishers}); in {busy} of {len(results.saturated)} runs half a core or more, and there the "
            "publishers, not the brokers, may be the bound. Nobody subscribes."
        )


def _sharing(cores: int, replicas: int) -> str:
    if replicas + 2 <= cores:
        return f"{replicas} replicas and 2 client processes have a core each, of {cores}, and share one disk."
    return (
        f"All replicas and the 2 client processes share {cores} cores and one disk: of {replicas} replicas most "
        "wait while others work, and what larger groups add here is also the want of cores."
    )


def text_lines(results: Results) -> Iterator[str]:
    yield machine_line(results)
    yield from remarks(results)
    for table in tables(results):
        yield f"\n{table.title}"
        widths = [max(map(len, column)) for column in zip(table.columns, *(row for _, row in table.rows), strict=True)]
        for name, row in (("", table.columns), *table.rows):
            yield f"  {name:20}" + "".join(f"  {cell:>{width}}" for cell, width in zip(row, widths, strict=True))
    yield "\ntargets"
    for target in targets(results):
        yield f"  {target}"


def markdown_lines(results: Results) -> Iterator[str]:
    yield machine_line(results)
    for remark in remarks(results):
        yield ""
        yield remark
    for table in tables(results):
        yield from markdown_table(table)
    yield "\nTargets:\n"
    for target in targets(results):
        yield f"- {target}"
