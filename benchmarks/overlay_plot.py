"""Lines on two logarithmic scales, as SVG: a diagram beside the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from experiments.replication.plot import COLOURS, label

WIDTH, HEIGHT = 260, 180  # of one diagram
LEFT, TOP, BELOW, BETWEEN = 60, 60, 50, 60


class Diagram(NamedTuple):
    """A line is its points."""

    title: str
    across: str
    lines: Mapping[str, Sequence[tuple[float, float]]]


def draw(title: str, diagrams: Sequence[Diagram]) -> str:
    width, height = LEFT + len(diagrams) * (WIDTH + BETWEEN), TOP + HEIGHT + BELOW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        label(LEFT, 20, title, size=12),
    ]
    for place, diagram in enumerate(diagrams):
        parts += _diagram(LEFT + place * (WIDTH + BETWEEN), diagram)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _diagram(left: float, diagram: Diagram) -> list[str]:
    points = [point for line in diagram.lines.values() for point in line]
    low_x, high_x = _decades([x for x, _ in points])
    low_y, high_y = _decades([y for _, y in points])

    def at(x: float, y: float) -> tuple[float, float]:
        share_x = (math.log10(x) - low_x) / (high_x - low_x)
        share_y = (math.log10(max(y, 10.0**low_y)) - low_y) / (high_y - low_y)
        return left + WIDTH * share_x, TOP + HEIGHT * (1 - share_y)

    parts = [
        label(left, TOP - 12, diagram.title, size=11),
        f'<rect x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
        label(left + WIDTH / 2, TOP + HEIGHT + 30, diagram.across, anchor="middle"),
    ]
    for power in range(low_x, high_x + 1):
        parts.append(label(at(10.0**power, 1)[0], TOP + HEIGHT + 14, f"{10.0**power:,g}", anchor="middle"))
    for power in range(low_y, high_y + 1):
        y = at(10.0**low_x, 10.0**power)[1]
        parts.append(f'<line x1="{left}" x2="{left + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(label(left - 5, y + 4, f"{10.0**power:,g}", anchor="end"))
    for number, (name, line) in enumerate(diagram.lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [at(x, y) for x, y in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts += [f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in places]
        parts.append(label(left + 8, TOP + 14 + 13 * number, name, colour=colour))
    return parts


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around them; what is not positive stands at the lowest."""
    powers = [math.log10(value) for value in values if value > 0] or [0.0]
    low = math.floor(min(powers))
    return low, max(low + 1, math.ceil(max(powers)))
