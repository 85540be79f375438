"""Replicas that are killed, again and again, under load: nobody loses, doubles or re-orders anything."""

from __future__ import annotations

import pytest

from experiments.replication.cuts import run_cuts
from experiments.replication.kills import FOLLOWER, LEADER, run_kills
from experiments.replication.pauses import PAUSE, run_pauses


@pytest.mark.full
def test_kills_of_leaders_and_followers_cost_nothing() -> None:
    """D4-C1, D4-C4."""
    result = run_kills(10, seed=1)
    assert result.verdict.problems == ()
    assert (result.verdict.lost, result.verdict.doubled, result.verdict.inverted) == (0, 0, 0)
    assert result.verdict.read_back >= result.verdict.acknowledged > 0
    assert result.verdict.delivered == (result.verdict.read_back,) * 3
    assert sum(result.faults.values()) == 10
    assert result.faults[LEADER] > 0
    assert result.faults[FOLLOWER] > 0


@pytest.mark.full
def test_a_leader_that_stood_still_wakes_up_deposed_and_tells_its_clients_nothing_false() -> None:
    """D4-C3."""
    result = run_pauses(1, seed=1, calm=True)
    assert result.verdict.problems == ()
    assert result.verdict.acknowledged > 0
    assert result.faults == {PAUSE: 1}


@pytest.mark.full
def test_a_leader_that_is_cut_off_costs_nothing() -> None:
    """D4-C3: in silence, and then with all that it says lost."""
    result = run_cuts(2, seed=1, calm=True)
    assert result.verdict.problems == ()
    assert result.verdict.acknowledged > 0
    assert result.faults == {"cuts by silence": 1, "cuts by mute": 1}
