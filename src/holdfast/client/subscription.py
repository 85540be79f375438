"""A subscription as its application sees it: an asynchronous iterator over events, or over lists of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast.client.feed import EventFeed
from holdfast.errors import BusClosed, HoldfastError
from holdfast.model.received import ReceivedEvent, ReceivedEvents

if TYPE_CHECKING:
    from holdfast.client.subscriptions import Subscriptions


class Subscription:
    """Made by `bus.subscribe`; use it with `async with`, and iterate over it with `async for`.

    `missed` counts the events that were dropped for want of room. `gaps` counts how often nobody knows how many were
    missed: the broker forgot the subscription, or was not in its network for a while. `expired` counts those that came
    after their deadlines, or that the broker gave up then, and are not handed out.
    """

    def __init__(self, subscriptions: Subscriptions, text: str, overflow: str, window: int) -> None:
        self.filter = text
        self.overflow = overflow
        self.window = window
        self.missed = 0
        self.gaps = 0
        self.expired = 0
        self._subscriptions = subscriptions
        self._number = 0
        self._feed = EventFeed()
        self._taken = 0  # by the application, and not reported to the node yet: less than
        self._quarter = max(1, window // 4)

    async def __aenter__(self) -> Subscription:
        self._number = await self._subscriptions.make(self)
        self._feed.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the subscription; what was not taken is gone."""
        if self._number and not self._feed.over:
            self._end(None)
            self._feed.clear()
            await self._subscriptions.end(self._number)

    async def __aiter__(self) -> AsyncIterator[ReceivedEvent]:
        events, quarter = self._feed.events, self._quarter
        while await self._feed.more():
            while events:
                # Before it is handed out: whoever leaves the loop has taken it.
                self._taken += 1
                event = events.pop()
                if self._taken >= quarter:
                    self._report()
                yield event

    async def batches(self) -> AsyncIterator[list[ReceivedEvent]]:
        """Lists of events, as they come; never an empty one."""
        while batch := await self.take():
            yield batch

    async def take(self) -> list[ReceivedEvent]:
        """All events that are there, at least one; an empty list when the subscription was closed here."""
        if not await self._feed.more():
            return []
        batch = self._feed.take()
        self._taken += len(batch)
        if self._taken >= self._quarter:
            self._report()
        return batch

    async def next(self) -> ReceivedEvent:
        """The next event."""
        if not await self._feed.more():
            raise BusClosed("the subscription is closed")
        self._taken += 1
        event = self._feed.events.pop()
        if self._taken >= self._quarter:
            self._report()
        return event

    def _report(self) -> None:
        """Tells the node what the application has taken, which makes room for more. By quarters of the window is soon
        enough: the broker may still send the rest of it."""
        taken, self._taken = self._taken, 0
        self._subscriptions.consumed(self._number, taken)

    # ------------------------------------------------------------------------------------------------ called by the bus
    def _missed(self, count: int | None) -> None:
        self.missed += count or 0
        self.gaps += count is None

    def _expired(self, count: int) -> None:
        self.expired += count

    def _deliver(self, events: ReceivedEvents) -> None:
        self._feed.add(events)

    def _end(self, problem: HoldfastError | None) -> None:
        self._feed.end(problem)
