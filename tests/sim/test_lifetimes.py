"""Events with lifetimes, under all faults: none is handed over late, and only they are given up (D1-A4)."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.protocols.sessions.messages import Overflow
from holdfast.schemes.paxos.draw import group_shape
from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim.campaign import run_campaign
from holdfast.sim.latency import Constant
from holdfast.sim.run import Outcome, run_scenario
from holdfast.sim.scenario import (
    Broker,
    Client,
    Cut,
    Fault,
    Network,
    Pause,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
)
from holdfast.trace import schema
from holdfast.trace.reliability import measure_reliability
from tests.sim.clean import check_block
from tests.sim.scripted import Rows
from tests.tiers import blocks

MORTAL = OneBrokerShape(lifetimes=True, name="mortal")
SEEDS = 300
GROUP_SEEDS = 15


def _run(scenario: Scenario) -> tuple[Outcome, Rows]:
    rows = Rows()
    return run_scenario(scenario, sinks=[rows]), rows


def _lightened(scenario: Scenario) -> Scenario:
    """The first client publishes everything, and the others are light."""
    clients = [
        msgspec.structs.replace(c, consume_after_us=0, gather_us=0, light=c.id != "c1") for c in scenario.clients
    ]
    actions = [msgspec.structs.replace(a, client="c1") if isinstance(a, Publish) else a for a in scenario.actions]
    return msgspec.structs.replace(scenario, clients=clients, actions=actions)


def test_lifetimes_change_nothing_else_of_what_a_seed_draws() -> None:
    for seed in range(1, 20):
        mortal, plain = (
            MORTAL.draw(seed),
            msgspec.structs.replace(MORTAL, lifetimes=False).draw(seed),
        )
        for action in mortal.actions:
            if isinstance(action, Publish):
                action.events[:] = [msgspec.structs.replace(event, lifetime_ms=0) for event in action.events]
        assert msgspec.structs.replace(mortal, checkers=plain.checkers) == plain
        assert mortal.checkers == [*plain.checkers, "in-time"]


@pytest.mark.parametrize("seeds", blocks(SEEDS))
def test_hundreds_of_seeds_with_lifetimes_keep_every_promise(seeds: range) -> None:
    check_block(MORTAL, seeds, delivered=10, faults=1)


def test_groups_give_up_the_same_events_at_every_replica() -> None:
    campaign = run_campaign(msgspec.structs.replace(group_shape(), lifetimes=True), range(1, GROUP_SEEDS + 1), jobs=2)
    assert [(outcome.seed, outcome.broken or outcome.violations[0]) for outcome in campaign.failed] == []


def test_what_expired_is_told_of_subscriptions_that_exist_by_brokers_and_by_clients() -> None:
    told: Counter[str] = Counter()
    for seed in range(1, 61):
        outcome, rows = _run(MORTAL.draw(seed))
        assert outcome.clean
        subscriptions = {row.subscription: row.subscriber for row in rows.of(schema.Subscribed)}
        mortal = {row.event for row in rows.of(schema.Published) if row.lifetime}
        for row in rows.of(schema.Expired):
            assert subscriptions[row.subscription] == row.subscriber
            assert row.event in mortal
            told["client" if row.node == row.subscriber else row.node] += 1
        for delivered in rows.of(schema.Delivered):
            assert (delivered.left is not None) == (delivered.event in mortal)
    assert told["client"] > 50
    assert told["b1"] > 50


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_light_clients_look_at_deadlines_too(seed: int) -> None:
    outcome, _ = _run(_lightened(msgspec.structs.replace(MORTAL, more=False).draw(seed)))
    assert outcome.clean, (seed, outcome.violations, outcome.broken)


def _slow(*faults: Fault, light: bool = False) -> Scenario:
    """Ten events, one every 100 ms, each with a lifetime of a second, for a subscriber 10 ms away."""
    return Scenario(
        name="slow",
        seed=1,
        brokers=[Broker(id="b1", durable=True)],
        clients=[Client(id="p", brokers=("b1",)), Client(id="s", brokers=("b1",), light=light)],
        network=Network(latency=Constant(delay_us=5_000)),
        actions=[
            Subscribe(at_ms=0, client="s", name="all", filter="", overflow=Overflow.DISCONNECT),
            *(
                Publish(
                    at_ms=1_000 + 100 * n, client="p", events=[ScenarioEvent(attributes={"n": n}, lifetime_ms=1_000)]
                )
                for n in range(10)
            ),
            Publish(at_ms=9_000, client="p", events=[ScenarioEvent(attributes={"n": 10})]),
        ],
        faults=list(faults),
        safety_ms=10_000,
        liveness_ms=20_000,
        checkers=["only-matching", "at-most-once", "publisher-order", "no-loss", "liveness", "in-time"],
    )


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize(
    ("faults", "on_time", "places"),
    [
        ((), 10, set()),
        # Half of the events come before the pause, and those behind wait in its buffers: the client drops them.
        ((Pause(at_ms=1_450, for_ms=1_500, host="s"),), 5, {"s"}),
        # A moment after their deadlines the broker gives them up too: it can't know that they are on their way.
        ((Cut(at_ms=1_450, for_ms=5_000, source="s", target="b1"),), 5, {"b1", "s"}),
    ],
    ids=["no fault", "slow client", "cut off"],
)
def test_each_event_is_on_time_or_expired_and_the_last_one_comes(
    light: bool, faults: tuple[Fault, ...], on_time: int, places: set[str]
) -> None:
    """What is measured of the trace is what the brokers and clients did (D1-B10)."""
    outcome, rows = _run(_slow(*faults, light=light))
    assert outcome.clean, outcome.violations
    assert {row.node for row in rows.of(schema.Expired)} == places
    assert len({row.event for row in rows.of(schema.Expired)}) == 10 - on_time
    (measured,) = measure_reliability(rows.rows)
    assert (measured.wanted, measured.on_time) == (11, on_time + 1)
    assert rows.of(schema.Missed) == []
