"""The paper's experiments in small: each figure's runs, with costs that are the same each time, and what is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec
import pytest

from experiments.standin.__main__ import RESULTS, command_of, main
from experiments.standin.campaign import (
    ALONE,
    BASIC,
    BATCHED,
    DETERMINED,
    FULL,
    INCREM,
    ONE_BY_ONE,
    PROCESSES,
    QUICK,
    SYNCH,
    Point,
    Result,
    play,
    points,
)
from experiments.standin.claims import CLAIMS, Of, verdicts
from experiments.standin.document import markdown
from experiments.standin.metrics import Measured, measure
from experiments.standin.paced import Fixed
from experiments.standin.pictures import PICTURES, draw
from experiments.standin.recorded import Recorded, Series, Table
from experiments.standin.setting import ITEM_US, Setting, Transport
from experiments.standin.simulated import play as simulate
from experiments.standin.workload import Workload
from tests.figures import flaws

ONE_AT_A_TIME = Transport.ONE_BY_ONE
SMALL = Workload(100, 60)
SLOW = 12_000.0  # times what another broker takes


@lru_cache
def played(figure: str) -> Table:
    """Once, and not in processes."""
    wanted = [point for point in points(QUICK) if point.figure == figure and point.how == ONE_BY_ONE]
    return Table([play(point, DETERMINED) for point in wanted])


def known(value: float | None) -> float:
    assert value is not None
    return value


def one_by_one(figure: str) -> Of:
    return Of(played(figure), figure, ONE_BY_ONE)


# --------------------------------------------------------------------------------------------------------- experiments
@pytest.mark.parametrize("figure", ["fig7", "fig8", "fig9", "fig10a", "fig10b"])
def test_events_come_one_by_one_earlier_with_increm_and_in_order_with_synch(figure: str) -> None:
    """D0-E6 to E10. Where neighbours share a few subscriptions, as here, or have more."""
    of = one_by_one(figure)
    for x, increm in of.increm.spreads("pdrd_ms"):
        synch = of.synch.at(x, "pdrd_ms")
        assert synch is not None
        assert increm.middle < 0.5 * synch.middle
    assert set(of.synch.values("rank")) == {1.0}
    assert min(of.increm.values("rank")) < 1.0
    assert {*of.synch.values("dropped"), *of.increm.values("dropped")} == {0.0}


def test_replication_takes_as_long_as_there_are_subscriptions_however_many_events_wait() -> None:
    few, more = one_by_one("fig7").synch.values("replication_ms")
    counts = QUICK.subscriptions
    assert more - few == pytest.approx((counts[1] - counts[0]) * ITEM_US / 1_000, rel=0.02)
    assert len(set(one_by_one("fig9").synch.values("replication_ms"))) == 1


def test_neighbours_that_share_the_subscriptions_tell_them_side_by_side() -> None:
    """D0-E9"""
    one, three = one_by_one("fig10a").synch.values("replication_ms")
    assert three < 0.5 * one


def shared(*names: str) -> dict[str, Measured]:
    """D0-E11, of these lines."""
    wanted = [
        point
        for point in points(QUICK)
        if point.figure == "fig11" and point.how == ONE_BY_ONE and point.series in names
    ]
    return {point.series: play(point, DETERMINED).measured for point in wanted}


def test_work_that_is_shared_is_done_twice_as_fast_and_re_ordering_keeps_the_order() -> None:
    """D0-E11"""
    found = shared(ALONE, "synch-ms", "synch-ms-ro")
    alone, both, in_order = (found[name] for name in (ALONE, "synch-ms", "synch-ms-ro"))
    assert 1.4 < known(both.per_s) / known(alone.per_s) < 2.3
    assert known(both.rank) < known(in_order.rank) == 1.0


@pytest.mark.full
def test_re_ordering_keeps_the_order_with_each_protocol() -> None:
    names = [f"{protocol}-ms-ro" for protocol in ("basic", "increm")]
    assert {name: each.rank for name, each in shared(*names).items()} == dict.fromkeys(names, 1.0)


def test_with_the_order_of_what_waits_events_leave_in_order_and_not_later() -> None:
    """D0-F2"""
    of = Of(played("orders"), "orders", ONE_BY_ONE)
    table, pending = (of.line(f"{INCREM} {order}") for order in ("table", "pending"))
    for x, degree in pending.spreads("rank"):
        before = table.at(x, "rank")
        assert before is not None
        assert degree.middle >= before.middle
    assert min(pending.values("rank")) > 0.99 > min(table.values("rank"))


@pytest.mark.parametrize("case", [SYNCH, INCREM])
def test_a_run_with_fixed_costs_comes_out_the_same_each_time(case: object) -> None:
    setting = Setting(SYNCH if case == SYNCH else INCREM, SMALL, 2, ONE_AT_A_TIME)
    assert measured(setting) == measured(setting)


def measured(setting: Setting, costs: Fixed = DETERMINED) -> Measured:
    return measure(setting, simulate(setting, costs).seen)


def test_one_slow_neighbour_delays_everybody_with_synch_and_only_its_own_with_increm() -> None:
    """D0-C27"""
    delays = {}
    for case in (SYNCH, INCREM):
        setting = Setting(case, SMALL, 3, ONE_AT_A_TIME)
        for costs in (Fixed(), Fixed(slower={"n4": SLOW})):
            delays[case, bool(costs.slower)] = known(measured(setting, costs).pdrd_ms)
    assert delays[SYNCH, True] > 3 * delays[SYNCH, False]
    assert delays[INCREM, True] < 0.5 * delays[SYNCH, True]


def test_a_broker_is_charged_for_what_comes_and_its_words_leave_when_that_is_over() -> None:
    """Each of the subscriptions takes the stand-in a millisecond."""
    setting = Setting(SYNCH, SMALL, 1)
    quick, slow = (known(measured(setting, Fixed(entry_us=each)).replication_ms) for each in (0.0, 1_000.0))
    assert slow - quick == pytest.approx(SMALL.subscriptions, rel=0.1)


def test_real_brokers_resume_with_synch_and_lose_what_waits_with_basic() -> None:
    results = [play(Point("fig7", PROCESSES, str(case), 1, 1, Workload(40, 20))) for case in (SYNCH, BASIC)]
    synch, basic = (result.measured for result in results)
    assert (synch.dropped, synch.rank, synch.penalised) == (0.0, 1.0, 1.0)
    assert 0 < known(synch.pdrd_ms) < 5_000
    assert known(basic.dropped) > 0.5
    assert known(basic.replication_ms) > 0


@pytest.mark.full
def test_all_of_it_runs_by_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--figures", "--quick", "--jobs", "2", "--to", str(tmp_path)]) == 0
    assert {path.suffix for path in tmp_path.iterdir()} == {".svg", ".md", ".json", ".csv"}
    assert sum(1 for path in tmp_path.iterdir() if path.suffix == ".svg") == len(PICTURES)
    assert main(["--read", str(tmp_path / "results.json"), "--to", str(tmp_path / "again")]) == 0
    assert "verdicts" in capsys.readouterr().out


# -------------------------------------------------------------------------------------------------- what was recorded
@lru_cache
def recorded() -> Recorded:
    return msgspec.json.decode((RESULTS / "results.json").read_bytes(), type=Recorded)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.figure)
def test_nothing_covers_anything_in_the_pictures(picture: object) -> None:
    [chosen] = [each for each in PICTURES if each is picture]
    assert flaws(draw(chosen, Table(recorded().results), "a remark; 2 cores, 2026-11-19"), lines=False) == []


def test_the_page_has_what_was_recorded() -> None:
    command = command_of(recorded(), None)
    assert "\n".join(markdown(recorded(), command)) + "\n" == (RESULTS / "tables.md").read_text(encoding="utf-8")


def test_every_claim_was_measured_and_what_does_not_hold_has_its_reason() -> None:
    found = list(verdicts(Table(recorded().results)))
    assert {verdict.claim.text for verdict in found} == {claim.text for claim in CLAIMS}
    assert [(verdict.claim.text, verdict.how, verdict.value) for verdict in found if not verdict.is_expected] == []


def test_the_sizes_are_those_that_the_paper_prints() -> None:
    """D0-E1"""
    assert (FULL.subscriptions[0], FULL.subscriptions[-1]) == (100, 10_000)
    assert (FULL.pending[0], FULL.pending[-1]) == (100, 1_000)
    assert (FULL.neighbours[0], FULL.neighbours[-1]) == (1, 20)
    assert (min(FULL.degrees), max(FULL.degrees)) == (0.1, 4.0)


# ----------------------------------------------------------------------------------------------------------- verdicts
NOTHING = Measured(*[None] * len(Measured.__struct_fields__))


def table_of(figure: str, how: str, values: Mapping[str, Mapping[int, float | None]], metric: str) -> Table:
    """By protocol and x."""
    return Table([
        Result(Point(figure, how, series, x, 1, SMALL), msgspec.structs.replace(NOTHING, **{metric: value}))
        for series, by_x in values.items()
        for x, value in by_x.items()
    ])  # fmt: skip


def verdict_on(beginning: str, table: Table) -> tuple[str, bool | None]:
    [found] = [verdict for verdict in verdicts(table) if verdict.claim.text.startswith(beginning)]
    return found.ours, found.holds


@pytest.mark.parametrize(("increm", "verdict"), [(5.3, ("47%", True)), (7.0, ("30%", False)), (None, ("–", None))])
def test_a_claim_holds_within_its_bounds_and_is_left_open_when_it_was_not_measured(
    increm: float | None, verdict: tuple[str, bool | None]
) -> None:
    values: dict[str, dict[int, float | None]] = {
        str(SYNCH): {100: 1.0, 10_000: 10.0},
        str(INCREM): {100: None, 10_000: increm},
    }
    assert verdict_on("with the most", table_of("fig7", BATCHED, values, "pdrd_ms")) == verdict


def test_a_gap_that_closes_does_not_widen() -> None:
    wide = {str(SYNCH): {1: 10.0, 2: 40.0}, str(INCREM): {1: 5.0, 2: 10.0}}
    closing = {**wide, str(INCREM): {1: 5.0, 2: 45.0}}
    assert verdict_on("the gap", table_of("fig7", BATCHED, wide, "pdrd_ms")) == ("× 6.00", True)
    assert verdict_on("the gap", table_of("fig7", BATCHED, closing, "pdrd_ms")) == ("× 0.00", False)


def test_medians_leave_out_what_could_not_be_measured() -> None:
    results = [
        Result(Point("fig7", BATCHED, str(SYNCH), 1, seed, SMALL), msgspec.structs.replace(NOTHING, rank=value))
        for seed, value in enumerate([0.5, None, 0.7, 0.9])
    ]
    spread = Series(results).at(1, "rank")
    assert spread == (0.7, 0.5, 0.9)
    assert Series(results).at(1, "pdrd_ms") is None
