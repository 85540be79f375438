"""Figs. 7 to 11: medians of what was measured, with the smallest and the largest; what the paper prints is dashed."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.drawing import BLUE, DARK, GREEN, GREY, ORANGE, PALE, RED, new_figure
from experiments.standin.campaign import ALONE, BATCHED, ONE_BY_ONE, PROCESSES
from experiments.standin.recorded import Metric, Table

COLOURS: Final = {"basic": ORANGE, "synch": BLUE, "increm": RED, ALONE: DARK, "table": RED, "pending": GREEN,
                  "general": ORANGE}  # fmt: skip
STYLES: Final[dict[str, Any]] = {"": "-", "failover": "-", "ms": "-", "ms-ro": (0, (4, 1.5))}
MARKERS: Final = {"basic": "s", "synch": "o", "increm": "^", ALONE: "x", "table": "^", "pending": "o",
                  "general": "s"}  # fmt: skip
ROWS: Final = {
    PROCESSES: "in processes",
    BATCHED: "simulated",
    ONE_BY_ONE: "one by one",
}


DECADES: Final = 20  # so many times the least: drawn by its logarithm


class Panel(NamedTuple):
    """`paper`: levels that the paper prints; `times` are drawn in milliseconds."""

    metric: Metric
    label: str
    paper: tuple[float, ...] = ()  # where events go one by one
    is_log: bool = False


class Picture(NamedTuple):
    figure: str
    title: str
    x: str
    panels: tuple[Panel, ...]
    is_log_x: bool = False
    ticks: tuple[float, ...] = ()


_PDRD: Final = Panel("pdrd_ms", "resumption delay (ms)", is_log=True)
_ORDER: Final = Panel("rank", "ordering degree")
_REPLICATION: Final = Panel("replication_ms", "replication time (ms)", is_log=True)
PICTURES: Final = (
    Picture("fig7", "Fig. 7: subscription population", "subscriptions",
            (_PDRD._replace(paper=(7_300, 13_800)), _ORDER._replace(paper=(0.8,)), _REPLICATION), True,
            (100, 300, 1_000, 3_000, 10_000)),
    Picture("fig8", "Fig. 8: publication fanout", "subscriptions that an event matches, on average",
            (_PDRD, _ORDER._replace(paper=(0.6,)), _REPLICATION)),
    Picture("fig9", "Fig. 9: pending publications", "pending events",
            (_PDRD, _ORDER._replace(paper=(0.8,)), _REPLICATION), False, (100, 250, 500, 1_000)),
    Picture("fig10a", "Fig. 10(a): neighbours that share 1,000 subscriptions", "neighbours that forward subscriptions",
            (_PDRD, _REPLICATION), False, (1, 5, 10, 20)),
    Picture("fig10b", "Fig. 10(b): neighbours with 500 subscriptions each", "neighbours that forward subscriptions",
            (_PDRD, _REPLICATION), False, (1, 5, 10, 20)),
    Picture("fig11", "Fig. 11: congestion", "events offered, by what one way takes",
            (_ORDER._replace(paper=(0.77, 0.49)), Panel("lmpt_ms", "last message processed (ms)"),
             Panel("per_s", "events handed on each second")), False, (1, 2, 3)),
    Picture("orders", "increm, by the order in which subscriptions come",
            "subscriptions that an event matches, on average",
            (_PDRD, _ORDER, _REPLICATION)),
)  # fmt: skip


def draw(picture: Picture, table: Table, remark: str) -> Figure:
    hows = table.hows(picture.figure)
    columns, rows = len(picture.panels), len(hows)
    figure = new_figure(3.6 * columns + 0.4, 2.9 * rows + 1.3)
    figure.suptitle(picture.title, x=0.01, ha="left")
    axes = figure.subplots(rows, columns, squeeze=False)
    for row, how in enumerate(hows):
        for column, panel in enumerate(picture.panels):
            _draw_panel(axes[row][column], picture, panel, table, how)
            if column == 0:
                axes[row][0].set_title(ROWS[how], loc="left", fontsize=10, color=DARK)
            if row == rows - 1:
                axes[row][column].set_xlabel(picture.x if columns < 3 or column == 1 else "")
    names = table.names(picture.figure)
    has_paper = ONE_BY_ONE in hows and any(panel.paper for panel in picture.panels)
    figure.legend(
        handles=_legend(names, has_paper), loc="outside lower left", ncols=len(names) + 1 if len(names) < 5 else 4,
        frameon=False, fontsize=9, title=remark, alignment="left", title_fontproperties={"size": 8},
    )  # fmt: skip
    return figure


def _draw_panel(axes: Axes, picture: Picture, panel: Panel, table: Table, how: str) -> None:
    drawn: list[float] = []
    middles_of_all: list[float] = []
    for name in table.names(picture.figure):
        series = table.series(picture.figure, how, name)
        spreads = list(series.spreads(panel.metric))
        if not spreads:
            continue
        protocol, mode = _parts(name)
        xs = [x for x, _ in spreads]
        middles = [spread.middle for _, spread in spreads]
        middles_of_all += middles
        drawn += [spread.high for _, spread in spreads]
        errors = [
            [spread.middle - spread.low for _, spread in spreads],
            [spread.high - spread.middle for _, spread in spreads],
        ]
        axes.errorbar(
            xs, middles, yerr=errors, color=COLOURS[protocol], linestyle=STYLES[mode], marker=MARKERS[protocol],
            markersize=4, linewidth=1.4, elinewidth=1, capsize=2, markerfacecolor="white" if mode == "ms-ro" else None,
        )  # fmt: skip
    for level in panel.paper if how == ONE_BY_ONE else ():
        axes.axhline(level, color=GREY, linewidth=1, linestyle=(0, (2, 2)))
    if panel.metric == "rank":
        axes.set_ylim(0.45, 1.03)
    elif panel.is_log and _spans_decades(middles_of_all):
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 1.08 * max(drawn, default=1.0))
    if picture.is_log_x:
        axes.set_xscale("log")
    if picture.ticks:
        axes.set_xticks(picture.ticks, [f"{tick:,.0f}" for tick in picture.ticks])
        axes.minorticks_off()
    axes.set_ylabel(panel.label)
    axes.grid(color=PALE)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def label_of(name: str) -> str:
    return name.replace("-failover", "").replace(ALONE, "no stand-in")


def _parts(name: str) -> tuple[str, str]:
    """What a line is coloured by, and its mode."""
    case, _, order = name.partition(" ")
    protocol, _, mode = case.partition("-")
    return (order, "") if order else (protocol, mode)


def _spans_decades(values: list[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) > DECADES


def _legend(names: list[str], has_paper: bool) -> list[Line2D]:
    handles = []
    for name in names:
        protocol, mode = _parts(name)
        handles.append(
            Line2D([], [], color=COLOURS[protocol], linestyle=STYLES[mode], marker=MARKERS[protocol], markersize=4,
                   markerfacecolor="white" if mode == "ms-ro" else None, label=label_of(name))
        )  # fmt: skip
    paper = Line2D([], [], color=GREY, linewidth=1, linestyle=(0, (2, 2)), label="the paper, printed")
    return [*handles, paper] if has_paper else handles
