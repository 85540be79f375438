"""Draws docs/routing.svg from a run in the simulator: python scripts/routing_picture.py [--check]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Broker, Client, Publish, Routing, Scenario, ScenarioEvent, Subscribe
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
EVENT = {"symbol": "IBM", "price": 105}
STEP_X, STEP_Y, BOX_X, BOX_Y = 130, 120, 112, 50
MARGIN, PANEL, TOP = 70, 560, 70
MILLISECOND = 10**6
BLUE, RED = "1f5f8b", "c8553d"
DOTTED = 'stroke="#999" stroke-dasharray="3 3"'


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
        brokers=[Broker(id=name) for name in sorted(PLACES)],
        clients=[*clients, Client(id="p", brokers=("b1",))],
        routing=Routing(links=LINKS),
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


def label(x: float, y: float, text: str, anchor: str = "middle", size: int = 12, colour: str = "#222") -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{escape(text)}</text>'
    )


def middle(name: str, panel: int) -> tuple[float, float]:
    x, y = PLACES[name]
    return MARGIN + panel * PANEL + x * STEP_X, TOP + 50 + y * STEP_Y


def boxes(seen: Seen, panel: int) -> list[str]:
    parts = []
    for name in PLACES:
        x, y = middle(name, panel)
        offers, wishes = (len(seen.tables.get((name, table), {})) for table in ("advertisements", "subscriptions"))
        got = panel == 1 and any(row.via == name for row in seen.delivered)
        parts.append(
            f'<rect x="{x - BOX_X / 2:.0f}" y="{y - BOX_Y / 2:.0f}" width="{BOX_X}" height="{BOX_Y}" rx="6" '
            f'fill="{"#dcead9" if got else "white"}" stroke="#444"/>'
        )
        parts += [label(x, y - 5, name, size=14), label(x, y + 14, f"offers {offers}, wishes {wishes}", size=11)]
    return parts


def link(child: str, parent: str, panel: int, colour: str = "", up: bool = True, text: str = "") -> list[str]:
    """A link of the tree: dotted, or an arrow in a colour, with a text on its outer side."""
    (x1, y1), (x2, y2) = middle(child, panel), middle(parent, panel)
    side = (x1 > x2) - (x1 < x2)
    x2 += 30 * side
    ends = [(x1, y1 - BOX_Y / 2 - 2), (x2, y2 + BOX_Y / 2 + 2)]
    (x1, y1), (x2, y2) = ends if up else reversed(ends)
    style = f'stroke="#{colour}" stroke-width="2.5" marker-end="url(#{colour})"' if colour else DOTTED
    parts = [f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" {style}/>']
    if text:
        at = (x1 + x2) / 2 + 12 * (side or 1), (y1 + y2) / 2 + 4
        parts.append(label(*at, text, anchor="end" if side < 0 else "start", colour=f"#{colour}"))
    return parts


def told(seen: Seen) -> list[str]:
    """Subscriptions on their way to what is advertised: who told whom."""
    parts = []
    for parent, child in LINKS:
        table = seen.tables.get((parent, "subscriptions"), {})
        owners = [f"s{entry.split('.')[0][1:]}" for source, entry in table if source == child]
        parts += link(child, parent, 0, BLUE if owners else "", text=", ".join(owners))
    for place, (name, text) in enumerate(sorted(WANTED.items())):
        parts.append(label(20, 90 + 18 * place, f"s{name[1:]}, at {name}: {text}", "start", colour=f"#{BLUE}"))
    return parts


def way(seen: Seen) -> list[str]:
    taken = {(hop.source, hop.target): f"{(hop.t - seen.accepted) / MILLISECOND:g} ms" for hop in seen.hops}
    parts = []
    for parent, child in LINKS:
        at = taken.get((parent, child), "")
        parts += link(child, parent, 1, RED if at else "", up=False, text=at)
    return parts


def draw(seen: Seen) -> str:
    width, height = 2 * PANEL + 20, TOP + 4 * STEP_Y + 10
    event = ", ".join(f"{name} = {value!r}" for name, value in EVENT.items())
    waited = (seen.accepted - seen.published) / MILLISECOND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        "<defs>",
        *(
            f'<marker id="{colour}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" '
            f'orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="#{colour}"/></marker>'
            for colour in (BLUE, RED)
        ),
        "</defs>",
        label(20, 26, "Subscriptions go towards what is offered at b1", anchor="start", size=15),
        label(20, 46, "s6 is told to b3 and no further: s5 covers it. s4 is told to nobody.", anchor="start"),
        label(PANEL + 20, 26, f"The way of the event topic = 'stock', {event}", anchor="start", size=15),
        label(PANEL + 20, 46, f"It waited {waited:g} ms at b1 until the network had settled.", anchor="start"),
        *told(seen), *boxes(seen, 0), *way(seen), *boxes(seen, 1),
        "</svg>",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def main() -> int:
    drawn = draw(run())
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.exists() and TARGET.read_text() == drawn else 1
    TARGET.write_text(drawn)
    return 0


if __name__ == "__main__":
    sys.exit(main())
