"""Which events came before: by number, by id, and those of clients that moved from one broker to another."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.event import Event
from holdfast.protocols.core.arrivals import PUBLISHERS_MAX, RUNS_MAX, Arrivals, ArrivalState


def events(*numbers: int, publisher: str = "p", life: int = 1) -> list[Event]:
    return [Event(publisher, life, number, "t", {}) for number in numbers]


def numbers_of(rows: list[int], *numbers: int) -> list[int]:
    return [numbers[row] for row in rows]


def arrivals() -> Arrivals:
    made = Arrivals()
    made.remember_max = 100
    return made


def test_what_entered_here_does_not_arrive_again_and_what_entered_elsewhere_in_between_does() -> None:
    known = arrivals()
    known.enter(events(1, 2, 3))  # then the client was at another broker, and came back
    known.enter(events(7, 8))
    came = (2, 3, 4, 5, 6, 7, 9)
    assert numbers_of(known.fresh("b1", "", (), events(*came)), *came) == [4, 5, 6, 9]
    assert known.fresh("b1", "", (), events(2, life=2)) == [0], "of another life"
    assert known.repetitions == 3


def test_what_has_arrived_does_not_enter() -> None:
    known = arrivals()
    known.fresh("b1", "", (), events(4, 5))
    assert numbers_of(known.enter(events(4, 5, 6)), 4, 5, 6) == [6]
    assert known.repetitions == 2


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=40), st.integers(0, 40))
def test_an_event_is_new_once_also_after_a_restart(steps: list[tuple[bool, int]], restart: int) -> None:
    known, taken = arrivals(), set[int]()
    for place, (enters, number) in enumerate(steps):
        if place == restart:
            state = msgspec.msgpack.decode(msgspec.msgpack.encode(known.get_state()), type=ArrivalState | None)
            known = arrivals()
            known.set_state(state)
        if enters and number in taken:
            continue  # the session's own numbers tell that: a home takes nothing twice
        rows = known.enter(events(number)) if enters else known.fresh("b1", "", (), events(number))
        assert bool(rows) == (number not in taken)
        taken.add(number)


def test_what_is_known_of_publishers_is_bounded() -> None:
    known = arrivals()
    for number in range(1, 4 * RUNS_MAX, 2):
        known.enter(events(number))
    for number in range(PUBLISHERS_MAX + 5):
        known.enter(events(1, publisher=f"p{number}"))
    state = known.get_state()
    assert state is not None
    assert len(state.entered) == PUBLISHERS_MAX
    assert max(len(runs) for _, _, runs in state.entered) <= RUNS_MAX


def around(room: int) -> Arrivals:
    """Of a level at which what comes around comes on the tree, too."""
    known = arrivals()
    known.remember_max, known.are_stored = room, True
    return known


def test_what_came_around_is_known_until_the_stored_copy_comes_however_many_there_are() -> None:
    """Found by reading: more detours than are remembered, stored in the same order, all passed."""
    known, last = around(room=10), 500
    for number in range(1, last + 1):
        assert known.fresh("b1", "", (), events(number)) == [0]
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(known.get_state()), type=ArrivalState)
    known = around(room=10)
    known.set_state(state)
    for number in range(1, last + 1):
        assert known.fresh("b2", "log", (number,), events(number)) == []
    assert known.repetitions == last
    left = known.get_state()
    assert left is not None
    assert (len(left.around), len(left.remembered)) == (0, 10), "it waits for nothing more"


def test_a_copy_that_comes_around_late_is_known() -> None:
    known = around(room=10)
    assert known.fresh("b2", "log", (1,), events(1)) == [0]
    assert known.fresh("b1", "", (), events(1)) == []
    assert known.fresh("b1", "", (), events(2)) == [0]
    assert known.fresh("b1", "", (), events(2)) == [], "twice around"
    assert known.fresh("b2", "log", (2,), events(2)) == []
    assert known.fresh("b1", "", (), events(2)) == [], "and once more"


def test_what_never_comes_on_the_tree_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.protocols.core.arrivals.AROUND_MAX", 8)
    known = around(room=10)
    short = [Event("p", 1, number, "t", {}, lifetime=5, published_at=10) for number in range(1, 9)]
    assert known.fresh("b1", "", (), short, wall=12) == list(range(8))
    known.fresh("b1", "", (), events(9), wall=20)
    state = known.get_state()
    assert state is not None
    assert [number for _, _, number, _ in state.around] == [9], "the others are over"
    assert known.forgotten == 0
    known.fresh("b1", "", (), events(*range(10, 18)), wall=20)
    assert known.forgotten == 5
    again = known.fresh("b2", "log", tuple(range(1, 10)), events(*range(9, 18)))
    assert len(again) == 5, "of those that were too many, not of all"
