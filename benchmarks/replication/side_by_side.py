"""Tables with the paper's values beside ours: absolute ones, and its Tables 1 and 2 (D4-D4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from benchmarks.replication import paper
from benchmarks.replication.measure import Offered
from benchmarks.replication.paper import AT_ODDS, OFFERED, PRINTED, Values
from benchmarks.replication.results import (
    PROTOCOLS,
    Results,
    best_costs,
    best_mean,
    best_p50,
    best_per_s,
    median_p50,
    median_per_s,
)
from benchmarks.replication.tables import (
    drop_from_fewer_replicas,
    growth_over_fewer_publishers,
    growth_over_fewer_replicas,
)

ODD = "†"  # beside an entry of the paper that agrees with no absolute values
TABLES = (
    ("latency_1", "Table 1, latency: % more than with the next fewer replicas"),
    ("throughput_1", "Table 1, throughput: % less than with the next fewer replicas"),
    ("latency_2", "Table 2, latency: % more than with the next fewer publishers"),
    ("throughput_2", "Table 2, throughput: % more than with the next fewer publishers"),
)


class Table(NamedTuple):
    title: str
    columns: Sequence[str]  # without the first, which has no title
    rows: Sequence[tuple[str, Sequence[str]]]


def group_name(replicas: int) -> str:
    return "1 (not replicated)" if replicas == 1 else str(replicas)


def percentages(latency: Values, per_s: Values) -> dict[str, Values]:
    """The paper's tables, by their names in `Printed`, from absolute values."""
    return {
        "latency_1": growth_over_fewer_replicas(latency),
        "throughput_1": drop_from_fewer_replicas(per_s),
        "latency_2": growth_over_fewer_publishers(latency),
        "throughput_2": growth_over_fewer_publishers(per_s),
    }


def paper_tables(latency: Values, per_s: Values) -> Iterator[Table]:
    """Tables 1 and 2. Groups and publishers are the paper's first ones: each is compared with the one before."""
    computed = percentages(latency, per_s)
    publishers = list(next(iter(latency.values())))
    counts = [f"#p={count}" for count in publishers]
    steps = [f"{fewer}→{more}" for fewer, more in pairwise(publishers)]
    for name, title in TABLES:
        rows = [
            (group_name(replicas), [_beside(name, replicas, count, mine) for count, mine in row.items()])
            for replicas, row in computed[name].items()
        ]
        yield Table(f"{title}; ours, and (the paper's)", counts if name.endswith("_1") else steps, rows)


def _beside(table: str, replicas: int, publishers: int, mine: float) -> str:
    printed: Values = getattr(PRINTED, table)
    mark = ODD if (table, replicas, publishers) in AT_ODDS else ""
    return f"{mine:.2f} ({printed[replicas][publishers]:.2f}{mark})"


# ------------------------------------------------------------------------------------------------------------ absolute
def absolute_tables(results: Results) -> Iterator[Table]:
    publishers = results.publishers
    best, mean, middle = (results.offered_values(figure) for figure in (best_p50, best_mean, median_p50))
    rows = [
        (
            group_name(replicas),
            [
                f"{best[replicas][count]:.2f}, {mean[replicas][count]:.2f}, {middle[replicas][count]:.2f} "
                f"({papers_latency(replicas, count)})"
                for count in publishers
            ],
        )
        for replicas in results.replicas
    ]
    columns = [f"#p={count}" for count in publishers]
    yield Table(
        "Latency, ms: p50 and mean of the best round, median of all rounds' p50, and (the paper's; ~ is inferred)",
        columns,
        rows,
    )
    offered = [f"#p={count}, {OFFERED[count]:g} offered" for count in publishers]
    title = "Publications a second: median of the rounds, and (the paper's; ~ is inferred)"
    yield _with_papers(title, offered, results, median_per_s, papers_per_s)


def _with_papers(
    title: str,
    columns: Sequence[str],
    results: Results,
    figure: Callable[[list[Offered]], float],
    papers: Callable[[int, int], str],
) -> Table:
    rows = [
        (group_name(replicas), [f"{value:.2f} ({papers(replicas, count)})" for count, value in row.items()])
        for replicas, row in results.offered_values(figure).items()
    ]
    return Table(title, columns, rows)


def papers_latency(replicas: int, publishers: int) -> str:
    return _theirs(paper.PRINTED_LATENCY_MS, paper.INFERRED_LATENCY_MS, replicas, publishers)


def papers_per_s(replicas: int, publishers: int) -> str:
    return _theirs(paper.PRINTED_PER_S, paper.INFERRED_PER_S, replicas, publishers)


def _theirs(printed: Values, inferred: Values, replicas: int, publishers: int) -> str:
    value = printed.get(replicas, {}).get(publishers)
    return f"{value:.2f}" if value is not None else f"~{inferred[replicas][publishers]:.2f}"


def against_one_broker(results: Results) -> Table:
    rows = [
        (
            str(replicas),
            [
                f"{results.added_ms(replicas, count):+.2f} ms, {1 - results.drop_percent(replicas, count) / 100:.4f} ×"
                for count in results.publishers
            ],
        )
        for replicas in results.replicas[1:]
    ]
    columns = [f"#p={count}" for count in results.publishers]
    return Table("Against one broker: added to the p50, and throughput as a ratio", columns, rows)


def saturated_table(results: Results, title: str) -> Table:
    rows = []
    for replicas in results.replicas:
        for protocol in PROTOCOLS if replicas > 1 else PROTOCOLS[:1]:
            runs = [results.saturated_rounds(replicas, protocol, count) for count in results.publishers]
            if not all(runs):
                continue
            name = f"{replicas}, {protocol}" if replicas > 1 else group_name(1)
            rows.append((name, [f"{best_per_s(each):,.0f}" for each in runs]))
    return Table(title, [f"#p={count}" for count in results.publishers], rows)


def processor_table(results: Results, title: str) -> Table:
    """Of groups, the replica that takes most (it leads) and the one that takes least."""
    rows = []
    for replicas in results.replicas:
        for protocol in PROTOCOLS if replicas > 1 else PROTOCOLS[:1]:
            runs = [results.saturated_rounds(replicas, protocol, count) for count in results.publishers]
            if not all(each and each[0].cpu_us for each in runs):
                continue
            name = f"{replicas}, {protocol}" if replicas > 1 else group_name(1)
            rows.append((name, [_costs(best_costs(each)) for each in runs]))
    return Table(title, [f"#p={count}" for count in results.publishers], rows)


def _costs(costs: Sequence[float]) -> str:
    most, least = f"{max(costs):.2f}", f"{min(costs):.2f}"
    return f"{most}, {least}" if len(costs) > 1 else most


def markdown_table(table: Table) -> Iterator[str]:
    yield f"\n{table.title}:\n"
    yield f"| replicas | {' | '.join(table.columns)} |"
    yield "|---" * (len(table.columns) + 1) + "|"
    for name, row in table.rows:
        yield f"| {name} | {' | '.join(row)} |"
