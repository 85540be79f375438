"""What a broker wrote of its core stays readable, and what is kept of events is the same to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.kernel.node import InvariantBroken
from holdfast.protocols.core.backlog import batch_of, positions_of
from holdfast.protocols.core.core import BrokerCore
from tests.codec.states import LIMITS, play

LINES = [
    (words[1], bytes.fromhex(words[2]))
    for words in map(str.split, (Path(__file__).parent / "golden" / "states.txt").read_text().splitlines())
    if words[0] == "core"
]


def restored(name: str, state: bytes) -> BrokerCore:
    core = BrokerCore(LIMITS, name == "with-log")
    core.set_state(state)
    core.check_invariants()
    return core


@pytest.mark.parametrize(("name", "state"), LINES, ids=[f"{name}-{len(state)}" for name, state in LINES])
def test_a_state_that_was_ever_written_is_read_as_what_it_was_written_for(name: str, state: bytes) -> None:
    core, today = restored(name, state), play(name == "with-log")
    assert core.get_state() == today.get_state()
    for client, session in today.sessions.items():
        for number, subscription in session.subscriptions.items():
            runs = core.sessions[client].subscriptions[number].read(0, 100)
            assert batch_of(runs) == batch_of(subscription.read(0, 100))
            assert positions_of(runs) == positions_of(subscription.read(0, 100))


def test_a_state_is_written_as_the_newest_say() -> None:
    assert dict(LINES) == {name: play(name == "with-log").get_state() for name in ("plain", "with-log")}


def test_the_states_hold_something_of_everything() -> None:
    for name, state in dict(LINES).items():
        core = restored(name, state)
        subscriptions = [found for session in core.sessions.values() for found in session.subscriptions.values()]
        assert any(len(found) and found.deadlines is not None for found in subscriptions)
        assert all(
            bool(positions_of(found.read(0, 9))) == (name == "with-log") for found in subscriptions if len(found)
        )
        assert any(session.advertised is not None for session in core.sessions.values())
    assert core.cursors.owned
    assert core.staging.stages


def test_a_state_of_another_format_is_refused_clearly() -> None:
    state = bytearray(dict(LINES)["plain"])
    assert state[1] == 1, "the format is the first field"
    state[1] = 2
    with pytest.raises(InvariantBroken, match="the state's format is known"):
        restored("plain", bytes(state))
