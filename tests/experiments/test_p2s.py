"""The paper's experiments: its words against its own numbers, the figures, and a small run of everything."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import msgspec
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from benchmarks.replication import paper
from benchmarks.replication.paper import Values
from experiments.p2s.__main__ import main
from experiments.p2s.campaign import QUICK, Campaign, agreed
from experiments.p2s.claims import CLAIMS, MISSING, PAPER_LATENCY_MS, PAPER_PER_S, Claim, claim_rows
from experiments.p2s.figures import INFERRED, PRINTED, Bars, draw
from tests.figures import flaws, heights_of

WITHIN_POINTS = 0.07
FILES = {"figure6.svg", "figure7.svg", "points.csv", "results.json", "tables.md"}


# -------------------------------------------------------------------------------------------------------------- claims
def disagrees(claim: Claim) -> bool:
    """Whether a number of the claim is not what the paper's own give. Whole percentages may be cut off or rounded."""
    said = claim.printed.partition(" [")[0]
    computed = re.findall(r"[\d.]+", claim.compute(PAPER_LATENCY_MS, PAPER_PER_S))
    printed = re.findall(r"[\d.]+", said)
    if said.startswith("less than"):
        return float(computed[0]) >= float(printed[0])
    return any(
        abs(float(theirs) - float(mine)) > (WITHIN_POINTS if "." in theirs else 1.0)
        for theirs, mine in zip(printed, computed, strict=True)
    )


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.printed)
def test_what_the_paper_says_is_what_its_numbers_give_unless_it_is_marked(claim: Claim) -> None:
    assert disagrees(claim) is ("[" in claim.printed)


def test_a_claim_that_was_not_measured_is_left_open() -> None:
    flat: Values = {replicas: dict.fromkeys((1, 3), 2.0) for replicas in (1, 3)}
    ours = [mine for *_, mine in claim_rows(flat, flat)]
    assert ours == ["0.00 ms (0.0%)"] + [MISSING] * (len(CLAIMS) - 1)


# ------------------------------------------------------------------------------------------------------------- figures
def drawn(values: Values, printed: Values, inferred: Values) -> Axes:
    figure = draw(Bars("a < b", ("c", "d"), "ms", values, values, values, printed, inferred))
    assert flaws(figure) == []
    [axes] = figure.axes
    return axes


def heights(axes: Axes) -> list[float]:
    return [bar.get_height() for bar in bars(axes)]


def bars(axes: Axes) -> list[Rectangle]:
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_a_bar_is_as_high_as_its_value_and_beside_those_of_as_many_publishers() -> None:
    values: Values = {1: {1: 1.0, 3: 2.0}, 3: {1: 3.0, 3: 4.0}}
    axes = drawn(values, {}, values)
    assert heights(axes) == [1.0, 2.0, 3.0, 4.0]
    assert [round(bar.get_center()[0]) for bar in bars(axes)] == [0, 1, 0, 1]


def test_the_papers_lines_meet_bars_of_the_same_height_and_inferred_ones_are_dashed() -> None:
    axes = drawn(PAPER_PER_S, paper.PRINTED_PER_S, paper.INFERRED_PER_S)
    lines = axes.lines
    assert [heights_of(line) for line in lines] == [[height, height] for height in heights(axes)]
    assert len(lines) == 20
    assert sum(line.get_label() == PRINTED and line.get_linestyle() == "-" for line in lines) == 4
    assert sum(line.get_label() == INFERRED and line.get_linestyle() == "--" for line in lines) == 16


@pytest.mark.parametrize("scale", [0.03, 1.0, 90.0])
def test_no_bar_leaves_the_figure(scale: float) -> None:
    values: Values = {1: {1: scale, 3: 1.7 * scale}}
    axes = drawn(values, {}, values)
    bottom, top = axes.get_ylim()
    assert bottom == 0
    assert max(heights(axes)) <= top < 2 * max(heights(axes))


# ---------------------------------------------------------------------------------------------------------- viewership
def test_groups_must_have_counted_the_same() -> None:
    counted = {"malformed": 0, "top": [["Velkin", 2]]}
    assert agreed([counted, dict(counted)]) == counted
    with pytest.raises(RuntimeError, match="other viewers"):
        agreed([counted, {**counted, "top": [["Velkin", 1]]}])
    with pytest.raises(RuntimeError, match="malformed: 1"):
        agreed([{**counted, "malformed": 1}])


# ----------------------------------------------------------------------------------------------------------- small run
@pytest.mark.full
def test_a_quick_run_writes_everything_and_loses_nothing(tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    main(["--quick", "--to", str(first)])
    assert {path.name for path in first.iterdir()} == FILES
    campaign = msgspec.json.decode((first / "results.json").read_bytes(), type=Campaign)
    runs = campaign.results.offered
    assert [(run.replicas, run.publishers, run.lost) for run in runs] == [(1, 1, 0), (1, 3, 0), (3, 1, 0), (3, 3, 0)]
    assert sum(run.derived for run in runs) > 0
    warm_up, offered, saturated = 50, 10 + 30, 2 * QUICK.events
    assert campaign.viewership["events"] == warm_up + offered + saturated
    with (first / "points.csv").open(newline="") as file:
        points = list(csv.DictReader(file))
    assert [(point["load"], point["replicas"], point["publishers"]) for point in points] == [
        (load, replicas, publishers)
        for load in ("offered", "saturated")
        for replicas in ("1", "3")
        for publishers in ("1", "3")
    ]
    text = (first / "tables.md").read_text()
    for title in (
        "`python -m experiments.p2s --quick`",
        "Preliminary",
        "Table 1, latency",
        "Table 2, throughput",
        "(29.29)",
        "(1.25†)",
        "Ours alone",
    ):
        assert title in text
    main(["--read", str(first / "results.json"), "--to", str(again)])
    assert {path.name: path.read_bytes() for path in again.iterdir()} == {
        path.name: path.read_bytes() for path in first.iterdir()
    }
