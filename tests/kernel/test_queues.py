"""Output queues: what leaves, when, and in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.inputs import Drained
from holdfast.kernel.messages import Message
from holdfast.kernel.node import InvariantBroken
from holdfast.kernel.queues import Lane, OutputQueue, Queued

ALL = 1_000_000


class Word(Message, frozen=True):
    text: str


def entry(text: str, lane: Lane = Lane.USER, token: int = 0, weight: int = 10) -> Queued:
    return Queued(Word(text), lane, token, weight)


def make_queue(*entries: Queued) -> OutputQueue:
    queue = OutputQueue("b", {})
    for one in entries:
        queue.put(one)
    return queue


def words(entries: list[Queued]) -> list[str]:
    return [one.message.text for one in entries if isinstance(one.message, Word)]


def take(queue: OutputQueue, durable: int = ALL, bytes_max: int = ALL) -> list[str]:
    return words(queue.take(durable, bytes_max)[0])


def test_control_leaves_before_user_traffic() -> None:
    queue = make_queue(entry("u1"), entry("c1", Lane.CONTROL), entry("u2"), entry("c2", Lane.CONTROL))
    assert take(queue) == ["c1", "c2", "u1", "u2"]
    assert take(queue) == []


def test_what_waits_for_nothing_overtakes_what_waits_for_the_disk_and_only_that() -> None:
    queue = make_queue(entry("1", token=5), entry("2"), entry("3", token=6), entry("4"))
    assert take(queue, durable=4) == ["2", "4"]
    assert take(queue, durable=5) == ["1"]
    assert take(queue, durable=5) == []
    assert take(queue, durable=6) == ["3"]


def test_user_traffic_leaves_while_control_waits_for_the_disk() -> None:
    queue = make_queue(entry("c", Lane.CONTROL, token=1), entry("u"))
    assert take(queue, durable=0) == ["u"]
    assert take(queue, durable=1) == ["c"]


def test_a_take_stops_at_the_message_that_passes_its_limit() -> None:
    queue = make_queue(*[entry(str(n), weight=10) for n in range(6)])
    assert take(queue, bytes_max=1) == ["0"]
    assert take(queue, bytes_max=20) == ["1", "2"]
    assert take(queue, bytes_max=21) == ["3", "4", "5"]
    assert (len(queue), queue.bytes) == (0, 0)


def test_a_take_of_nothing_takes_nothing() -> None:
    queue = make_queue(entry("1"))
    assert take(queue, bytes_max=0) == []
    assert (len(queue), queue.bytes) == (1, 10)


def test_length_and_bytes_count_what_waits() -> None:
    queue = make_queue(entry("1", weight=3), entry("2", Lane.CONTROL, weight=4), entry("3", token=9, weight=5))
    assert (len(queue), queue.bytes) == (3, 12)
    assert take(queue, durable=0) == ["2", "1"]
    assert (len(queue), queue.bytes) == (1, 5)


def test_closing_drops_what_waits_and_is_for_good() -> None:
    queue = make_queue(entry("u"), entry("c", Lane.CONTROL))
    queue.close()
    assert (queue.is_closed, len(queue), queue.bytes, take(queue)) == (True, 0, 0, [])
    with pytest.raises(InvariantBroken, match="closed queue"):
        queue.put(entry("late"))


def test_a_queue_asks_to_be_looked_at_once_until_the_driver_has_looked() -> None:
    touched: dict[OutputQueue, None] = {}
    queue = OutputQueue("b", touched)
    queue.put(entry("1"))
    queue.put(entry("2"))
    queue.touch()
    queue.notify_below(0)
    assert list(touched) == [queue]
    touched.clear()
    queue.put(entry("3"))
    assert list(touched) == [queue]


@pytest.mark.parametrize("change", ["notify_below", "touch", "close"])
def test_what_the_driver_has_to_know_of_makes_it_look(change: str) -> None:
    touched: dict[OutputQueue, None] = {}
    queue = OutputQueue("b", touched)
    {"notify_below": lambda: queue.notify_below(3), "touch": queue.touch, "close": queue.close}[change]()
    assert list(touched) == [queue]


def test_a_low_water_mark_counts_what_is_taken_since_it_was_set() -> None:
    queue = make_queue(*[entry(str(n), weight=n) for n in range(1, 6)])
    take(queue, bytes_max=1)
    assert (queue.taken_count, queue.taken_bytes) == (0, 0)  # nobody asked
    queue.notify_below(1)
    take(queue, bytes_max=2)
    take(queue, bytes_max=7)
    assert (queue.low_water, queue.taken_count, queue.taken_bytes) == (1, 3, 9)
    drained = queue.drained()
    assert (drained, queue.low_water) == (Drained("b", 3, 9), None)  # it is told once
    queue.notify_below(0)
    assert (queue.low_water, queue.taken_count, queue.taken_bytes) == (0, 0, 0)


def test_nobody_hears_that_a_closed_queue_is_drained() -> None:
    queue = make_queue(entry("1"))
    queue.notify_below(0)
    queue.close()
    assert queue.low_water is None


@given(
    puts=st.lists(st.tuples(st.sampled_from(Lane), st.integers(0, 3), st.integers(1, 30)), max_size=20),
    takes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60)), max_size=10),
)
def test_each_lane_is_fifo_for_both_kinds_and_nothing_is_lost(
    puts: list[tuple[Lane, int, int]], takes: list[tuple[int, int]]
) -> None:
    # Tokens of an outbox never fall.
    tokens = sorted(token for _, token, _ in puts)
    entries = [
        Queued(Word(str(n)), lane, tokens[n] if waits else 0, weight) for n, (lane, waits, weight) in enumerate(puts)
    ]
    queue = make_queue(*entries)
    left: list[Queued] = []
    for durable, bytes_max in takes:
        taken, waiting = queue.take(durable, bytes_max)
        assert waiting == len(queue)
        assert all(one.token <= durable for one in taken)
        assert sum(one.weight for one in taken[:-1]) < max(1, bytes_max)
        assert [one.lane.value for one in taken] == sorted(one.lane.value for one in taken)
        left += taken
        assert queue.bytes == sum(one.weight for one in entries) - sum(one.weight for one in left)
    left += queue.take(ALL, ALL)[0]
    assert len(queue) == queue.bytes == 0
    assert sorted(left, key=entries.index) == entries
    for lane in Lane:
        for waits in (True, False):
            kind = [one for one in entries if one.lane is lane and bool(one.token) is waits]
            assert [one for one in left if one.lane is lane and bool(one.token) is waits] == kind
