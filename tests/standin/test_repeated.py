"""Replacements one after the other: of a stand-in, of adjacent brokers, while another one is under way, and back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from experiments.standin.protocols import CASES, Case
from experiments.standin.schedules import network, publications, subscription
from experiments.standin.watched import MILLISECOND, Watched, circular, doubled
from holdfast.protocols.routing.network_map import StandInMode, StandInProtocol
from holdfast.sim.scenario import Fault, Kill, Operate

FAILOVER = [case for case in CASES if case.mode is StandInMode.FAILOVER]
SYNCH = Case(StandInProtocol.SYNCH, StandInMode.FAILOVER)
CHAIN = [("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5")]
HOMES = {"p": "b1", "s": "b5", "q": "b5", "t": "b1"}
END_MS = 26_000
# Stored events keep their order: the incremental protocol is refused there.
AT_LEVELS = [
    *((case, "none") for case in FAILOVER),
    *(pytest.param(case, "periodic", marks=pytest.mark.full) for case in FAILOVER),
    *(pytest.param(case, "buffered", marks=pytest.mark.full) for case in FAILOVER if case.keeps_order_of_stored),
]


def dies(host: str, at_ms: int) -> Fault:
    return Kill(at_ms=at_ms, for_ms=0, host=host, for_ever=True)


def play(case: Case, faults: Sequence[Fault], operations: Sequence[Operate], level: str = "none") -> Watched:
    """A publisher and a subscriber at each end, an event every tenth of a second each way."""
    moments = range(2_000, END_MS, 100)
    actions = [
        subscription("s", "topic = 't'"),
        subscription("t", "topic = 'u'"),
        *publications("p", moments),
        *publications("q", moments, topic="u"),
    ]
    scenario = network(
        case,
        CHAIN,
        HOMES,
        actions,
        faulty="b3",
        stand_in="r1",
        spares=["r2", "r3"],
        faults=faults,
        operations=operations,
        level=level,
        end_ms=END_MS,
        settings={"patience_ms": 2_000},
    )
    watched = Watched()
    watched.play(replace(scenario, checkers=[*scenario.checkers[:4], "publisher-order", "endings"]))
    return watched


def problems(watched: Watched) -> list[str]:
    assert watched.outcome is not None
    return [*([watched.outcome.broken] if watched.outcome.broken else []), *map(str, watched.outcome.violations)]


def published_after(watched: Watched, at_ms: int) -> list[int]:
    return [number for number in watched.published("p") if 2_000 + 100 * (number - 1) >= at_ms]


def assert_serves(watched: Watched, from_ms: int, *gone: str) -> None:
    """Everything that is published from then on arrives, both ways; and the tables are as they should be."""
    assert problems(watched) == []
    wanted = published_after(watched, from_ms)
    assert len(wanted) > 20
    for subscriber in ("s", "t"):
        delivered = watched.delivered(subscriber)
        assert delivered[-len(wanted) :] == wanted
    tables = {node: table for node, table in watched.tables().items() if node not in gone}
    assert doubled(tables) == circular(tables) == []


@pytest.mark.parametrize(("case", "level"), AT_LEVELS, ids=str)
def test_a_stand_in_is_replaced_as_any_broker_is(case: Case, level: str) -> None:
    """D0-C28: and its stand-in in turn."""
    watched = play(
        case,
        [dies("b3", 4_000), dies("r1", 8_000), dies("r2", 12_000)],
        [case.operation(5_000, "b3", "r1"), case.operation(9_000, "r1", "r2"), case.operation(13_000, "r2", "r3")],
        level,
    )
    assert [row.node for row in watched.happened("stand-in-done")] == ["r1", "r2", "r3"]
    assert_serves(watched, 16_000, "b3", "r1", "r2")


@pytest.mark.parametrize(("case", "level"), AT_LEVELS, ids=str)
def test_adjacent_brokers_are_replaced_one_after_the_other(case: Case, level: str) -> None:
    """D0-C28, D0-F6: the second while it still runs."""
    watched = play(
        case,
        [dies("b3", 4_000), dies("b4", 9_000), dies("b2", 14_000)],
        [case.operation(5_000, "b3", "r1"), case.operation(10_000, "b4", "r2"), case.operation(15_000, "b2", "r3")],
        level,
    )
    assert [row.node for row in watched.happened("stand-in-done")] == ["r1", "r2", "r3"]
    assert_serves(watched, 18_000, "b3", "b4", "b2")


@pytest.mark.parametrize(("case", "level"), AT_LEVELS, ids=str)
def test_adjacent_brokers_that_fail_together_are_replaced_while_the_one_is_missed_by_the_other(
    case: Case, level: str
) -> None:
    """D0-B7.4, D0-F6: the first stand-in goes on without the neighbour that is gone, says so, and hears from the second
    one what there is on that side."""
    watched = play(
        case,
        [dies("b3", 4_000), dies("b4", 4_000)],
        [case.operation(5_000, "b3", "r1"), case.operation(5_010, "b4", "r2")],
        level,
    )
    first, second = watched.happened("stand-in-done")
    assert (first.node, first.detail["left_out"], second.node, second.detail["left_out"]) == ("r1", ["b4"], "r2", [])
    assert [row.detail["neighbour"] for row in watched.happened("stand-in-without")] == ["b4"]
    assert first.t >= 7_000 * MILLISECOND
    assert_serves(watched, 14_000, "b3", "b4")


@pytest.mark.parametrize(("case", "level"), AT_LEVELS, ids=str)
def test_a_broker_that_is_there_again_has_its_place_back_and_may_be_replaced_once_more(case: Case, level: str) -> None:
    """D0-C28, D0-F6"""
    back = Operate(at_ms=10_000, action="hand-back", told={"id": "b3", "address": "b3", "peer_address": "b3"})
    watched = play(
        case,
        [Kill(at_ms=4_000, for_ms=4_000, host="b3"), dies("b3", 15_000)],
        [case.operation(5_000, "b3", "r1"), back, case.operation(16_000, "b3", "r1")],
        level,
    )
    assert [row.node for row in watched.happened("stand-in-done")] == ["r1", "r1"]
    assert_serves(watched, 19_000, "b3")
    delivered = set(watched.delivered("s"))
    while_back = [number for number in published_after(watched, 9_000) if 2_000 + 100 * number < 14_800]
    assert set(while_back) <= delivered


@pytest.mark.parametrize(("case", "level"), AT_LEVELS, ids=str)
def test_a_stand_in_that_dies_while_it_learns_is_replaced(case: Case, level: str) -> None:
    """D0-F6: the replacement that is under way is over with it."""
    watched = play(
        case,
        [dies("b3", 4_000), dies("b4", 4_500), dies("r1", 5_500)],
        [case.operation(5_000, "b3", "r1"), case.operation(7_000, "r1", "r2"), case.operation(12_000, "b4", "r3")],
        level,
    )
    assert [row.node for row in watched.happened("stand-in-done")] == ["r2", "r3"]
    assert_serves(watched, 16_000, "b3", "b4", "r1")


@pytest.mark.parametrize("case", FAILOVER, ids=str)
@pytest.mark.parametrize("faulty", ["b1", "b2", "b5"])
def test_any_broker_may_be_replaced_also_the_one_that_keeps_the_map(case: Case, faulty: str) -> None:
    """D0-C28: an edge broker takes its clients with it."""
    watched = play(case, [dies(faulty, 4_000)], [case.operation(5_000, faulty, "r1")])
    assert problems(watched) == []
    assert [row.node for row in watched.happened("stand-in-done")] == ["r1"]
    if faulty == "b2":
        assert_serves(watched, 8_000, "b2")
    else:
        tables = {node: table for node, table in watched.tables().items() if node != faulty}
        gone = [entry for table in tables.values() for _, entry in table if entry.startswith(f"{faulty}.")]
        assert gone == [], "what only its own clients advertised or wanted goes with it"
