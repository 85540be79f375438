"""Figures 6 and 7 as SVG: bars of what was measured, and a line across each where the paper's was."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.replication.paper import Values
from experiments.replication.plot import label

WIDTH, HEIGHT = 720, 260
LEFT, TOP, BELOW, RIGHT = 60, 70, 60, 20
COLOURS = {1: "#8a8a8a", 3: "#1f5f8b", 5: "#c8553d", 7: "#4a7c59"}
TICKS = 4
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


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


def draw(bars: Bars) -> str:
    width, height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BELOW
    groups = list(bars.middle)
    publishers = list(next(iter(bars.middle.values())))
    theirs = [bars.inferred[group][count] for group in groups for count in publishers]
    step = _step(max([*theirs, *(value for row in bars.high.values() for value in row.values())]) / TICKS)

    def at(value: float) -> float:
        return TOP + HEIGHT * (1 - min(1.0, value / (TICKS * step)))

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        label(LEFT, 20, bars.title, size=13),
        *(label(LEFT, 35 + 13 * row, line, colour="#666") for row, line in enumerate(bars.remarks)),
        label(LEFT - 8, TOP - 10, bars.unit, anchor="end"),
    ]
    for number in range(TICKS + 1):
        y = at(number * step)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(label(LEFT - 8, y + 4, f"{number * step:g}", anchor="end"))
    cluster = WIDTH / len(publishers)
    bar = cluster * 0.8 / len(groups)
    for place, count in enumerate(publishers):
        left = LEFT + cluster * (place + 0.1)
        parts.append(label(LEFT + cluster * (place + 0.5), TOP + HEIGHT + 16, f"#p={count}", anchor="middle"))
        for number, group in enumerate(groups):
            x, value = left + bar * number, bars.middle[group][count]
            parts.append(
                f'<rect class="bar" x="{x:.1f}" y="{at(value):.1f}" width="{bar * 0.86:.1f}" '
                f'height="{TOP + HEIGHT - at(value):.1f}" fill="{COLOURS[group]}"/>'
            )
            centre = x + bar * 0.43
            low, high = at(bars.low[group][count]), at(bars.high[group][count])
            parts.append(f'<line x1="{centre:.1f}" x2="{centre:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="#222"/>')
            paper = bars.printed.get(group, {}).get(count)
            dashes = "" if paper is not None else ' stroke-dasharray="3 2"'
            y = at(paper if paper is not None else bars.inferred[group][count])
            parts.append(
                f'<line class="paper" x1="{x - 1:.1f}" x2="{x + bar * 0.86 + 1:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
                f'stroke="#000" stroke-width="2"{dashes}/>'
            )
    return "\n".join([*parts, *_legend(groups), "</svg>"]) + "\n"


def _legend(groups: list[int]) -> list[str]:
    parts, x, y = [], float(LEFT), TOP + HEIGHT + 40
    for group in groups:
        name = "not replicated" if group == 1 else f"{group} replicas"
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{COLOURS[group]}"/>')
        parts.append(label(x + 15, y, name))
        x += 95
    for name, dashes, room in (
        ("the paper, printed", "", 115),
        ("the paper, inferred", ' stroke-dasharray="3 2"', 115),
    ):
        parts.append(f'<line x1="{x}" x2="{x + 18}" y1="{y - 4}" y2="{y - 4}" stroke="#000" stroke-width="2"{dashes}/>')
        parts.append(label(x + 23, y, name))
        x += room + 15
    return parts


def _step(least: float) -> float:
    """The smallest round number that is not less."""
    power = 1.0
    while power > least:
        power /= 10
    while power * STEPS[-1] < least:
        power *= 10
    return next(power * step for step in STEPS if power * step >= least)
