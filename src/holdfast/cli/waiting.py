"""A bus for a command: it says on standard error that it waits for a broker, and gives up in time."""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast import client
from holdfast.client.connection import OnState
from holdfast.errors import NotConnected

FIRST_WAIT_S = 10.0  # for the first connection, unless the user says how long
SAY_AFTER_S = 1.0  # less is no waiting


def add_timeout_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS",
        help=f"give up when no broker answers for so long (default: {FIRST_WAIT_S:g} at the start, never after that)",
    )  # fmt: skip


@asynccontextmanager
async def bus_at(url: str, timeout_s: float | None, on_state: OnState | None = None) -> AsyncIterator[client.Bus]:
    """An open bus; `on_state` says in its own words when it is away. NotConnected if no broker answers in time: at the
    start, or, with a timeout, later."""
    patience = _Patience(url, timeout_s, on_state or _say_state(url))
    bus = client.connect(url, on_state=patience.on_state, timeout_s=timeout_s or FIRST_WAIT_S)
    waiting = asyncio.get_running_loop().call_later(SAY_AFTER_S, lambda: _say_waiting(url, bus.reason))
    try:
        await bus.open()
    finally:
        waiting.cancel()
    try:
        async with asyncio.timeout(None) as patience.limit:
            yield bus
    except TimeoutError:
        if patience.gave_up:
            raise NotConnected(f"no broker at {url} answered for {timeout_s:g} s", bus.reason) from None
        raise
    finally:
        patience.limit = None
        await bus.close()


class _Patience:
    """Lets the time run while there is no connection."""

    def __init__(self, url: str, timeout_s: float | None, then: OnState) -> None:
        self.limit: asyncio.Timeout | None = None  # of the work that needs the connection
        self.is_away = False
        self._timeout_s = timeout_s
        self._then = then

    @property
    def gave_up(self) -> bool:
        return self.limit is not None and self.limit.expired()

    def on_state(self, state: client.State, detail: str) -> None:
        self._then(state, detail)
        was_away, self.is_away = self.is_away, state is client.State.DISCONNECTED
        if self.limit is None or self._timeout_s is None or self.gave_up or was_away is self.is_away:
            return
        self.limit.reschedule(asyncio.get_running_loop().time() + self._timeout_s if self.is_away else None)


def _say_state(url: str) -> OnState:
    """Only what is not as it should be, and when it is so again."""
    is_away = False

    def on_state(state: client.State, detail: str) -> None:
        nonlocal is_away
        if state is client.State.DISCONNECTED:
            is_away = True
            _say_waiting(url, detail)
        elif state is not client.State.CLOSED and is_away:
            is_away = False
            print(f"connected: {detail}", file=sys.stderr, flush=True)

    return on_state


def _say_waiting(url: str, reason: str) -> None:
    print(f"waiting for a broker at {url}" + (f": {reason}" if reason else ""), file=sys.stderr, flush=True)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds
