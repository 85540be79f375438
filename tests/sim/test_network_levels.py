"""Each level of reliability loses exactly what it may lose: small networks, one failure, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.protocols.routing.settings import Reliability
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import (
    Action,
    Broker,
    Client,
    Cut,
    Fault,
    Kill,
    PowerCut,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
)
from holdfast.trace import schema
from holdfast.trace.schema import Row
from tests.sim.network_mutants import BY_NAME

# The middle broker stands first, so that the tree of the triangle has it in the middle too.
NAMES = ("middle", "left", "right")
CHAIN = [("middle", "left"), ("middle", "right")]
TRIANGLE = [*CHAIN, ("left", "right")]
CHECKERS = ["only-matching", "at-most-once", "network"]
EVERY_MS = 250


class Rows:
    def __init__(self) -> None:
        self.rows: list[Row] = []

    def see(self, row: Row) -> None:
        self.rows.append(row)

    def delivered(self, subscriber: str = "s") -> list[int]:
        found = [row for row in self.rows if isinstance(row, schema.Delivered) and row.subscriber == subscriber]
        return [int(row.event.rpartition("/")[2]) for row in found]

    def accepted(self) -> dict[int, int]:
        """Number → when it was accepted, in milliseconds."""
        rows = [row for row in self.rows if isinstance(row, schema.Accepted)]
        return {int(event.rpartition("/")[2]): row.t // 1_000_000 for row in rows for event in row.events}

    def between(self, start: int, end: int) -> list[int]:
        """The events that were accepted then."""
        return [number for number, at in self.accepted().items() if start <= at < end]


def play(
    level: str,
    faults: Sequence[Fault],
    *,
    links: Sequence[tuple[str, str]] = CHAIN,
    more: Sequence[Action] = (),
    seed: int = 1,
    sync_us: tuple[int, int] = (100, 2_000),
    every_ms: int = EVERY_MS,
    until_ms: int = 20_000,
    factories: Factories | None = None,
    checkers: Sequence[str] = CHECKERS,
    clients: Sequence[Client] = (),
    duplicates_remembered: int = 65_536,
) -> tuple[Rows, str]:
    """A publisher on the left, a subscriber on the right, an event every quarter of a second; and what is wrong."""
    reliability, rows = Reliability(level), Rows()
    actions: list[Action] = [Subscribe(at_ms=500, client="s", name="s", filter="topic = 't'"), *more]
    actions += [
        Publish(at_ms=at, client="p", events=[ScenarioEvent(topic="t", attributes={"n": at})], retry=False)
        for at in range(1_000, until_ms, every_ms)
    ]
    scenario = Scenario(
        name=level.replace("+", "-"),
        seed=seed,
        brokers=[Broker(id=name, durable=reliability.buffers, sync_us=sync_us) for name in NAMES],
        clients=[Client(id="p", brokers=("left",)), Client(id="s", brokers=("right",)), *clients],
        links=list(links),
        settings={
            "reliability": reliability.value,
            "refresh_ms": 2_000,
            "expire_ms": 7_000,
            "restore_ms": 3_000,
            "dial_every_ms": 500,
            "heartbeat_ms": 1_000,
            "suspect_ms_min": 2_500,
            "suspect_ms_max": 5_000,
            "duplicates_remembered": duplicates_remembered,
        },
        actions=sorted(actions, key=lambda action: action.at_ms),
        faults=list(faults),
        safety_ms=until_ms,
        liveness_ms=10_000,
        checkers=list(checkers),
    )
    outcome = run_scenario(scenario, factories, [rows], stop_at_violation=False)
    return rows, outcome.broken or "\n".join(map(str, outcome.violations))


@pytest.mark.parametrize("level", [level.value for level in Reliability])
def test_without_failures_every_level_delivers_everything_in_order(level: str) -> None:
    """D0-C25, D1-B1, D1-B2"""
    rows, wrong = play(level, [], checkers=[*CHECKERS, "publisher-order", "no-loss", "liveness"])
    assert wrong == ""
    assert rows.delivered() == list(range(1, 77))


def test_none_forgets_what_leads_through_a_broker_that_was_restarted() -> None:
    """D1-C1: the broker is up again, and nothing passes it any more."""
    rows, wrong = play("none", [Kill(at_ms=5_000, for_ms=1_000, host="middle")])
    assert wrong == ""
    assert rows.delivered() == rows.between(0, 5_000)
    assert len(rows.between(8_000, 20_000)) > 40


def test_periodic_loses_events_while_a_broker_is_down_and_no_subscription() -> None:
    """D1-C2, D1-B3"""
    rows, wrong = play("periodic", [Kill(at_ms=5_000, for_ms=4_000, host="middle")])
    assert wrong == ""
    delivered = set(rows.delivered())
    assert set(rows.between(0, 5_000)) <= delivered
    assert not set(rows.between(5_000, 9_000)) & delivered
    assert set(rows.between(11_000, 20_000)) <= delivered


def test_nobody_forgets_for_what_a_restarted_broker_does_not_know_yet() -> None:
    """D1-B3: its word is not complete before its neighbours have told it."""
    rows, wrong = play("periodic", [Kill(at_ms=5_000, for_ms=10, host="middle")])
    assert wrong == ""
    gone = [row for row in rows.rows if isinstance(row, schema.Routed) and not row.present and row.t < 19 * 10**9]
    assert gone == []


def test_what_is_not_told_again_is_forgotten() -> None:
    """D1-B3: the entries of a neighbour that stays away expire."""
    rows, _ = play("periodic", [Kill(at_ms=5_000, for_ms=15_000, host="right")])
    gone = [row for row in rows.rows if isinstance(row, schema.Routed) and not row.present]
    assert [(row.node, row.source) for row in gone[:2]] == [("middle", "right"), ("left", "middle")]
    assert gone[0].t >= 12 * 10**9


@pytest.mark.parametrize(
    "faults",
    [
        [Kill(at_ms=5_000, for_ms=4_000, host="middle")],
        [PowerCut(at_ms=5_000, for_ms=4_000, host="middle")],
        [Cut(at_ms=5_000, for_ms=8_000, source="middle", target="right")],
        [Kill(at_ms=5_000, for_ms=9_000, host="right"), Kill(at_ms=7_000, for_ms=1_000, host="middle")],
        [Kill(at_ms=5_000, for_ms=9_000, host="middle"), PowerCut(at_ms=7_000, for_ms=1_000, host="left")],
    ],
)
def test_buffered_loses_nothing_that_was_accepted(faults: list[Fault]) -> None:
    """D1-C3, D1-B4, D1-B4.2, D1-B4.3: also when the broker that buffers fails itself."""
    rows, wrong = play("buffered", faults, checkers=[*CHECKERS, "publisher-order"])
    assert wrong == ""
    assert rows.delivered() == sorted(rows.accepted())


def test_a_broker_that_lost_its_table_keeps_events_until_it_knows_who_wants_them() -> None:
    """D1-B4.1: its disk is gone, and the broker that could tell is not there yet."""
    faults: list[Fault] = [
        PowerCut(at_ms=5_000, for_ms=1_000, host="middle", wipe=True),
        Kill(at_ms=5_500, for_ms=8_500, host="right"),
    ]
    rows, wrong = play("buffered", faults)
    assert wrong == ""
    assert sorted(rows.delivered()) == sorted(rows.accepted())
    rows, _ = play("buffered", faults, factories=BY_NAME["trusts-an-empty-table"].factories)
    assert set(rows.delivered()) < set(rows.accepted()), "a broker that does not wait loses them"


def test_bypass_goes_around_a_failed_broker_for_events_and_for_subscriptions() -> None:
    """D1-B5, D1-A14, D1-C4"""
    more: list[Action] = [
        Subscribe(at_ms=10_000, client="s2", name="s2", filter="topic = 'u'"),
        Publish(at_ms=4_000, client="q", events=[ScenarioEvent(topic="u")]),  # nobody wants it yet
        *[Publish(at_ms=at, client="q", events=[ScenarioEvent(topic="u")]) for at in (12_000, 13_000, 14_000)],
    ]
    faults = [Kill(at_ms=5_000, for_ms=15_000, host="middle")]
    clients = [Client(id="s2", brokers=("right",)), Client(id="q", brokers=("left",))]
    rows, wrong = play("bypass", faults, links=TRIANGLE, more=more, clients=clients)
    assert wrong == ""
    assert set(rows.between(8_000, 19_000)) <= set(rows.delivered())
    around = [row for row in rows.rows if isinstance(row, schema.Hop) and row.what == "Detour" and row.events]
    assert {(row.source, row.target) for row in around} == {("left", "right")}, "a trace tells an event's way"
    assert rows.delivered("s2") == [2, 3, 4]
    deaf = BY_NAME["drops-what-was-said"].factories
    rows, _ = play("bypass", faults, links=TRIANGLE, more=more, clients=clients, factories=deaf)
    assert rows.delivered("s2") == []


def test_bypass_goes_around_a_cut_link() -> None:
    """D1-B5: the neighbour itself is reached by other links."""
    rows, wrong = play("bypass", [Cut(at_ms=5_000, for_ms=15_000, source="middle", target="right")], links=TRIANGLE)
    assert wrong == ""
    assert set(rows.between(12_000, 19_000)) <= set(rows.delivered())


def test_bypass_loses_what_no_way_leads_to() -> None:
    """D1-C4: without other links there is no way around."""
    rows, wrong = play("bypass", [Kill(at_ms=5_000, for_ms=6_000, host="middle")])
    assert wrong == ""
    assert not set(rows.between(5_000, 11_000)) & set(rows.delivered())
    assert set(rows.between(14_000, 20_000)) <= set(rows.delivered())


@pytest.mark.parametrize("outage", ["a broker", "a link"])
def test_what_came_around_does_not_come_again_from_the_store_however_much_it_is(outage: str) -> None:
    """D1-B6: more events go around than are remembered, and all of them are stored for the tree in the same order."""
    broker = Kill(at_ms=3_000, for_ms=12_000, host="middle")
    link = Cut(at_ms=3_000, for_ms=12_000, source="left", target="middle")
    rows, wrong = play(
        "bypass+buffered", [broker if outage == "a broker" else link], links=TRIANGLE, duplicates_remembered=3
    )
    assert wrong == ""
    assert sorted(rows.delivered()) == sorted(rows.accepted())


def test_both_deliver_at_once_and_once() -> None:
    """D1-B6, D1-C5: what went around comes again when the broker is back, and is dropped at the last one."""
    faults = [Kill(at_ms=5_000, for_ms=9_000, host="middle")]
    rows, wrong = play("bypass+buffered", faults, links=TRIANGLE)
    assert wrong == ""
    delivered = [row for row in rows.rows if isinstance(row, schema.Delivered)]
    at_once = {int(row.event.rpartition("/")[2]) for row in delivered if row.t < 14 * 10**9}
    assert set(rows.between(8_000, 13_500)) <= at_once
    assert sorted(rows.delivered()) == sorted(rows.accepted())
    carried = [row for row in rows.rows if isinstance(row, schema.Hop) and row.what == "Forward"]
    again = [row for row in carried if (row.source, row.target) == ("middle", "right") and row.t > 14 * 10**9]
    wanted = {f"p/1/{number}" for number in rows.between(8_000, 13_500)}
    assert wanted <= {event for row in again for event in row.events}, "it was sent again, and dropped"


@pytest.mark.parametrize("name", ["acknowledges-before-storing", "sends-before-storing"])
def test_a_claim_that_the_disk_does_not_hold_is_caught(name: str) -> None:
    """D1-B4: power cuts at slow disks."""
    sync_us = (50_000, 400_000)

    def wrong(seed: int, factories: Factories | None) -> str:
        faults = [PowerCut(at_ms=at, for_ms=300, host="middle") for at in range(2_000, 19_000, 700)]
        return play("buffered", faults, seed=seed, sync_us=sync_us, every_ms=30, factories=factories)[1]

    assert [wrong(seed, None) for seed in (1, 2, 3)] == ["", "", ""]
    assert any(wrong(seed, BY_NAME[name].factories) for seed in (1, 2, 3))
