"""Networks in which events and publishers have to wait: nobody waits for ever, and nothing is lost by waiting."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import (
    Action,
    Broker,
    Client,
    Cut,
    Fault,
    Kill,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
)
from holdfast.trace import schema
from tests.sim.test_network_levels import Rows

CHECKERS = ["only-matching", "at-most-once", "publisher-order", "liveness", "network"]
CHAIN = [("a", "b"), ("b", "c"), ("c", "d")]


def play(
    clients: Sequence[Client],
    actions: Sequence[Action],
    faults: Sequence[Fault],
    *,
    links: Sequence[tuple[str, str]] = CHAIN,
    store_bytes: int = 256 * 1024 * 1024,
    until_ms: int = 20_000,
) -> Rows:
    """At the level that buffers; every promise has to hold."""
    broker = Broker(id="a", durable=True, sync_us=(100, 2_000), backlog_bytes=64 * 1024 * 1024)
    rows = Rows()
    scenario = Scenario(
        name="waiting",
        seed=1,
        brokers=[msgspec.structs.replace(broker, id=name) for name in "abcd"],
        clients=list(clients),
        links=list(links),
        settings={"reliability": "buffered", "store_bytes": store_bytes},
        actions=sorted(actions, key=lambda action: action.at_ms),
        faults=list(faults),
        safety_ms=until_ms,
        liveness_ms=20_000,
        checkers=CHECKERS,
    )
    outcome = run_scenario(scenario, None, [rows], stop_at_violation=False)
    assert not outcome.broken
    assert "\n".join(map(str, outcome.violations)) == ""
    return rows


def published(client: str, times: Sequence[int], size: int, lifetime_ms: int = 0) -> list[Action]:
    event = ScenarioEvent(topic="t", payload_bytes=size, lifetime_ms=lifetime_ms)
    return [Publish(at_ms=at, client=client, events=[event]) for at in times]


def wanted(client: str) -> Action:
    return Subscribe(at_ms=500, client=client, name=client, filter="topic = 't'")


def test_two_brokers_that_are_full_of_what_they_have_for_each_other_go_on() -> None:
    """D1-B4: each has neighbours beside the other, for which nothing waits."""
    clients = [Client(id=f"{what}{broker}", brokers=(broker,)) for what in "sp" for broker in "ab"]
    times = range(2_000, 9_000, 50)
    actions = [wanted("sa"), wanted("sb"), *published("pa", times, 900), *published("pb", times, 900)]
    faults = [Cut(at_ms=4_000, for_ms=9_000, source="a", target="b")]
    links = [("a", "b"), ("b", "c"), ("a", "d")]
    rows = play(clients, actions, faults, links=links, store_bytes=20_000)
    assert len(rows.delivered("sa")) == len(rows.delivered("sb")) == 2 * len(times)


def test_what_expires_while_there_is_no_link_makes_room_for_publishers() -> None:
    """D1-B4: until acknowledged or expired; without a link, too, and also if nothing is left to be sent."""
    clients = [Client(id="s", brokers=("d",)), Client(id="p", brokers=("a",))]
    times = [*range(2_000, 8_000, 100), *range(12_000, 28_000, 100)]  # all has expired before the second part
    actions = [wanted("s"), *published("p", times, 900, lifetime_ms=1_000)]
    faults = [Cut(at_ms=4_000, for_ms=20_000, source="a", target="b")]
    rows = play(clients, actions, faults, store_bytes=30_000, until_ms=30_000)
    by_second = [len(rows.between(at, at + 1_000)) for at in range(12_000, 28_000, 1_000)]
    assert min(by_second) >= 9, "nobody had to wait for the link"
    assert len(rows.accepted()) == len(times)
    assert set(rows.between(26_000, 27_500)) <= set(rows.delivered())


def test_what_a_publisher_left_behind_reaches_those_who_wanted_it() -> None:
    """D1-C3: its advertisement is not taken back before its events have passed, of which there are more than go at
    once."""
    clients = [Client(id="s", brokers=("d",)), Client(id="p", brokers=("a",))]
    actions = [wanted("s"), *published("p", range(1_000, 1_001), 0), *published("p", range(4_000, 7_000, 100), 300_000)]
    faults: list[Fault] = [
        Cut(at_ms=3_000, for_ms=9_000, source="a", target="b"),
        Kill(at_ms=9_000, for_ms=500, host="p"),  # its session ends when it is back in another life
    ]
    rows = play(clients, actions, faults)
    assert rows.delivered() == list(range(1, 32))


def test_what_was_published_before_a_restart_reaches_those_who_wanted_it() -> None:
    """D1-C3: the broker's own advertisements of topics are not on its disk; the events are."""
    clients = [Client(id="s", brokers=("d",)), Client(id="p", brokers=("a",))]
    actions = [wanted("s"), *published("p", range(1_000, 1_001), 0), *published("p", range(4_000, 7_000, 100), 300_000)]
    faults: list[Fault] = [
        Cut(at_ms=3_000, for_ms=9_000, source="a", target="b"),
        Kill(at_ms=8_000, for_ms=500, host="a"),
        Kill(at_ms=9_000, for_ms=9_000, host="p"),
    ]
    rows = play(clients, actions, faults)
    assert rows.delivered() == list(range(1, 32))


def test_a_publisher_that_goes_to_another_broker_and_comes_back_goes_on_there() -> None:
    """D1-B4.4: the broker that it left still knows its session, whose numbers are not those that it counts by now."""
    clients = [Client(id="s", brokers=("d",)), Client(id="p", brokers=("a", "b"), ping_ms=500)]
    actions = [wanted("s"), *published("p", range(1_000, 18_000, 100), 100)]
    faults: list[Fault] = [
        Cut(at_ms=4_000, for_ms=4_000, source="p", target="a"),
        Cut(at_ms=8_500, for_ms=4_000, source="p", target="b"),
    ]
    rows = play(clients, actions, faults)
    homes = [row.node for row in rows.rows if isinstance(row, schema.Accepted)]
    assert (homes[0], "b" in homes, homes[-1]) == ("a", True, "a")
    assert set(rows.delivered()) == set(rows.accepted())
    assert len(rows.accepted()) == 170
