"""Lines over time as SVG: columns of two diagrams, throughput above and latency, on a logarithmic scale, below."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 300, 150  # of one diagram
LEFT, TOP, BETWEEN = 60, 60, 40
COLUMNS = 3
COLOURS = ("#1f5f8b", "#c8553d", "#4a7c59")


class Panel(NamedTuple):
    """None in a line: there is nothing to show, and the line is broken."""

    title: str
    x: Sequence[float]
    above: Mapping[str, Sequence[float | None]]
    below: Mapping[str, Sequence[float | None]]
    marks: Mapping[str, float]  # vertical lines


def draw(panels: Sequence[Panel], title: str) -> str:
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // COLUMNS)
    step_x, step_y = WIDTH + LEFT, 2 * HEIGHT + 3 * BETWEEN
    width, height = columns * step_x + BETWEEN, rows * step_y + TOP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        label(LEFT, 20, title, size=12),
    ]
    highest = max((value for panel in panels for line in panel.above.values() for value in line if value), default=1.0)
    slowest = max((value for panel in panels for line in panel.below.values() for value in line if value), default=1.0)
    decades = max(1, math.ceil(math.log10(slowest)))
    for place, panel in enumerate(panels):
        x, y = LEFT + place % COLUMNS * step_x, TOP + place // COLUMNS * step_y
        parts.append(label(x, y - 8, panel.title, size=12))
        ticks = {f"{share * highest:,.0f}": share for share in (0.0, 0.5, 1.0)}
        parts += _diagram(x, y, panel, panel.above, ticks, lambda value: value / highest)
        logarithmic = {f"{10**power:g}": power / decades for power in range(decades + 1)}
        parts += _diagram(
            x,
            y + HEIGHT + BETWEEN,
            panel,
            panel.below,
            logarithmic,
            lambda value: math.log10(max(value, 1.0)) / decades,
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _diagram(
    x: int,
    y: int,
    panel: Panel,
    lines: Mapping[str, Sequence[float | None]],
    ticks: Mapping[str, float],
    share: Callable[[float], float],
) -> list[str]:
    """`ticks` are texts and where they stand, from 0 to 1; `share` is where a value stands."""
    first, last = panel.x[0], panel.x[-1]

    def across(at: float) -> float:
        return x + (at - first) / ((last - first) or 1.0) * WIDTH

    parts = [f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>']
    parts += [label(x - 5, y + HEIGHT * (1 - at) + 4, text, anchor="end") for text, at in ticks.items()]
    times = (first, *panel.marks.values())
    parts += [label(across(at), y + HEIGHT + 13, f"{at:g} s", anchor="middle") for at in times]
    for name, at in panel.marks.items():
        parts.append(
            f'<line x1="{across(at):.1f}" x2="{across(at):.1f}" y1="{y}" y2="{y + HEIGHT}" stroke="#999" '
            f'stroke-dasharray="3 3"/>'
        )
        parts.append(label(across(at) + 3, y + HEIGHT - 5, name, colour="#666"))
    for number, (name, values) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        for points in _unbroken(panel.x, values):
            path = " ".join(f"{across(at):.1f},{y + HEIGHT * (1 - share(value)):.1f}" for at, value in points)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}"/>')
        parts.append(label(x + 6 + 60 * number, y + 14, name, colour=colour))
    return parts


def _unbroken(x: Sequence[float], values: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for at, value in zip(x, values, strict=True):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((at, value))
    return [run for run in runs if run]


def label(x: float, y: float, text: str, size: int = 10, anchor: str = "start", colour: str = "#222") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {where}>{escape(text)}</text>"
