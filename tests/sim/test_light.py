"""Light clients: the rows of real ones, under all faults, for fewer turns."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.protocols.sessions.messages import Overflow
from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim import light
from holdfast.sim.latency import Constant
from holdfast.sim.run import Outcome, run_scenario
from holdfast.sim.scenario import (
    Broker,
    Client,
    Fault,
    Kill,
    Network,
    Pause,
    PowerCut,
    Publish,
    Scenario,
    ScenarioEvent,
    Subscribe,
    Unsubscribe,
)
from holdfast.trace import schema
from tests.sim.mutants import FORGETFUL
from tests.sim.scripted import Rows

CHECKERS = ["only-matching", "at-most-once", "publisher-order", "total-order", "no-loss", "complete", "liveness"]


def _run(scenario: Scenario) -> tuple[Outcome, Rows]:
    rows = Rows()
    return run_scenario(scenario, sinks=[rows]), rows


def _drawn(seed: int, shape: OneBrokerShape | None = None) -> Scenario:
    """A drawn scenario in which only the first client publishes, and all consume at once. Light clients do no more than
    subscribe, so that nothing else is drawn for them."""
    scenario = msgspec.structs.replace(shape or OneBrokerShape(), more=False).draw(seed)
    return msgspec.structs.replace(
        scenario,
        clients=[msgspec.structs.replace(client, consume_after_us=0, gather_us=0) for client in scenario.clients],
        actions=[
            msgspec.structs.replace(action, client="c1") if isinstance(action, Publish) else action
            for action in scenario.actions
        ],
    )


def _lightened(scenario: Scenario) -> Scenario:
    """The same with every client light but the first."""
    return msgspec.structs.replace(
        scenario,
        clients=[msgspec.structs.replace(client, light=client.id != "c1") for client in scenario.clients],
    )


def _scenario(*faults: Fault, count: int = 3, durable: bool = True, subscribe: Subscribe | None = None) -> Scenario:
    """A publisher of twenty events in ten seconds, and light subscribers."""
    names = [f"s{n}" for n in range(count)]
    wanted = subscribe or Subscribe(at_ms=0, client="", name="all", filter="")
    return Scenario(
        name="light",
        seed=1,
        brokers=[Broker(id="b1", durable=durable, backlog_events=4 if subscribe else 100)],
        clients=[
            Client(id="p", brokers=("b1",)),
            *(Client(id=name, brokers=("b1",), light=True) for name in names),
        ],
        network=Network(latency=Constant(delay_us=1_000)),
        actions=[
            *(msgspec.structs.replace(wanted, client=name) for name in names),
            *(Publish(at_ms=100 + 500 * n, client="p", events=[ScenarioEvent(attributes={"n": n})]) for n in range(20)),
        ],
        faults=list(faults),
        safety_ms=11_000,
        liveness_ms=60_000,
        checkers=CHECKERS,
    )


def _without_time(rows: list[schema.Row]) -> Counter[bytes]:
    return Counter(msgspec.json.encode(msgspec.structs.replace(row, t=0)) for row in rows)


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_without_faults_a_light_client_has_the_rows_of_a_real_one(seed: int) -> None:
    shape = OneBrokerShape(brokers=(Broker(id="b1", durable=True),), fixed_brokers=True, faults_max=0, adversary=False)
    real = msgspec.structs.replace(_drawn(seed, shape), network=Network(latency=Constant(delay_us=500)))
    outcome, rows = _run(real)
    light_outcome, light_rows = _run(_lightened(real))
    assert (outcome.violations, light_outcome.violations) == ([], [])
    for kind in schema.Subscribed, schema.Confirmed, schema.Unsubscribed, schema.Missed:
        assert _without_time(list(light_rows.of(kind))) == _without_time(list(rows.of(kind)))
    assert _delivered(light_rows) == _delivered(rows)


def _delivered(rows: Rows) -> dict[str, list[tuple[str, str, str]]]:
    """What each subscription got, in order."""
    got: dict[str, list[tuple[str, str, str]]] = {}
    for row in rows.of(schema.Delivered):
        got.setdefault(row.subscription, []).append((row.event, row.subscriber, row.via))
    return got


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_the_checkers_pass_with_light_clients_under_all_faults(seed: int) -> None:
    outcome, _ = _run(_lightened(_drawn(seed)))
    assert outcome.clean, (seed, outcome.violations, outcome.broken)


def test_deliveries_to_light_clients_are_no_turns_of_nodes() -> None:
    outcome, rows = _run(_scenario(count=50))
    assert outcome.clean
    assert len(rows.of(schema.Delivered)) == 50 * 20
    real = _scenario(count=50)
    real = msgspec.structs.replace(
        real, clients=[msgspec.structs.replace(client, light=False) for client in real.clients]
    )
    real_outcome, real_rows = _run(real)
    assert len(real_rows.of(schema.Delivered)) == 50 * 20
    # What is left are the broker's turns and the publisher's.
    assert outcome.steps < 0.6 * real_outcome.steps


@pytest.mark.parametrize("fault", [Kill, PowerCut])
@pytest.mark.parametrize("durable", [True, False])
def test_a_light_client_takes_up_its_session_after_its_broker_came_back(fault: type[Kill], durable: bool) -> None:
    scenario = _scenario(fault(at_ms=3_000, for_ms=2_000, host="b1"), durable=durable)
    if not durable:
        forgiving = [name for name in CHECKERS if name not in ("total-order", "complete")]
        scenario = msgspec.structs.replace(scenario, checkers=forgiving)
    outcome, rows = _run(scenario)
    assert outcome.clean
    got = Counter(row.subscription for row in rows.of(schema.Delivered))
    missed = [(row.subscriber, row.reason) for row in rows.of(schema.Missed)]
    if durable:
        assert got == {f"s{n}/1/1": 20 for n in range(3)}
        assert missed == []
    else:
        assert sorted(missed) == [(f"s{n}", "forgotten") for n in range(3)]
        assert len(rows.of(schema.Confirmed)) == 6
        assert all(6 < got[f"s{n}/1/1"] <= 20 for n in range(3))  # six came before the crash


def test_a_light_client_that_was_killed_subscribes_anew() -> None:
    outcome, rows = _run(_scenario(Kill(at_ms=3_000, for_ms=2_000, host="s0")))
    assert outcome.clean
    assert [row.subscription for row in rows.of(schema.Subscribed)] == ["s0/1/1", "s1/1/1", "s2/1/1", "s0/3/1"]
    got = Counter(row.subscription for row in rows.of(schema.Delivered))
    assert got == {"s0/1/1": 6, "s0/3/1": 10, "s1/1/1": 20, "s2/1/1": 20}


def test_a_light_client_that_was_paused_gets_everything_afterwards() -> None:
    outcome, rows = _run(_scenario(Pause(at_ms=3_000, for_ms=4_000, host="s0")))
    assert outcome.clean
    times = [row.t // 10**6 for row in rows.of(schema.Delivered) if row.subscriber == "s0"]
    assert len(times) == 20
    assert [time for time in times if 3_000 <= time < 7_000] == []
    assert [row for row in rows.of(schema.Hop) if row.source == "s0" and 3_000 <= row.t // 10**6 < 7_000] == []


def test_a_light_client_can_unsubscribe() -> None:
    scenario = _scenario()
    gone = Unsubscribe(at_ms=5_050, client="s1", name="all")
    outcome, rows = _run(msgspec.structs.replace(scenario, actions=[*scenario.actions, gone]))
    assert outcome.clean
    assert [(row.subscription, row.reason) for row in rows.of(schema.Unsubscribed)] == [("s1/1/1", "")]
    assert Counter(row.subscriber for row in rows.of(schema.Delivered)) == {"s0": 20, "s1": 10, "s2": 20}


def test_a_light_client_is_told_what_was_dropped_while_it_was_away() -> None:
    wanted = Subscribe(at_ms=0, client="", name="all", filter="", overflow=Overflow.DROP_OLDEST, window=1)
    outcome, rows = _run(_scenario(Pause(at_ms=2_000, for_ms=8_000, host="s0"), subscribe=wanted))
    assert outcome.clean
    missed = sum(row.count or 0 for row in rows.of(schema.Missed) if row.subscriber == "s0")
    got = sum(row.subscriber == "s0" for row in rows.of(schema.Delivered))
    assert missed > 0
    assert missed + got == 20


def test_a_light_client_is_told_that_its_subscription_ended() -> None:
    wanted = Subscribe(at_ms=0, client="", name="all", filter="")
    outcome, rows = _run(_scenario(Pause(at_ms=2_000, for_ms=8_000, host="s0"), subscribe=wanted))
    assert outcome.clean
    assert [(row.subscriber, row.reason[:8]) for row in rows.of(schema.Unsubscribed)] == [("s0", "overflow")]


def test_a_light_client_whose_filter_is_refused_is_told() -> None:
    wanted = Subscribe(at_ms=0, client="", name="all", filter="price >")
    # Checkers take the text of every subscription for a filter.
    outcome, rows = _run(msgspec.structs.replace(_scenario(count=1, subscribe=wanted), checkers=["liveness"]))
    assert outcome.clean
    assert len(rows.of(schema.Unsubscribed)) == 1
    assert rows.of(schema.Delivered) == []


def test_a_light_client_that_loses_an_event_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    take = light._Subscription.take
    monkeypatch.setattr(light._Subscription, "take", lambda self, event: take(self, event) and event != "p/1/7")
    outcome, _ = _run(_scenario())
    assert {violation.checker for violation in outcome.violations} == {"no-loss"}


def test_a_light_client_that_takes_repetitions_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgotten(self: light._Subscription, again: bool) -> None:
        self.phase = light._MAKING
        self.received = self.reported = 0

    monkeypatch.setattr(light._Subscription, "forgotten", forgotten)
    for seed in range(1_145, 1_155):  # an event that is published again after a crash is rare; there is one here
        outcome, _ = _run(_lightened(_drawn(seed, FORGETFUL)))
        if outcome.violations:
            break
    assert outcome.violations[0].checker in ("at-most-once", "publisher-order")
