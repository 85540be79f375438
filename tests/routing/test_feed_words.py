"""What is said to a neighbour among the events of its feed has its place there."""

from __future__ import annotations

from holdfast.kernel.messages import Message
from holdfast.protocols.routing.feed import Feed
from holdfast.protocols.routing.messages import AcknowledgeEvents, Forward
from tests.routing.events import numbered_events

FIRST, SECOND = AcknowledgeEvents(1), AcknowledgeEvents(2)


def left(feed: Feed, window: int = 1 << 20) -> list[Message | int]:
    """What leaves: words, and the numbers of events."""
    said: list[Message | int] = []
    for count, message in feed.leaving(0, window=window):
        said += range(message.first, message.first + count) if isinstance(message, Forward) else [message]
    return said


def put(feed: Feed, count: int) -> None:
    feed.put(numbered_events(*range(count)))


def test_a_word_is_behind_what_was_put_in_before_it_and_in_front_of_the_rest() -> None:
    feed = Feed()
    put(feed, 2)
    feed.say(FIRST)
    put(feed, 1)
    feed.say(SECOND)
    assert left(feed) == [1, 2, FIRST, 3, SECOND]
    assert left(feed) == []


def test_a_word_waits_for_room_with_the_events_before_it() -> None:
    feed = Feed()
    put(feed, 1)
    put(feed, 1)
    feed.say(FIRST)
    put(feed, 1)
    assert left(feed, window=1) == [1]
    assert feed.has_unsent
    feed.acknowledge(1)
    assert left(feed, window=1) == [2, FIRST]
    feed.acknowledge(2)
    assert left(feed, window=1) == [3]


def test_a_word_to_a_feed_that_is_empty_leaves_at_once() -> None:
    feed = Feed()
    feed.say(FIRST)
    assert feed.has_unsent
    assert left(feed) == [FIRST]


def test_a_word_stays_behind_what_is_suspended() -> None:
    feed = Feed()
    feed.suspend()
    put(feed, 1)
    feed.say(FIRST)
    assert left(feed) == []
    feed.go_on()
    assert left(feed) == [1, FIRST]


def test_what_is_taken_out_holds_no_word_up() -> None:
    """Its numbers are given again, and what gets them is behind the word."""
    feed, other = Feed(), Feed()
    put(feed, 3)
    feed.say(FIRST)
    feed.move_to(other)
    put(feed, 1)
    assert left(feed) == [FIRST, 1]


def test_words_are_lost_with_the_link() -> None:
    feed = Feed()
    put(feed, 1)
    feed.say(FIRST)
    assert feed.lose_sent() == 0
    assert left(feed) == [1]
