"""Lines over time: columns of two diagrams, throughput above and latency, on a logarithmic scale, below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from experiments.drawing import BLUE, GREEN, GREY, PALE, RED, new_figure

COLUMNS = 3
COLOURS = (BLUE, RED, GREEN)
NAN = float("nan")  # matplotlib draws nothing there


class Panel(NamedTuple):
    """None in a line: there is nothing to show, and the line is broken."""

    title: str
    x: Sequence[float]  # seconds
    above: Mapping[str, Sequence[float | None]]
    below: Mapping[str, Sequence[float | None]]
    marks: Mapping[str, float]  # vertical lines


def draw(panels: Sequence[Panel], title: str, above: str, below: str) -> Figure:
    """`above` and `below` name the vertical axes of the two diagrams."""
    columns = min(COLUMNS, len(panels))
    bands = -(-len(panels) // columns)
    figure = new_figure(3.6 * columns + 0.4, 4.4 * bands + 0.7)
    figure.suptitle(title)
    grid = figure.subplots(2 * bands, columns, squeeze=False)
    highest = max(_values(line for panel in panels for line in panel.above.values()), default=1.0)
    slowest = max(_values(line for panel in panels for line in panel.below.values()), default=1.0)
    for place in range(bands * columns):
        band, column = divmod(place, columns)
        upper, lower = grid[2 * band][column], grid[2 * band + 1][column]
        if place >= len(panels):
            upper.remove()
            lower.remove()
            continue
        panel = panels[place]
        upper.set_title(panel.title, loc="left", fontsize=11)
        _draw_lines(upper, panel, panel.above)
        upper.set_ylim(0, 1.05 * highest)
        upper.tick_params(labelbottom=False)
        upper.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        _draw_lines(lower, panel, panel.below)
        lower.set_yscale("log")
        lower.set_ylim(1, 10 ** max(1, math.ceil(math.log10(slowest))))
        lower.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        lower.yaxis.set_minor_formatter(NullFormatter())
        ends = (panel.x[0], round(panel.x[-1]))
        names = {**dict.fromkeys(ends, ""), **{at: f"\n{name}" for name, at in panel.marks.items()}}
        lower.set_xticks(list(names), [f"{at:g} s{name}" for at, name in names.items()])
        if column == 0:
            upper.set_ylabel(above)
            lower.set_ylabel(below)
    handles, labels = grid[1][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _draw_lines(axes: Any, panel: Panel, lines: Mapping[str, Sequence[float | None]]) -> None:
    for at in panel.marks.values():
        axes.axvline(at, color=GREY, linestyle="--", linewidth=0.8)
    for colour, (name, values) in zip(COLOURS, lines.items(), strict=False):
        axes.plot(panel.x, [NAN if value is None else value for value in values], color=colour, linewidth=1, label=name)
    axes.grid(axis="y", color=PALE)
    axes.set_xlim(panel.x[0], round(panel.x[-1]))


def _values(lines: Any) -> list[float]:
    return [value for line in lines for value in line if value]
