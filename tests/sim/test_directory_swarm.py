"""The directory in simulated groups, under faults: of maps that follow one map, one is accepted (D0-A10)."""

from __future__ import annotations

import pytest

from holdfast.apps.directory import Directory
from tests.sim.directory_world import World
from tests.tiers import blocks

SEEDS = 100


@pytest.mark.parametrize("seeds", blocks(SEEDS))
def test_whatever_befalls_the_group_there_is_one_history_of_maps(seeds: range) -> None:
    accepted = refused = restored = leaders = 0
    for seed in seeds:
        world = World(seed)
        world.play()
        accepted, refused = accepted + len(world.accepted), refused + world.refused
        restored, leaders = restored + world.restored, leaders + world.leaders
    # Runs in which nothing happens prove nothing.
    assert accepted > 3 * len(seeds)
    assert refused > 3 * len(seeds)
    assert restored > len(seeds)
    assert leaders > 1.5 * len(seeds)


class Forgetful(Directory):
    """Keeps nothing of a state that it takes over."""

    def set_state(self, state: bytes) -> None:
        super().set_state(b"\x90")


def is_seen(mutant: type[Directory]) -> bool:
    for seed in range(1, 21):
        try:
            World(seed, mutant).play()
        except AssertionError:
            return True
    return False


def test_a_directory_that_forgets_is_seen() -> None:
    assert is_seen(Forgetful)


def test_a_directory_that_takes_what_follows_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.apps.directory.application._follows", lambda proposal, stored: True)
    assert is_seen(Directory)
