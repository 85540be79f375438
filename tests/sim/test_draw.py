"""Drawn scenarios: complete, valid and varied."""

from collections import Counter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim.draw import IF_REMEMBERED
from holdfast.sim.scenario import Broker, Cut, DiskFull, DiskSlow, Kill, PowerCut, Publish, Subscribe, Unsubscribe
from holdfast.sim.scenario_file import check_scenario


@given(st.integers(0, 2**63))
def test_a_seed_gives_the_same_valid_scenario_again(seed: int) -> None:
    scenario = OneBrokerShape().draw(seed)
    assert OneBrokerShape().draw(seed) == scenario
    check_scenario(scenario, "drawn")


@given(st.integers(0, 2**32))
def test_what_is_drawn_keeps_to_its_shape(seed: int) -> None:
    shape = OneBrokerShape(
        clients_max=3, publishes_max=4, events_per_publish_max=2, subscriptions_max=2, faults_max=2, safety_ms=500,
        adversary=False, name="narrow", more=False,
    )  # fmt: skip
    scenario = shape.draw(seed)
    assert (scenario.name, scenario.seed, scenario.safety_ms) == ("narrow", seed, 500)
    assert 2 <= len(scenario.clients) <= 3
    assert len(scenario.faults) <= 2
    kinds = Counter(type(action) for action in scenario.actions)
    assert 1 <= kinds[Publish] <= 4
    assert 1 <= kinds[Subscribe] <= 2
    assert kinds[Unsubscribe] <= kinds[Subscribe]
    assert scenario.network.adversary is None
    for publish in scenario.actions:
        assert 0 <= publish.at_ms <= 500
        assert not isinstance(publish, Publish) or 1 <= len(publish.events) <= 2
    for fault in scenario.faults:
        assert 0 <= fault.at_ms < fault.at_ms + fault.for_ms <= 500
    times = [action.at_ms for action in scenario.actions]
    assert times == sorted(times)


def test_brokers_that_are_fixed_stay_as_they_are_but_for_their_pace() -> None:
    broker = Broker(id="x", durable=True, backlog_events=7)
    shape = OneBrokerShape(brokers=(broker,), fixed_brokers=True, more=False)
    for seed in range(50):
        drawn = shape.draw(seed).brokers[0]
        pace = {"service_us_per_turn": 0, "service_us_per_message": 0, "gather_us": 0}
        assert msgspec.structs.replace(drawn, **pace) == broker


def test_names_of_shapes_make_other_scenarios_of_the_same_seed() -> None:
    assert OneBrokerShape(name="one").draw(1).actions != OneBrokerShape(name="two").draw(1).actions


def test_every_kind_of_fault_is_drawn_and_none_is_in_every_scenario() -> None:
    seeds = 400
    seen: Counter[str] = Counter()
    for seed in range(seeds):
        seen.update({type(fault).__name__ for fault in OneBrokerShape().draw(seed).faults} or {"none"})
    kinds = {"Kill", "PowerCut", "Pause", "Cut", "Reset", "DiskFull", "DiskSlow", "ClockJump", "none"}
    assert set(seen) == kinds
    assert all(seeds // 40 < count < seeds * 3 // 4 for count in seen.values()), seen


def test_what_only_a_broker_with_memory_keeps_is_asked_only_then() -> None:
    asked = 0
    for seed in range(300):
        scenario = OneBrokerShape().draw(seed)
        durable = {broker.id for broker in scenario.brokers if broker.durable}
        brokers = {broker.id for broker in scenario.brokers}
        forgot = any(
            (isinstance(fault, Kill | PowerCut) and fault.host in brokers - durable)
            or (isinstance(fault, PowerCut) and fault.wipe)
            for fault in scenario.faults
        )
        assert set(IF_REMEMBERED) <= set(scenario.checkers) or forgot
        assert not (set(IF_REMEMBERED) & set(scenario.checkers) and forgot)
        asked += not forgot
        for fault in scenario.faults:
            if isinstance(fault, DiskFull | DiskSlow):
                assert fault.host in durable
            if isinstance(fault, Cut):
                assert len({fault.source, fault.target} & brokers) == 1
    assert 100 < asked < 300
