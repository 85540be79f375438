"""A stage that grows part by part, of events that whoever has them encoded himself.

For those who have many: `bus.stage` makes an object of every event first. The broker checks all the same.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.model.event import BATCH_EVENTS_MAX, EVENT_BYTES_MAX, EventBytes
from holdfast.protocols.cursors import requests

if TYPE_CHECKING:
    from holdfast.client.blocking import BlockingBus

PARTS_UNDER_WAY = 8
PART_BYTES_MAX = EVENT_BYTES_MAX + 5  # of one event, as an array


class StageReceipt(msgspec.Struct, frozen=True):
    """What `stage` gives, for `commit`. Plain data: it may travel from a task to whoever commits."""

    id: str
    count: int


class Stage:
    """Made by `bus.open_stage`. Events name the bus as their publisher; `incarnation` is for their ids, which are to be
    numbered from 1."""

    def __init__(self, ask: Callable[[Any], Awaitable[Any]], query: str, epoch: int, task: int) -> None:
        self.id = secrets.token_hex(12)
        self.incarnation = secrets.randbits(62)
        self.count = 0
        self._ask = ask
        self._place = (query, epoch, task)
        self._parts = 0
        self._waiting: deque[asyncio.Future[Any]] = deque()

    async def add(self, events: EventBytes, count: int) -> None:
        """Adds a msgpack array of so many events; returns when there is room for the next. What was wrong with this one
        or one before is raised here or later."""
        if len(events) > PART_BYTES_MAX or count > BATCH_EVENTS_MAX:
            raise ValueError(f"a part has up to {PART_BYTES_MAX} bytes and {BATCH_EVENTS_MAX} events")
        self._parts += 1
        self.count += count
        command = requests.StageEncoded(*self._place, self.id, self._parts, events)
        self._waiting.append(asyncio.ensure_future(self._ask(command)))
        if len(self._waiting) >= PARTS_UNDER_WAY:
            await self._answered()

    async def finish(self) -> StageReceipt:
        """Returns when the broker has all of it safe."""
        if not self._parts:
            await self.add(msgspec.Raw(b"\x90"), 0)  # so that there is a stage
        while self._waiting:
            await self._answered()
        return StageReceipt(self.id, self.count)

    async def _answered(self) -> None:
        try:
            await self._waiting.popleft()
        except BaseException:
            await self.cancel()
            raise

    async def cancel(self) -> None:
        """Waits for nothing any more. What the broker has of the stage expires."""
        waiting, self._waiting = self._waiting, deque()
        for future in waiting:
            future.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


class BlockingStage:
    """The same without asyncio: made by `BlockingBus.open_stage`."""

    def __init__(self, bus: BlockingBus, stage: Stage, timeout_s: float | None) -> None:
        self._bus = bus
        self._stage = stage
        self._timeout_s = timeout_s

    @property
    def incarnation(self) -> int:
        """For the ids of its events."""
        return self._stage.incarnation

    def add(self, events: EventBytes, count: int) -> None:
        """Adds a msgpack array of so many events; returns when there is room for the next."""
        self._bus._run(self._stage.add(events, count), self._timeout_s)

    def finish(self) -> StageReceipt:
        """Returns when the broker has all of it safe."""
        return self._bus._run(self._stage.finish(), self._timeout_s)

    def cancel(self) -> None:
        """Waits for nothing any more. What the broker has of the stage expires."""
        self._bus._run(self._stage.cancel())
