"""What can be asked of a broker's log: where it begins and ends, events by position, publishing in stages."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from holdfast.client import refusals
from holdfast.client.stages import PARTS_UNDER_WAY, Stage, StageReceipt
from holdfast.errors import PositionAhead, PositionGone
from holdfast.model.position import Position
from holdfast.model.received import ReceivedEvent
from holdfast.protocols.cursors import requests
from holdfast.protocols.cursors.messages import EARLIEST, NEW
from holdfast.protocols.sessions.requests import NewEvent

# "new", "earliest", a position, its number, or a time.
Start: TypeAlias = str | int | Position | datetime

PART_EVENTS = 512  # that are staged with one message
PART_CHARACTERS = 200_000  # about; a message has up to 1 MiB, and a character up to 4 bytes
READS_UNDER_WAY_BYTES = 256 * 1024


class CommitResult(msgspec.Struct, frozen=True):
    """The positions of the events. `already`: the commit was done before; then they may not be known any more."""

    first: Position | None
    last: Position | None
    already: bool


class LogRange:
    """Events of a closed range, as `bus.read` gives them: iterate with `async for`, or over `batches()`.

    `scanned` counts the events that the broker has looked at so far: those that did not match were not sent.
    """

    def __init__(self, calls: LogCalls, filter: str, start: Start | None, end: Start | None, at_least: int) -> None:
        self.scanned = 0
        self._calls = calls
        self._filter = filter
        self._start = start
        self._end = end
        self._at_least = at_least

    async def __aiter__(self) -> AsyncIterator[ReceivedEvent]:
        async for batch in self.batches():
            for event in batch:
                yield event

    async def batches(self) -> AsyncIterator[list[ReceivedEvent]]:
        """Lists of events, never an empty one."""
        async for read in self._reads(encoded=False):
            if len(read.events):
                yield read.events.make()

    async def encoded(self) -> AsyncIterator[requests.EncodedEvents]:
        """The same events as their publishers encoded them (`holdfast.model.event`), with their positions; for who
        has many to decode in a way of his own."""
        async for read in self._reads(encoded=True):
            if read.events:
                yield read

    async def _reads(self, encoded: bool) -> AsyncIterator[Any]:
        """The answers of the broker, one after the other. While one is looked at, the next is on its way."""
        calls = self._calls
        bounds = await calls.bounds(at_least=self._at_least)
        start = bounds.tail if self._start is None else await calls.number_of(self._start, bounds)
        end = bounds.head if self._end is None else await calls.number_of(self._end, bounds)
        if isinstance(self._end, datetime):
            end -= 1  # the last one before that time
        if end > bounds.head:
            raise PositionAhead(f"the log ends at position {bounds.head}, before {end}")
        coming = asyncio.ensure_future(self._read(start, end, encoded)) if start <= end else None
        try:
            while coming is not None:
                read = await coming
                self.scanned += read.scanned
                start = read.through + 1
                coming = asyncio.ensure_future(self._read(start, end, encoded)) if start <= end else None
                yield read
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)

    async def _read(self, start: int, end: int, encoded: bool) -> Any:
        """At least one position's worth."""
        while True:
            command = requests.ReadEvents(self._filter, start, end, 0, READS_UNDER_WAY_BYTES, encoded)
            read = await self._calls.ask(command, self._filter)
            if read.through >= start:
                return read
            # What was told to be there is not on the disk yet; the answer comes when it is.
            await self._calls.bounds(at_least=start)


class LogCalls:
    """Over a function that asks the client's node, and gives its answer."""

    def __init__(self, ask: Callable[[Any], Awaitable[Any]]) -> None:
        self._ask = ask

    async def ask(self, command: Any, filter: str = "") -> Any:
        """The answer; a refusal is raised."""
        result = await self._ask(command)
        if isinstance(result, requests.RefusedByLog):
            raise refusals.of_log(result, filter)
        return result

    async def bounds(self, since: int = 0, at_least: int = 0) -> requests.Bounds:
        bounds: requests.Bounds = await self.ask(requests.AskBounds(since, at_least))
        return bounds

    async def number_of(self, place: Start, bounds: requests.Bounds | None = None) -> int:
        """The number of a position, or of the first event at a time or later."""
        if isinstance(place, datetime):
            if place.tzinfo is None:
                raise ValueError(f"{place} has no time zone; write datetime(…, tzinfo=UTC)")
            return (await self.bounds(since=max(1, int(place.timestamp() * 10**9)))).found
        if isinstance(place, Position):
            bounds = bounds or await self.bounds()
            if place.log != bounds.log_id:
                problem = f"position {place} is of another log; this broker's is {bounds.log_id[:8]}"
                raise PositionGone(problem, bounds.tail)
            return place.number
        if isinstance(place, bool) or not isinstance(place, int):
            raise TypeError(f"a position is a Position, a number or a datetime, not {place!r}")
        if place < 1:
            raise ValueError(f"positions begin at 1, not at {place}")
        return place

    async def plain_number(self, place: int | Position) -> int:
        """The number of a position; a number as it is."""
        return place if isinstance(place, int) else await self.number_of(place)

    async def start_of(self, start: Start | None) -> int:
        """What a cursor is to begin with."""
        if start is None or start == "new":
            return NEW
        if start == "earliest":
            return EARLIEST
        if isinstance(start, str):
            raise ValueError(f"from_ is 'new', 'earliest', a position or a datetime, not {start!r}")
        return await self.number_of(start)

    # ------------------------------------------------------------------------------------------------------- stages
    async def stage(self, query: str, epoch: int, task: int, events: Iterable[NewEvent]) -> StageReceipt:
        id, incarnation, count, part = secrets.token_hex(12), secrets.randbits(62), 0, 0
        waiting: list[asyncio.Task[Any]] = []
        try:
            for batch in _parts(events):
                part += 1
                command = requests.StagePart(query, epoch, task, id, part, incarnation, count + 1, batch)
                count += len(batch)
                waiting.append(asyncio.ensure_future(self.ask(command)))
                if len(waiting) >= PARTS_UNDER_WAY:
                    await waiting.pop(0)
            for task_waiting in waiting:
                await task_waiting
        finally:
            for task_waiting in waiting:
                if not task_waiting.done():
                    task_waiting.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        return StageReceipt(id, count)

    def open_stage(self, query: str, epoch: int, task: int) -> Stage:
        return Stage(self.ask, query, epoch, task)

    async def commit(self, query: str, epoch: int, stages: Iterable[StageReceipt | str]) -> CommitResult:
        ids = tuple(stage if isinstance(stage, str) else stage.id for stage in stages)
        done: requests.PartsCommitted = await self.ask(requests.CommitParts(query, epoch, ids))
        if not done.first:
            return CommitResult(None, None, done.already)
        log = (await self.bounds()).log_id
        return CommitResult(Position(log, done.first), Position(log, done.last), done.already)


def _parts(events: Iterable[NewEvent]) -> Iterable[list[NewEvent]]:
    """Batches that fit into a message each; one that is empty if there are no events, so that there is a stage."""
    batch: list[NewEvent] = []
    size = 0
    made = False
    for event in events:
        weight = 100 + len(event.topic) + len(event.payload)
        for name, value in event.attributes.items():
            weight += 20 + len(name) + (len(value) if isinstance(value, str) else 0)
        if batch and (len(batch) >= PART_EVENTS or size + weight > PART_CHARACTERS):
            yield batch
            batch, size, made = [], 0, True
        batch.append(event)
        size += weight
    if batch or not made:
        yield batch
