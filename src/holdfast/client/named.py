"""A named subscription as its application sees it: a cursor into the broker's log, which outlives the application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast.client.feed import EventFeed
from holdfast.client.log_calls import Start
from holdfast.errors import BusClosed, HoldfastError
from holdfast.model.position import Position
from holdfast.model.received import ReceivedEvent, ReceivedEvents

if TYPE_CHECKING:
    from holdfast.client.subscriptions import Subscriptions


class NamedSubscription:
    """Made by `bus.subscribe(filter, name=…)`; use it with `async with`, and iterate over it with `async for`.

    The broker keeps what is not acknowledged. With `auto_ack` an event is acknowledged when the next one is asked for;
    without, only by `ack`. What was not acknowledged comes again to whoever subscribes under the name next, in order
    and with `attempt` above 1. `expired` counts the events that were not handed out, since their deadlines had passed.
    `gaps` counts how often the broker was not in its network for a while, so that its log lacks what was published
    then.
    """

    def __init__(
        self, subscriptions: Subscriptions, text: str, name: str, from_: Start | None, window: int, auto_ack: bool
    ) -> None:
        self.filter = text
        self.name = name
        self.window = window
        self.auto_ack = auto_ack
        self.expired = 0
        self.gaps = 0
        self._from = from_
        self._subscriptions = subscriptions
        self._number = 0
        self.acknowledged = 0  # up to here, when it was made
        self._feed = EventFeed()
        self._taken = 0  # by the application, and not reported to the node yet
        self._last = 0  # position of the last event handed out
        self._done = 0  # of the last one that is dealt with
        self._ack_due = False

    async def __aenter__(self) -> NamedSubscription:
        self._number, self.acknowledged = await self._subscriptions.make_cursor(self, self._from)
        self._feed.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops reading; the broker keeps the cursor. The last event handed out is not acknowledged by this."""
        if self._number and not self._feed.over:
            if self.auto_ack and self._done:
                self._acknowledge()
            self._feed.end(None)
            self._feed.clear()
            await self._subscriptions.end_cursor(self._number)

    async def ack(self, event: ReceivedEvent) -> None:
        """Acknowledges the event and all before it; returns when the broker has that safe."""
        if event.position is None:
            raise ValueError("the event has no position: it did not come from a named subscription")
        await self._subscriptions.acknowledge(self._number, event.position.number)

    async def ack_up_to(self, position: Position) -> None:
        """Acknowledges everything up to a position, which has to have come: PositionAhead if it has not.

        Who reads the events by `bus.read` moves the name instead, by subscribing with `from_`.
        """
        await self._subscriptions.acknowledge(self._number, position)

    async def __aiter__(self) -> AsyncIterator[ReceivedEvent]:
        feed, quarter = self._feed, max(1, self.window // 4)
        self._asked_for_more()
        while await feed.more():
            while feed.events:
                event = feed.events.pop()
                self._taken += 1
                if self._taken >= quarter or feed.is_empty:
                    self._report()
                self._hand_out(event)
                yield event
                self._asked_for_more()

    async def batches(self) -> AsyncIterator[list[ReceivedEvent]]:
        """Lists of events, as they come; asking for the next acknowledges the one before."""
        while batch := await self.take():
            yield batch

    async def take(self) -> list[ReceivedEvent]:
        """All events that are there, at least one; an empty list when the subscription was closed here."""
        self._asked_for_more()
        if not await self._feed.more():
            return []
        batch = self._feed.take()
        self._taken += len(batch)
        self._report()
        self._hand_out(batch[-1])
        return batch

    async def next(self) -> ReceivedEvent:
        """The next event."""
        self._asked_for_more()
        if not await self._feed.more():
            raise BusClosed("the subscription is closed")
        event = self._feed.events.pop()
        self._taken += 1
        self._report()
        self._hand_out(event)
        return event

    def _hand_out(self, event: ReceivedEvent) -> None:
        self._last = event.number

    def _asked_for_more(self) -> None:
        """Everything handed out so far is dealt with. Said once for all that a turn of the event loop asks for."""
        self._done = self._last
        if self.auto_ack and self._done and not self._ack_due:
            self._ack_due = True
            asyncio.get_running_loop().call_soon(self._acknowledge)

    def _acknowledge(self) -> None:
        self._ack_due = False
        if not self._feed.over:
            self._subscriptions.acknowledge_soon(self._number, self._done)

    def _report(self) -> None:
        """Tells the node what the application has taken, which makes room for more."""
        if self._taken:
            taken, self._taken = self._taken, 0
            self._subscriptions.consumed_cursor(self._number, taken)

    # ------------------------------------------------------------------------------------------------ called by the bus
    def _missed(self, count: int | None) -> None:
        self.gaps += count is None

    def _expired(self, count: int) -> None:
        self.expired += count

    def _deliver(self, events: ReceivedEvents) -> None:
        self._feed.add(events)

    def _end(self, problem: HoldfastError | None) -> None:
        self._feed.end(problem)
