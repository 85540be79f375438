"""Brokers that fail as machines did, from small synthetic records: windows, outages, and one run held against them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from experiments.d1.outages import Outage
from experiments.d1.world import DAY_S
from experiments.qos.lanl import FORM, Down, intervals, intervals_of, machines_of, read_outages
from experiments.qos.machines import (
    Kind,
    Point,
    Result,
    long_run,
    main,
    parts_of,
    setup_of,
    simulated,
    table,
    with_own,
)
from experiments.qos.windows import apart, outages_of, records_of, spread, together, whole
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.fitting import Observed

DAY = datetime(2001, 1, 1)
HOUR_MS = 3_600_000
RECORDS = """System,nodenumz,Prob Started,Prob Fixed
7,0,1/1/2001 10:00,1/1/2001 12:00
7,0,1/1/2001 11:00,1/1/2001 13:00
7,0,1/3/2001 00:00,1/3/2001 00:00
7,0,1/5/2001 00:00,1/5/2001 06:00
7,1,1/2/2001 00:00,1/2/2001 03:00
7,1,1/2/2001 22:00,1/3/2001 02:00
7,1,1/6/2001 00:00,1/6/2001 01:00
7,2,1/9/2001 12:00,1/9/2001 18:00
8,0,1/1/2001 10:00,2/1/2001 10:00
7,0,,1/5/2001 06:00
7,0,1/5/2001 06:00,1/4/2001 06:00
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.csv"
    path.write_text(RECORDS)
    return path


def at(days: float) -> datetime:
    return DAY + timedelta(days=days)


# -------------------------------------------------------------------------------------------------------------- records
def test_outages_of_a_machine_are_joined_and_observed_to_the_end_of_the_records(small: Path) -> None:
    machines = machines_of(read_outages(small), "7")
    assert machines.until == at(8.75)
    assert machines.nodes["0"] == [
        Down(at(10 / 24), at(13 / 24)),
        Down(at(2), at(2) + timedelta(seconds=30)),
        Down(at(4), at(4.25)),
    ]
    on, off = intervals(machines.nodes["0"], machines.until)
    assert off == [Observed(30), Observed(6 * 3_600)]
    assert on[:2] == [Observed(35 * 3_600), Observed(48 * 3_600 - 30)]
    assert on[2:] == [Observed(4.5 * 86_400, censored=True)]
    all_on, all_off = intervals_of(read_outages(small), "7")
    assert (len(all_on), sum(one.censored for one in all_on), len(all_off)) == (6, 2, 4)


def test_an_observation_may_end_in_the_midst_of_an_outage(small: Path) -> None:
    found = machines_of(read_outages(small), "7").nodes["1"]
    on, off = intervals(found, at(2))
    assert (on, off) == ([Observed(19 * 3_600)], [Observed(2 * 3_600, censored=True)])
    assert intervals(found, at(1)) == ([], [])


# -------------------------------------------------------------------------------------------------------------- windows
def test_windows_lie_where_all_machines_are_known(small: Path) -> None:
    nodes = machines_of(read_outages(small), "7").nodes
    records = records_of(nodes, brokers=2, days=1)
    assert (records.windows, records.until) == ([at(1.125), at(2.125)], at(4))
    assert together(records, 0) == {
        "b0": [Outage(21 * HOUR_MS, 21 * HOUR_MS + 30_000)],
        "b1": [Outage(19 * HOUR_MS, 23 * HOUR_MS)],
    }
    assert apart(records, 0) == {"b0": together(records, 0)["b0"], "b1": together(records, 1)["b1"]}
    assert whole(records) == together(records, 0)
    assert records_of(nodes, brokers=2, days=1, since=0.5).windows == [at(2.5625)]


def test_an_outage_is_cut_where_its_window_is(small: Path) -> None:
    found = machines_of(read_outages(small), "7").nodes["1"]
    assert outages_of(found, at(1) + timedelta(hours=1), 0.9) == [
        Outage(0, 2 * HOUR_MS),
        Outage(21 * HOUR_MS, 77_760_000),
    ]
    assert outages_of(found, at(3), 2) == []


def test_windows_of_runs_are_spread_over_all() -> None:
    assert spread(3, 39) == [6, 19, 32]
    assert spread(5, 2) == [0, 1]
    assert spread(0, 4) == []


def test_too_few_machines_or_days_are_told(small: Path) -> None:
    nodes = machines_of(read_outages(small), "7").nodes
    with pytest.raises(ValueError, match="have 3 machines"):
        records_of(nodes, brokers=4, days=1)
    with pytest.raises(ValueError, match="less than 9 days"):
        records_of(nodes, brokers=2, days=9)


# ----------------------------------------------------------------------------------------------------------------- runs
@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six machines in sixty days: most outages take half an hour, some take half a day."""
    rng, lines = Random(1), ["System,nodenumz,Prob Started,Prob Fixed"]
    for node in range(6):
        time = DAY
        while (time := time + timedelta(hours=rng.expovariate(1 / 30))) < at(60):
            began = time
            time += timedelta(hours=rng.expovariate(1 / 12) if rng.random() < 0.2 else rng.expovariate(2))
            lines.append(f"9,{node},{began.strftime(FORM)},{time.strftime(FORM)}")
    path = tmp_path_factory.mktemp("records") / "failing.csv"
    path.write_text("\n".join(lines))
    return path


def test_brokers_deliver_what_could_be_delivered_while_machines_failed(failing: Path) -> None:
    """D1-F3, D1-H5"""
    machines = machines_of(read_outages(failing), "9")
    records = records_of(machines.nodes, brokers=6, days=4)
    parts = parts_of(records, records.until)
    setup = setup_of(Kind(Reliability.BUFFERED, 3_600), days=4, brokers=6, subscribers=12, every_s=1_800, seed=1)
    outages = together(records, 1)
    assert sum(map(len, outages.values())) > 6
    result = simulated(setup, outages, parts)
    assert len(result.points) == 12
    assert min(point.measured for point in result.points) < 0.97
    assert all(point.measured == pytest.approx(point.replayed, abs=0.012) for point in result.points)


def long_run_errors(path: Path, system: str, brokers: int, days: float, every_s: int) -> dict[str, float]:
    """Of each prediction the largest, at six hours, with machines that fail by themselves."""
    records = records_of(machines_of(read_outages(path), system).nodes, brokers, days)
    windows = [apart(records, number) for number in range(len(records.windows))]
    parts = with_own(parts_of(records, records.until), whole(records), len(windows) * days * DAY_S)
    setup = setup_of(Kind(Reliability.BUFFERED, 6 * 3_600), days, brokers, subscribers=20, every_s=every_s, seed=1)
    points = long_run(setup, "each apart", windows, parts).points
    return {name: max(abs(point.predicted[name] - point.measured) for point in points) for name in points[0].predicted}


def test_fitted_mixtures_predict_the_long_run_better_than_exponential_times(failing: Path) -> None:
    """D1-F2: repairs are not exponential there."""
    errors = long_run_errors(failing, "9", brokers=6, days=4, every_s=1_800)
    for means in ("each", "own"):
        assert errors[f"{means}, mixtures"] < 0.03
        assert errors[f"{means}, mixtures"] < errors[f"{means}, exponential"] / 3


def test_the_table_has_a_line_for_each_kind() -> None:
    setup = setup_of(Kind(Reliability.BUFFERED, 3_600), days=4, brokers=6, subscribers=2, every_s=1_800, seed=1)
    points = [Point(0.9, 0.91, {"x": 0.8}), Point(0.7, 0.69, {"x": 0.8})]
    shown = table([Result(setup, "brokers", points, 0.0)] * 2 + [Result(setup, "as recorded", points, 0.0, 9)])
    assert shown.splitlines()[2:] == [
        "| brokers | tree | buffered | 1 h | 2 | 0.8000 | 0.8000 · 0.0100 · 0.010 | 0.8000 · 0.1000 · 0.100 |",
        "| as recorded | tree | buffered | 1 h | 9 | 0.8000 |  | 0.8000 · 0.1000 · 0.100 |",
    ]


def test_one_command_prints_all(failing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(failing), "--system", "9", "--days", "2", "--runs", "1", "--brokers", "4", "--subscribers", "5"]
    main([*words, "--level", "buffered", "bypass+buffered"])
    printed = capsys.readouterr().out
    assert "| 9 | on |" in printed
    for what in ("brokers", "as recorded", "each apart"):
        for kind in ("tree | buffered | 1 h", "tree | buffered | 6 h", "graph | bypass+buffered | 1 h"):
            assert f"| {what} | {kind} |" in printed


@pytest.mark.full
def test_fitted_mixtures_predict_what_real_machines_did(data_file: Callable[[str], Path]) -> None:
    """D1-F3: six years of ten machines. With their own means, little but the shapes of times is left to be wrong."""
    errors = long_run_errors(data_file("lanl-failures-1996-2005.csv.xz"), "2", brokers=10, days=56, every_s=3_600)
    assert errors["own, mixtures"] < 0.002
    assert errors["own, mixtures"] < errors["own, exponential"] / 5
    assert errors["each, mixtures"] < errors["each, exponential"]
