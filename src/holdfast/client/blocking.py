"""`holdfast.blocking.connect`: the same bus for scripts and notebooks, without asyncio.

The bus lives in a thread with an event loop of its own. Every call here waits for its counterpart there; calls may come
from several threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

from holdfast.client.advertisement import Advertisement
from holdfast.client.bus import Bus
from holdfast.client.connection import OnState
from holdfast.client.log_calls import CommitResult, Start
from holdfast.client.named import NamedSubscription
from holdfast.client.publications import Publication
from holdfast.client.stages import BlockingStage, StageReceipt
from holdfast.client.subscription import Subscription
from holdfast.errors import BusClosed
from holdfast.model.position import Position
from holdfast.model.received import ReceivedEvent
from holdfast.model.values import Value
from holdfast.protocols.cursors.requests import EncodedEvents

_T = TypeVar("_T")
_Subscribed = TypeVar("_Subscribed", bound=Subscription | NamedSubscription)


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="holdfast", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        if not self._thread.is_alive():
            work.close()
            raise BusClosed("the bus is closed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, _T], timeout_s: float | None = None) -> _T:
        future = self.start(work)
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError:
            if timeout_s is None:
                raise  # what was waited for has a time limit of its own
            future.cancel()
            raise TimeoutError(f"nothing came within {timeout_s} s") from None
        except KeyboardInterrupt:
            future.cancel()
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Closing:
    """What `with` closes."""

    def close(self) -> None:
        raise NotImplementedError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BlockingBus(_Closing):
    """A connection to a site. Made by `connect`; use it with `with`."""

    def __init__(
        self,
        url: str,
        name: str = "",
        on_state: OnState | None = None,
        timeout_s: float = 10.0,
        allow_direct: bool = True,
        listen: str = "",
    ) -> None:
        self._bus = Bus(url, name, on_state, timeout_s, allow_direct, listen)
        self._loop: _Loop | None = None

    @property
    def name(self) -> str:
        return self._bus.name

    @property
    def scheme(self) -> str:
        """How the network works that the bus is connected to, as its site file names it: "tree", "paxos", …"""
        return self._bus.scheme

    @property
    def listening(self) -> str:
        """Where others find this bus, if it listens."""
        return self._bus.listening

    def __enter__(self) -> BlockingBus:
        self._loop = _Loop()
        try:
            self._loop.run(self._bus.open())
        except BaseException:
            self._loop.close()
            self._loop = None
            raise
        return self

    def _run(self, work: Coroutine[Any, Any, _T], timeout_s: float | None = None) -> _T:
        if self._loop is None:
            work.close()
            raise BusClosed("the bus is not open: use it with 'with'")
        return self._loop.run(work, timeout_s)

    def close(self) -> None:
        """Waits for what was published, says goodbye, and closes."""
        if self._loop is not None:
            self._loop.run(self._bus.close())
            self._loop.close()
            self._loop = None

    def publish(
        self,
        attributes: Mapping[str, Value],
        *,
        topic: str = "",
        payload: bytes = b"",
        lifetime: float | None = None,
        retry: bool = True,
    ) -> None:
        """Publishes an event, and returns when it is acknowledged."""
        self._run(self._bus.publish(attributes, topic=topic, payload=payload, lifetime=lifetime, retry=retry))

    def publish_many(self, events: Iterable[Publication]) -> int:
        """Publishes events as fast as they are taken in, and returns their number when all are acknowledged."""
        return self._run(self._bus.publish_many(events))

    def post(
        self,
        attributes: Mapping[str, Value],
        *,
        topic: str = "",
        payload: bytes = b"",
        lifetime: float | None = None,
    ) -> None:
        """Publishes an event, and returns when there is room for it on the way. `flush` waits for the rest."""
        self._run(self._bus.post(attributes, topic=topic, payload=payload, lifetime=lifetime))

    def flush(self) -> None:
        """Returns when everything posted so far is acknowledged; raises the first problem with any of it."""
        self._run(self._bus.flush())

    def ask(self, request: bytes, timeout_s: float | None = None) -> bytes:
        """The answer of the application that the broker hosts, as `Bus.ask` gives it."""
        return self._run(self._bus.ask(request, timeout_s))

    def advertise(self, filter: str) -> BlockingAdvertisement:
        """Says what this client will publish, and returns when the broker knows."""
        advertisement = self._bus.advertise(filter)
        self._run(advertisement._make())
        return BlockingAdvertisement(self, advertisement)

    @overload
    def subscribe(
        self, filter: str = "", *, overflow: str = "disconnect", window: int = 1024
    ) -> BlockingSubscription: ...

    @overload
    def subscribe(
        self,
        filter: str = "",
        *,
        name: str,
        from_: Start | None = None,
        window: int = 1024,
        auto_ack: bool = True,
    ) -> BlockingNamedSubscription: ...

    def subscribe(
        self,
        filter: str = "",
        *,
        overflow: str = "disconnect",
        window: int = 1024,
        name: str | None = None,
        from_: Start | None = None,
        auto_ack: bool = True,
    ) -> BlockingSubscription | BlockingNamedSubscription:
        """A subscription, to be entered with `with`, as `Bus.subscribe` explains."""
        # Any, since the overloads of `Bus.subscribe` take the options of one kind or of the other.
        options: dict[str, Any] = {"overflow": overflow, "name": name, "from_": from_, "auto_ack": auto_ack}
        made = self._bus.subscribe(filter, window=window, **options)
        if isinstance(made, NamedSubscription):
            return BlockingNamedSubscription(self, made)
        return BlockingSubscription(self, made)

    # ---------------------------------------------------------------------------------------------------------- log
    def head(self, *, at_least: int | Position = 0) -> Position:
        """The position of the last event in the broker's log (number 0: there is none).

        With `at_least` it waits until the log has reached that position.
        """
        return self._run(self._bus.head(at_least=at_least))

    def tail(self) -> Position:
        """The first position that can be read."""
        return self._run(self._bus.tail())

    def bounds(self) -> tuple[Position, Position]:
        """Tail and head, of one moment."""
        return self._run(self._bus.bounds())

    def position_at(self, time: datetime) -> Position:
        """Of the first event that was accepted then or later."""
        return self._run(self._bus.position_at(time))

    def head_later(self, at_least: int) -> concurrent.futures.Future[Position]:
        """The head, when the log has come that far: for who has something else to do meanwhile."""
        if self._loop is None:
            raise BusClosed("the bus is not open: use it with 'with'")
        return self._loop.start(self._bus.head(at_least=at_least))

    def read(
        self, filter: str = "", start: Start | None = None, end: Start | None = None, *, at_least: int = 0
    ) -> Iterator[ReceivedEvent]:
        """The events from `start` to `end`, both included, that match; without subscribing."""
        for batch in self.read_batches(filter, start, end, at_least=at_least):
            yield from batch

    def read_batches(
        self, filter: str = "", start: Start | None = None, end: Start | None = None, *, at_least: int = 0
    ) -> Iterator[list[ReceivedEvent]]:
        """The same, in lists, never an empty one."""
        batches = self._bus.read(filter, start, end, at_least=at_least).batches()
        while batch := self._run(_next_or_nothing(batches)):
            yield batch

    def read_encoded(
        self, filter: str = "", start: Start | None = None, end: Start | None = None, *, at_least: int = 0
    ) -> Iterator[EncodedEvents]:
        """The same, as `LogRange.encoded` gives them."""
        batches = self._bus.read(filter, start, end, at_least=at_least).encoded()
        while (batch := self._run(_next_or_none(batches))) is not None:
            yield batch

    def forget(self, name: str) -> bool:
        """Gives a named subscription up for good. Whether there was one."""
        return self._run(self._bus.forget(name))

    def stage(self, query: str, epoch: int, task: int, events: Iterable[Publication]) -> StageReceipt:
        """Hands events to the broker that nobody sees before they are committed."""
        return self._run(self._bus.stage(query, epoch, task, events))

    def open_stage(self, query: str, epoch: int, task: int, timeout_s: float | None = None) -> BlockingStage:
        """A stage that grows part by part, as `Bus.open_stage` gives it; TimeoutError if a call takes longer."""
        return BlockingStage(self, self._bus.open_stage(query, epoch, task), timeout_s)

    def commit(
        self, query: str, epoch: int, stages: Iterable[StageReceipt | str], timeout_s: float | None = None
    ) -> CommitResult:
        """Publishes staged events all at once, and once; TimeoutError if it takes longer: it may be done all the
        same."""
        return self._run(self._bus.commit(query, epoch, stages), timeout_s)


async def _next_or_nothing(batches: AsyncIterator[list[ReceivedEvent]]) -> list[ReceivedEvent]:
    return await anext(batches, [])


async def _next_or_none(batches: AsyncIterator[EncodedEvents]) -> EncodedEvents | None:
    return await anext(batches, None)


class BlockingAdvertisement(_Closing):
    """Made by `bus.advertise`; use it with `with` to have it taken back, or `close` it."""

    def __init__(self, bus: BlockingBus, advertisement: Advertisement) -> None:
        self._bus = bus
        self._advertisement = advertisement

    @property
    def filter(self) -> str:
        return self._advertisement.filter

    def __enter__(self) -> BlockingAdvertisement:
        return self

    def close(self) -> None:
        """Takes it back."""
        self._bus._run(self._advertisement.close())


class _BlockingFeed(_Closing, Generic[_Subscribed]):
    """What both kinds of subscriptions have."""

    def __init__(self, bus: BlockingBus, subscription: _Subscribed) -> None:
        self._bus = bus
        self._subscription = subscription

    def __enter__(self) -> Self:
        self._bus._run(self._subscription.__aenter__())
        return self

    @property
    def expired(self) -> int:
        """How many events were not handed out, since their deadlines had passed."""
        return self._subscription.expired

    @property
    def gaps(self) -> int:
        """How often nobody knows what was missed: the broker forgot the subscription, or was not in its network for a
        while."""
        return self._subscription.gaps

    def next(self, timeout_s: float | None = None) -> ReceivedEvent:
        """The next event; TimeoutError if none comes in time."""
        return self._bus._run(self._subscription.next(), timeout_s)


class BlockingNamedSubscription(_BlockingFeed[NamedSubscription]):
    """Made by `bus.subscribe` with a name; use it with `with`, and iterate over it with `for`."""

    @property
    def name(self) -> str:
        return self._subscription.name

    def close(self) -> None:
        """Stops reading; the broker keeps the cursor."""
        self._bus._run(self._subscription.close())

    def ack(self, event: ReceivedEvent) -> None:
        """Acknowledges the event and all before it; returns when the broker has that safe."""
        self._bus._run(self._subscription.ack(event))

    def ack_up_to(self, position: Position) -> None:
        """Acknowledges everything up to a position, which has to have come: PositionAhead if it has not."""
        self._bus._run(self._subscription.ack_up_to(position))

    @property
    def acknowledged(self) -> int:
        """Up to where it was acknowledged when it was made."""
        return self._subscription.acknowledged

    def __iter__(self) -> Iterator[ReceivedEvent]:
        # One at a time, or the broker would take those for dealt with that are still waiting here.
        while True:
            try:
                yield self.next()
            except BusClosed:
                return

    def batches(self) -> Iterator[list[ReceivedEvent]]:
        """Lists of events, as they come; asking for the next acknowledges the one before."""
        while batch := self._bus._run(self._subscription.take()):
            yield batch


class BlockingSubscription(_BlockingFeed[Subscription]):
    """Made by `bus.subscribe`; use it with `with`, and iterate over it with `for`."""

    @property
    def missed(self) -> int:
        """How many events were dropped for want of room."""
        return self._subscription.missed

    def close(self) -> None:
        """Ends the subscription."""
        self._bus._run(self._subscription.close())

    def __iter__(self) -> Iterator[ReceivedEvent]:
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[ReceivedEvent]]:
        """Lists of events, as they come; never an empty one."""
        while batch := self._bus._run(self._subscription.take()):
            yield batch


def connect(
    url: str,
    *,
    name: str = "",
    on_state: OnState | None = None,
    timeout_s: float = 10.0,
    allow_direct: bool = True,
    listen: str = "",
) -> BlockingBus:
    """A bus for a site: `with holdfast.blocking.connect("holdfast://127.0.0.1:7411") as bus`."""
    return BlockingBus(url, name, on_state, timeout_s, allow_direct, listen)
