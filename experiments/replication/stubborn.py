"""A client that stays with the broker it has, however silent that is, and repeats nothing.

It is for the leader that was deposed without knowing it: whatever that one tells its clients has to be true.
"""

from __future__ import annotations

import asyncio
from typing import Any

from experiments.replication.load import Sent
from holdfast.kernel.links import Role
from holdfast.kernel.time import SECOND
from holdfast.protocols.client_catalogue import CLIENT_CATALOGUE
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.runtime.runner import NodeRunner
from holdfast.schemes.paxos.client import make_client

STAYS = 120 * SECOND
CLOSE_WITHIN_S = 5.0


class StubbornClient:
    """`claimed` is what was acknowledged, `unknown` counts what was not: that may have been accepted or not."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.claimed: list[Sent] = []
        self.unknown = 0
        self._number = 0
        self._open = self._answered = asyncio.get_running_loop().create_future()
        settings = ClientSettings(
            name,
            (address,),
            ping_every_with_choice=STAYS,
            silent_after_with_choice=STAYS,
            silent_after=STAYS,
        )
        self._runner = NodeRunner(
            name, Role.CLIENT, lambda rng, streams: make_client(settings, rng, streams), CLIENT_CATALOGUE, self
        )
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        self._runner.start()
        await self._open

    def publish(self) -> None:
        """One more event; nobody waits for the answer."""
        self._number += 1
        event = requests.NewEvent({"publisher": self.name, "number": self._number})
        self._runner.request(self._number, requests.PublishEvents([event], retry=False))

    async def answered(self, within_s: float = 30.0) -> None:
        """Returns when every event is acknowledged or known to be unknown."""
        async with asyncio.timeout(within_s):
            while len(self.claimed) + self.unknown < self._number:
                self._answered = asyncio.get_running_loop().create_future()
                await self._answered

    async def close(self) -> None:
        self._runner.request(self._number + 1, requests.Close())
        await asyncio.wait({self._closed}, timeout=CLOSE_WITHIN_S)
        await self._runner.stop()

    # --------------------------------------------------------------------------------------- called by the runner
    def on_deliver(self, subscription: int, events: list[Any]) -> None:
        """It subscribes to nothing."""

    def on_complete(self, request: int, result: Any) -> None:
        if isinstance(result, requests.Connected) and not self._open.done():
            self._open.set_result(None)
        elif isinstance(result, requests.Closed) and not self._closed.done():
            self._closed.set_result(None)
        elif isinstance(result, requests.Published):
            if result.refused:
                self.unknown += 1
            else:
                self.claimed.append((self.name, request))
            if not self._answered.done():
                self._answered.set_result(None)
