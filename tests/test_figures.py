"""Every figure that a command of the repository draws can be read, and those of the docs are what the commands draw."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import msgspec
import pytest
from matplotlib.figure import Figure

from benchmarks.overlay import picture as overlay_picture
from benchmarks.overlay_tables import Tables
from experiments.d1.world import Setup
from experiments.drawing import as_svg, is_same_picture, new_figure
from experiments.p2s.__main__ import command_of
from experiments.p2s.campaign import Campaign
from experiments.p2s.document import figures as p2s_figures
from experiments.qos.report import figure as qos_figure
from experiments.qos.topology import MeanPoint, Topology
from experiments.replication.crash import picture_of as crash_picture
from experiments.standin.document import COMMAND as STANDINS_COMMAND
from experiments.standin.document import remark_of
from experiments.standin.pictures import PICTURES, Picture
from experiments.standin.pictures import draw as draw_standins
from experiments.standin.recorded import Recorded, Table
from holdfast.broker.site import site_from_toml
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.picture import LABELS_MAX, draw_network
from holdfast.qos.site_model import model_of
from scripts import levels_picture, routing_picture, standin_picture
from tests.figures import flaws, texts_of
from tests.repository import ROOT

DOCS = ROOT / "docs"
MEASURED = {"graphs.png", "trees.png"}  # 18 minutes of `python -m experiments.qos`; their layout is held below


# ------------------------------------------------------------------------------------------------- the figures of docs
def levels() -> Figure:
    """D1-A10, D1-C1, D1-C2, D1-C3, D1-C4, D1-C5: the runs are the same each time."""
    return levels_picture.draw({level: levels_picture.run(level) for level in Reliability})


def routing() -> Figure:
    """D0-B1, D2-B3: the run is the same each time."""
    return routing_picture.draw(routing_picture.run())


def standins() -> Figure:
    """D0-B3, D0-B7, D0-B8: the run is the same each time."""
    return standin_picture.draw(standin_picture.run())


def crash() -> Figure:
    return crash_picture(DOCS / "replication-results" / "crash.csv")


def p2s() -> dict[str, Figure]:
    campaign = msgspec.json.decode((DOCS / "p2s-results" / "results.json").read_bytes(), type=Campaign)
    return p2s_figures(campaign.results, command_of(campaign))


def overlay() -> Figure:
    found = msgspec.json.decode((DOCS / "overlay-results" / "overlay.json").read_bytes())
    return overlay_picture(msgspec.convert(found["tables"], list[Tables]))


@cache
def measured_standins() -> Recorded:
    """D0-E6, D0-E7, D0-E8, D0-E9, D0-E10, D0-E11"""
    return msgspec.json.decode((DOCS / "standin-results" / "results.json").read_bytes(), type=Recorded)


def standin_figure(picture: Picture) -> Figure:
    recorded = measured_standins()
    return draw_standins(picture, Table(recorded.results), remark_of(recorded, STANDINS_COMMAND, picture.figure))


DRAWN: dict[str, tuple[Callable[[], Figure], str]] = {
    "levels.svg": (levels, "scripts.levels_picture"),
    "routing.svg": (routing, "scripts.routing_picture"),
    "standins.svg": (standins, "scripts.standin_picture"),
    "replication-results/crash.svg": (crash, "experiments.replication crash --read docs/replication-results/crash.csv"),
    "p2s-results/figure6.svg": (lambda: p2s()["figure6"], "experiments.p2s --read docs/p2s-results/results.json"),
    "p2s-results/figure7.svg": (lambda: p2s()["figure7"], "experiments.p2s --read docs/p2s-results/results.json"),
    **{
        f"standin-results/{picture.figure}.svg": (
            partial(standin_figure, picture),
            "experiments.standin --read docs/standin-results/results.json",
        )
        for picture in PICTURES
    },
    "overlay-results/overlay-tables.svg": (overlay, "benchmarks.overlay --read docs/overlay-results/overlay.json"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_of_the_docs_can_be_read_and_is_what_its_command_draws(name: str) -> None:
    draw, command = DRAWN[name]
    figure = draw()
    drawn = as_svg(figure)
    assert flaws(figure) == []
    assert is_same_picture((DOCS / name).read_text(), drawn), f"run python -m {command}"


def test_every_picture_of_the_docs_has_a_command() -> None:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "docs"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    pictures = {Path(name) for name in listed if name.endswith((".svg", ".png", ".jpg", ".gif"))}
    drawn = {Path("docs") / name for name in DRAWN}
    assert pictures - drawn == {Path("docs/qos-results") / name for name in MEASURED}
    assert drawn <= pictures


# ----------------------------------------------------------------------------------------------------------- the others
@pytest.mark.parametrize("graph", [False, True])
def test_predicted_and_measured_values_can_be_read(graph: bool) -> None:
    values = [0.43, 0.61, 0.8, 0.93, 0.997]
    points = [
        MeanPoint(count=1, measured=[value], replayed=[value], own=value, nominal=value - 0.02, unnoticed=0.0)
        for value in values
    ]
    kinds = {
        (graph, quality, level.value, 7.0): [Topology(Setup(level=level), 1, points)]
        for quality in ("low", "high")
        for level in Reliability
        if level is not Reliability.NONE
    }
    assert flaws(qos_figure(kinds, graph), lines=False) == []


def network(brokers: list[str]) -> Figure:
    """A tree of brokers with three children each, and subscribers at each other one."""
    lines = ['[scheme]\nkind = "tree"\nreliability = "buffered"']
    lines += ['[prediction]\nbrokers = "low-end"\n[[class]]\nname = "low-end"\navailability = 0.9\nperiod = "7d"']
    for place, name in enumerate(brokers):
        ports = f'address = "127.0.0.1:{7000 + place}"\npeer_address = "127.0.0.1:{8000 + place}"'
        lines.append(f'[[broker]]\nid = "{name}"\n{ports}\ndata = "{name}"')
        if place:
            lines.append(f'[[link]]\nbetween = ["{brokers[(place - 1) // 3]}", "{name}"]')
        if place % 2:
            lines.append(f'[[subscriber]]\nhome = "{name}"\ntopic = "t"')
    lines.append(f'[[publisher]]\nhome = "{brokers[0]}"\ntopic = "t"')
    found = model_of(site_from_toml("\n".join(lines), "site.toml"))
    level = Reliability.BUFFERED
    return draw_network(found.model, found.model.predict(found.publishers, found.subscribers, [level]), level)


@pytest.mark.parametrize("count", [2, 7, 20, 60, 61])
@pytest.mark.parametrize("name", ["b", "frankfurt-"])
def test_a_network_with_its_predictions_can_be_read(count: int, name: str) -> None:
    brokers = [f"{name}{number}" for number in range(count)]
    assert flaws(network(brokers), lines=False) == []  # the names stand on the brokers, and those on the links
    assert set(brokers) & set(texts_of(network(brokers))) == (set(brokers) if count <= LABELS_MAX else set())


# ------------------------------------------------------------------------------------------------------------ the judge
def figure_with(*texts: tuple[float, float, str]) -> Figure:
    figure = new_figure(4, 3)
    axes = figure.add_subplot()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    for x, y, text in texts:
        axes.text(x, y, text)
    return figure


def test_a_figure_with_room_has_no_flaws_and_all_its_texts_are_seen() -> None:
    figure = figure_with((0.1, 0.1, "below"), (0.1, 0.8, "above"))
    assert flaws(figure) == []
    assert [text for text in texts_of(figure) if text.isalpha()] == ["below", "above"]


def test_texts_that_cover_each_other_are_found() -> None:
    assert flaws(figure_with((0.1, 0.5, "one"), (0.12, 0.5, "other"))) == ["'one' and 'other' cover each other"]


def test_a_text_that_is_cut_off_is_found() -> None:
    figure = figure_with()
    figure.suptitle("far too long a title " * 5)
    assert [flaw.endswith("is cut off") for flaw in flaws(figure)] == [True]


def test_a_text_on_a_line_and_one_half_in_a_box_are_found() -> None:
    figure = figure_with((0.5, 0.5, "on the line"), (0.05, 0.2, "half in the bar"))
    [axes] = figure.axes
    axes.plot([0, 1], [0.4, 0.6])
    axes.bar(0.2, 0.4, 0.2)
    assert flaws(figure) == ["'on the line' stands on a line", "'half in the bar' crosses the edge of a box"]
    assert flaws(figure, lines=False) == ["'half in the bar' crosses the edge of a box"]


def test_the_same_figure_gives_the_same_bytes_and_another_one_another_picture() -> None:
    one, same, moved, other = (
        as_svg(figure_with((x, 0.5, text))) for x, text in ((0.2, "a"), (0.2, "a"), (0.25, "a"), (0.2, "b"))
    )
    assert one == same
    assert is_same_picture(one, one.replace("0.5", "0.50001"))
    assert not is_same_picture(one, moved)
    assert not is_same_picture(one, other)
