"""The publishers and subscribers that a site file names, over brokers that come and go."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from math import ceil
from typing import Any

from msgspec.structs import replace

from experiments.broker_network import BrokerNetwork
from holdfast.broker.site import Site
from holdfast.client.bus import Bus
from holdfast.errors import BusClosed, NotConnected, OutcomeUnknown
from holdfast.kernel.time import MILLISECOND
from holdfast.protocols.sessions.conversation import ClientSettings

CLIENT_PAUSE = 100 * MILLISECOND
WARMING_UP = -1  # the number of events that do not count
WITHIN_S = 20.0

Pair = tuple[str, str]  # the topic, which is called as its publisher's home, and the subscriber's home


class Clock:
    """Seconds from the beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def now(self) -> float:
        return time.monotonic() - self._began

    async def until(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds - self.now))


class EagerBus(Bus):
    """A client that is back soon after its broker. Its pauses grow to seconds else: as long as the outages here."""

    def _settings(self) -> ClientSettings:
        return replace(super()._settings(), pause_max=CLIENT_PAUSE)


class Traffic:
    """The publishers and subscribers of a site, each at home at one broker. Used with `async with`: everyone is there
    then, and subscribers get what is published."""

    def __init__(self, site: Site, network: BrokerNetwork) -> None:
        self._site = site
        self._network = network
        self._stack = AsyncExitStack()
        self._publishers: dict[str, Bus] = {}  # by topic
        self._consuming: list[asyncio.Task[None]] = []
        self._reached: set[Pair] = set()
        self._clock = Clock()
        self.sent: dict[str, list[float]] = {one.topic: [] for one in site.quality.publishers}
        self.outcomes: Counter[str] = Counter()
        self.ages: dict[Pair, dict[int, float]] = {(s.topic, s.home): {} for s in site.quality.subscribers}
        self.twice = 0

    async def __aenter__(self) -> Traffic:
        try:
            for publisher in self._site.quality.publishers:
                self._publishers[publisher.topic] = await self._client(publisher.home)
            homes = {home: await self._client(home) for home in dict.fromkeys(home for _, home in self.ages)}
            self._consuming = [asyncio.create_task(self._consume(homes[pair[1]], pair)) for pair in self.ages]
            async with asyncio.timeout(WITHIN_S):
                while len(self._reached) < len(self.ages):
                    for topic in self._publishers:
                        await self._publish(topic, WARMING_UP, retry=True)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Buses first: a subscription whose broker is down can't be ended otherwise."""
        await self._stack.aclose()
        await asyncio.gather(*self._consuming)

    async def _client(self, home: str) -> Bus:
        return await self._stack.enter_async_context(EagerBus(self._network.url(home)))

    async def _publish(self, topic: str, number: int, retry: bool) -> None:
        lifetime = self._site.quality.lifetime_s
        await self._publishers[topic].publish({"n": number}, topic=topic, lifetime=lifetime, retry=retry)

    async def _consume(self, bus: Bus, pair: Pair) -> None:
        topic, _ = pair
        ages = self.ages[pair]
        try:
            async with bus.subscribe(f"topic = '{topic}'") as events:
                async for event in events:
                    number: Any = event.attributes["n"]
                    if number == WARMING_UP:
                        self._reached.add(pair)
                        continue
                    self.twice += number in ages
                    ages.setdefault(number, self._clock.now - self.sent[topic][number])
        except BusClosed:
            return

    async def flow(self, seconds: float, clock: Clock) -> None:
        """Publishes at the rates of the site, whether or not the home broker is there; publishers at different moments,
        so that they do not all meet the same one of a failure."""
        self._clock = clock
        publishers = self._site.quality.publishers
        async with asyncio.TaskGroup() as tasks:
            for place, one in enumerate(publishers):
                tasks.create_task(self._flow_of(one.topic, one.rate, place / len(publishers), seconds, tasks))

    async def _flow_of(self, topic: str, rate: float, phase: float, seconds: float, tasks: asyncio.TaskGroup) -> None:
        for number in range(ceil(seconds * rate)):
            await self._clock.until((number + phase) / rate)
            self.sent[topic].append(self._clock.now)
            # Nobody waits for the answer: the next event does not depend on it.
            tasks.create_task(self._try_once(topic, number))

    async def _try_once(self, topic: str, number: int) -> None:
        try:
            await self._publish(topic, number, retry=False)
            self.outcomes["accepted"] += 1
        except NotConnected:
            self.outcomes["no broker"] += 1
        except OutcomeUnknown:
            self.outcomes["unknown"] += 1

    def on_time(self) -> dict[Pair, int]:
        """How many events each subscriber got within their lifetime."""
        lifetime = self._site.quality.lifetime_s
        return {pair: sum(age <= lifetime for age in ages.values()) for pair, ages in self.ages.items()}
