"""Patience with a leader: as configured where heartbeats are regular, more where not, and never without end."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from holdfast.kernel.time import MILLISECOND
from holdfast.schemes.paxos.liveness import Liveness
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.settings import Member, PaxosSettings

SETTINGS = PaxosSettings("r1", tuple(Member(name, name, name) for name in ("r0", "r1", "r2")))
BALLOT = 64  # r0's


def after(intervals_ms: list[int], ballot: int = BALLOT) -> Liveness:
    liveness = Liveness(SETTINGS, Roster(SETTINGS), Random(1))
    liveness.start(0)
    now = 0
    for interval in intervals_ms:
        now += interval * MILLISECOND
        liveness.heard("r0", ballot, 0, now)
    return liveness


def test_regular_heartbeats_need_no_more_patience_than_is_configured() -> None:
    assert after([50] * 40).patience == SETTINGS.patience
    assert after([48, 53, 50, 47, 55] * 20).patience == SETTINGS.patience


def test_irregular_heartbeats_need_more() -> None:
    late = after([50, 50, 250, 60, 220, 50, 300, 40] * 10).patience
    assert 2 * SETTINGS.patience < late <= SETTINGS.patience_max
    assert after([200] * 40).patience > SETTINGS.patience


def test_patience_comes_back_when_they_are_regular_again() -> None:
    assert after([50, 250] * 20 + [50] * 40).patience == SETTINGS.patience


@pytest.mark.parametrize("pause", [5_000, 3_600_000])
def test_one_long_pause_costs_little(pause: int) -> None:
    """A replica, or its leader, stood still; that is no rhythm."""
    assert after([50] * 20 + [pause] + [50] * 10).patience <= 2 * SETTINGS.patience


def test_the_next_leader_has_a_rhythm_of_its_own() -> None:
    liveness = after([250] * 40)
    assert liveness.patience > SETTINGS.patience
    liveness.heard("r1", BALLOT + 65, 0, 10**12)
    assert liveness.patience == SETTINGS.patience


def test_patience_is_never_less_than_what_is_configured() -> None:
    """A bound below it would make replicas elect again and again."""
    patient = msgspec.structs.replace(SETTINGS, patience=10_000 * MILLISECOND)
    assert patient.patience > patient.patience_max
    assert Liveness(patient, Roster(patient), Random(1)).patience == patient.patience
