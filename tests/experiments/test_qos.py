"""The model held against the brokers, in small: a replay of the same run, and the formulas with the run's own parts."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from experiments.d1.world import Setup
from experiments.qos.__main__ import main
from experiments.qos.comparison import Compared, compare
from experiments.qos.report import agreement
from holdfast.protocols.routing.settings import Reliability

LEVELS = [Reliability.PERIODIC, Reliability.BUFFERED, Reliability.BYPASS, Reliability.BYPASS_BUFFERED]


@cache
def compared(level: Reliability) -> Compared:
    return compare(Setup(level=level, graph=True, days=4, period_days=1, subscribers=60, seed=2))


@pytest.mark.full
@pytest.mark.parametrize("level", LEVELS)
def test_the_brokers_deliver_what_could_be_delivered(level: Reliability) -> None:
    """D1-H5. With detours, what is published before a failure is noticed is lost, or late: an event or so of each
    outage, of the 570 of a run."""
    found = agreement(compared(level).points, lambda point: point.replayed)
    assert found.rmse < {Reliability.BYPASS: 0.012, Reliability.BYPASS_BUFFERED: 0.006}.get(level, 0.003)


@pytest.mark.full
@pytest.mark.parametrize("level", LEVELS)
def test_the_formulas_with_the_runs_own_parts_come_close(level: Reliability) -> None:
    """D1-C8. Four days with outages of hours: what is left is that times are not exponential in so short a run."""
    found = agreement(compared(level).points, lambda point: point.paired)
    assert found.rmse < 0.05
    assert abs(found.bias) < 0.03


@pytest.mark.full
def test_levels_are_ordered_as_the_paper_claims_for_poor_brokers() -> None:
    """D1-C10, on measured means of one world."""
    periodic, buffered, bypass, both = (
        sum(point.measured for point in compared(level).points) / len(compared(level).points) for level in LEVELS
    )
    assert periodic < buffered < both
    assert periodic < bypass < both


@pytest.mark.full
def test_one_command_writes_tables_and_figures(tmp_path: Path) -> None:
    main(["--runs", "1", "--days", "0.5", "--subscribers", "20", "--out", str(tmp_path)])
    page = (tmp_path / "README.md").read_text()
    kinds = [("tree", "low"), ("tree", "high"), ("graph", "low"), ("graph", "high")]
    assert [page.count(f"\n| {graph} | {end}-end |") for graph, end in kinds] == [2, 2, 4, 4]
    assert "| low-end | corrected |" in page
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "trees.png", "graphs.png"}
