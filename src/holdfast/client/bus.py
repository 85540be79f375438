"""`holdfast.connect`: publish and subscribe, from asyncio.

A thin driver: everything that must hold over broken links is in the client's node. Here are futures, iterators and
exceptions. Publications of one turn of the event loop travel together, and there is no future for each event unless its
caller waits for it.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import secrets
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, TypeAlias, overload

from holdfast.broker.client_assembly import make_client
from holdfast.client.advertisement import Advertisement
from holdfast.client.asking import ask_application
from holdfast.client.log_calls import CommitResult, LogCalls, LogRange, Start, refused
from holdfast.client.named import NamedSubscription
from holdfast.client.publications import Publication, event_problem, from_publication, new_event
from holdfast.client.publishing import Publishing
from holdfast.client.stages import Stage, StageReceipt
from holdfast.client.subscription import Subscription
from holdfast.client.url import addresses_of
from holdfast.errors import (
    BusClosed,
    FilterError,
    HoldfastError,
    LimitReached,
    NotAdvertised,
    NotConnected,
    OutcomeUnknown,
    SubscriptionEnded,
    Superseded,
    renewed,
)
from holdfast.kernel.links import Role
from holdfast.model import Filter
from holdfast.model.position import Position
from holdfast.model.received import ReceivedEvent
from holdfast.model.values import Value
from holdfast.protocols.cursors import requests as log_requests
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.messages import Overflow, Refusal
from holdfast.runtime.runner import NodeRunner
from holdfast.wire.handshake import check_name

log = logging.getLogger("holdfast")


class State(enum.Enum):
    """What `on_state` is told."""

    CONNECTED = "connected"  # to a broker that still knew us, or for the first time
    FORGOTTEN = "forgotten"  # connected, but the broker had forgotten us: events may be missing
    DISCONNECTED = "disconnected"  # trying to come back
    CLOSED = "closed"


OnState: TypeAlias = Callable[[State, str], None]


class Bus:
    """A connection to a site. Made by `connect`; use it with `async with`."""

    def __init__(
        self,
        url: str,
        name: str = "",
        on_state: OnState | None = None,
        timeout_s: float = 10.0,
        allow_direct: bool = True,
    ) -> None:
        self.name = name or f"anonymous-{secrets.token_hex(8)}"
        check_name(self.name)
        self.state = State.DISCONNECTED
        self._addresses = addresses_of(url)
        self._url = url
        self._on_state = on_state
        self._timeout_s = timeout_s
        self._allow_direct = allow_direct
        self._runner: NodeRunner | None = None
        self._last_request = 0
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._publishing = Publishing(self, self._problem)
        self._opened: asyncio.Future[None] | None = None
        self._reason = ""
        self._refusal = ""  # the broker's word for it, if it was one that refused
        # Under their numbers; named ones under theirs with the sign changed.
        self._subscriptions: dict[int, Subscription | NamedSubscription] = {}
        self._making: dict[int, Subscription | NamedSubscription] = {}
        self._log = LogCalls(self._ask)

    # --------------------------------------------------------------------------------------------------------- life
    async def __aenter__(self) -> Bus:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connects; NotConnected if no broker has answered in time."""
        if self._runner is not None:
            raise HoldfastError("the bus is open already")
        settings = self._settings()
        self._opened = asyncio.get_running_loop().create_future()
        self._runner = NodeRunner(
            self.name, Role.CLIENT, lambda rng, streams: make_client(settings, rng, streams), application=self
        )
        self._runner.start()
        try:
            await asyncio.wait_for(asyncio.shield(self._opened), self._timeout_s)
        except TimeoutError:
            await self._runner.stop()
            problem = f"no broker at {self._url} answered within {self._timeout_s:g} s"
            raise NotConnected(problem, self._reason, self._refusal) from None
        except BaseException:
            await self._runner.stop()
            raise

    @property
    def reason(self) -> str:
        """Why there is no connection, or was none: what came of the last attempt that failed."""
        return self._reason

    def _settings(self) -> ClientSettings:
        """What the client's node is given; experiments in which days are seconds give it other times."""
        return ClientSettings(self.name, self._addresses, allow_direct=self._allow_direct)

    async def close(self) -> None:
        """Waits for what was published, says goodbye, and closes. What comes after that raises BusClosed."""
        if self._runner is None or self.state is State.CLOSED:
            return
        try:
            if self.state is not State.DISCONNECTED:
                await self._publishing.settled()
                await asyncio.wait_for(self._ask(requests.Close()), self._timeout_s)
        except (TimeoutError, HoldfastError):
            pass
        await self._runner.stop()
        self._end_everything(BusClosed("the bus was closed"))

    # --------------------------------------------------------------------------------------------------- publishing
    async def publish(
        self,
        attributes: Mapping[str, Value],
        *,
        topic: str = "",
        payload: bytes = b"",
        lifetime: float | None = None,
        retry: bool = True,
    ) -> None:
        """Publishes an event, and returns when it is acknowledged.

        `lifetime` is in seconds. With `retry=False` an event that a lost link swallows is not sent again: it raises
        OutcomeUnknown, or NotConnected if there was no link to begin with.
        """
        await self._publishing.publish(new_event(attributes, topic, payload, lifetime), retry)

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
            return NamedSubscription(self, filter, name, from_, window, auto_ack)
        if from_ is not None:
            raise ValueError("from_ is for named subscriptions: say name=…, or use bus.read")
        try:
            Overflow(overflow)
        except ValueError:
            allowed = ", ".join(member.value for member in Overflow)
            raise ValueError(f"overflow is one of {allowed}, not {overflow!r}") from None
        return Subscription(self, filter, overflow, window)

    async def _make_subscription(self, subscription: Subscription) -> int:
        self._check_open()
        request = self._next_request()
        self._making[request] = subscription
        command = requests.MakeSubscription(
            str(subscription.filter), Overflow(subscription.overflow), subscription.window
        )
        try:
            result = await self._ask(command, request)
        finally:
            self._making.pop(request, None)
        if isinstance(result, requests.SubscriptionMade):
            return result.subscription
        raise _refusal(result, str(subscription.filter))

    async def _end_subscription(self, number: int) -> None:
        self._subscriptions.pop(number, None)
        await self._tell(requests.EndSubscription(number))

    def _consumed(self, number: int, count: int) -> None:
        if self._runner is not None and self.state is not State.CLOSED:
            self._runner.request(0, requests.Consume(number, count))

    # ---------------------------------------------------------------------------------------------------------- log
    async def head(self, *, at_least: int | Position = 0) -> Position:
        """The position of the last event in the broker's log (number 0: there is none). Never goes backwards.

        With `at_least` it waits until the log has reached that position.
        """
        bounds = await self._log.bounds(at_least=await self._number(at_least))
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
        forgotten: log_requests.CursorForgotten = await self._log.ask(log_requests.ForgetCursor(name))
        return forgotten.existed

    async def stage(self, query: str, epoch: int, task: int, events: Iterable[Publication]) -> StageReceipt:
        """Hands events to the broker that nobody sees before they are committed. What is not committed expires."""
        return await self._log.stage(query, epoch, task, map(from_publication, events))

    def open_stage(self, query: str, epoch: int, task: int) -> Stage:
        """A stage that grows part by part, of events that its caller encodes: for those who have very many."""
        self._check_open()
        return self._log.open_stage(query, epoch, task)

    async def commit(self, query: str, epoch: int, stages: Iterable[StageReceipt | str]) -> CommitResult:
        """Publishes staged events all at once, at positions without gaps, and once: a repetition changes nothing.

        Epochs of a query go up; one that is committed, and all before it, count as done.
        """
        return await self._log.commit(query, epoch, stages)

    async def _number(self, position: int | Position) -> int:
        return position if isinstance(position, int) else await self._log.number_of(position)

    async def _make_cursor(self, subscription: NamedSubscription, from_: Start | None) -> tuple[int, int]:
        """The cursor's number, and up to where it is acknowledged."""
        start = await self._log.start_of(from_)
        request = self._next_request()
        self._making[request] = subscription
        command = log_requests.MakeCursor(
            subscription.name, subscription.filter, start, from_ is not None, subscription.window
        )
        try:
            result = await self._ask(command, request)
        finally:
            self._making.pop(request, None)
        if isinstance(result, log_requests.CursorMade):
            return result.cursor, result.acknowledged
        raise refused(result, subscription.filter)

    async def _end_cursor(self, number: int) -> None:
        self._subscriptions.pop(-number, None)
        await self._tell(log_requests.EndCursor(number))

    def _consumed_cursor(self, number: int, count: int) -> None:
        if self._runner is not None and self.state is not State.CLOSED:
            self._runner.request(0, log_requests.ConsumeCursor(number, count))

    def _acknowledge_soon(self, number: int, position: int) -> None:
        if self._runner is not None and self.state is not State.CLOSED:
            self._runner.request(0, log_requests.AcknowledgeUpTo(number, position))

    async def _acknowledge(self, number: int, position: int) -> None:
        await self._log.ask(log_requests.AcknowledgeUpTo(number, position))

    # -------------------------------------------------------------------------------------------------- application
    async def ask(self, request: bytes, timeout_s: float | None = None) -> bytes:
        """The answer of the application that the broker hosts. It is executed once, whatever happens to links and
        leaders; if it takes longer than `timeout_s`, TimeoutError, and it may be executed all the same.

        NoApplication if there is none, ApplicationFailed if it raised something, LimitReached if the request is too
        large, OutcomeUnknown if the broker forgot this client meanwhile.
        """
        return await ask_application(self._ask, request, timeout_s)

    # -------------------------------------------------------------------------------------------------- advertising
    def advertise(self, filter: str) -> Advertisement:
        """Says what this client will publish: `await` it, or use it with `async with`.

        From then on an event that matches none of the client's advertisements raises NotAdvertised. A client that has
        none may publish anything.
        """
        _check_filter(filter)
        return Advertisement(self, filter)

    async def _make_advertisement(self, text: str) -> int:
        result = await self._ask(requests.MakeAdvertisement(text))
        if isinstance(result, requests.AdvertisementMade):
            return result.advertisement
        raise _refusal(result, text)

    async def _end_advertisement(self, number: int) -> None:
        await self._tell(requests.EndAdvertisement(number))

    # ----------------------------------------------------------------------------------------------------- requests
    def _next_request(self) -> int:
        self._last_request += 1
        return self._last_request

    def _check_open(self) -> None:
        if self._runner is None:
            raise BusClosed("the bus is not open: use it with 'async with'")
        if self.state is State.CLOSED:
            raise BusClosed(f"the bus is closed: {self._reason}" if self._reason else "the bus is closed")

    def _send(self, command: requests.PublishEvents) -> int:
        request = self._next_request()
        if self._runner is not None:
            self._runner.request(request, command)
        return request

    def _hurry(self) -> None:
        if self._runner is not None:
            self._runner.hurry()

    async def _ask(self, command: Any, request: int = 0) -> Any:
        self._check_open()
        request = request or self._next_request()
        future = self._futures[request] = asyncio.get_running_loop().create_future()
        if self._runner is not None:
            self._runner.request(request, command)
        try:
            return await future
        finally:
            self._futures.pop(request, None)

    async def _tell(self, command: Any) -> None:
        """Returns when the broker has heard it. Without a connection that may take for ever, so nobody waits: the
        node knows, and says it when there is one again."""
        if self.state is State.DISCONNECTED and self._runner is not None:
            self._runner.request(self._next_request(), command)
        elif self.state is not State.CLOSED:
            await self._ask(command)

    # --------------------------------------------------------------------------------------- called by the runner
    def on_deliver(self, subscription: int, events: list[ReceivedEvent]) -> None:
        found = self._subscriptions.get(subscription)
        if found is not None:
            found._deliver(events)

    def on_complete(self, request: int, result: Any) -> None:
        if request == requests.UNSOLICITED:
            self._report(result)
            return
        if self._publishing.answer(request, result):
            return
        if isinstance(result, requests.SubscriptionMade) and request in self._making:
            # Here and not when the maker goes on: events may come with the same turn.
            self._subscriptions[result.subscription] = self._making[request]
        elif isinstance(result, log_requests.CursorMade) and request in self._making:
            self._subscriptions[-result.cursor] = self._making[request]
        future = self._futures.get(request)
        if future is not None and not future.done():
            future.set_result(result)

    def _problem(self, event: requests.NewEvent, reason: Refusal | None, problem: str) -> HoldfastError:
        if reason is Refusal.EVENT:
            return event_problem(self.name, event, problem)
        if reason is Refusal.NOT_ADVERTISED:
            return NotAdvertised(problem)
        if reason is Refusal.SUPERSEDED:
            return Superseded(problem)
        if problem == requests.NOT_CONNECTED:
            text = "there is no connection, and the event was not to be kept for one"
            return NotConnected(text, self._reason, self._refusal)
        return OutcomeUnknown(problem)

    def _report(self, report: Any) -> None:
        match report:
            case requests.Connected():
                first = self._opened is not None and not self._opened.done()
                known = report.resumed or first
                self._change(State.CONNECTED if known else State.FORGOTTEN, f"{report.broker} at {report.address}")
                if self._opened is not None and not self._opened.done():
                    self._opened.set_result(None)
            case requests.Disconnected():
                self._reason, self._refusal = report.reason, ""
                self._change(State.DISCONNECTED, report.reason)
            case requests.NotReached():
                self._not_reached(report)
            case requests.SessionLost():
                self._reason = report.problem
                self._end_everything(Superseded(report.problem))
            case requests.EventsMissed():
                missed = self._subscriptions.get(report.subscription)
                if isinstance(missed, Subscription):
                    missed.missed += report.count or 0
                    missed.gaps += report.count is None
            case requests.EventsExpired():
                late = self._subscriptions.get(report.subscription)
                if late is not None:
                    late.expired += report.count
            case log_requests.CursorLost():
                gone = self._subscriptions.pop(-report.cursor, None)
                if gone is not None:
                    gone._end(refused(report))
            case requests.AdvertisementLost():
                log.warning("%s: an advertisement is not known any more: %s", self.name, report.problem)
            case requests.SubscriptionLost():
                lost = self._subscriptions.pop(report.subscription, None)
                if lost is not None:
                    lost._end(SubscriptionEnded(f"the broker ended the subscription: {report.reason}", lost.filter))

    def _not_reached(self, report: requests.NotReached) -> None:
        """An attempt came to nothing. Attempts go on, and say the same again and again: what is new is told, once."""
        reason = f"{report.address}: {report.reason}"
        if reason == self._reason:
            return
        self._reason, self._refusal = reason, report.refusal
        if report.refusal:
            self._change(State.DISCONNECTED, reason)  # someone may have to do something about it
        else:
            log.info("%s: not connected (%s)", self.name, reason)

    def _change(self, state: State, detail: str) -> None:
        self.state = state
        log.info("%s: %s (%s)", self.name, state.value, detail)
        if self._on_state is not None:
            # In a turn of its own: what a caller's function raises is for the event loop's handler, not for the bus.
            asyncio.get_running_loop().call_soon(self._on_state, state, detail)

    def _end_everything(self, problem: HoldfastError) -> None:
        self._change(State.CLOSED, str(problem))
        if self._opened is not None and not self._opened.done():
            self._opened.set_exception(renewed(problem))
        for future in self._futures.values():
            if not future.done():
                future.set_exception(renewed(problem))
        self._publishing.end(problem)
        for subscription in self._subscriptions.values():
            subscription._end(problem)


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
) -> Bus:
    """A bus for a site: `async with holdfast.connect("holdfast://127.0.0.1:7411") as bus`.

    `name` is who you are to the broker, if you want to be recognised; only one client has a name at a time. `on_state`
    hears of lost and regained connections. `timeout_s` is how long the first connection may take. `allow_direct`: what
    is published may go to all replicas of a group at once, where the group takes that.
    """
    return Bus(url, name, on_state, timeout_s, allow_direct)


def _refusal(result: requests.SubscriptionRefused | requests.AdvertisementRefused, text: str) -> HoldfastError:
    match result.reason:
        case Refusal.FILTER:
            return FilterError(result.problem, text, result.offset, result.expected)
        case Refusal.LIMIT:
            return LimitReached(result.problem, result.limit, result.allowed)
        case _ if isinstance(result, requests.SubscriptionRefused):
            return SubscriptionEnded(result.problem, text)
        case _:
            return BusClosed(result.problem)
