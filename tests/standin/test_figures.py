"""What the figures of the first paper show, played in the simulator (D0-B17)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from experiments.standin.protocols import CASES, Case
from experiments.standin.schedules import (
    AFTERWARDS,
    FAULTY,
    PENDING,
    STAND_IN,
    a_subscription_comes_late,
    network,
    one_neighbour_is_late,
    publications,
    ready_queues_are_served_in_turn,
    star,
    subscription,
)
from experiments.standin.watched import Watched, circular, doubled
from holdfast.protocols.routing.network_map import StandInMode, StandInProtocol
from holdfast.trace import schema

FAILOVER = [case for case in CASES if case.mode is StandInMode.FAILOVER]
BASIC, SYNCH, INCREM = (Case(protocol, StandInMode.FAILOVER) for protocol in StandInProtocol)
MOMENTS = [3_000, 3_100, *PENDING, *AFTERWARDS]


def problems(watched: Watched) -> list[str]:
    assert watched.outcome is not None
    return [*([watched.outcome.broken] if watched.outcome.broken else []), *map(str, watched.outcome.violations)]


def everything_but(watched: Watched, *lost: int) -> list[int]:
    return [number for number in watched.published("p") if number not in lost]


# ---------------------------------------------------------------------------------------------------------- Figure 1
FIG_1 = [("b1", "b2"), ("b2", "b3"), ("b3", "b5"), ("b3", "b6")]


@pytest.mark.parametrize("case", FAILOVER, ids=str)
def test_figure_1_a_broker_of_another_domain_takes_the_faulty_ones_place(case: Case) -> None:
    """D0-A9, D0-A11, D0-A12, D0-A13, D0-A14: F is b3, N is b2, b5 and b6; b4 is lent by the other domain.
    b5 both publishes and subscribes."""
    homes = {"p": "b1", "q": "b5", "s5": "b5", "s6": "b6", "s1": "b1"}
    wanted = {"s5": "topic = 't'", "s6": "topic = 't'", "s1": "topic = 'u'"}
    actions = [subscription(client, text) for client, text in wanted.items()]
    actions += [*publications("p", MOMENTS), *publications("q", MOMENTS, topic="u")]
    watched = Watched()
    scenario = network(case, FIG_1, homes, actions, faulty="b3", stand_in="b4")
    watched.play(scenario)
    assert problems(watched) == []
    (done,) = watched.happened("stand-in-done")
    assert (done.node, sorted(done.detail["neighbours"]), done.detail["left_out"]) == ("b4", ["b2", "b5", "b6"], [])
    maps = watched.happened("map-adopted")
    assert {tuple(sorted(link)) for link in maps[-1].detail["tree"]} == {
        ("b1", "b2"), ("b2", "b4"), ("b4", "b5"), ("b4", "b6"),
    }  # fmt: skip
    assert doubled(watched.tables()) == circular(watched.tables()) == []
    for subscriber in ("s5", "s6", "s1"):
        delivered = watched.delivered(subscriber)
        assert {1, 2, 13, 14} <= set(delivered)
        if case != BASIC:
            assert sorted(delivered) == list(range(1, 15))


# ---------------------------------------------------------------------------------------------------------- Figure 3
@pytest.mark.parametrize("case", FAILOVER, ids=str)
def test_figure_3_where_all_publish_and_subscribe_nothing_is_in_a_table_twice(case: Case) -> None:
    """D0-C19, D0-B4.1, D0-B8.2: both neighbours advertise what both want."""
    watched = Watched()
    wanted = {f"s-n{number}": "topic = 't' OR topic = 'u'" for number in (1, 2, 3)}
    homes = {"q": "n3"}
    watched.play(star(case, 3, wanted, MOMENTS, more=publications("q", MOMENTS, topic="u"), homes=homes))
    assert problems(watched) == []
    tables = watched.tables()
    assert doubled(tables) == []
    assert circular(tables) == []
    entries = {table: {entry for kind, entry in tables[STAND_IN] if kind == table} for table, _ in tables[STAND_IN]}
    assert {table: len(known) for table, known in entries.items()} == {"advertisements": 2, "subscriptions": 3}


# ------------------------------------------------------------------------------------------------------- Figure 4(a)
def test_figure_4a_what_comes_before_all_have_told_what_they_want_is_lost_by_basic() -> None:
    """D0-C15, D0-C6, D0-B5"""
    watched = Watched()
    outcome = watched.play(one_neighbour_is_late(BASIC))
    assert outcome.broken == ""
    assert {violation.checker for violation in outcome.violations} == {f"weak-complete:{FAULTY}"}
    assert set(watched.delivered("s-n3")) < set(watched.delivered("s-n2"))


@pytest.mark.parametrize("case", [SYNCH, INCREM], ids=str)
def test_figure_4a_is_complete_with_the_other_protocols(case: Case) -> None:
    """D0-C7, D0-C8"""
    watched = Watched()
    watched.play(one_neighbour_is_late(case))
    assert problems(watched) == []
    assert sorted(watched.delivered("s-n3")) == sorted(watched.delivered("s-n2")) == everything_but(watched)


# ---------------------------------------------------------------------------------------------------------- Figure 5
def test_figure_5_an_event_that_waits_in_several_queues_goes_once() -> None:
    """D0-A27, D0-A28, D0-C20: three subscriptions at one neighbour want each of them, one at another."""
    watched = Watched()
    wanted = {"a-n2": "n > 0", "b-n2": "topic = 't'", "c-n2": "n < 100", "d-n3": "topic = 't'"}
    watched.play(star(INCREM, 4, wanted, MOMENTS, slow_ms={"n4": 250}))
    assert problems(watched) == []
    by_queues = [row for row in watched.hops("n1", STAND_IN) if row.what == "StandInForward"]
    carried = [event for row in by_queues for event in row.events]
    assert len(carried) == len(set(carried)) == len(PENDING)
    for neighbour in ("n2", "n3"):
        passed = [event for row in watched.hops(STAND_IN, neighbour) for event in row.events]
        assert len(passed) == len(set(passed)) == len(PENDING) + len(AFTERWARDS)
    for subscriber in wanted:
        assert sorted(watched.delivered(subscriber)) == list(range(1, 15))


# ---------------------------------------------------------------------------------------------------------- Figure 6
def test_figure_6_a_subscription_that_comes_late_is_served_by_the_stand_in_one_hop_away() -> None:
    """D0-C26, D0-A29, D0-A30, D0-B12: the event does not come from the publisher's broker again."""
    watched = Watched()
    watched.play(a_subscription_comes_late(INCREM))
    (came,) = [row for row in watched.rows if isinstance(row, schema.Routed) and _is_late(row)]
    fetched = "p/1/4"  # wanted by both
    (to_the_stand_in,) = [row for row in watched.hops("n1", STAND_IN) if fetched in row.events]
    (to_the_first,) = [row for row in watched.hops(STAND_IN, "n2") if fetched in row.events]
    (to_the_late_one,) = [row for row in watched.hops(STAND_IN, "n3") if fetched in row.events]
    assert to_the_stand_in.t < to_the_first.t < came.t == to_the_late_one.t
    assert sorted(watched.delivered("all-n3")) == list(range(1, 15))
    learning = watched.part(STAND_IN, "learning")
    assert len(learning.missed) == 0


def _is_late(row: schema.Routed) -> bool:
    """The stand-in hears of the subscription at n3."""
    return (row.node, row.source, row.table) == (STAND_IN, "n3", "subscriptions") and row.present


# ------------------------------------------------------------------------------------------------------ out of order
@pytest.mark.parametrize("schedule", [ready_queues_are_served_in_turn, a_subscription_comes_late])
def test_increm_breaks_the_order_and_the_others_do_not(schedule: type) -> None:
    """D0-C8: by ready queues that are served in turn, and by what the stand-in keeps."""
    watched = Watched()
    outcome = watched.play(schedule(INCREM))
    assert outcome.broken == ""
    assert {violation.checker for violation in outcome.violations} == {f"weak-ordered:{FAULTY}"}
    for case in (BASIC, SYNCH):
        watched = Watched()
        watched.play(schedule(case))
        assert problems(watched) == []
        for subscriber in {row.subscriber for row in watched.rows if isinstance(row, schema.Delivered)}:
            delivered = watched.delivered(subscriber)
            assert all(before < after for before, after in pairwise(delivered))


def test_events_kept_for_who_answers_last_are_not_given_up_with_the_conversation() -> None:
    """D0-B12.4: the last answer and the end come in one turn."""
    watched = Watched()
    watched.play(star(INCREM, 3, {"a-n2": "topic = 't'", "b-n3": "topic = 't'"}, MOMENTS, slow_ms={"n3": 250}))
    assert problems(watched) == []
    assert sorted(watched.delivered("b-n3")) == sorted(watched.delivered("a-n2")) == list(range(1, 15))
