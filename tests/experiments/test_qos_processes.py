"""Brokers as processes that are killed by a schedule: what is drawn and observed, and one short run."""

from __future__ import annotations

import os
from math import sqrt
from pathlib import Path
from random import Random
from statistics import fmean

import pytest

from experiments.d1.outages import Outage
from experiments.d1.replay import Replay
from experiments.qos.failing_network import (
    BROKERS,
    RING,
    FailingNetwork,
    Measured,
    Setup,
    links_of,
    realised_outages,
    run,
    schedule,
)
from experiments.qos.processes import LEVELS, compared, main, shown
from holdfast.broker.quality import MeanTimes
from holdfast.protocols.routing.settings import Reliability
from holdfast.qos.site_model import model_of
from holdfast.runtime.site_file import read_site
from holdfast.topology.graph import BrokerGraph
from tests.leftover_processes import MARK, leftover_processes

BUFFERED, BYPASS = Reliability.BUFFERED, Reliability.BYPASS


# ------------------------------------------------------------------------------------------------- schedule and outages
def test_a_schedule_is_that_of_its_seed_and_of_the_means_that_are_asked_for() -> None:
    planned = schedule(BROKERS, 123, 1)
    assert planned == schedule(BROKERS, 123, 1)
    assert planned != schedule(BROKERS, 123, 2)
    assert planned["b2"] == schedule({"b2": BROKERS["b2"]}, 123, 1)["b2"]
    long = schedule(BROKERS, 200_000, 1)
    for name, mean in BROKERS.items():
        off = [outage.end - outage.begin for outage in long[name]]
        assert fmean(off) / 1_000 == pytest.approx(mean.off_s, rel=0.1)
        assert sum(off) / 200_000_000 == pytest.approx(mean.off_s / (mean.on_s + mean.off_s), rel=0.1)


@pytest.mark.parametrize(
    ("turns", "found"),
    [
        ([], []),
        ([0.0021, 3.5], [(2, 3_500)]),
        ([1.0, 2.0, 4.0, 4.5], [(1_000, 2_000), (4_000, 4_500)]),
        ([1.0, 2.0, 4.0], [(1_000, 2_000), (4_000, 10_000)]),  # off to the end
        ([9.0, 11.0], [(9_000, 10_000)]),  # ready behind the end
        ([10.2], []),
        ([1.0, 2.0, 2.0002, 3.0], [(1_000, 2_000), (2_001, 3_000)]),  # never two outages without a time between
        ([1.0, 1.0001], [(1_000, 1_001)]),
    ],
)
def test_outages_are_from_kill_to_ready(turns: list[float], found: list[tuple[int, int]]) -> None:
    assert realised_outages(turns, 10.0) == [Outage(*one) for one in found]


def test_observed_outages_lie_apart_and_inside_the_run() -> None:
    rng = Random("observed")
    for _ in range(200):
        turns = sorted(rng.uniform(0, 0.05) for _ in range(rng.randint(0, 60)))
        edges = [edge for outage in realised_outages(turns, 0.04) for edge in outage]
        assert edges == sorted(set(edges))
        assert all(0 <= edge <= 40 for edge in edges)


# ------------------------------------------------------------------------------------------------------------- the site
def test_levels_without_detours_get_a_tree() -> None:
    assert links_of(BYPASS) == RING
    assert links_of(BUFFERED) == (("b1", "b2"), ("b2", "b3"), ("b4", "b1"))


@pytest.mark.parametrize("level", LEVELS)
def test_the_site_that_is_run_can_be_predicted(tmp_path: Path, level: str) -> None:
    setup = Setup(level=Reliability(level))
    site = read_site(str(FailingNetwork(tmp_path, setup).site))
    assert (site.quality.brokers, site.quality.lifetime_s) == (BROKERS, setup.lifetime_s)
    assert all(bool(entry.data) == setup.level.buffers for entry in site.brokers)
    found = model_of(site)
    assert len(found.subscribers) == 12
    predicted = found.model.predict(found.publishers, found.subscribers, [setup.level])
    assert all(0.4 < (one.reliability[setup.level] or 0.0) < 0.9 for one in predicted)


def test_what_was_observed_is_held_against_replay_and_model(tmp_path: Path) -> None:
    """A broker that was off for three seconds, and all others on: by hand."""
    setup = Setup(level=BYPASS, seconds=10, lifetime_s=5)
    outages = {name: [Outage(0, 3_000)] if name == "b2" else [] for name in BROKERS}
    times = [number + 0.5 for number in range(10)]
    measured = Measured(
        planned=outages,
        realised=outages,
        starts_s=[0.5],
        sent=dict.fromkeys(BROKERS, times),
        outcomes={"accepted": 37, "no broker": 3},
        on_time={(topic, home): 6 for topic in BROKERS for home in BROKERS if topic != home},
        twice=0,
    )
    found = compared(setup, read_site(str(FailingNetwork(tmp_path, setup).site)), measured)
    assert len(found.rows) == 12
    for row in found.rows:
        with_b2 = "b2" in (row.publisher, row.subscriber)
        assert row.measured == 0.6
        assert row.replayed == (0.7 if with_b2 else 1.0)
        assert row.own == pytest.approx(12 / 15 if with_b2 else 1.0)
        assert row.nominal < 0.8
    difference = sqrt((6 * 0.1**2 + 6 * 0.4**2) / 12)
    assert f"replay            {difference:.4f}   0.4000" in shown(found)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--level", "best"], "invalid choice: 'best'"),
        (["--level", "none"], "invalid choice: 'none'"),
        (["--seconds", "0"], "'0' is no number of seconds above 0"),
        (["--seconds", "-3"], "'-3' is no number of seconds above 0"),
        (["--seconds", "nan"], "'nan' is no number of seconds above 0"),
        (["--seconds", "soon"], "'soon' is no number of seconds above 0"),
        (["--json", "/no such folder/x.json"], "there is no folder '/no such folder'"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


def test_a_setup_that_promises_nothing_is_none() -> None:
    with pytest.raises(ValueError, match="none promises nothing"):
        Setup(level=Reliability.NONE)
    with pytest.raises(ValueError, match="seconds: 0, and has to be above 0"):
        Setup(level=BUFFERED, seconds=0)


# ----------------------------------------------------------------------------------------------------------- processes
@pytest.mark.full
def test_killed_processes_deliver_what_could_be_delivered() -> None:
    """D1-C3, D1-B4.4. An event more than in the replay is one that came while its broker was being killed, or served
    and had not been seen to: one of 240 for each of the two kills of a publisher's home, and one to spare. Fewer come
    by the time in which clients and neighbours find out that a broker is back, 0.1 s or so, and more while other tests
    have the processor: up to 0.5 s of 12 for each of two outages that matter to a subscriber."""
    means = dict.fromkeys(BROKERS, MeanTimes(6.0, 2.0))
    # In this one every broker is killed, one of them at the very beginning, and most events that wait come on time.
    setup = Setup(level=BUFFERED, seconds=12, seed=47, rate=20, lifetime_s=2, brokers=means)
    site, measured = run(setup)
    found = compared(setup, site, measured)
    for name, planned in measured.planned.items():
        realised = measured.realised[name]
        assert len(realised) == len(planned) >= 1
        for wanted, observed in zip(planned, realised, strict=True):
            assert observed.begin >= wanted.begin
    assert sum(measured.outcomes.values()) == sum(len(times) for times in measured.sent.values()) == 960
    assert measured.twice == 0
    for point in found.rows:
        assert point.replayed - 2 * 0.5 / 12 <= point.measured <= point.replayed + 3 / 240, found.rows
    # What was stored did come: without, there would be less by far.
    replay = Replay(BrokerGraph(list(BROKERS), site.links), measured.realised, {}, 2_000)
    times = {topic: [round(at * 1_000) for at in sent] for topic, sent in measured.sent.items()}
    at_once = fmean(
        replay.share(Reliability.PERIODIC, row.publisher, row.subscriber, times[row.publisher]) for row in found.rows
    )
    assert fmean(point.measured for point in found.rows) > at_once + 0.05
    left_behind = leftover_processes(os.environ[MARK], grace_s=2.0)
    assert [one for one in left_behind if " broker " in one.command] == []
