"""Which events came before: by number, by id, and those of clients that moved from one broker to another."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.batch import EventBatch
from holdfast.model.event import Event
from holdfast.protocols.core.arrivals import PUBLISHERS_MAX, RUNS_MAX, Arrivals, ArrivalState
from holdfast.protocols.core.recent_ids import Publisher, RecentIds
from tests.routing.events import batch_of


def events(*numbers: int, publisher: str = "p", life: int = 1) -> EventBatch:
    return batch_of(Event(publisher, life, number, "t", {}) for number in numbers)


def numbers_of(rows: Sequence[int], *numbers: int) -> list[int]:
    return [numbers[row] for row in rows]


def arrivals() -> Arrivals:
    return Arrivals(remember_max=100)


def test_what_entered_here_does_not_arrive_again_and_what_entered_elsewhere_in_between_does() -> None:
    known = arrivals()
    known.enter(events(1, 2, 3))  # then the client was at another broker, and came back
    known.enter(events(7, 8))
    came = (2, 3, 4, 5, 6, 7, 9)
    assert numbers_of(known.fresh("b1", "", (), events(*came)), *came) == [4, 5, 6, 9]
    assert known.fresh("b1", "", (), events(2, life=2)) == range(1), "of another life"
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


class OneByOne:
    """The obvious: every event by itself, the newest `room` ids in a list."""

    def __init__(self, room: int, are_stored: bool) -> None:
        self.room, self.are_stored = room, are_stored
        self.arrived: dict[str, tuple[str, int]] = {}
        self.recent: list[str] = []
        self.around: set[str] = set()
        self.entered: set[str] = set()

    def fresh(self, source: str, feed: str, numbers: Sequence[int], events: Sequence[Event]) -> list[int]:
        known, last = self.arrived.get(source, (feed, 0))
        last = last if known == feed else 0
        found = []
        for row, event in enumerate(events):
            if feed and numbers[row] <= last:
                continue
            if event.id in self.entered or not self._is_new(event.id, self.are_stored and not feed):
                continue
            found.append(row)
        if feed:
            self.arrived[source] = (feed, max(last, numbers[-1]))
        return found

    def _is_new(self, id: str, came_around: bool) -> bool:
        if id in self.around:
            if not came_around:
                self.around.remove(id)
                self._remember(id)
            return False
        if id in self.recent:
            return False
        if came_around:
            self.around.add(id)
        else:
            self._remember(id)
        return True

    def _remember(self, id: str) -> None:
        self.recent = [*self.recent, id][-self.room :]

    def enter(self, events: Sequence[Event]) -> list[int]:
        found = [row for row, event in enumerate(events) if event.id not in self.around | {*self.recent}]
        self.entered |= {events[row].id for row in found}
        return found


def drawn_run(rng: Random) -> list[Event]:
    """Runs of a few publishers, with gaps, repetitions and steps back between them."""
    found: list[Event] = []
    for _ in range(rng.randint(1, 3)):
        publisher, first = rng.choice("pq"), rng.randint(1, 40)
        numbers = range(first, first + rng.choice((1, 2, 5, 30)))
        found += [Event(publisher, rng.choice((1, 1, 2)), number, "t", {}) for number in numbers]
    return found


@pytest.mark.parametrize("are_stored", [False, True])
@pytest.mark.parametrize("seed", range(100))
def test_what_is_told_of_runs_is_what_would_be_told_of_their_events_one_by_one(
    are_stored: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.protocols.core.arrivals.RUNS_MAX", 10_000)  # the obvious has no bound
    rng = Random(seed)
    room = rng.choice((1, 7, 100))
    known, plain = Arrivals(room, are_stored), OneByOne(room, are_stored)
    last = {"b1": 0, "b2": 0}
    for _ in range(30):
        sent = drawn_run(rng)
        if rng.random() < 0.2:
            batch = batch_of(sent)
            assert list(known.enter(batch)) == plain.enter(sent)
        else:
            source, feed, numbers = rng.choice(("b1", "b2")), rng.choice(("", "log", "log")), list[int]()
            if feed:  # with gaps, where somebody did not want something; and repeated after a crash
                first = max(1, last[source] + rng.randint(-20, 3))
                numbers = sorted(rng.sample(range(first, first + 2 * len(sent)), len(sent)))
                if rng.random() < 0.5:
                    numbers = list(range(first, first + len(sent)))
                last[source] = max(last[source], numbers[-1])
            without_gap = feed and numbers[-1] - numbers[0] == len(sent) - 1
            told = numbers[:1] if without_gap and rng.random() < 0.8 else numbers
            assert list(known.fresh(source, feed, told, batch_of(sent))) == plain.fresh(source, feed, numbers, sent)
        if rng.random() < 0.1:
            state = msgspec.msgpack.decode(msgspec.msgpack.encode(known.get_state()), type=ArrivalState | None)
            known = Arrivals(room, are_stored)
            known.set_state(state)


def test_ids_of_a_state_that_names_them_one_by_one_are_known() -> None:
    known = arrivals()
    known.set_state(ArrivalState({}, [("p", 1, 4), ("p", 1, 5), ("q", 1, 5)]))
    assert numbers_of(known.fresh("b1", "", (), events(3, 4, 5, 6)), 3, 4, 5, 6) == [3, 6]


def test_what_comes_in_runs_is_asked_for_by_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a run is, what is known of it is asked for once."""
    asked = list[int]()
    ask = RecentIds.has

    def counted(self: RecentIds, publisher: Publisher, first: int, last: int) -> bool:
        asked.append(last - first + 1)
        return ask(self, publisher, first, last)

    monkeypatch.setattr(RecentIds, "has", counted)
    known = Arrivals(remember_max=10_000)
    assert known.fresh("b1", "", (), events(*range(1, 5_001))) == range(5_000)
    assert known.enter(events(*range(5_001, 9_001))) == range(4_000)
    assert asked == [5_000, 4_000]


def around(room: int) -> Arrivals:
    """Of a level at which what comes around comes on the tree, too."""
    return Arrivals(room, are_stored=True)


def test_what_came_around_is_known_until_the_stored_copy_comes_however_many_there_are() -> None:
    """Found by reading: more detours than are remembered, stored in the same order, all passed."""
    known, last = around(room=10), 500
    for number in range(1, last + 1):
        assert known.fresh("b1", "", (), events(number)) == range(1)
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(known.get_state()), type=ArrivalState)
    known = around(room=10)
    known.set_state(state)
    for number in range(1, last + 1):
        assert known.fresh("b2", "log", (number,), events(number)) == []
    assert known.repetitions == last
    left = known.get_state()
    assert left is not None
    assert (len(left.around), left.recent) == (0, [("p", 1, last - 9, 10)]), "it waits for nothing more"


def test_a_copy_that_comes_around_late_is_known() -> None:
    known = around(room=10)
    assert known.fresh("b2", "log", (1,), events(1)) == range(1)
    assert known.fresh("b1", "", (), events(1)) == []
    assert known.fresh("b1", "", (), events(2)) == range(1)
    assert known.fresh("b1", "", (), events(2)) == [], "twice around"
    assert known.fresh("b2", "log", (2,), events(2)) == []
    assert known.fresh("b1", "", (), events(2)) == [], "and once more"


def test_what_never_comes_on_the_tree_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.protocols.core.arrivals.AROUND_MAX", 8)
    known = around(room=10)
    short = batch_of(Event("p", 1, number, "t", {}, lifetime=5, published_at=10) for number in range(1, 9))
    assert known.fresh("b1", "", (), short, wall=12) == range(8)
    known.fresh("b1", "", (), events(9), wall=20)
    state = known.get_state()
    assert state is not None
    assert [number for _, _, number, _ in state.around] == [9], "the others are over"
    assert known.forgotten == 0
    known.fresh("b1", "", (), events(*range(10, 18)), wall=20)
    assert known.forgotten == 5
    again = known.fresh("b2", "log", tuple(range(1, 10)), events(*range(9, 18)))
    assert len(again) == 5, "of those that were too many, not of all"
