"""Lines on two logarithmic scales: two diagrams in a row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from experiments.drawing import BLUE, GREEN, PALE, RED, new_figure

COLUMNS = 2
COLOURS = (BLUE, RED, GREEN)


class Diagram(NamedTuple):
    """A line is its points."""

    title: str
    across: str
    lines: Mapping[str, Sequence[tuple[float, float]]]


def draw(title: str, diagrams: Sequence[Diagram]) -> Figure:
    rows = -(-len(diagrams) // COLUMNS)
    figure = new_figure(9, 2.9 * rows + 0.8)
    figure.suptitle(title)
    places = figure.subplots(rows, COLUMNS, squeeze=False).flat
    for axes, diagram in zip(places, diagrams, strict=False):
        _draw_diagram(axes, diagram)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _draw_diagram(axes: Any, diagram: Diagram) -> None:
    points = [point for line in diagram.lines.values() for point in line]
    low_x, high_x = _decades([x for x, _ in points])
    low_y, high_y = _decades([y for _, y in points])
    axes.set(xscale="log", yscale="log", xlim=(low_x, high_x), ylim=(low_y, high_y))
    axes.set_title(diagram.title, loc="left", fontsize=11)
    axes.set_xlabel(diagram.across)
    for number, (name, line) in enumerate(diagram.lines.items()):
        # The first line is broader: another one may lie on it.
        width, size = (3.0, 7) if number == 0 else (1.3, 4)
        x, y = zip(*((x, max(y, low_y)) for x, y in line), strict=True)
        axes.plot(
            x,
            y,
            marker="o",
            markersize=size,
            linewidth=width,
            color=COLOURS[number],
            label=name,
            clip_on=False,
            zorder=3,
        )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        axis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color=PALE)


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """The powers of ten around them; what is not positive stands at the lowest."""
    powers = [math.log10(value) for value in values if value > 0] or [0.0]
    low = math.floor(min(powers))
    return 10.0**low, 10.0 ** max(low + 1, math.ceil(max(powers)))
