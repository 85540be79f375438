"""What clients of a slow broker want goes by that broker, also where something broader hides it."""

from __future__ import annotations

import pytest

from holdfast.sim.scenario import Client, Subscribe
from tests.standin.star import F, play, replace


@pytest.mark.parametrize("level", ["none", "buffered"])
def test_a_client_of_the_slow_broker_gets_all_though_another_wants_more(level: str) -> None:
    """D0-B13, with covering: from the publisher's side, all that is known is the broad subscription of s2."""
    own = Subscribe(at_ms=600, client="own", name="own", filter="topic = 't' AND n > 6000")
    played = play(
        [replace(3_000, mode="ms")],
        level=level,
        every_ms=2,
        slow_us=3_000,
        until_ms=12_000,
        more=[own],
        clients=[Client(id="own", brokers=(F,))],
        only=("s2",),
        settings={"covering": True},
    )
    assert played.wrong == []
    assert played.carried("r") > 100
    assert played.missing("s2") == []
    assert len(played.got("own")) == 999  # those above 6,000, of 1,002 to 7,998
