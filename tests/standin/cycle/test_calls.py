"""Brokers that are no neighbours call each other, and know who did not answer."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.inputs import ConnectFailed
from holdfast.kernel.outbox import Connect, RecordingOutbox
from holdfast.protocols.failure.detector import Trust
from holdfast.protocols.routing.notices import BrokerIntroduced
from holdfast.schemes.tree.standin.cycle.calls import ANSWERED_WITHIN, PAUSE, Calls
from tests.standin.cycle.around import at, roster


class Caller:
    """n1; f is its neighbour."""

    def __init__(self) -> None:
        self.linked: set[str] = set()
        self.trusted = Trust.TRUSTED
        self.out = RecordingOutbox()
        me: Any = self
        self.calls = Calls(roster("n1"), me, me)

    def reaches(self, peer: str) -> bool:
        return peer in self.linked

    def wants(self, peer: str) -> bool:
        return peer == "f"

    def trust(self, peer: str) -> Trust:
        return self.trusted

    def reach(self, peer: str, now: int = 0, address: str = "") -> bool:
        return self.calls.reach(peer, at(self.out, now), address)

    def dialled(self) -> list[tuple[str, str]]:
        return [(one.peer, one.address) for one in self.out.take_effects() if isinstance(one, Connect)]


def test_who_has_a_link_is_not_called() -> None:
    caller = Caller()
    caller.linked = {"n2"}
    assert caller.reach("n2")
    assert caller.dialled() == []


def test_who_has_none_is_called_once() -> None:
    caller = Caller()
    assert not caller.reach("n2")
    assert not caller.reach("n2", ANSWERED_WITHIN - 1)
    assert not caller.reach("r", address="elsewhere")
    assert caller.dialled() == [("n2", "n2"), ("r", "elsewhere")]
    assert not caller.calls.is_absent("n2")


def test_who_does_not_answer_in_time_is_absent_and_called_again_after_a_pause() -> None:
    caller = Caller()
    caller.reach("n2")
    caller.reach("n2", ANSWERED_WITHIN)
    assert caller.calls.is_absent("n2")
    caller.reach("n2", ANSWERED_WITHIN + PAUSE - 1)
    assert len(caller.dialled()) == 1
    caller.reach("n2", ANSWERED_WITHIN + PAUSE)
    assert len(caller.dialled()) == 1
    assert caller.calls.is_absent("n2")


def test_who_can_t_be_dialled_is_absent_at_once() -> None:
    caller = Caller()
    caller.calls.on_connect_failed(ConnectFailed("n3", "n3", "refused"), caller.out)
    assert not caller.calls.is_absent("n3")
    caller.reach("n2")
    caller.calls.on_connect_failed(ConnectFailed("n2", "n2", "refused"), caller.out)
    assert caller.calls.is_absent("n2")


def test_who_answers_is_not_absent_any_more() -> None:
    caller = Caller()
    caller.reach("n2")
    caller.reach("n2", ANSWERED_WITHIN)
    caller.linked = {"n2"}
    caller.calls.on_broker_introduced(BrokerIntroduced("n2"), caller.out)
    assert caller.reach("n2", ANSWERED_WITHIN)
    assert not caller.calls.is_absent("n2")


def test_a_neighbour_is_dialled_already_and_absent_when_it_is_suspected() -> None:
    caller = Caller()
    assert not caller.reach("f")
    assert not caller.calls.is_absent("f")
    caller.trusted = Trust.SUSPECTED
    assert not caller.reach("f", 1)
    assert caller.calls.is_absent("f")
    assert caller.dialled() == []
