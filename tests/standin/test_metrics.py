"""The paper's metrics on traces that were written by hand (D0-E2 to E5, D0-D5)."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.standin.campaign import INCREM
from experiments.standin.metrics import (
    Seen,
    displacements,
    measure,
    ordering_degree,
    ordering_degree_penalised,
    speed_from,
)
from experiments.standin.setting import FAULTY, STAND_IN, Setting
from experiments.standin.workload import Drawn, Workload
from holdfast.trace import schema
from holdfast.trace.schema import Row

MS = 1_000_000
BROKERS = ("n1", FAULTY, STAND_IN, "n2", "n3")


class Hand(Setting, frozen=True):
    """With these thresholds."""

    by_hand: dict[str, list[int]] = {}  # noqa: RUF012 - a field's default, which is copied

    def thresholds(self) -> dict[str, list[int]]:
        return self.by_hand


def setting(**thresholds: list[int]) -> Setting:
    return Hand(INCREM, Workload(1, 1), len(thresholds), by_hand=thresholds)


def seen(values: Iterable[int], *rows: Row) -> Seen:
    found = Seen(BROKERS)
    for number, value in enumerate(values, 1):
        event = f"p/1/{number}"
        found.see(
            schema.Published(t=0, event=event, publisher="p", incarnation=1, sequence=number, attributes={"v": value})
        )
    for row in sorted(rows, key=lambda row: row.t):
        found.see(row)
    return found


def asked(broker: str, at_ms: int) -> Row:
    return schema.Control(t=at_ms * MS, node=broker, what="stand-in-asked", detail={"stand_in": STAND_IN})


def asks(broker: str, at_ms: int) -> Row:
    return schema.Control(t=at_ms * MS, node=STAND_IN, what="stand-in-asks", detail={"neighbour": broker})


def done(at_ms: int) -> Row:
    return schema.Control(t=at_ms * MS, node=STAND_IN, what="stand-in-done")


def hop(at_ms: int, source: str, target: str, *numbers: int) -> Row:
    events = [f"p/1/{number}" for number in numbers]
    return schema.Hop(t=at_ms * MS, message=1, source=source, target=target, what="Forward", events=events)


# ---------------------------------------------------------------------------------------------------- times, and losses
def test_delivery_is_resumed_with_the_first_matching_event_by_the_stand_in() -> None:
    """D0-E2: the mean over subscriptions, from when their neighbour was asked."""
    rows = (asked("n2", 10), hop(30, STAND_IN, "n2", 1), hop(50, STAND_IN, "n2", 2))
    measured = measure(setting(n2=[1, 1, 1, 5]), seen([3, 9], *rows))
    assert measured.pdrd_ms == (3 * 20 + 40) / 4


def test_what_came_by_the_faulty_broker_resumes_nothing() -> None:
    rows = (asked("n2", 10), hop(20, FAULTY, "n2", 1), hop(50, STAND_IN, "n2", 2))
    assert measure(setting(n2=[1]), seen([3, 9], *rows)).pdrd_ms == 40


def test_each_neighbour_has_its_own_beginning() -> None:
    rows = (asked("n2", 10), asked("n3", 20), hop(30, STAND_IN, "n2", 1), hop(30, STAND_IN, "n3", 1))
    assert measure(setting(n2=[1], n3=[1]), seen([3], *rows)).pdrd_ms == (20 + 10) / 2


def test_the_last_pending_message_is_waited_for_from_the_first_that_matches() -> None:
    """D0-E4: also if the last one is for others."""
    rows = (asked("n2", 10), hop(30, STAND_IN, "n2", 1), hop(50, STAND_IN, "n2", 2), hop(90, STAND_IN, "n2", 3))
    measured = measure(setting(n2=[1, 5]), seen([3, 9, 2], *rows))
    assert measured.lmpt_ms == (60 + 40) / 2


def test_replication_lasts_from_the_first_request_to_the_last_subscription() -> None:
    """D0-E5"""
    measured = measure(setting(n2=[1]), seen([3], asks("n1", 5), asks("n2", 8), asked("n2", 9), done(105)))
    assert measured.replication_ms == 100


def test_what_never_comes_is_dropped_for_each_subscription_that_wanted_it() -> None:
    rows = (asked("n2", 0), hop(30, STAND_IN, "n2", 2))
    measured = measure(setting(n2=[1, 1, 5, 19]), seen([3, 9, 1], *rows))
    assert measured.dropped == 2 / 5  # 3 and 9 are wanted twice, 9 once more; 1 by nobody
    assert measured.silent == 0


def test_subscriptions_that_got_nothing_are_no_part_of_the_mean_and_are_counted() -> None:
    rows = (asked("n2", 0), hop(30, STAND_IN, "n2", 2))
    measured = measure(setting(n2=[1, 10]), seen([13, 5], *rows))
    assert (measured.pdrd_ms, measured.silent) == (30, 0.5)


def test_an_event_that_comes_again_counts_once() -> None:
    rows = (asked("n2", 0), hop(30, STAND_IN, "n2", 1), hop(40, STAND_IN, "n2", 2), hop(50, STAND_IN, "n2", 1))
    measured = measure(setting(n2=[1]), seen([3, 9], *rows))
    assert (measured.lmpt_ms, measured.rank) == (10, 1.0)


def test_where_neighbours_put_events_in_order_what_they_hand_on_counts() -> None:
    rows = (
        asked("n2", 0), hop(30, STAND_IN, "n2", 2), hop(40, FAULTY, "n2", 1),
        hop(60, "n2", "s", 1), hop(70, "n2", "s", 2),
    )  # fmt: skip
    found = seen([3, 9], *rows)
    assert measure(setting(n2=[1]), found).rank == 0.5
    handed = measure(setting(n2=[1]), found, handed=True)
    assert (handed.rank, handed.lmpt_ms) == (1.0, 40)
    assert speed_from(found, 50) == 100  # two in 20 ms


def test_nothing_measured_is_no_number() -> None:
    measured = measure(setting(n2=[1]), seen([3], asked("n2", 0)))
    assert (measured.pdrd_ms, measured.lmpt_ms, measured.rank) == (None, None, None)
    assert (measured.penalised, measured.dropped) == (0.0, 1.0)


# -------------------------------------------------------------------------------------------------------------- order
def test_perfect_order_is_one_and_the_reverse_is_a_half() -> None:
    """D0-D5.1"""
    assert ordering_degree(range(6)) == 1.0
    assert ordering_degree([5, 4, 3, 2, 1, 0]) == 0.5
    assert ordering_degree([4, 3, 2, 1, 0]) == 0.5 + 1 / (2 * 5**2)


def test_the_degree_is_the_papers_sum_over_displacements() -> None:
    """D0-D5"""
    places = [2, 0, 1, 3]
    size = len(places)
    spread = displacements(places)
    assert spread == {2: 1, 1: 2, 0: 1}
    assert ordering_degree(places) == sum((size - far) * count for far, count in spread.items()) / size**2


@given(st.integers(1, 40).flatmap(lambda size: st.permutations(range(size))))
def test_of_what_came_the_degree_is_between_a_half_and_one(places: list[int]) -> None:
    """D0-D5.1"""
    size = len(places)
    least = 0.5 if size % 2 == 0 else 0.5 + 1 / (2 * size**2)
    assert least - 1e-9 <= ordering_degree(places) <= 1.0
    assert (ordering_degree(places) == 1.0) == (places == sorted(places))


@given(st.integers(1, 30), st.integers(0, 30), st.randoms(use_true_random=False))
def test_with_what_did_not_come_it_is_below_the_share_that_did(size: int, lost: int, rng: Random) -> None:
    places = rng.sample(range(size), max(0, size - lost))
    penalised = ordering_degree_penalised(places, size)
    assert 0.0 <= penalised <= len(places) / size
    if not lost:
        assert penalised == pytest.approx(ordering_degree(places))


def test_gaps_do_not_count_by_rank_and_count_when_losses_do() -> None:
    assert ordering_degree([0, 2, 3]) == 1.0
    assert ordering_degree_penalised([0, 2, 3], 4) == (4 + 3 + 3) / 16


def test_a_drawn_setting_is_measured_by_its_own_thresholds() -> None:
    drawn = Setting(INCREM, Workload(9, 5), 2)
    assert isinstance(drawn.workload.draw(1), Drawn)
    assert sorted(len(wanted) for wanted in drawn.thresholds().values()) == [4, 5]
