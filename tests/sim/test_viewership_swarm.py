"""Groups whose replicas count viewers, under faults: equal at equal positions, and as one that never failed counts."""

from __future__ import annotations

import pytest

from tests.sim.viewership_world import world_of
from tests.tiers import blocks

SEEDS = 200


@pytest.mark.parametrize("seeds", blocks(SEEDS))
def test_the_viewership_of_all_replicas_is_equal_at_equal_positions(seeds: range) -> None:
    """D4-B9, D4-C5: across crashes of leaders, power cuts, trims and snapshots; and it is what the log says."""
    compared = restored = leaders = top_lists = malformed = 0
    for seed in seeds:
        world = world_of(seed)
        world.play()
        compared, restored = compared + world.compared, restored + world.restored
        leaders, top_lists = leaders + world.leaders, top_lists + world.top_lists
        malformed += world.malformed
    # Runs in which nothing happens prove nothing.
    assert compared > 180 * len(seeds)
    assert restored > len(seeds)
    assert leaders > 1.5 * len(seeds)
    assert top_lists > 5 * len(seeds)
    assert malformed > 5 * len(seeds)
