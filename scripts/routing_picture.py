"""Draws docs/routing.svg from a run in the simulator: python -m scripts.routing_picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from experiments.drawing import BLUE, DARK, GREY, RED, as_svg, new_figure
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Broker, Client, Publish, Scenario, ScenarioEvent, Subscribe
from holdfast.trace import schema

TARGET = Path(__file__).parent.parent / "docs" / "routing.svg"
LINKS = [("b1", "b2"), ("b2", "b3"), ("b2", "b4"), ("b3", "b5"), ("b3", "b6"), ("b4", "b7")]
PLACES = {
    "b1": (2.0, 0),
    "b2": (2.0, 1),
    "b3": (1.0, 2),
    "b4": (3.0, 2),
    "b5": (0.5, 3),
    "b6": (1.5, 3),
    "b7": (3.0, 3),
}
WANTED = {  # at which broker, and what; in the order in which they are made
    "b5": "topic = 'stock' AND price > 100",
    "b6": "topic = 'stock' AND price > 110",
    "b7": "topic = 'stock' AND symbol = 'XOM'",
    "b4": "topic = 'weather'",
}
EVENT: dict[str, int | float | str | bool] = {"symbol": "IBM", "price": 105}
ACROSS, DOWN = 2.6, 2.4  # of places, in widths and heights of a box
BOX, HIGH = 2.36, 1.0
LINE, LINES = 0.46, 5  # of text below a network: their distance, and how many
MILLISECOND = 10**6
GOT = "#dcead9"


class Seen:
    """What the picture needs of a run: the tables when the event was accepted, and its way from there."""

    def __init__(self) -> None:
        self.published = self.accepted = 0
        self.tables: dict[tuple[str, str], dict[tuple[str, str], str]] = {}  # (node, table) → (source, entry) → filter
        self.hops: list[schema.Hop] = []
        self.delivered: list[schema.Delivered] = []

    def see(self, row: Any) -> None:
        match row:
            case schema.Published():
                self.published = row.t
            case schema.Accepted():
                self.accepted = row.t
            case schema.Routed() if not self.accepted:
                table = self.tables.setdefault((row.node, row.table), {})
                if row.present:
                    table[row.source, row.entry] = row.filter
                else:
                    table.pop((row.source, row.entry), None)
            case schema.Hop() if row.events and row.source in PLACES and row.target in PLACES:
                self.hops.append(row)
            case schema.Delivered():
                self.delivered.append(row)


def run() -> Seen:
    clients = [Client(id=f"s{name[1:]}", brokers=(name,)) for name in WANTED]
    scenario = Scenario(
        name="routing-picture",
        seed=1,
        # Of several neighbours the last is told first: so s5 gets to b3 before s6, which it covers.
        brokers=[Broker(id=name) for name in sorted(PLACES, reverse=True)],
        clients=[*clients, Client(id="p", brokers=("b1",))],
        links=LINKS,
        actions=[
            *(
                Subscribe(at_ms=1_000 + 100 * place, client=f"s{name[1:]}", name="s", filter=text)
                for place, (name, text) in enumerate(WANTED.items())
            ),
            Publish(at_ms=3_000, client="p", events=[ScenarioEvent(attributes=EVENT, topic="stock")]),
        ],
        faults=[],
        safety_ms=5_000,
        liveness_ms=1_000,
        checkers=["only-matching", "at-most-once", "publisher-order"],
    )
    seen = Seen()
    outcome = run_scenario(scenario, sinks=[seen])
    if outcome.violations or outcome.broken:
        sys.exit(f"the run went wrong: {outcome.violations} {outcome.broken}")
    return seen


def middle(name: str) -> tuple[float, float]:
    x, y = PLACES[name]
    return x * ACROSS, -y * DOWN


def draw_boxes(axes: Axes, seen: Seen, got: set[str]) -> None:
    for name in PLACES:
        x, y = middle(name)
        advertisements, subscriptions = (
            len(seen.tables.get((name, table), {})) for table in ("advertisements", "subscriptions")
        )
        colour = GOT if name in got else "white"
        corner = (x - BOX / 2, y - HIGH / 2)
        axes.add_patch(
            FancyBboxPatch(
                corner, BOX, HIGH, boxstyle="round,pad=0,rounding_size=0.12", facecolor=colour, edgecolor=GREY
            )
        )
        axes.text(x, y + 0.29, name, ha="center", va="center", fontsize=12, color=DARK)
        entries = f"advertisements {advertisements}\nsubscriptions {subscriptions}"
        axes.text(x, y - 0.17, entries, ha="center", va="center", fontsize=8, color=DARK)


def draw_link(axes: Axes, child: str, parent: str, colour: str = "", up: bool = True, text: str = "") -> None:
    """A link of the tree: dotted, or an arrow in a colour, with a text on its outer side."""
    (x1, y1), (x2, y2) = middle(child), middle(parent)
    side = (x1 > x2) - (x1 < x2)
    low, high = (x1, y1 + HIGH / 2 + 0.04), (x2 + 0.6 * side, y2 - HIGH / 2 - 0.04)
    if not colour:
        axes.plot(*zip(low, high, strict=True), linestyle=":", linewidth=1, color=GREY)
        return
    begin, end = (low, high) if up else (high, low)
    arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 2, "mutation_scale": 14, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=end, xytext=begin, arrowprops=arrow)
    at = (low[0] + high[0]) / 2 + 0.25 * (side or 1), (low[1] + high[1]) / 2 + (0.08 if side else 0)
    axes.text(*at, text, ha="right" if side < 0 else "left", va="center", color=colour)


def draw_told(axes: Axes, seen: Seen) -> None:
    """Subscriptions on their way to the publisher: who told whom."""
    for parent, child in LINKS:
        table = seen.tables.get((parent, "subscriptions"), {})
        owners = [f"s{entry.split('.')[0][1:]}" for source, entry in table if source == child]
        draw_link(axes, child, parent, BLUE if owners else "", text=", ".join(owners))
    draw_boxes(axes, seen, set())
    subscriptions = [f"s{name[1:]}, at {name}: {text}" for name, text in sorted(WANTED.items())]
    subscriptions.append("s6 is told to b3 and no further: s5 covers it; s4 is told to nobody")
    tell(axes, "Subscriptions go towards the advertisement of b1", subscriptions, BLUE)


def draw_way(axes: Axes, seen: Seen) -> None:
    taken = {(hop.source, hop.target): f"{(hop.t - seen.accepted) / MILLISECOND:g} ms" for hop in seen.hops}
    for parent, child in LINKS:
        at = taken.get((parent, child), "")
        draw_link(axes, child, parent, RED if at else "", up=False, text=at)
    draw_boxes(axes, seen, {row.via for row in seen.delivered})
    event = ", ".join(f"{name} = {value!r}" for name, value in EVENT.items())
    waited = (seen.accepted - seen.published) / MILLISECOND
    about = [
        f"the event: topic = 'stock', {event}",
        f"it waited {waited:g} ms at b1 until the network had settled",
        "in red: when it was sent on, counted from then",
    ]
    tell(axes, "The way of an event", about, RED)


def tell(axes: Axes, title: str, lines: list[str], colour: str) -> None:
    """A title above a network, and some lines below it."""
    places = [middle(name) for name in PLACES]
    left, right = min(x for x, _ in places) - BOX, max(x for x, _ in places) + BOX
    bottom = min(y for _, y in places) - 1.2 * HIGH
    axes.set_title(title, loc="left")
    for number, line in enumerate(lines):
        axes.text(left, bottom - LINE * number, line, va="center", color=colour)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(left, right)
    axes.set_ylim(bottom - LINE * LINES, HIGH)


def draw(seen: Seen) -> Figure:
    figure = new_figure(11, 6.3)
    left, right = figure.subplots(1, 2)
    draw_told(left, seen)
    draw_way(right, seen)
    return figure


if __name__ == "__main__":
    TARGET.write_text(as_svg(draw(run())))
