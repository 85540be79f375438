"""What a campaign leaves behind: figures, points, and a page with the paper's words beside ours."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from experiments.drawing import as_svg
from experiments.standin.campaign import Result
from experiments.standin.claims import Verdict, verdicts
from experiments.standin.pictures import PICTURES, ROWS, draw, label_of
from experiments.standin.recorded import Recorded, Table

COMMAND: Final = "python -m experiments.standin --figures"
COLUMNS: Final = ("pdrd_ms", "lmpt_ms", "replication_ms", "rank", "penalised", "dropped", "per_s", "silent")
SHOWN: Final = (
    ("pdrd_ms", "resumption delay, ms", "{:,.1f}"),
    ("replication_ms", "replication, ms", "{:,.1f}"),
    ("lmpt_ms", "last message, ms", "{:,.1f}"),
    ("rank", "order", "{:.3f}"),
    ("penalised", "… with losses", "{:.3f}"),
    ("dropped", "dropped", "{:.1%}"),
    ("per_s", "events a second", "{:,.0f}"),
)
SPEED: Final[str] = "per_s"  # only where work is shared: else what waited comes at once


def write(recorded: Recorded, folder: Path, command: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    table = Table(recorded.results)
    texts = {
        f"{picture.figure}.svg": as_svg(draw(picture, table, remark_of(recorded, command, picture.figure)))
        for picture in PICTURES
        if table.hows(picture.figure)
    }
    texts["tables.md"] = "\n".join(markdown(recorded, command)) + "\n"
    texts["results.json"] = msgspec.json.format(msgspec.json.encode(recorded)).decode() + "\n"
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    _write_points(recorded.results, folder / "points.csv")
    return [folder / name for name in (*texts, "points.csv")]


def remark_of(recorded: Recorded, command: str, figure: str) -> str:
    machine = recorded.machine
    seeds = {result.point.seed for result in recorded.results if result.point.figure == figure}
    return (
        f"{command}; {machine['cores']} cores, Python {machine['python']}, {machine['date']}\nmedians of "
        f"{len(seeds)} drawn workloads, bars from the smallest to the largest"
    )


def _write_points(results: list[Result], path: Path) -> None:
    """Every run."""
    first = ("figure", "how", "series", "x", "order", "seed", "subscriptions", "pending", "fanout", "neighbours")
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow([*first, *COLUMNS, "indexed", "fanned"])
        for result in results:
            point, workload = result.point, result.point.workload
            rows.writerow(
                [point.figure, point.how, point.series, f"{point.x:g}", point.order, point.seed,
                 workload.subscriptions, workload.pending, f"{workload.fanout:.6g}", point.neighbours,
                 *(_plain(getattr(result.measured, name)) for name in COLUMNS), result.indexed, result.fanned]
            )  # fmt: skip


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


# --------------------------------------------------------------------------------------------------------------- tables
def markdown(recorded: Recorded, command: str) -> Iterator[str]:
    machine, table = recorded.machine, Table(recorded.results)
    yield f"# The paper's figures of stand-ins: what was measured\n\nWritten by `{command}`; do not edit.\n"
    yield (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
        f"{machine['date']}; load {recorded.load[0]:g} before, {recorded.load[1]:g} after. Medians of "
        f"{recorded.repetitions} drawn workloads, of 2 in Fig. 11. What it means: [README.md](README.md)."
    )
    yield "\n## What the paper says, and what is so here\n"
    yield "| figure | the paper says | printed | run as | ours | |\n|---|---|---|---|---|---|"
    for verdict in verdicts(table):
        claim = verdict.claim
        cells = (claim.figure, claim.text, claim.printed, _how(verdict.how), verdict.ours, verdict.said)
        yield f"| {' | '.join(cells)} |"
    yield from _memory(recorded.results)
    for picture in PICTURES:
        for how in table.hows(picture.figure):
            yield f"\n## {picture.title}: {_how(how)}\n"
            yield from _rows(table, picture.figure, how)


def _how(how: str) -> str:
    return ROWS[how]


def _rows(table: Table, figure: str, how: str) -> Iterator[str]:
    shown = [each for each in SHOWN if figure == "fig11" or each[0] != SPEED]
    yield f"| x | protocol | {' | '.join(name for _, name, _ in shown)} |"
    yield f"|---|---|{'---:|' * len(shown)}"
    names = table.names(figure)
    xs = sorted({x for name in names for x in table.series(figure, how, name).xs})
    for x in xs:
        for name in names:
            series = table.series(figure, how, name)
            if x not in series.xs:
                continue
            cells = []
            for metric, _, form in shown:
                spread = series.at(x, metric)
                cells.append("–" if spread is None else form.format(spread.middle))
            yield f"| {x:,g} | {label_of(name)} | {' | '.join(cells)} |"


def _memory(results: list[Result]) -> Iterator[str]:
    """Of runs with `increm` in the simulator, by what was drawn."""
    found = [result for result in results if result.indexed and not result.point.order]
    if not found:
        return
    yield "\n## What the wait-ready queue takes (D0-C24)\n"
    yield "Of Figs. 7 to 9, first workload: places in wait and ready queues, at the most. The paper's structure has "
    yield "f · abs(P): one for each subscription that an event matches.\n"
    yield "| subscriptions | pending events | f · abs(P) | places | places / (f · abs(P)) |\n|---:|---:|---:|---:|---:|"
    seen: set[tuple[int, int, int]] = set()
    for result in found:
        point = result.point
        workload = point.workload
        key = (workload.subscriptions, workload.pending, result.fanned)
        if point.seed == 1 and point.figure in ("fig7", "fig8", "fig9") and key not in seen:
            seen.add(key)
            yield (
                f"| {workload.subscriptions:,} | {workload.pending:,} | {result.fanned:,} | {result.indexed:,} | "
                f"{result.indexed / result.fanned:.3f} |"
            )


def verdict_lines(recorded: Recorded) -> Iterator[str]:
    found: list[Verdict] = list(verdicts(Table(recorded.results)))
    for verdict in found:
        claim = verdict.claim
        yield f"{claim.figure}, {_how(verdict.how)}: {claim.text}: {claim.printed}; here {verdict.ours}: {verdict.said}"
    unexpected = [verdict for verdict in found if not verdict.is_expected]
    yield f"{len(found)} verdicts, {len(unexpected)} otherwise than when this was written"
