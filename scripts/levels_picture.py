"""Draws docs/levels.svg from runs in the simulator, one for each level: python scripts/levels_picture.py [--check]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from holdfast.protocols.routing.settings import Reliability
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Broker, Client, Kill, Publish, Routing, Scenario, ScenarioEvent, Subscribe
from holdfast.trace import schema

TARGET = Path(__file__).parent.parent / "docs" / "levels.svg"
# The broker in the middle of the tree stands first; the link beside the tree is for detours.
BROKERS = ("middle", "left", "right")
TREE = [("middle", "left"), ("middle", "right")]
DOWN, UP, END = 6_000, 14_000, 24_000  # milliseconds
EVERY_MS, ON_TIME_MS = 250, 1_000
LEFT, TOP, ROW, STEP = 150, 70, 54, 8
SECOND = 10**9
COLOURS = {"on time": "#3a7d44", "late": "#d98e04", "lost": "#c8553d"}


class Seen:
    def __init__(self) -> None:
        self.published: dict[str, int] = {}
        self.delivered: dict[str, int] = {}

    def see(self, row: Any) -> None:
        match row:
            case schema.Published():
                self.published[row.event] = row.t
            case schema.Delivered():
                self.delivered[row.event] = row.t

    def fates(self) -> list[tuple[int, str]]:
        """When each event was published, and what became of it."""
        fates = []
        for event, t in self.published.items():
            delay = self.delivered.get(event, -1) - t
            fate = "lost" if delay < 0 else "on time" if delay <= ON_TIME_MS * 10**6 else "late"
            fates.append((t, fate))
        return fates


def run(level: Reliability) -> Seen:
    links = [*TREE, ("left", "right")] if level.detours else TREE
    events = [ScenarioEvent(topic="t")]
    scenario = Scenario(
        name="levels-picture",
        seed=1,
        brokers=[Broker(id=name, durable=level.buffers) for name in BROKERS],
        clients=[Client(id="p", brokers=("left",)), Client(id="s", brokers=("right",))],
        routing=Routing(links=links, reliability=level),
        actions=[
            Subscribe(at_ms=500, client="s", name="s", filter="topic = 't'"),
            *(Publish(at_ms=at, client="p", events=events) for at in range(1_000, END, EVERY_MS)),
        ],
        faults=[Kill(at_ms=DOWN, for_ms=UP - DOWN, host="middle")],
        safety_ms=END,
        liveness_ms=10_000,
        checkers=["only-matching", "at-most-once", "network"],
    )
    seen = Seen()
    outcome = run_scenario(scenario, sinks=[seen])
    if outcome.violations or outcome.broken:
        sys.exit(f"the run went wrong: {outcome.violations} {outcome.broken}")
    return seen


def label(x: float, y: float, text: str, anchor: str = "start", size: int = 12, colour: str = "#222") -> str:
    style = f'text-anchor="{anchor}" font-size="{size}" fill="{colour}"'
    return f'<text x="{x:.0f}" y="{y:.0f}" {style}>{escape(text)}</text>'


def across(milliseconds: float) -> float:
    return LEFT + milliseconds / EVERY_MS * STEP


def row(level: Reliability, place: int) -> list[str]:
    y = TOP + place * ROW
    fates = run(level).fates()
    parts = [label(20, y + 5, level.value, size=14)]
    for t, fate in fates:
        colour = COLOURS[fate]
        parts.append(f'<rect x="{across(t / 10**6):.0f}" y="{y - 10}" width="{STEP - 2}" height="20" fill="{colour}"/>')
    counts = ", ".join(f"{sum(found == fate for _, found in fates)} {fate}" for fate in COLOURS)
    return [*parts, label(across(END) + 14, y + 5, counts)]


def draw() -> str:
    levels = tuple(Reliability)
    width, height = int(across(END)) + 200, TOP + len(levels) * ROW + 10
    legend = [
        part
        for place, (fate, colour) in enumerate(COLOURS.items())
        for part in (
            f'<rect x="{LEFT + 110 * place}" y="34" width="12" height="12" fill="{colour}"/>',
            label(LEFT + 110 * place + 18, 45, fate),
        )
    ]
    shade = f'x="{across(DOWN):.0f}" y="{TOP - 22}" width="{across(UP) - across(DOWN):.0f}" height="{height - TOP + 8}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        label(20, 24, "Four events a second; the broker in between is down for 8 s", size=15),
        *legend,
        f'<rect {shade} fill="#eee"/>',
        label(across(DOWN) + 4, TOP - 26, "the broker is down", colour="#666"),
        *(part for place, level in enumerate(levels) for part in row(level, place)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> int:
    drawn = draw()
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.exists() and TARGET.read_text() == drawn else 1
    TARGET.write_text(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
