"""The benchmark of networks: small runs of both kinds, and what must hold in any."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.overlay import main, picture
from benchmarks.overlay_chain import Chain, best, site_text
from benchmarks.overlay_tables import Tables, measure_tables
from holdfast.broker.site import site_from_toml
from tests.figures import flaws, heights_of


def test_covering_makes_tables_smaller_and_changes_no_events_way() -> None:
    """D2-B3: who gets what, over which links, is the same."""
    covered, plain = (measure_tables(8, 60, covering) for covering in (True, False))
    assert covered.forwards_per_event == plain.forwards_per_event > 0
    assert covered.deliveries_per_event == plain.deliveries_per_event > 0
    assert covered.entries_mean < plain.entries_mean
    assert covered.routes_messages < plain.routes_messages


def test_in_a_tree_an_event_crosses_no_link_twice() -> None:
    """D0-B1: seven links join eight brokers."""
    assert measure_tables(8, 400, True).forwards_per_event <= 7


def test_a_chain_is_joined_from_end_to_end() -> None:
    site = site_from_toml(site_text("buffered", list(range(9_000, 9_008)), Path("data")), "chain.toml")
    assert list(site.links) == [("b0", "b1"), ("b1", "b2"), ("b2", "b3")]


def test_the_best_round_counts() -> None:
    chains = [Chain("none", 2, number, per_s) for number, per_s in enumerate((3.0, 5.0, 4.0))]
    assert best([*chains, Chain("none", 4, 0, 1.0)]) == {("none", 2): 5.0, ("none", 4): 1.0}


def test_a_point_of_every_run_is_in_the_picture() -> None:
    tables = [
        Tables(
            brokers=brokers,
            subscriptions=100,
            covering=covering,
            forwards_per_event=2.0,
            deliveries_per_event=1.0,
            routes_messages=9,
            entries_mean=0.0,
            entries_max=0,
        )
        for brokers in (10, 20)
        for covering in (True, False)
    ]
    figure = picture(tables)
    assert sum(len(heights_of(line)) for axes in figure.axes for line in axes.lines) == 2 * 4 + 2 * 2
    assert flaws(figure) == []


@pytest.mark.full
def test_small_runs_of_both_kinds_are_told_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chain = ["--chain", "--rounds", "1", "--events", "500", "--lengths", "2", "--levels", "none,buffered"]
    main([*chain, "--tables", "--brokers", "3,5", "--subscriptions", "10,20", "--to", str(tmp_path)])
    assert "`buffered` is wanted to keep 60%" in capsys.readouterr().out
    written = json.loads((tmp_path / "overlay.json").read_text())
    assert [(chain["level"], chain["brokers"]) for chain in written["chains"]] == [("none", 2), ("buffered", 2)]
    assert len(written["tables"]) == 6
    assert "<svg" in (tmp_path / "overlay-tables.svg").read_text()
