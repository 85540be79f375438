"""The wait-ready queue by itself, and what a stand-in keeps for subscriptions that come late."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from holdfast.kernel.node import InvariantBroken
from holdfast.model import Filter
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event
from holdfast.protocols.routing.feed import Feed
from holdfast.protocols.routing.messages import Forward
from holdfast.protocols.routing.targets import Targets
from holdfast.schemes.tree.standin.messages import StandInForward
from holdfast.schemes.tree.standin.missed import Missed
from holdfast.schemes.tree.standin.wait_ready import WaitReady
from tests.routing.events import batch_of, numbers_of
from tests.standin.paper_queue import PaperQueue

STAND_IN = "r"
PLENTY = 1 << 20
HALVES = {"low": "n <= 3", "high": "n > 3", "all": ""}


def events(*numbers: int) -> EventBatch:
    return batch_of(Event("p", 1, number, "", {"n": number}, b"", 0, 0) for number in numbers)


def queue_for(subscriptions: Mapping[str, str], elsewhere: Mapping[str, str] | None = None) -> WaitReady:
    targets = Targets()
    for entry, text in subscriptions.items():
        targets.add(STAND_IN, entry, Filter(text))
    for entry, text in (elsewhere or {}).items():
        targets.add("n9", entry, Filter(text))
    return WaitReady(targets, STAND_IN)


def paper_queue_for(subscriptions: Mapping[str, str]) -> PaperQueue:
    targets = Targets()
    for entry in sorted(subscriptions):
        targets.add(STAND_IN, entry, Filter(subscriptions[entry]))
    return PaperQueue(targets, STAND_IN)


def taken(queue: WaitReady, bytes_max: int = PLENTY) -> list[int]:
    return numbers_of(queue.take(bytes_max))


# --------------------------------------------------------------------------------------------------- waiting, leaving
def test_nothing_leaves_before_a_subscription_that_wants_it_has_come() -> None:
    """D0-A27, D0-B11"""
    queue = queue_for(HALVES)
    queue.put(events(1, 2, 4))
    assert (taken(queue), len(queue)) == ([], 3)
    queue.arrived(["high"])
    assert (taken(queue), len(queue)) == ([4], 2)
    queue.arrived(["low"])
    assert (taken(queue), len(queue)) == ([1, 2], 0)


def test_ready_queues_are_served_in_turn() -> None:
    """D0-A27"""
    queue = queue_for({"low": "n <= 3", "high": "n > 3"})
    queue.put(events(1, 2, 3, 4, 5, 6))
    queue.arrived(["low", "high"])
    assert taken(queue) == [1, 4, 2, 5, 3, 6]


def test_an_event_of_several_queues_leaves_once() -> None:
    """D0-A28: what has left is skipped in the others, and takes no turn from what follows it there."""
    queue = queue_for(HALVES)
    queue.put(events(1, 2, 4, 5))
    queue.arrived(["low"])
    assert taken(queue) == [1, 2]
    queue.arrived(["all", "high"])
    assert sorted(taken(queue)) == [4, 5]
    assert (taken(queue), len(queue)) == ([], 0)


def test_what_comes_for_a_subscription_that_is_known_may_leave_at_once() -> None:
    """D0-B11.1"""
    queue = queue_for(HALVES)
    queue.arrived(["high"])
    queue.put(events(1, 4))
    assert taken(queue) == [4]
    assert len(queue) == 1


def test_a_subscription_that_nobody_waits_for_changes_nothing() -> None:
    queue = queue_for({"low": "n <= 3"})
    queue.arrived(["other", "low", "low"])
    queue.put(events(1))
    assert taken(queue) == [1]


def test_no_more_is_taken_than_there_is_room_for() -> None:
    queue = queue_for({"all": ""})
    queue.put(events(1, 2, 3, 4))
    queue.arrived(["all"])
    assert taken(queue, 0) == []
    assert taken(queue, 1) == [1]
    assert taken(queue) == [2, 3, 4]


def test_what_is_left_at_the_end_leaves_in_the_order_in_which_it_came() -> None:
    """D0-B11.2: nothing is stranded, and what has left does not come again."""
    queue = queue_for(HALVES)
    queue.put(events(4, 1, 5))
    queue.put(events(2, 6, 3))
    queue.arrived(["low"])
    assert taken(queue, 1) == [1]
    assert numbers_of(queue.drain()) == [4, 5, 2, 6, 3]
    assert (len(queue), queue.indexed, numbers_of(queue.drain())) == (0, 0, [])


def test_events_are_indexed_once_for_each_set_of_subscriptions_that_want_them() -> None:
    """D0-C24, D0-F1: the events, and the sizes of the sets that differ; and it is given back."""
    queue = queue_for(HALVES)
    queue.put(events(1, 2, 4))
    assert (len(queue), queue.indexed) == (3, 3 + 2 * 2)
    queue.put(events(3, 5))
    assert (len(queue), queue.indexed) == (5, 5 + 2 * 2)
    queue.arrived(["low"])
    assert taken(queue) == [1, 2, 3]
    assert queue.indexed == 2 + 2, "nobody waits any more for what has left"
    queue.arrived(["all", "high"])
    assert taken(queue) == [4, 5]
    assert (len(queue), queue.indexed, queue._groups, queue._wait, queue._ready) == (0, 0, {}, {}, {})
    assert (queue.waiting_peak, queue.indexed_peak) == (5, 5 + 2 * 2)


@pytest.mark.parametrize("fanout", [1, 10, 100, 1_000])
def test_where_all_want_everything_memory_does_not_grow_with_the_fanout_times_the_events(fanout: int) -> None:
    """D0-B11.3, D0-F1: and the first of them lets all events go."""
    wanted = {f"s{number}": "" for number in range(fanout)}
    queue, paper = queue_for(wanted), paper_queue_for(wanted)
    for each in (queue, paper):
        for first in range(1, 501, 100):
            each.put(events(*range(first, first + 100)))
    assert (paper.indexed, queue.indexed) == (500 * fanout, 500 + fanout)
    queue.arrived(["s0"])
    assert taken(queue) == list(range(1, 501))
    assert queue.indexed == 0


@pytest.mark.parametrize("fanout", [1, 10, 100, 1_000])
def test_where_no_two_events_are_wanted_by_the_same_memory_is_that_of_the_paper(fanout: int) -> None:
    """D0-C24, D0-D3: beside the events themselves; the worst there is."""
    wanted = {f"s{number}": f"n > {number} AND n <= {number + fanout}" for number in range(50 + fanout)}
    queue, paper = queue_for(wanted), paper_queue_for(wanted)
    for each in (queue, paper):
        each.put(events(*range(fanout, fanout + 50)))
    assert (paper.indexed, queue.indexed) == (50 * fanout, 50 + 50 * fanout)


def test_where_subscriptions_are_thresholds_there_are_as_many_sets_as_values() -> None:
    """D0-F1: a thousand of them and 500 events, of Zipf's degree 0.5 over 20 values."""
    rng = Random(1)
    drawn = rng.choices(range(1, 21), [value**-0.5 for value in range(1, 21)], k=1_500)
    wanted = {f"s{number}": f"n > {value - 1}" for number, value in enumerate(drawn[:1_000])}
    queue, paper = queue_for(wanted), paper_queue_for(wanted)
    batch = batch_of(Event("p", 1, n, "", {"n": value}, b"", 0, 0) for n, value in enumerate(drawn[1_000:], 1))
    for each in (queue, paper):
        each.put(batch)
    assert len(queue._groups) == 20
    assert (paper.indexed, queue.indexed) == (257_580, 13_071)  # as ADR 21 has it


@pytest.mark.parametrize("seed", range(40))
def test_events_leave_as_they_do_where_each_subscription_has_a_queue_of_its_own(seed: int) -> None:
    """D0-A27, D0-A28, D0-F1: each as soon, and in the same order, whatever comes when."""
    rng = Random(seed)
    wanted = {f"s{number}": f"n > {rng.randint(0, 15)} AND n < {rng.randint(5, 25)}" for number in range(8)}
    queue, paper = queue_for(wanted), paper_queue_for(wanted)
    coming, last, went = list(wanted), 0, 0
    for _ in range(30):
        match rng.choice(("put", "arrive", "take")):
            case "put":
                count = rng.randint(1, 6)
                batch = batch_of(
                    Event("p", 1, last + place, "", {"n": rng.randint(1, 25)}, b"", 0, 0)
                    for place in range(1, count + 1)
                )
                last += count
                queue.put(batch)
                paper.put(batch)
            case "arrive" if coming:
                some = [coming.pop(rng.randrange(len(coming))) for _ in range(rng.randint(1, min(3, len(coming))))]
                queue.arrived(some)
                paper.arrived(some)
            case _:
                left = taken(queue)
                assert left == numbers_of(paper.take(PLENTY))
                went += len(left)
        assert len(queue) == len(paper)
        assert queue.indexed <= paper.indexed + len(queue)
    assert numbers_of(queue.drain()) == numbers_of(paper.drain())
    assert went > 0


def test_only_subscriptions_beyond_the_stand_in_count() -> None:
    queue = queue_for({"low": "n <= 3"}, elsewhere={"other": ""})
    queue.put(events(1))
    assert queue.indexed == 1 + 1


def test_events_travel_with_all_subscriptions_that_want_them() -> None:
    """D0-A22: also those that have not come, which the stand-in is to wait for."""
    queue = queue_for(HALVES)
    queue.put(events(1, 4))
    queue.arrived(["high", "low"])
    batch = queue.take(PLENTY)
    message = queue.in_message(7, batch)
    assert isinstance(message, StandInForward)
    assert (message.first, [sorted(entries) for entries in message.wanted]) == (7, [["all", "high"], ["all", "low"]])
    assert not queue._labels, "labels go with the events"


@pytest.mark.parametrize("seed", range(30))
def test_whatever_comes_in_whatever_order_each_event_leaves_once(seed: int) -> None:
    """D0-A28, D0-B11"""
    rng = Random(seed)
    wanted = {f"s{number}": f"n > {rng.randint(0, 15)} AND n < {rng.randint(5, 20)}" for number in range(5)}
    queue = queue_for(wanted)
    coming, numbers, left = list(wanted), list(range(1, 21)), list[int]()
    known: set[str] = set()
    while coming or numbers:
        match rng.choice(("put", "arrive", "take")):
            case "put" if numbers:
                count = rng.randint(1, 4)
                queue.put(events(*numbers[:count]))
                del numbers[:count]
            case "arrive" if coming:
                known.add(entry := coming.pop(rng.randrange(len(coming))))
                queue.arrived([entry])
            case _:
                some = queue.take(rng.choice((1, 100, PLENTY)))
                for event in some.events:
                    assert any(Filter(wanted[entry]).matches(dict(event.attributes)) for entry in known)
                left += numbers_of(some)
    left += numbers_of(queue.take(PLENTY))
    assert len(left) == len(set(left))
    rest = numbers_of(queue.drain())
    assert sorted([*left, *rest]) == list(range(1, 21))
    assert not any(Filter(text).matches({"n": number}) for text in wanted.values() for number in rest)


# ----------------------------------------------------------------------------------------------------------- in a feed
def test_a_feed_with_it_numbers_events_when_they_leave() -> None:
    """D0-A26, D0-B8.1: what was moved there waits with what is new, and what is left goes when the feed is as usual."""
    queue = queue_for(HALVES)
    feed, faulty = Feed(), Feed()
    faulty.put(events(1, 4))
    feed.use(queue)
    faulty.move_to(feed)
    feed.put(events(2, 5))
    assert feed.take(wall=0) == []
    queue.arrived(["high"])
    assert [(batch.first, numbers_of(batch.events)) for batch in feed.take(wall=0)] == [(1, [4, 5])]
    assert isinstance(feed.in_message(1, events(4, 5)), StandInForward)
    feed.use(None)
    assert [(batch.first, numbers_of(batch.events)) for batch in feed.take(wall=0)] == [(3, [1, 2])]
    assert isinstance(feed.in_message(3, events(1, 2)), Forward)
    feed.check_invariants()


def test_what_waits_for_a_broker_that_is_lost_is_kept_and_what_was_sent_is_not() -> None:
    """D0-A34, D0-F5: numbers begin anew on the next link."""
    feed = Feed()
    feed.put(events(1, 2))
    feed.take(wall=0)
    feed.put(events(3))
    assert feed.lose_sent() == 2
    assert [(batch.first, numbers_of(batch.events)) for batch in feed.take(wall=0)] == [(1, [3])]
    feed.check_invariants()


def test_nothing_is_put_into_a_feed_that_was_closed() -> None:
    """D0-B8.1: an event that was matched before the tables were rewritten has no way to the closed feed."""
    feed = Feed()
    feed.close()
    with pytest.raises(InvariantBroken):
        feed.put(events(1))


# -------------------------------------------------------------------------------------------------- at the stand-in
def passed(missed: Missed, source: str, batch: EventBatch, sent: Mapping[str, list[int]], *unknown: list[str]) -> None:
    missed.passed(source, batch, sent, unknown)


def fetched(missed: Missed, entry: str, neighbour: str) -> list[int]:
    return [number for batch in missed.take(entry, neighbour) for number in numbers_of(batch)]


def test_a_subscription_that_comes_late_gets_what_was_kept_for_it_in_order() -> None:
    """D0-A30, D0-B12"""
    missed = Missed()
    passed(missed, "n1", events(1, 2, 3), {}, ["a"], ["b"], ["a", "b"])
    assert (len(missed), missed.awaited()) == (4, ["a", "b"])
    assert fetched(missed, "a", "n2") == [1, 3]
    assert fetched(missed, "a", "n2") == []
    assert fetched(missed, "b", "n3") == [2, 3]
    assert len(missed) == 0


def test_nobody_gets_an_event_that_went_there_before() -> None:
    """D0-A29, D0-B12.1, D0-C20: not by another subscription, not by one that came in time, nor back."""
    missed = Missed()
    passed(missed, "n1", events(1, 2), {"n2": [0]}, ["a", "b"], ["a", "b"])
    assert fetched(missed, "a", "n2") == [2]
    assert fetched(missed, "b", "n2") == []
    passed(missed, "n1", events(3), {}, ["c"])
    assert fetched(missed, "c", "n1") == []


def test_nothing_is_kept_for_subscriptions_that_are_known_or_at_the_end() -> None:
    """D0-B12.4, D0-C17"""
    missed = Missed()
    passed(missed, "n1", events(1, 2), {"n2": [0, 1]}, [], [])
    assert len(missed) == 0
    passed(missed, "n1", events(1, 2), {}, ["a"], ["b"])
    missed.clear()
    assert (len(missed), fetched(missed, "a", "n2")) == (0, [])
