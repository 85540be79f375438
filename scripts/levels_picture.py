"""Draws docs/levels.svg from runs in the simulator, one for each level: python -m scripts.levels_picture."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.drawing import GREEN, GREY, ORANGE, RED, as_svg, new_figure
from holdfast.protocols.routing.settings import Reliability
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Broker, Client, Kill, Publish, Scenario, ScenarioEvent, Subscribe
from holdfast.trace import schema

TARGET = Path(__file__).parent.parent / "docs" / "levels.svg"
# The broker in the middle of the tree stands first; the link beside the tree is for detours.
BROKERS = ("middle", "left", "right")
TREE = [("middle", "left"), ("middle", "right")]
DOWN, UP, END = 6_000, 14_000, 24_000  # milliseconds
EVERY_MS, ON_TIME_MS = 250, 1_000
SECOND, MILLISECOND = 10**9, 10**6
COLOURS = {"on time": GREEN, "late": ORANGE, "lost": RED}
BAR = 0.75  # of the room of an event
Fate = tuple[int, str]  # when an event was published, and what became of it


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

    def fates(self) -> list[Fate]:
        fates = []
        for event, t in self.published.items():
            delay = self.delivered.get(event, -1) - t
            fate = "lost" if delay < 0 else "on time" if delay <= ON_TIME_MS * MILLISECOND else "late"
            fates.append((t, fate))
        return fates


def run(level: Reliability) -> list[Fate]:
    links = [*TREE, ("left", "right")] if level.detours else TREE
    events = [ScenarioEvent(topic="t")]
    scenario = Scenario(
        name="levels-picture",
        seed=1,
        brokers=[Broker(id=name, durable=level.buffers) for name in BROKERS],
        clients=[Client(id="p", brokers=("left",)), Client(id="s", brokers=("right",))],
        links=links,
        settings={"reliability": level.value},
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
    return seen.fates()


def draw(fates: Mapping[Reliability, Sequence[Fate]]) -> Figure:
    figure = new_figure(10, 3.3)
    figure.suptitle("Four events a second; the broker in between is down for 8 s", x=0.01, ha="left")
    axes = figure.add_subplot()
    axes.axvspan(DOWN / 1_000, UP / 1_000, color="0.93", zorder=0)
    above = axes.get_xaxis_transform()
    axes.text((DOWN + UP) / 2_000, 1.03, "the broker is down", ha="center", color=GREY, transform=above)
    width = BAR * EVERY_MS / 1_000
    for place, of_level in enumerate(fates.values()):
        for name, colour in COLOURS.items():
            spans = [(t / SECOND, width) for t, fate in of_level if fate == name]
            axes.broken_barh(spans, (place - 0.2, 0.4), color=colour, linewidth=0)
    axes.set_yticks(range(len(fates)), [level.value for level in fates])
    axes.set_xlim(0.5, END / 1_000 + 0.5)
    axes.set_ylim(len(fates) - 0.5, -0.5)
    axes.set_xlabel("seconds")
    told = axes.secondary_yaxis("right")
    told.set_yticks(range(len(fates)), [counts(of_level) for of_level in fates.values()])
    for side in (axes, told):
        side.tick_params(axis="y", length=0)
    for spine in (*axes.spines.values(), *told.spines.values()):
        spine.set_visible(False)
    handles = [Patch(color=colour, label=fate) for fate, colour in COLOURS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, borderpad=0)
    return figure


def counts(fates: Sequence[Fate]) -> str:
    return ", ".join(f"{sum(found == fate for _, found in fates)} {fate}" for fate in COLOURS)


if __name__ == "__main__":
    TARGET.write_text(as_svg(draw({level: run(level) for level in Reliability})))
