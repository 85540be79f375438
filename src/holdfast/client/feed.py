"""Events that have come and were not taken: what subscriptions of all kinds hand out from."""

from __future__ import annotations

import asyncio
from collections import deque

from holdfast.errors import BusClosed, HoldfastError, renewed
from holdfast.model.received import ReceivedEvent


class EventFeed:
    """Filled by the bus, emptied by an application that waits."""

    __slots__ = ("_is_begun", "_waiter", "events", "over", "problem")

    def __init__(self) -> None:
        self.events: deque[ReceivedEvent] = deque()
        self.problem: HoldfastError | None = None  # why no more come
        self.over = False
        self._is_begun = False
        self._waiter: asyncio.Future[None] | None = None

    async def more(self) -> bool:
        """Waits until there is an event. False when it was closed here; raises what ended it else."""
        while not self.events:
            if self.problem is not None:
                raise renewed(self.problem)
            if self.over:
                return False
            if not self._is_begun:
                raise BusClosed("the subscription is not open: use it with 'async with'")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return True

    def begin(self) -> None:
        """The subscription is there: events may come."""
        self._is_begun = True

    def add(self, events: list[ReceivedEvent]) -> None:
        self.events.extend(events)
        self._wake()

    def end(self, problem: HoldfastError | None) -> None:
        self.over = True
        self.problem = problem
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
