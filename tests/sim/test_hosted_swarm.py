"""Brokers that host an application, under faults: replicas have equal states, and nothing is executed twice."""

from __future__ import annotations

import pytest

from tests.sim.hosted_world import GROUP, SINGLE, World
from tests.tiers import blocks

SEEDS = 80


@pytest.mark.parametrize("seeds", blocks(SEEDS, 20))
def test_a_broker_that_hosts_an_application_keeps_its_promises(seeds: range) -> None:
    executed = made = 0
    for seed in seeds:
        world = World(SINGLE.draw(seed))
        world.play()
        executed, made = executed + world.executed, made + world.made
    assert executed > 2 * len(seeds)
    assert made > len(seeds)


@pytest.mark.parametrize("seeds", blocks(SEEDS, 20))
def test_replicas_have_equal_application_states_at_equal_positions(seeds: range) -> None:
    """D4-C5: also after snapshots, and when leaders crash."""
    executed = made = compared = 0
    for seed in seeds:
        world = World(GROUP.draw(seed))
        world.play()
        numbers = {name: core.number for name, core in world.cores.items()}
        states = {numbers[name]: core.get_state() for name, core in world.cores.items()}
        assert all(core.get_state() == states[numbers[name]] for name, core in world.cores.items())
        executed, made, compared = executed + world.executed, made + world.made, compared + world.compared
    assert executed > 2 * len(seeds)
    assert made > len(seeds)
    assert compared > 100 * len(seeds)
