"""What is drawn besides: each in as many scenarios as it says, none that changes what was drawn before."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from holdfast.model import Filter
from holdfast.schemes.paxos.draw import FORMED_MS, group_shape
from holdfast.schemes.tree.draw_network import NetworkShape
from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim import draw_more
from holdfast.sim.scenario import (
    Advertise,
    ClockJump,
    Close,
    DiskSlow,
    Kill,
    PowerCut,
    Publish,
    Reset,
    Scenario,
    Subscribe,
    Unadvertise,
)
from holdfast.sim.scenario_file import check_scenario

SEEDS = 400
BEFALLS = {"Reset", "ClockJump", "wiped", "late", "Advertise", "Unadvertise", "Close", "long", "lined up"}


def what(scenario: Scenario) -> set[str]:
    """What is in it of all that is drawn besides."""
    found = {type(action).__name__ for action in scenario.actions} & {"Advertise", "Unadvertise", "Close"}
    found |= {type(fault).__name__ for fault in scenario.faults} & {"Reset", "ClockJump"}
    if any(isinstance(fault, PowerCut) and fault.wipe for fault in scenario.faults):
        found.add("wiped")
    if scenario.links and scenario.network.bytes_per_second:
        found.add("narrow")
    if any(broker.starts_ms for broker in scenario.brokers):
        found.add("late")
    if any(len(client.id) == draw_more.LONG_NAME for client in scenario.clients):
        found.add("long")
    if scenario.links and any(len(client.brokers) > 1 for client in scenario.clients):
        found.add("moving")
    slow = [fault for fault in scenario.faults if isinstance(fault, DiskSlow)]
    if any(
        isinstance(fault, Kill) and one.at_ms <= fault.at_ms <= one.at_ms + one.for_ms and fault.host != one.host
        for one in slow
        for fault in scenario.faults
    ):
        found.add("lined up")
    return found


def test_networks_meet_everything() -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        scenario = NetworkShape().draw(seed)
        check_scenario(scenario, f"seed {seed}")
        seen.update(what(scenario))
    assert set(seen) == {*BEFALLS, "moving", "narrow"}
    assert min(seen.values()) >= SEEDS // 100, seen
    assert max(seen.values()) <= SEEDS // 2, seen


def test_groups_and_single_brokers_meet_what_can_befall_them() -> None:
    for shape, missing in ((group_shape(), set[str]()), (OneBrokerShape(), {"lined up"})):
        seen: Counter[str] = Counter()
        for seed in range(SEEDS):
            scenario = shape.draw(seed)
            check_scenario(scenario, f"seed {seed}")
            seen.update(what(scenario))
        assert BEFALLS - missing <= set(seen)


def test_who_wants_no_faults_gets_nothing_of_it() -> None:
    for seed in range(60):
        assert not what(NetworkShape(faults_max=0).draw(seed))
        assert not what(OneBrokerShape(faults_max=0).draw(seed))


def test_what_was_drawn_before_stays() -> None:
    """All that is added is another fault or action: seeds keep what they had, but for what a goodbye cuts off."""
    for seed in range(100):
        plain, more = OneBrokerShape(more=False).draw(seed), OneBrokerShape().draw(seed)
        if any(isinstance(action, Close) for action in more.actions) or "long" in what(more):
            continue
        assert [a for a in more.actions if not isinstance(a, Advertise | Unadvertise)] == plain.actions
        assert [f for f in more.faults if not isinstance(f, Reset | ClockJump)] == [
            f for f in plain.faults if not isinstance(f, ClockJump)
        ]
        assert [replace(broker, starts_ms=0) for broker in more.brokers] == plain.brokers


def test_a_client_that_says_goodbye_does_nothing_more() -> None:
    for seed in range(200):
        scenario = NetworkShape().draw(seed)
        for close in (action for action in scenario.actions if isinstance(action, Close)):
            later = [a for a in scenario.actions if a.client == close.client and a.at_ms > close.at_ms]
            assert not [a for a in later if isinstance(a, Publish | Subscribe)]


@pytest.mark.parametrize("more", [0, 1])
def test_long_filters_are_as_long_as_they_may_be(more: int) -> None:
    seeds = [seed for seed in range(200) if "long" in what(NetworkShape().draw(seed))]
    filters = [a.filter for seed in seeds for a in NetworkShape().draw(seed).actions if isinstance(a, Subscribe)]
    longest = max(filters, key=len)
    assert len(longest) == draw_more.LONG_FILTER
    if more:
        with pytest.raises(ValueError, match="limit text_bytes"):
            Filter(longest + " ")
    else:
        Filter(longest)


def test_no_disk_of_a_group_is_wiped_before_all_have_met() -> None:
    """It would leave the group unformed for good, as it may."""
    wiped = 0
    for seed in range(1, 500):
        scenario = group_shape().draw(seed)
        wipes = [fault for fault in scenario.faults if isinstance(fault, PowerCut) and fault.wipe]
        wiped += bool(wipes)
        if wipes:
            assert min(fault.at_ms for fault in scenario.faults) >= FORMED_MS, seed
            assert not any(broker.starts_ms for broker in scenario.brokers), seed
    assert wiped >= 5
