"""Brokers that are no neighbours call each other, and know who did not answer."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.inputs import ConnectFailed
from holdfast.kernel.outbox import Connect, RecordingOutbox, Send
from holdfast.protocols.failure.detector import Trust
from holdfast.protocols.routing.notices import BrokerIntroduced
from holdfast.schemes.tree.standin.cycle.calls import ANSWERED_WITHIN, ASKED_EVERY, OLD_AFTER, PAUSE, THERE_FOR, Calls
from holdfast.schemes.tree.standin.cycle.messages import Here, WhetherHere
from tests.standin.cycle.around import at, roster, sent


class Caller:
    """n1; f is its neighbour."""

    def __init__(self) -> None:
        self.linked: set[str] = set()
        self.asked: list[str] = []  # when it was looked last whether somebody was dialled
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
        effects = self.out.take_effects()
        self.asked = [one.to for one in effects if isinstance(one, Send)]
        return [(one.peer, one.address) for one in effects if isinstance(one, Connect)]


def test_who_has_a_link_is_asked_whether_it_is_there() -> None:
    """A link may be up to a broker that hangs."""
    caller = Caller()
    caller.linked = {"n2"}
    assert not caller.reach("n2")
    assert caller.dialled() == []
    assert caller.asked == ["n2"]
    caller.calls.on_here("n2", Here(), caller.out)
    assert caller.reach("n2", THERE_FOR - 1)
    assert not caller.reach("n2", THERE_FOR)


def test_who_has_a_link_and_hangs_is_absent() -> None:
    caller = Caller()
    caller.linked = {"n2"}
    for time in range(0, ANSWERED_WITHIN + 1, ASKED_EVERY):
        assert not caller.reach("n2", time)
    assert caller.calls.is_absent("n2")


def test_who_is_asked_says_that_it_is_there() -> None:
    caller = Caller()
    caller.calls.on_whether_here("n2", WhetherHere(), caller.out)
    assert sent(caller.out) == [("n2", Here())]


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


def test_what_was_found_long_ago_says_nothing_of_now() -> None:
    """It may have come back since, and nobody has called it."""
    caller = Caller()
    caller.reach("n2")
    caller.reach("n2", ANSWERED_WITHIN)
    assert caller.calls.is_absent("n2")
    caller.reach("n2", ANSWERED_WITHIN + OLD_AFTER)
    assert not caller.calls.is_absent("n2")
    caller.trusted = Trust.SUSPECTED
    caller.reach("f")
    assert caller.calls.is_absent("f")
    caller.trusted = Trust.TRUSTED
    caller.reach("f")
    assert not caller.calls.is_absent("f")
