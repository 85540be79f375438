"""Publishers and subscribers at several brokers of a network, and the events that each of them saw."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any

import holdfast
from experiments.broker_network import BrokerNetwork
from experiments.processes import LOOK_EVERY_S

TOPIC = "load"
PAUSE_S = 0.004  # between two events of a publisher


class Subscriber:
    """`got` are the numbers that came of each publisher, in the order in which they came; zeros, by which it is found
    that it is reached, do not count."""

    def __init__(self, home: str, subscription: holdfast.Subscription) -> None:
        self.home = home
        self.got: dict[str, list[int]] = {}
        self.reached: set[str] = set()
        self._subscription = subscription

    async def follow(self) -> None:
        async for event in self._subscription:
            publisher, number = str(event.attributes["by"]), int(event.attributes["n"])
            self.reached.add(publisher)
            if number:
                self.got.setdefault(publisher, []).append(number)


class NetworkLoad:
    """Used with `async with`, it publishes from then on, and follows; each publisher has its home's name."""

    def __init__(self, network: BrokerNetwork, publishers: Sequence[str], subscribers: Sequence[str]) -> None:
        self._network = network
        self._publishers = tuple(publishers)
        self._homes = tuple(subscribers)
        self._stack = AsyncExitStack()
        self._may_publish = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.published = dict.fromkeys(publishers, 0)
        self.subscribers: list[Subscriber] = []

    async def __aenter__(self) -> NetworkLoad:
        for home in self._homes:
            await self.subscribe(home)
        for home in self._publishers:
            bus = await self._stack.enter_async_context(holdfast.connect(self._network.url(home)))
            self._go(self._publish(home, bus))
        await self._until(self._all_are_reached)
        self.go_on()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()
        for error in ended:
            if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
                raise error

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.ensure_future(work))

    async def subscribe(self, home: str) -> Subscriber:
        """One more subscriber, from now on."""
        bus = await self._stack.enter_async_context(holdfast.connect(self._network.url(home)))
        subscription = await self._stack.enter_async_context(bus.subscribe(f"topic = '{TOPIC}'"))
        subscriber = Subscriber(home, subscription)
        self.subscribers.append(subscriber)
        self._go(subscriber.follow())
        return subscriber

    def go_on(self) -> None:
        self._may_publish.set()

    def stop(self) -> None:
        """Nothing is published from now on, until it goes on."""
        self._may_publish.clear()

    async def pause(self) -> None:
        """Nothing is published from now on; returns when the last of each publisher has come everywhere."""
        self.stop()
        await asyncio.sleep(2 * PAUSE_S)
        await self._until(self._all_is_there)

    async def until_complete(self) -> None:
        """Nothing is published from now on; returns when everything has come everywhere."""
        self.stop()
        await asyncio.sleep(2 * PAUSE_S)
        await self._until(
            lambda: all(
                len(set(each.got.get(home, ()))) >= count
                for each in self.subscribers
                for home, count in self.published.items()
            )
        )

    async def more(self, events: int) -> None:
        """Returns when each publisher has published so many more."""
        wanted = {home: count + events for home, count in self.published.items()}
        await self._until(lambda: all(self.published[home] >= count for home, count in wanted.items()))

    async def _publish(self, home: str, bus: holdfast.Bus) -> None:
        while not self._all_are_reached():
            await bus.publish({"n": 0, "by": home}, topic=TOPIC)
            await asyncio.sleep(LOOK_EVERY_S)
        while True:
            await self._may_publish.wait()
            await bus.publish({"n": self.published[home] + 1, "by": home}, topic=TOPIC)
            self.published[home] += 1
            await asyncio.sleep(PAUSE_S)

    def _all_are_reached(self) -> bool:
        return all(subscriber.reached >= set(self._publishers) for subscriber in self.subscribers)

    def _all_is_there(self) -> bool:
        return all(
            subscriber.got.get(home, [0])[-1] >= count
            for subscriber in self.subscribers
            for home, count in self.published.items()
        )

    async def _until(self, holds: Callable[[], bool], within_s: float = 60.0) -> None:
        deadline = asyncio.get_running_loop().time() + within_s
        while not holds():
            for task in self._tasks:
                if task.done():
                    task.result()
            if asyncio.get_running_loop().time() > deadline:
                last = {each.home: {by: got[-1] for by, got in each.got.items()} for each in self.subscribers}
                raise RuntimeError(f"not within {within_s:g} s: published {self.published}, the last that came: {last}")
            await asyncio.sleep(LOOK_EVERY_S)
