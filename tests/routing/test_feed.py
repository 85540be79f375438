"""Feeds: numbers without gaps, a window, and everything again until it is acknowledged (D1-B4)."""

from __future__ import annotations

from random import Random

from holdfast.model.batch import EventBatch
from holdfast.protocols.routing.batches import BATCH_BYTES, BATCH_EVENTS, in_messages
from holdfast.protocols.routing.feed import WINDOW_BYTES, Feed
from tests.routing.events import numbered_events, numbers_of


def events(count: int, size: int = 0, first: int = 1) -> EventBatch:
    return numbered_events(*range(first, first + count), size=size)


def numbers(feed: Feed) -> list[int]:
    """The numbers of what may be sent now, which must be those that the events carry."""
    found = []
    for batch in feed.take(wall=0):
        carried = numbers_of(batch.events)
        assert carried == list(range(batch.first, batch.last + 1))
        found += carried
    return found


def test_what_is_sent_stays_until_it_is_acknowledged() -> None:
    feed = Feed()
    feed.put(events(5))
    assert numbers(feed) == [1, 2, 3, 4, 5]
    assert numbers(feed) == []
    assert feed.acknowledge(3)
    assert not feed.acknowledge(2)
    feed.rewind()
    assert numbers(feed) == [4, 5]
    assert feed.acknowledge(5)
    assert (feed.is_idle, feed.bytes, feed.following) == (True, 0, 6)
    feed.check_invariants()


def test_no_more_is_under_way_than_the_window() -> None:
    feed = Feed()
    size = 100_000
    feed.put(events(100, size))
    sent = numbers(feed)
    assert WINDOW_BYTES - size < len(sent) * size <= WINDOW_BYTES + BATCH_BYTES
    feed.acknowledge(sent[-1])
    assert numbers(feed)[0] == sent[-1] + 1


def test_batches_fit_into_messages() -> None:
    for given in (events(3_000), events(30, 100_000), events(2, 900_000), events(0)):
        parts = list(in_messages(given))
        assert [number for part in parts for number in numbers_of(part)] == numbers_of(given)
        for part in parts:
            assert len(part) <= BATCH_EVENTS
            assert len(part) == 1 or part.bytes <= BATCH_BYTES


def test_what_has_expired_is_given_up_unless_it_is_under_way() -> None:
    feed = Feed()
    feed.put(numbered_events(1, 2, deadlines=[100, 200]))
    feed.put(events(1, first=3))
    feed.drop_expired(150)
    assert (feed.expired, len(feed)) == (1, 2)
    feed.drop_expired(200)
    assert (feed.expired, len(feed)) == (2, 1)
    assert numbers(feed) == [3]
    feed.put(numbered_events(4, deadlines=[100]))
    feed.drop_expired(500)
    assert (feed.expired, len(feed)) == (3, 1), "of what is under way the neighbour will tell"
    feed.check_invariants()


def test_any_sequence_keeps_numbers_and_loses_nothing() -> None:
    """Against the obvious: a list of what was put in and not acknowledged."""
    for seed in range(200):
        rng, feed = Random(seed), Feed()
        last = acknowledged = sent = 0
        for _ in range(60):
            match rng.choice(("put", "put", "take", "acknowledge", "rewind")):
                case "put":
                    count = rng.choice((1, 3, 1_500))
                    feed.put(events(count, first=last + 1))
                    last += count
                case "take":
                    for number in numbers(feed):
                        assert number == sent + 1
                        sent = number
                case "acknowledge":
                    acknowledged = rng.randint(acknowledged, sent) if sent > acknowledged else acknowledged
                    feed.acknowledge(acknowledged)
                case "rewind":
                    feed.rewind()
                    sent = acknowledged
            feed.check_invariants()
            assert len(feed) == last - acknowledged, seed
