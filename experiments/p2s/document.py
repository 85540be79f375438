"""What a campaign leaves behind: figures, points and tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import msgspec
from matplotlib.figure import Figure

from benchmarks.replication import paper
from benchmarks.replication.measure import Offered, Saturated
from benchmarks.replication.report import machine_line, remarks
from benchmarks.replication.results import Results, median_p50, median_per_s
from benchmarks.replication.side_by_side import absolute_tables, markdown_table, paper_tables, saturated_table
from experiments.drawing import as_svg
from experiments.p2s.campaign import FULL, Campaign
from experiments.p2s.claims import NOTES, claim_rows
from experiments.p2s.figures import Bars, draw

SATURATED = (
    "**Ours alone, the paper has none**: publications a second when publishers do not wait for their turn; each "
    "counted by all replicas, durable at a majority and acknowledged; best round"
)


def write(campaign: Campaign, folder: Path, command: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    results = campaign.results
    texts = {
        **{f"{name}.svg": as_svg(figure) for name, figure in figures(results, command).items()},
        "tables.md": "\n".join(markdown(campaign, command)) + "\n",
        "results.json": msgspec.json.format(msgspec.json.encode(campaign)).decode() + "\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    _write_points(results, folder / "points.csv")
    return [folder / name for name in (*texts, "points.csv")]


# -------------------------------------------------------------------------------------------------------------- figures
def figures(results: Results, command: str) -> dict[str, Figure]:
    return {"figure6": draw(_latency(results, command)), "figure7": draw(_throughput(results, command))}


def _latency(results: Results, command: str) -> Bars:
    return Bars(
        title="Figure 6: latency from publisher to subscriber, by replicas and publishers",
        remarks=_remarks(results, command, "median of the rounds' p50"),
        unit="ms",
        middle=results.offered_values(median_p50),
        low=results.offered_values(lambda runs: min(run.p50_ms for run in runs)),
        high=results.offered_values(lambda runs: max(run.p50_ms for run in runs)),
        printed=paper.PRINTED_LATENCY_MS,
        inferred=paper.INFERRED_LATENCY_MS,
    )


def _throughput(results: Results, command: str) -> Bars:
    return Bars(
        title="Figure 7: publications processed a second, of those that the paper's publishers offer",
        remarks=_remarks(results, command, "median of the rounds"),
        unit="1/s",
        middle=results.offered_values(median_per_s),
        low=results.offered_values(lambda runs: min(run.per_s for run in runs)),
        high=results.offered_values(lambda runs: max(run.per_s for run in runs)),
        printed=paper.PRINTED_PER_S,
        inferred=paper.INFERRED_PER_S,
    )


def _remarks(results: Results, command: str, what: str) -> tuple[str, str]:
    machine = results.machine
    place = f"{machine['cores']} cores shared by all, {machine['date']}, load {results.load_before:.1f} before"
    return f"{what}; thin lines go from the smallest to the largest round", f"{command}; {place}"


# --------------------------------------------------------------------------------------------------------------- points
def _write_points(results: Results, path: Path) -> None:
    """Every run of every round."""
    offered, saturated = list(Offered.__struct_fields__), list(Saturated.__struct_fields__)
    columns = ["load", *dict.fromkeys(offered + saturated)]
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, columns, restval="")
        rows.writeheader()
        for load, runs in (("offered", results.offered), ("saturated", results.saturated)):
            for run in runs:
                said = {name: f"{value:.6g}" if isinstance(value, float) else value for name, value in _fields(run)}
                rows.writerow({"load": load, **said})


def _fields(run: Offered | Saturated) -> Iterator[tuple[str, object]]:
    return ((name, getattr(run, name)) for name in run.__struct_fields__)


# --------------------------------------------------------------------------------------------------------------- tables
def markdown(campaign: Campaign, command: str) -> Iterator[str]:
    results = campaign.results
    latency, per_s = results.offered_values(median_p50), results.offered_values(median_per_s)
    yield f"# P2S: the paper's tables, and ours\n\nWritten by `{command}`; do not edit.\n"
    yield f"{machine_line(results)} Load after the last: {campaign.load_after:.1f}."
    for remark in remarks(results, FULL.rounds, FULL.seconds):
        yield f"\n{remark}"
    yield f"\n{_viewership(campaign)}\n\n## Absolute values"
    for table in absolute_tables(results):
        yield from markdown_table(table)
    yield "\n## Tables 1 and 2\n\nOurs are of the median of all rounds' p50, and of that of publications a second."
    for table in paper_tables(latency, per_s):
        yield from markdown_table(table)
    yield "\n## What the paper says in words\n"
    yield "| | the paper | by its own numbers | ours |\n|---|---|---|---|"
    for row in claim_rows(latency, per_s):
        yield f"| {' | '.join(row)} |"
    yield "\nWhere the paper disagrees with itself, or leaves something open:\n"
    yield from (f"- {note}" for note in NOTES)
    yield "\n## Saturated"
    yield from markdown_table(saturated_table(results, SATURATED))


def _viewership(campaign: Campaign) -> str:
    counted = campaign.viewership
    derived = sum(run.derived for run in campaign.results.offered)
    first, viewers = counted["top"][0]
    return (
        f"At the end of each round every group, of one broker or of {campaign.results.replicas[-1]}, had counted the "
        f"same: {counted['events']:,} publications, {counted['lines']:,} lines of {counted['boxes']:,} boxes, none "
        f"malformed, {len(counted['top'])} channels that somebody watches, the first of them {first} with {viewers:,} "
        f"viewers. Subscribers to the top list and to one channel got {derived:,} events of the application with "
        "offered loads."
    )
