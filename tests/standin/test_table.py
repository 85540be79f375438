"""Table 1 of the first paper, both ways: what is promised holds in every schedule that is drawn, and what is not is
violated by one that is made for it (D0-C14.1)."""

from __future__ import annotations

from collections import Counter

import pytest

from experiments.standin.__main__ import main
from experiments.standin.protocols import CASES, COMPLETE, ORDERED, TABLE_1, Case, promised
from experiments.standin.runs import HAPPENS_SHARED, Result, play, play_all
from experiments.standin.table import MADE, Line, scarce, violated_by_hand
from experiments.standin.world import BROKERS_MAX, BROKERS_MIN, draw_world
from holdfast.sim.scenario import Kill, PowerCut, Subscribe
from holdfast.sim.scenario_file import check_scenario
from tests.tiers import blocks

SEEDS = 60
SEEDS_LONG = 600


@pytest.mark.parametrize("seeds", blocks(SEEDS, size=15))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_promised_holds_in_every_schedule_that_is_drawn(case: Case, seeds: range) -> None:
    """D0-C6, D0-C7, D0-C8, D0-C5, D0-C25: and beside the faulty broker nothing is lost by a protocol that is
    complete."""
    results = list(play_all(case, seeds))
    assert _failed(case, results) == []
    assert scarce(results) == {}


def _failed(case: Case, results: list[Result]) -> list[str]:
    """As the command says it, but for the schedules that are made."""
    made = dict.fromkeys((COMPLETE, ORDERED), ("",))
    return [each for each in Line(case, tuple(results), made).wrong if "too little" not in each]


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_promised_holds_in_many_schedules(case: Case) -> None:
    results = list(play_all(case, range(1, SEEDS_LONG + 1), jobs=2))
    violated = {name: sum(name in result.violated for result in results) for name in (COMPLETE, ORDERED)}
    lost = sum(result.lost for result in results)
    print(f"summary: {len(results)} schedules of {case}, {violated} violated, {lost} events lost beside the faulty one")
    assert _failed(case, results) == []
    assert scarce(results) == {}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_not_promised_is_violated_by_a_schedule_that_is_made_for_it(case: Case) -> None:
    """D0-C15, D0-C6, D0-C8"""
    shown = violated_by_hand(case)
    for name in (COMPLETE, ORDERED):
        assert len(shown[name]) == len(MADE.get((case, name), ()))
        assert bool(shown[name]) == (name not in promised(case))


@pytest.mark.parametrize("seed", [71, pytest.param(229, marks=pytest.mark.full)])
def test_a_slow_broker_with_many_neighbours_is_not_kept_busy_with_signals_that_say_nothing(seed: int) -> None:
    """D0-C23: each of n neighbours said one to the n - 1 others every tenth of a second, by way of the slow one."""
    case = next(case for case in CASES if str(case) == "increm-ms-ro")
    assert play(case, seed).lost == 0


def test_the_table_is_that_of_the_paper() -> None:
    """D0-C6, D0-C7, D0-C8, D0-C9, D0-C10, D0-C11, D0-C12, D0-C13, D0-C14"""
    assert set(TABLE_1) == set(CASES)
    assert [sum(not says for says in column) for column in zip(*TABLE_1.values(), strict=True)] == [3, 4]


# -------------------------------------------------------------------------------------------------------- what is drawn
def test_worlds_are_of_every_size_and_kind() -> None:
    sizes: Counter[int] = Counter()
    near: Counter[int] = Counter()
    faults: Counter[type] = Counter()
    more: Counter[str] = Counter()
    for seed in range(1, 301):
        world = draw_world(seed)
        scenario = world.scenario
        sizes[len(scenario.brokers) - 1] += 1
        near[len(world.neighbours)] += 1
        faults.update(type(fault) for fault in scenario.faults)
        filters = Counter(action.filter for action in scenario.actions if isinstance(action, Subscribe))
        more["several with one filter"] += max(filters.values()) > 1
        more["clients of the faulty one"] += any(client.brokers == (world.faulty,) for client in scenario.clients)
        more["the keeper"] += world.faulty == scenario.brokers[0].id
        more["news"] += any(client.id.startswith("new") for client in scenario.clients)
        check_scenario(world.played_with(CASES[0]), f"seed {seed}")
    assert set(sizes) == set(range(BROKERS_MIN, BROKERS_MAX + 1))
    assert {1, 2, 3, 4, 5, 6} <= set(near)
    assert set(faults) == {Kill, PowerCut}
    assert more["several with one filter"] == 300
    assert all(count > 20 for count in more.values())


def test_a_world_is_the_same_for_all_protocols_and_the_same_again() -> None:
    assert draw_world(3) == draw_world(3)
    scenarios = [draw_world(3).played_with(case) for case in CASES if case.is_permanent]
    assert len({str(scenario.actions) for scenario in scenarios}) == 1
    assert play(CASES[1], 3) == play(CASES[1], 3)


def test_a_draw_in_which_nothing_happens_is_noticed() -> None:
    result = play(CASES[1], 3)
    empty = Result(result.case, 3, 4, 2, (), "", 0, {}, 0)
    assert set(scarce([empty])) == set(scarce([])) != set()
    shared = Result(CASES[-1], 3, 4, 2, (), "", 0, {}, 0)
    assert set(scarce([shared])) == set(HAPPENS_SHARED)
    assert Line(empty.case, (empty,), {}).wrong


def test_the_command_prints_the_papers_cell_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--table1", "--seeds", "3", "--protocol", "synch"])
    out = capsys.readouterr().out
    assert "synch-failover   weak    yes" in out
    assert "synch-ms-ro      strong  yes" in out
    assert "0 of 3" in out
    assert "not measured" in out
