"""What a broker tells of a neighbour by its queue: how much waits, for how long, how fast it goes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.schemes.tree.standin.cycle.measuring import LOOKS_MAX, Gauge, Measured

LOOK = 250 * MILLISECOND


class Queue:
    """A queue of events, each with the time of its coming."""

    def __init__(self) -> None:
        self.put_total = 0
        self.came: list[int] = []

    def __len__(self) -> int:
        return len(self.came)

    def put(self, count: int, now: int) -> None:
        self.put_total += count
        self.came += [now] * count

    def take(self, count: int) -> None:
        del self.came[:count]

    def begin_anew(self) -> None:
        self.put_total, self.came = 0, []


def looks(queue: Queue, gauge: Gauge, *steps: tuple[int, int]) -> list[Measured]:
    """Before each look some events are taken, and some come."""
    measured = []
    for place, (taken, put) in enumerate(steps, 1):
        queue.take(taken)
        queue.put(put, place * LOOK)
        measured.append(gauge.look(queue, place * LOOK))
    return measured


def test_an_event_ages_as_long_as_it_waits() -> None:
    """D0-A8"""
    measured = looks(Queue(), Gauge(), (0, 5), (0, 0), (0, 0), (5, 0))
    assert [each.oldest for each in measured] == [0, LOOK, 2 * LOOK, 0]
    assert [each.waiting for each in measured] == [5, 5, 5, 0]


def test_the_age_is_that_of_the_oldest_and_not_of_the_queue() -> None:
    """A queue that is never empty is no old one, if it moves."""
    measured = looks(Queue(), Gauge(), (0, 5), (5, 5), (5, 5), (5, 5))
    assert [each.oldest for each in measured] == [0, 0, 0, 0]


def test_the_rate_is_known_only_while_others_waited_all_the_time() -> None:
    """An idle neighbour is not a slow one."""
    measured = looks(Queue(), Gauge(), (0, 10), (4, 0), (6, 0), (0, 3), (2, 0))
    assert [each.rate for each in measured] == [-1.0, 16.0, -1.0, -1.0, 8.0]


def test_one_that_takes_nothing_has_a_rate_of_nothing() -> None:
    assert looks(Queue(), Gauge(), (0, 10), (0, 0))[-1].rate == 0.0


def test_a_queue_that_began_anew_has_no_past() -> None:
    """What waits now came after that, though the numbers of the old one would say that it came long before."""
    queue, gauge = Queue(), Gauge()
    looks(queue, gauge, (0, 10), (5, 0))
    queue.begin_anew()
    queue.put(3, 3 * LOOK)
    measured = gauge.look(queue, 3 * LOOK)
    assert measured == Measured(3, 0, -1.0)


def test_a_queue_that_began_anew_and_is_as_long_as_before_is_found_out() -> None:
    queue, gauge = Queue(), Gauge()
    looks(queue, gauge, (0, 10), (0, 0))
    queue.begin_anew()
    queue.put(9, 3 * LOOK)
    assert gauge.look(queue, 3 * LOOK).oldest == 0


def test_what_is_remembered_is_bounded() -> None:
    """Whatever comes between two looks; the age is still that of the oldest."""
    queue, gauge = Queue(), Gauge()
    for place in range(1, 20 * LOOKS_MAX):
        queue.put(1, place * LOOK)
        gauge.look(queue, place * LOOK)
        assert len(gauge._looks) <= LOOKS_MAX
    assert gauge.now.oldest == (20 * LOOKS_MAX - 2) * LOOK


STEPS = st.lists(
    st.tuples(st.integers(1, 3 * SECOND), st.integers(0, 6), st.integers(0, 6), st.booleans()),
    max_size=60,
)


@given(STEPS)
def test_a_gauge_says_what_one_would_see_who_wrote_everything_down(steps: list[tuple[int, int, int, bool]]) -> None:
    """Ages to within the time between two looks: an event is as old as the first look that saw it."""
    queue, gauge = Queue(), Gauge()
    now = gone = 0
    waited = False
    seen: list[int] = []  # when each of those that wait was seen first
    for passed, taken, put, anew in steps:
        now += passed
        taken = min(taken, len(queue))
        if anew and not taken and not len(queue):
            queue.begin_anew()
            waited = False
        queue.take(taken)
        del seen[:taken]
        queue.put(put, now)
        seen += [now] * put
        measured = gauge.look(queue, now)
        rate = taken * SECOND / passed if waited and len(queue) else -1.0
        assert measured == Measured(len(queue), now - seen[0] if seen else 0, rate)
        waited = len(queue) > 0
        gone += taken
