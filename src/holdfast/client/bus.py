"""`holdfast.connect`: publish and subscribe, from asyncio.

A thin driver: everything that must hold over broken links is in the client's node. Here is what users call; beside it
are the connection to that node, publications, subscriptions, calls of the log, and what refusals become.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterable, Coroutine, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from msgspec.structs import replace

from holdfast.broker.any_client import AnyClient, spoken_in
from holdfast.broker.registry import SCHEMES
from holdfast.client.advertisement import Advertisement
from holdfast.client.asking import ask_application
from holdfast.client.connection import Connection, OnState, State
from holdfast.client.listening import Listening
from holdfast.client.log_calls import CommitResult, LogCalls, LogRange, Start
from holdfast.client.named import NamedSubscription
from holdfast.client.publications import Publication, from_publication, new_event
from holdfast.client.publishing import Publishing
from holdfast.client.stages import Stage, StageReceipt
from holdfast.client.subscription import Subscription
from holdfast.client.subscriptions import Subscriptions
from holdfast.client.url import addresses_of
from holdfast.errors import BusClosed, HoldfastError, SchemeChanged, Superseded
from holdfast.kernel.links import Role
from holdfast.kernel.storage import StoredStreams
from holdfast.model import Filter
from holdfast.model.position import Position
from holdfast.model.received import ReceivedEvents
from holdfast.model.values import Value
from holdfast.protocols.client_catalogue import CLIENT_CATALOGUE
from holdfast.protocols.cursors.requests import CursorForgotten, ForgetCursor
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.messages import Overflow
from holdfast.runtime.runner import NodeRunner
from holdfast.wire.handshake import check_name

if TYPE_CHECKING:
    from random import Random

log = logging.getLogger("holdfast")


class Bus:
    """A connection to a site. Made by `connect`; use it with `async with`."""

    def __init__(
        self,
        url: str,
        name: str = "",
        on_state: OnState | None = None,
        timeout_s: float = 10.0,
        allow_direct: bool = True,
        listen: str = "",
    ) -> None:
        self.name = name or f"anonymous-{secrets.token_hex(8)}"
        check_name(self.name)
        self._addresses = addresses_of(url)
        self._url = url
        self._timeout_s = timeout_s
        self._allow_direct = allow_direct
        self._listening = Listening(self.name, listen)
        self._connection = Connection(self.name, on_state)
        self._publishing = Publishing(self._connection)
        self._log = LogCalls(self._connection.ask)
        self._subscriptions = Subscriptions(self._connection, self._log)

    # --------------------------------------------------------------------------------------------------------- life
    async def __aenter__(self) -> Bus:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connects; NotConnected if no broker has answered in time, ListenFailed if the bus can't listen where it is
        to."""
        self._connection.check_new()
        runner = NodeRunner(self.name, Role.CLIENT, self._make_node, CLIENT_CATALOGUE, self, spoken_in=spoken_in)
        try:
            await self._listening.take(runner)
            await self._connection.open(runner, self._url, self._timeout_s)
        except BaseException as error:
            await runner.stop()
            self._end(error if isinstance(error, HoldfastError) else BusClosed("the bus was not opened"))
            raise
        try:
            await self._listening.open(runner, SCHEMES.client(self.scheme))
        except BaseException:
            await self.close()
            raise

    def _make_node(self, rng: Random, streams: StoredStreams) -> AnyClient:
        return AnyClient(replace(self._settings(), listening=self.listening), rng, streams)

    @property
    def state(self) -> State:
        """Whether there is a connection: what `on_state` was told last."""
        return self._connection.state

    @property
    def reason(self) -> str:
        """Why there is no connection, or was none: what came of the last attempt that failed."""
        return self._connection.reason

    @property
    def scheme(self) -> str:
        """How the network works that the bus is connected to, as its site file names it: "tree", "paxos", …"""
        return self._connection.scheme

    @property
    def listening(self) -> str:
        """Where others find this bus, if it listens."""
        return self._listening.address

    def _settings(self) -> ClientSettings:
        """What the client's node is given; experiments in which days are seconds give it other times."""
        return ClientSettings(self.name, self._addresses, allow_direct=self._allow_direct)

    async def close(self) -> None:
        """Waits for what was published, says goodbye, and closes. What comes after that raises BusClosed."""
        try:
            if self.state not in {State.DISCONNECTED, State.CLOSED}:
                await self._publishing.settled()
                await asyncio.wait_for(self._connection.ask(requests.Close()), self._timeout_s)
        except (TimeoutError, HoldfastError):
            pass
        await self._connection.stop()
        if self._connection.is_open:
            self._end(BusClosed("the bus was closed"))

    # --------------------------------------------------------------------------------------------------- publishing
    def publish(
        self,
        attributes: Mapping[str, Value],
        *,
        topic: str = "",
        payload: bytes = b"",
        lifetime: float | None = None,
        retry: bool = True,
    ) -> Coroutine[Any, Any, None]:
        """Publishes an event, and returns when it is acknowledged.

        `lifetime` is in seconds. With `retry=False` an event that a lost link swallows is not sent again: it raises
        OutcomeUnknown, or NotConnected if there was no link to begin with.
        """
        return self._publishing.publish(attributes, topic, payload, lifetime, retry)

    async def post(
        self,
        attributes: Mapping[str, Value],
        *,
        topic: str = "",
        payload: bytes = b"",
        lifetime: float | None = None,
    ) -> None:
        """Publishes an event, and returns when there is room for it on the way. `flush` waits for the rest."""
        await self._publishing.post(new_event(attributes, topic, payload, lifetime))

    async def flush(self) -> None:
        """Returns when everything posted so far is acknowledged; raises the first problem with any of it."""
        await self._publishing.flush()

    @property
    def unanswered(self) -> int:
        """Events that are published and not acknowledged yet."""
        return self._publishing.unanswered

    async def publish_many(self, events: Iterable[Publication] | AsyncIterable[Publication]) -> int:
        """Publishes events as fast as they are taken in, and returns their number when all are acknowledged."""
        count = 0
        if isinstance(events, AsyncIterable):
            async for event in events:
                await self._publishing.post(from_publication(event))
                count += 1
        else:
            iterator = iter(events)
            while taken := await self._publishing.publish_some(iterator):
                count += taken
                await asyncio.sleep(0)
        await self.flush()
        return count

    # -------------------------------------------------------------------------------------------------- subscribing
    @overload
    def subscribe(self, filter: str = "", *, overflow: str = "disconnect", window: int = 1024) -> Subscription: ...

    @overload
    def subscribe(
        self,
        filter: str = "",
        *,
        name: str,
        from_: Start | None = None,
        window: int = 1024,
        auto_ack: bool = True,
    ) -> NamedSubscription: ...

    def subscribe(
        self,
        filter: str = "",
        *,
        overflow: str = "disconnect",
        window: int = 1024,
        name: str | None = None,
        from_: Start | None = None,
        auto_ack: bool = True,
    ) -> Subscription | NamedSubscription:
        """A subscription, to be entered with `async with`. `window` events may wait here; docs explain `overflow`.

        With a `name` the broker keeps what is not acknowledged, also while nobody is there. `from_` says where a new
        name begins: "new" (the default), "earliest", a position, or a datetime; given for a name that exists, it
        moves the name there.
        """
        if not 1 <= window <= 65_536:
            raise ValueError(f"window is 1 to 65536, not {window}")
        _check_filter(filter)
        if name is not None:
            if not 0 < len(name.encode()) <= 128:
                raise ValueError("a subscription's name has 1 to 128 bytes")
            return NamedSubscription(self._subscriptions, filter, name, from_, window, auto_ack)
        if from_ is not None:
            raise ValueError("from_ is for named subscriptions: say name=…, or use bus.read")
        try:
            Overflow(overflow)
        except ValueError:
            allowed = ", ".join(member.value for member in Overflow)
            raise ValueError(f"overflow is one of {allowed}, not {overflow!r}") from None
        return Subscription(self._subscriptions, filter, overflow, window)

    # ---------------------------------------------------------------------------------------------------------- log
    async def head(self, *, at_least: int | Position = 0) -> Position:
        """The position of the last event in the broker's log (number 0: there is none). Never goes backwards.

        With `at_least` it waits until the log has reached that position.
        """
        bounds = await self._log.bounds(at_least=await self._log.plain_number(at_least))
        return Position(bounds.log_id, bounds.head)

    async def tail(self) -> Position:
        """The first position that can be read; one more than the head if there is none."""
        return (await self.bounds())[0]

    async def bounds(self) -> tuple[Position, Position]:
        """Tail and head, of one moment."""
        bounds = await self._log.bounds()
        return Position(bounds.log_id, bounds.tail), Position(bounds.log_id, bounds.head)

    async def position_at(self, time: datetime) -> Position:
        """Of the first event that was accepted then or later; one more than the head if there is none yet."""
        log_id = (await self._log.bounds()).log_id
        return Position(log_id, await self._log.number_of(time))

    def read(
        self,
        filter: str = "",
        start: Start | None = None,
        end: Start | None = None,
        *,
        at_least: int = 0,
    ) -> LogRange:
        """The events from `start` to `end`, both included, that match; without subscribing.

        Without `start`, from the first one that is there; without `end`, to the last one that is there now. Reading a
        range twice gives the same events; PositionGone if a part of it is not kept any more. `at_least` waits until
        the log has reached that position.
        """
        _check_filter(filter)
        return LogRange(self._log, filter, start, end, at_least)

    async def forget(self, name: str) -> bool:
        """Gives a named subscription up for good. Whether there was one."""
        forgotten: CursorForgotten = await self._log.ask(ForgetCursor(name))
        return forgotten.existed

    async def stage(self, query: str, epoch: int, task: int, events: Iterable[Publication]) -> StageReceipt:
        """Hands events to the broker that nobody sees before they are committed. What is not committed expires."""
        return await self._log.stage(query, epoch, task, map(from_publication, events))

    def open_stage(self, query: str, epoch: int, task: int) -> Stage:
        """A stage that grows part by part, of events that its caller encodes: for those who have very many."""
        self._connection.check_open()
        return self._log.open_stage(query, epoch, task)

    async def commit(self, query: str, epoch: int, stages: Iterable[StageReceipt | str]) -> CommitResult:
        """Publishes staged events all at once, at positions without gaps, and once: a repetition changes nothing.

        Epochs of a query go up; one that is committed, and all before it, count as done.
        """
        return await self._log.commit(query, epoch, stages)

    # -------------------------------------------------------------------------------------------------- application
    async def ask(self, request: bytes, timeout_s: float | None = None) -> bytes:
        """The answer of the application that the broker hosts. It is executed once, whatever happens to links and
        leaders; if it takes longer than `timeout_s`, TimeoutError, and it may be executed all the same.

        NoApplication if there is none, ApplicationFailed if it raised something, LimitReached if the request is too
        large, OutcomeUnknown if the broker forgot this client meanwhile.
        """
        return await ask_application(self._connection.ask, request, timeout_s)

    # -------------------------------------------------------------------------------------------------- advertising
    def advertise(self, filter: str) -> Advertisement:
        """Says what this client will publish: `await` it, or use it with `async with`.

        From then on an event that matches none of the client's advertisements raises NotAdvertised. A client that has
        none may publish anything.
        """
        _check_filter(filter)
        return Advertisement(self._connection, filter)

    # --------------------------------------------------------------------------------------- called by the runner
    def on_deliver(self, subscription: int, events: ReceivedEvents) -> None:
        self._subscriptions.deliver(subscription, events)

    def on_complete(self, request: int, result: Any) -> None:
        if request == requests.UNSOLICITED:
            self._report(result)
        elif not self._publishing.answer(request, result):
            self._subscriptions.answer(request, result)
            self._connection.answer(request, result)

    def _report(self, report: Any) -> None:
        self._connection.report(report)
        self._subscriptions.report(report)
        match report:
            case requests.SessionLost():
                self._end(Superseded(report.problem))
            case requests.SchemeChanged():
                self._end(SchemeChanged(report.address, report.scheme, report.expected))
            case requests.AdvertisementLost():
                log.warning("%s: an advertisement is not known any more: %s", self.name, report.problem)

    def _end(self, problem: HoldfastError) -> None:
        self._connection.end(problem)
        self._publishing.end(problem)
        self._subscriptions.end_all(problem)


def _check_filter(text: str) -> None:
    """What is none is refused here: a broker closes the link for a text that is far too long."""
    for hint in Filter(text).hints:
        log.warning("filter %r, %s", text, hint)


def connect(
    url: str,
    *,
    name: str = "",
    on_state: OnState | None = None,
    timeout_s: float = 10.0,
    allow_direct: bool = True,
    listen: str = "",
) -> Bus:
    """A bus for a site: `async with holdfast.connect("holdfast://127.0.0.1:7411") as bus`.

    `name` is who you are to the broker, if you want to be recognised; only one client has a name at a time. `on_state`
    hears of lost and regained connections. `timeout_s` is how long the first connection may take. `allow_direct`: what
    is published may go to all replicas of a group at once, where the group takes that. `listen` is an address of this
    machine where others may come to this bus, for networks whose clients take links; `bus.listening` tells the port.
    """
    return Bus(url, name, on_state, timeout_s, allow_direct, listen)
