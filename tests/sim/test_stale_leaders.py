"""What an old leader proposed is not executed behind what its successor decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.broker.kit import BrokerKit
from holdfast.schemes.paxos.learner import Learner
from holdfast.schemes.paxos.parts import PaxosKit
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario_file import scenario_from_json
from holdfast.trace.schema import Row, Unsubscribed

SAVED = Path(__file__).parent / "regressions" / "group-an-old-leaders-entry-behind-its-successors.json"


class ExecutesWhateverIsDecided(Learner):
    """Also what an old leader proposed, and a later one has found."""

    def _is_stale(self, origin: int) -> bool:
        return False


class Ended:
    """Why subscriptions ended."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def see(self, row: Row) -> None:
        if isinstance(row, Unsubscribed):
            self.reasons.append(row.reason)


@pytest.mark.parametrize("learner", [Learner, ExecutesWhateverIsDecided])
def test_a_stale_open_session_does_not_close_a_living_clients(learner: type[Learner]) -> None:
    """Client x opened a session at the old leader, which was cut off, and then another one at its successor."""

    ended = Ended()
    run_scenario(
        scenario_from_json(SAVED.read_bytes(), SAVED.name),
        Factories(kit=BrokerKit(scheme=PaxosKit(learner=learner))),
        [ended],
    )
    closed = [reason for reason in ended.reasons if "another client has opened a session" in reason]
    assert bool(closed) == (learner is ExecutesWhateverIsDecided)
