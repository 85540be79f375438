"""What subscriptions hand out from, with several tasks that take from one."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.client.feed import EventFeed
from holdfast.model.received import ReceivedEvents
from tests.routing.events import numbered_events


def feed_of(*numbers: int) -> EventFeed:
    feed = EventFeed()
    feed.begin()
    if numbers:
        feed.add(ReceivedEvents(numbered_events(*numbers)))
    return feed


async def one(feed: EventFeed, found: list[int]) -> None:
    if await feed.more():
        found.append(feed.events.pop().sequence)


def test_who_waits_gets_an_event_of_a_batch_that_another_has_begun() -> None:
    async def run() -> list[int]:
        feed, found = feed_of(), list[int]()
        waiting = asyncio.create_task(one(feed, found))
        await asyncio.sleep(0)
        feed.add(ReceivedEvents(numbered_events(1, 2, 3)))
        await one(feed, found)  # before the one that waits goes on
        await asyncio.wait_for(waiting, 5)
        return found

    assert asyncio.run(run()) == [1, 2]


@pytest.mark.parametrize("take", [lambda feed: feed.take(), lambda feed: [feed.events.pop(), *feed.take()]])
def test_all_that_is_there_is_taken_in_order(take: Callable[[EventFeed], Any]) -> None:
    async def run() -> list[int]:
        feed = feed_of(1, 2)
        feed.add(ReceivedEvents(numbered_events(3)))
        feed.end(None)
        assert await feed.more()
        taken = [event.sequence for event in take(feed)]
        assert feed.is_empty
        assert not await feed.more()
        return taken

    assert asyncio.run(run()) == [1, 2, 3]
