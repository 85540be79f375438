"""A bus's connection: the client's node under its driver, whether it has a broker, and requests with their answers."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from holdfast.errors import BusClosed, HoldfastError, NotConnected, renewed
from holdfast.protocols.sessions import requests
from holdfast.runtime.runner import NodeRunner

log = logging.getLogger("holdfast")


class State(enum.Enum):
    """What `on_state` is told."""

    CONNECTED = "connected"  # to a broker that still knew us, or for the first time
    FORGOTTEN = "forgotten"  # connected, but the broker had forgotten us: events may be missing
    DISCONNECTED = "disconnected"  # trying to come back
    CLOSED = "closed"


OnState: TypeAlias = Callable[[State, str], None]


class Connection:
    """Of one bus. `reason` is what came of the last attempt that failed, `refusal` the broker's word for it, if it was
    one that refused."""

    def __init__(self, name: str, on_state: OnState | None) -> None:
        self.name = name
        self.state = State.DISCONNECTED
        self.reason = ""
        self.refusal = ""
        self.scheme = ""  # of the broker that was reached first
        self.is_usable = False  # `check_open` has nothing to say
        self._problem: HoldfastError | None = None  # that ended it
        self._on_state = on_state
        self._runner: NodeRunner | None = None
        self._opened: asyncio.Future[None] | None = None
        self._last_request = 0
        self._futures: dict[int, asyncio.Future[Any]] = {}

    # --------------------------------------------------------------------------------------------------------- life
    @property
    def is_open(self) -> bool:
        return self._runner is not None and self.state is not State.CLOSED

    def check_open(self) -> None:
        if self._runner is None:
            raise BusClosed("the bus is not open: use it with 'async with'")
        if self._problem is not None and not isinstance(self._problem, BusClosed):
            raise renewed(self._problem)
        if self.state is State.CLOSED:
            raise BusClosed(f"the bus is closed: {self.reason}" if self.reason else "the bus is closed")

    def check_new(self) -> None:
        if self._runner is not None:
            raise HoldfastError("the bus is open already")

    async def open(self, runner: NodeRunner, url: str, timeout_s: float) -> None:
        """Starts the node; NotConnected if no broker has answered in time, and the node is to be stopped."""
        self.check_new()
        self._runner, self._opened = runner, asyncio.get_running_loop().create_future()
        self.is_usable = True
        runner.start()
        try:
            await asyncio.wait_for(asyncio.shield(self._opened), timeout_s)
        except TimeoutError:
            problem = f"no broker at {url} answered within {timeout_s:g} s"
            raise NotConnected(problem, self.reason, self.refusal) from None
        finally:
            if not self._opened.done():
                self._opened.cancel()  # nobody waits for it any more

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.stop()

    def end(self, problem: HoldfastError) -> None:
        """Nothing more is answered."""
        self.is_usable = False
        self._problem = self._problem or problem
        self._change(State.CLOSED, str(problem))
        for future in (self._opened, *self._futures.values()):
            if future is not None and not future.done():
                future.set_exception(renewed(problem))

    # ----------------------------------------------------------------------------------------------------- requests
    def next_request(self) -> int:
        self._last_request += 1
        return self._last_request

    def send(self, command: Any) -> int:
        """Hands the node a request, whose answer is looked for under the number."""
        request = self.next_request()
        if self._runner is not None:
            self._runner.request(request, command)
        return request

    def mention(self, command: Any) -> None:
        """Hands the node what has no answer."""
        if self._runner is not None and self.state is not State.CLOSED:
            self._runner.request(0, command)

    def hurry(self) -> None:
        """What was sent leaves with this turn."""
        if self._runner is not None:
            self._runner.hurry()

    async def ask(self, command: Any, request: int = 0) -> Any:
        """The node's answer."""
        self.check_open()
        request = request or self.next_request()
        future = self._futures[request] = asyncio.get_running_loop().create_future()
        if self._runner is not None:
            self._runner.request(request, command)
        try:
            return await future
        finally:
            self._futures.pop(request, None)

    async def tell(self, command: Any) -> None:
        """Returns when the broker has heard it. Without a connection that may take for ever, so nobody waits: the
        node knows, and says it when there is one again."""
        if self.state is State.DISCONNECTED and self._runner is not None:
            self.send(command)
        elif self.state is not State.CLOSED:
            await self.ask(command)

    def answer(self, request: int, result: Any) -> None:
        future = self._futures.get(request)
        if future is not None and not future.done():
            future.set_result(result)

    # ------------------------------------------------------------------------------------------ what the node reports
    def report(self, report: Any) -> None:
        """Looks at what is about the connection."""
        match report:
            case requests.Connected():
                first = self._opened is not None and not self._opened.done()
                state = State.CONNECTED if report.resumed or first else State.FORGOTTEN
                self._change(state, f"{report.broker} at {report.address}")
                if self._opened is not None and first:
                    self._opened.set_result(None)
            case requests.Disconnected():
                self.reason, self.refusal = report.reason, ""
                self._change(State.DISCONNECTED, report.reason)
            case requests.SchemeFound():
                self.scheme = report.scheme
            case requests.SessionLost():
                self.reason = report.problem
            case requests.NotReached():
                self._not_reached(f"{report.address}: {report.reason}", report.refusal)

    def _not_reached(self, reason: str, refusal: str) -> None:
        """An attempt came to nothing. Attempts go on, and say the same again and again: what is new is told, once."""
        if reason != self.reason:
            self.reason, self.refusal = reason, refusal
            if refusal:
                self._change(State.DISCONNECTED, reason)  # someone may have to do something about it
            else:
                log.info("%s: not connected (%s)", self.name, reason)

    def _change(self, state: State, detail: str) -> None:
        if self.state is State.CLOSED:
            return  # for good: the node may still lose the link over which it says goodbye
        self.state = state
        log.info("%s: %s (%s)", self.name, state.value, detail)
        if self._on_state is not None:
            # In a turn of its own: what a caller's function raises is for the event loop's handler, not for the bus.
            asyncio.get_running_loop().call_soon(self._on_state, state, detail)
