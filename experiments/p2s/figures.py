"""Figures 6 and 7: bars of what was measured, and a line across each where the paper's was."""

from __future__ import annotations

from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmarks.replication.paper import Values
from experiments.drawing import BLUE, DARK, GREEN, GREY, PALE, RED, new_figure

COLOURS = {1: "#8a8a8a", 3: BLUE, 5: RED, 7: GREEN}
PRINTED, INFERRED = "the paper, printed", "the paper, inferred"
STYLES: dict[str, Any] = {PRINTED: "-", INFERRED: (0, (1.5, 0.8))}
CLUSTER = 0.8  # of the room of a number of publishers; the rest is between them


class Bars(NamedTuple):
    """One figure. `low` and `high` are the smallest and the largest round."""

    title: str
    remarks: tuple[str, ...]  # a line each, below the title
    unit: str
    middle: Values
    low: Values
    high: Values
    printed: Values  # of the paper's values, those that it prints …
    inferred: Values  # … and all, inferred from its percentages


def draw(bars: Bars) -> Figure:
    figure = new_figure(9, 4.6)
    figure.suptitle(bars.title, x=0.01, ha="left")
    axes = figure.add_subplot()
    axes.set_title("\n".join(bars.remarks), loc="left", fontsize=9, color=GREY)
    groups = list(bars.middle)
    publishers = list(next(iter(bars.middle.values())))
    room = CLUSTER / len(groups)
    for number, group in enumerate(groups):
        for place, count in enumerate(publishers):
            x = place + room * (number - (len(groups) - 1) / 2)
            axes.bar(x, bars.middle[group][count], 0.86 * room, color=COLOURS[group])
            axes.vlines(x, bars.low[group][count], bars.high[group][count], color=DARK, linewidth=1)
            printed = bars.printed.get(group, {}).get(count)
            kind, paper = (INFERRED, bars.inferred[group][count]) if printed is None else (PRINTED, printed)
            ends = [x - 0.46 * room, x + 0.46 * room]
            axes.plot(ends, [paper, paper], color="black", linewidth=1.8, linestyle=STYLES[kind], label=kind)
    axes.set_xticks(range(len(publishers)), [f"#p={count}" for count in publishers])
    axes.set_ylabel(bars.unit)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color=PALE)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.legend(handles=_legend(groups), loc="outside lower center", ncols=len(groups) + 2, frameon=False, fontsize=9)
    return figure


def _legend(groups: list[int]) -> list[Patch | Line2D]:
    names = {group: "not replicated" if group == 1 else f"{group} replicas" for group in groups}
    papers = [
        Line2D([], [], color="black", linewidth=1.8, linestyle=style, label=kind) for kind, style in STYLES.items()
    ]
    return [*(Patch(color=COLOURS[group], label=name) for group, name in names.items()), *papers]
