"""Events on their way to the client's node: collected by the turn, held back when too many are unanswered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import islice

from holdfast.client import refusals
from holdfast.client.connection import Connection
from holdfast.client.publications import Publication, from_publication, new_event
from holdfast.errors import HoldfastError, renewed
from holdfast.model.values import Value
from holdfast.protocols.sessions import requests

BATCH_EVENTS = 256
UNANSWERED_MAX = 4_096  # events that may be on their way before a publisher waits


class _Batch:
    """Events that were asked for in one turn, and what came of them. Who waits for one shares a single wake-up with all
    who wait for others of them."""

    __slots__ = ("awaited", "ended", "events", "is_answered", "loop", "problems", "wake_up")

    def __init__(self) -> None:
        self.events: list[requests.NewEvent] = []
        self.awaited: list[int] = []  # the places of those that somebody waits for: of most, nobody does
        self.loop = asyncio.get_running_loop()
        self.wake_up: asyncio.Future[None] | None = None  # done when all are answered; cancelled with any who waits
        self.is_answered = False
        self.problems: dict[int, HoldfastError] = {}  # place → why that event was refused, if somebody waits for it
        self.ended: HoldfastError | None = None  # why nothing is answered

    def renew(self) -> asyncio.Future[None]:
        """What to wait for, if there was nothing yet or that was cancelled."""
        if self.wake_up is None or self.wake_up.cancelled():
            self.wake_up = self.loop.create_future()
        return self.wake_up

    def answer(self) -> None:
        """All are answered, with `problems` or `ended`."""
        self.is_answered = True
        if self.wake_up is not None and not self.wake_up.done():
            self.wake_up.set_result(None)

    def look(self, place: int) -> None:
        """Raises what is wrong with the event of a place."""
        if self.ended is not None:
            raise renewed(self.ended)
        problem = self.problems.pop(place, None)
        if problem is not None:
            raise problem


class Publishing:
    """Publications of one turn of the event loop travel together, and are waited for together."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._batches: dict[int, _Batch] = {}
        self._collecting: dict[bool, _Batch] = {}  # retry → what is published in this turn
        self._flush_due = False
        self._unanswered = 0
        self._posted_problem: HoldfastError | None = None
        self._room: list[asyncio.Future[None]] = []
        self._idle: list[asyncio.Future[None]] = []

    @property
    def unanswered(self) -> int:
        """Events that are on their way."""
        return self._unanswered

    async def publish(
        self, attributes: Mapping[str, Value], topic: str, payload: bytes, lifetime: float | None, retry: bool
    ) -> None:
        """Returns when the event is acknowledged."""
        event = new_event(attributes, topic, payload, lifetime)
        if not self._connection.is_usable:
            self._connection.check_open()
        if self._unanswered >= UNANSWERED_MAX:
            await self.admit()
        batch = self._collecting.get(retry) or self._begin(retry)
        place = len(batch.events)
        batch.events.append(event)
        batch.awaited.append(place)
        self._unanswered += 1
        if place + 1 >= BATCH_EVENTS:
            self._send(retry)
        task = asyncio.current_task(batch.loop)
        cancelled_before = task.cancelling() if task is not None else 0
        while not batch.is_answered:
            try:
                await (batch.wake_up or batch.renew())
            except asyncio.CancelledError:
                # Whoever is cancelled cancels what he waits for, and so wakes the others too: these wait again.
                if task is None or task.cancelling() > cancelled_before:
                    raise
                batch.renew()
        if batch.problems or batch.ended is not None:
            batch.look(place)

    async def post(self, event: requests.NewEvent) -> None:
        """Returns when there is room for the event."""
        self._connection.check_open()
        if self._unanswered >= UNANSWERED_MAX:
            await self.admit()
        self.collect([event], True)

    async def flush(self) -> None:
        """Returns when everything is answered; raises the first problem with what nobody waited for."""
        await self.settled()
        problem, self._posted_problem = self._posted_problem, None
        if problem is not None:
            raise problem

    async def publish_some(self, events: Iterator[Publication]) -> int:
        """Takes in a batch, as far as there is room for it; what comes before an event that is none is published."""
        await self.admit()
        batch: list[requests.NewEvent] = []
        try:
            for event in islice(events, min(BATCH_EVENTS, UNANSWERED_MAX - self._unanswered)):
                if type(event) is tuple:
                    batch.append(requests.NewEvent(event[0], event[1]))
                else:
                    batch.append(from_publication(event))
        finally:
            if batch:
                self.collect(batch, True)
        return len(batch)

    def collect(self, events: list[requests.NewEvent], retry: bool) -> None:
        """Adds events to what leaves after this turn, or now if that is enough for a message."""
        batch = self._collecting.get(retry) or self._begin(retry)
        batch.events += events
        self._unanswered += len(events)
        if len(batch.events) >= BATCH_EVENTS:
            self._send(retry)

    def _begin(self, retry: bool) -> _Batch:
        """A new batch, which leaves after this turn if not before."""
        batch = self._collecting[retry] = _Batch()
        if not self._flush_due:
            self._flush_due = True
            batch.loop.call_soon(self._send_all)
        return batch

    def _send_all(self) -> None:
        self._flush_due = False
        for retry in list(self._collecting):
            self._send(retry)
        self._connection.hurry()  # this is a turn of its own already; another would only be later

    def _send(self, retry: bool) -> None:
        batch = self._collecting.pop(retry)
        self._batches[self._connection.send(requests.PublishEvents(batch.events, retry))] = batch

    async def admit(self) -> None:
        """Waits until there is room for another event."""
        self._connection.check_open()
        while self._unanswered >= UNANSWERED_MAX:
            room = asyncio.get_running_loop().create_future()
            self._room.append(room)
            await room
            self._connection.check_open()

    async def settled(self) -> None:
        while self._unanswered:
            idle = asyncio.get_running_loop().create_future()
            self._idle.append(idle)
            await idle

    def answer(self, request: int, result: requests.Published) -> bool:
        """Whether the request was one of these."""
        batch = self._batches.pop(request, None)
        if batch is None:
            return False
        self._unanswered -= len(batch.events)
        for place, reason, text in result.refused:
            problem = refusals.of_event(self._connection, batch.events[place], reason, text)
            if place in batch.awaited:
                batch.problems[place] = problem
            else:
                self._posted_problem = self._posted_problem or problem
        batch.answer()
        if self._room and self._unanswered < UNANSWERED_MAX:
            _wake(self._room)
        if self._idle and not self._unanswered:
            _wake(self._idle)
        return True

    def end(self, problem: HoldfastError) -> None:
        """Nothing more is answered."""
        for batch in [*self._batches.values(), *self._collecting.values()]:
            if len(batch.awaited) < len(batch.events):
                self._posted_problem = self._posted_problem or renewed(problem)
            batch.ended = problem
            batch.answer()
        self._batches.clear()
        self._collecting.clear()
        self._unanswered = 0
        _wake(self._room)
        _wake(self._idle)


def _wake(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()
