"""A program that runs beside each broker that is served, for what a node can't do: start processes, talk with others.

It asks its broker's node, as a client's program asks its own, and goes when the broker goes. What it says is between
the two: nothing of it is known here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias

from holdfast.broker.site import BrokerEntry, Site
from holdfast.runtime.runner import NodeRunner

# Asks the node, and completes with what it answers.
Ask: TypeAlias = Callable[[Any], Awaitable[Any]]
Companion: TypeAlias = Callable[[Site, BrokerEntry, Ask], Coroutine[Any, Any, None]]

log = logging.getLogger("holdfast")


class Asker:
    """Numbers what is asked, and gives each its answer."""

    def __init__(self) -> None:
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._last_request = 0

    async def ask(self, runner: NodeRunner, command: Any) -> Any:
        self._last_request += 1
        request = self._last_request
        future = self._futures[request] = asyncio.get_running_loop().create_future()
        runner.request(request, command)
        try:
            return await future
        finally:
            self._futures.pop(request, None)

    # --------------------------------------------------------------------------------------- called by the runner
    def on_deliver(self, subscription: int, events: Any) -> None:
        """Nothing is delivered to the program beside a broker."""

    def on_complete(self, request: int, result: Any) -> None:
        future = self._futures.pop(request, None)
        if future is not None and not future.done():
            future.set_result(result)


class Companions:
    """Those of the brokers of one process."""

    def __init__(self, companion: Companion | None) -> None:
        self._companion = companion
        self._tasks: list[asyncio.Task[None]] = []

    def asker(self) -> Asker | None:
        """For the runner of one broker; None if nothing runs beside it."""
        return None if self._companion is None else Asker()

    def begin(self, site: Site, entry: BrokerEntry, runner: NodeRunner, asker: Asker | None) -> None:
        if self._companion is None or asker is None:
            return

        async def ask(command: Any) -> Any:
            return await asker.ask(runner, command)

        task = asyncio.get_running_loop().create_task(self._companion(site, entry, ask))
        task.add_done_callback(lambda ended: _tell(entry.id, ended))
        self._tasks.append(task)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _tell(broker: str, ended: asyncio.Task[None]) -> None:
    """The broker goes on without, as it would if the program were slow; but nobody is left to see to what it asks."""
    if not ended.cancelled() and ended.exception() is not None:
        log.critical("%s: the program beside it failed, and is gone", broker, exc_info=ended.exception())
