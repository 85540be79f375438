"""Draws docs/standins.svg from a run in the simulator: python -m scripts.standin_picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.drawing import BLUE, DARK, GREY, RED, as_svg, new_figure
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Broker, Client, Kill, Operate, Publish, Scenario, ScenarioEvent, Subscribe
from holdfast.trace import schema

TARGET = Path(__file__).parent.parent / "docs" / "standins.svg"
PLACES = {"b1": 0.0, "b2": 1.0, "b4": 2.0, "b3": 3.0}  # from left to right: b4 stands in for b2
TITLES = {"b1": "b1\na neighbour, and\nthe publisher's broker", "b2": "b2\nthe faulty one", "b4": "b4\nthe stand-in"}
TITLES["b3"] = "b3\na neighbour, and\nthe subscriber's broker"
WORDS = {
    "NetworkMapTold": "the map: b4 is where b2 was",
    "StandInRequest": "what is advertised?",
    "StandInAdvertised": "advertised beyond me",
    "StandInSubscribed": "wanted beyond me",
    "StandInDone": "I know everything",
    "Forward": "event",
}
MILLISECOND = 10**6
KILLED_AT, PUBLISHED_AT, ASKED_AT = 3_000, 3_100, 3_200
LOW = 0.62  # the height of a row
DONE = "the map: nothing is under way"
LAST = "the event arrives"


class Row(NamedTuple):
    """One line of the picture: a message from one broker to another, or what happens at one."""

    t: int
    source: str
    target: str
    text: str
    colour: str


class Seen:
    """Messages between brokers, of the kinds that the picture shows, from when the faulty one is killed."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._is_done = False

    def see(self, row: Any) -> None:
        match row:
            case schema.Hop() if row.source in PLACES and row.target in PLACES and row.what in WORDS:
                if row.t >= KILLED_AT * MILLISECOND:
                    colour = RED if row.events else DARK if row.what == "NetworkMapTold" else BLUE
                    self._is_done |= row.what == "StandInDone"
                    text = DONE if row.what == "NetworkMapTold" and self._is_done else WORDS[row.what]
                    self.rows.append(Row(row.t, row.source, row.target, text, colour))
            case schema.Fault() if row.component == "b2" and row.state == "crashed":
                self.rows.append(Row(row.t, "b2", "b2", "kill -9", RED))
            case schema.Accepted() if row.t >= KILLED_AT * MILLISECOND:
                self.rows.append(Row(row.t, "b1", "b1", "an event is accepted, and waits", RED))
            case schema.Delivered() if row.t >= KILLED_AT * MILLISECOND:
                self.rows.append(Row(row.t, "b3", "b3", LAST, RED))


def run() -> Seen:
    told = {"id": "b2", "by": "b4", "address": "b4", "peer_address": "b4", "protocol": "synch"}
    event = ScenarioEvent(attributes={"symbol": "IBM"}, topic="stock")
    scenario = Scenario(
        name="standin-picture",
        seed=1,
        settings={"stand_ins": True},
        brokers=[*(Broker(id=name, durable=True) for name in ("b1", "b2", "b3")), Broker(id="b4", spare=True)],
        clients=[Client(id="s", brokers=("b3",)), Client(id="p", brokers=("b1",))],
        links=[("b1", "b2"), ("b2", "b3")],
        actions=[
            Subscribe(at_ms=1_000, client="s", name="s", filter="topic = 'stock'"),
            Publish(at_ms=1_500, client="p", events=[event]),
            Publish(at_ms=PUBLISHED_AT, client="p", events=[event]),
        ],
        operations=[Operate(at_ms=ASKED_AT, action="replace", told=told)],
        faults=[Kill(at_ms=KILLED_AT, for_ms=1_000, host="b2", for_ever=True)],
        safety_ms=6_000,
        liveness_ms=1_000,
        checkers=["only-matching", "at-most-once", "publisher-order"],
    )
    seen = Seen()
    outcome = run_scenario(scenario, sinks=[seen])
    if outcome.violations or outcome.broken:
        sys.exit(f"the run went wrong: {outcome.violations} {outcome.broken}")
    asked = Row(ASKED_AT * MILLISECOND, "b1", "b1", "holdfast standin replace", DARK)
    seen.rows = sorted([*seen.rows, asked], key=lambda row: row.t)
    return seen


def draw_row(axes: Axes, number: int, row: Row) -> None:
    y = -LOW * (number + 1)
    begin, end = PLACES[row.source], PLACES[row.target]
    if begin == end:
        axes.plot([begin], [y], marker="X" if "kill" in row.text else "o", markersize=7, color=row.colour)
        side = -1 if row.source == "b3" else 1
        align = "right" if side < 0 else "left"
        axes.text(begin + 0.06 * side, y + 0.02, row.text, ha=align, va="bottom", fontsize=9, color=row.colour)
        return
    arrow = {"arrowstyle": "-|>", "color": row.colour, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=(end, y), xytext=(begin, y), arrowprops=arrow)
    axes.text((begin + end) / 2, y + 0.04, row.text, ha="center", va="bottom", fontsize=9, color=row.colour)


def draw(seen: Seen) -> Figure:
    figure = new_figure(10, 1.4 + 0.42 * len(seen.rows))
    axes = figure.subplots()
    bottom = -LOW * (len(seen.rows) + 1)
    killed = next(place for place, row in enumerate(seen.rows) if row.source == row.target == "b2")
    for name, x in PLACES.items():
        end = -LOW * (killed + 1) if name == "b2" else bottom
        axes.plot([x, x], [0, end], color=GREY, linewidth=1)
        axes.text(x, 0.12, TITLES[name], ha="center", va="bottom", fontsize=10, color=DARK)
    for number, row in enumerate(seen.rows):
        draw_row(axes, number, row)
        at = f"{(row.t / MILLISECOND) - KILLED_AT:.1f} ms"
        axes.text(-0.32, -LOW * (number + 1), at, ha="right", va="center", fontsize=8, color=GREY)
    axes.set_axis_off()
    axes.set_xlim(-0.75, 3.6)
    axes.set_ylim(bottom, 1.3)
    return figure


if __name__ == "__main__":
    TARGET.write_text(as_svg(draw(run())))
