"""Events that have come and were not taken: what subscriptions of all kinds hand out from."""

from __future__ import annotations

import asyncio
from collections import deque

from holdfast.errors import BusClosed, HoldfastError, renewed
from holdfast.model.received import ReceivedEvent, ReceivedEvents


class EventFeed:
    """Filled by the bus, emptied by an application that waits. Events are made when it comes to their batch."""

    __slots__ = ("_batches", "_is_begun", "_waiter", "events", "over", "problem")

    def __init__(self) -> None:
        self.events: list[ReceivedEvent] = []  # of the batch that is handed out, the last one first
        self._batches: deque[ReceivedEvents] = deque()  # behind it
        self.problem: HoldfastError | None = None  # why no more come
        self.over = False
        self._is_begun = False
        self._waiter: asyncio.Future[None] | None = None

    async def more(self) -> bool:
        """Waits until there is one of `events`. False when it was closed here; raises what ended it else."""
        while not self.events:
            if self._batches:
                self.events += self._batches.popleft().make()
                self.events.reverse()
                break
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

    @property
    def is_empty(self) -> bool:
        return not self.events and not self._batches

    def take(self) -> list[ReceivedEvent]:
        """All that are there."""
        taken = self.events[::-1]
        for batch in self._batches:
            taken += batch.make()
        self.clear()
        return taken

    def clear(self) -> None:
        self.events.clear()
        self._batches.clear()

    def begin(self) -> None:
        """The subscription is there: events may come."""
        self._is_begun = True

    def add(self, events: ReceivedEvents) -> None:
        self._batches.append(events)
        self._wake()

    def end(self, problem: HoldfastError | None) -> None:
        self.over = True
        self.problem = problem
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
