"""Holdfast, as a user runs it: `holdfast broker` with a site file, and the client library."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from benchmarks.peers import loads
from benchmarks.peers.loads import IN_FLIGHT, SUBSCRIPTIONS_PER_CONNECTION, TOPIC, Attributes, Job, Load
from benchmarks.peers.process import Arrivals, Publishing, now, paced, publish_in_pace
from benchmarks.peers.system import Server, System
from holdfast import __version__, connect
from holdfast.client.bus import Bus
from holdfast.client.subscription import Subscription
from holdfast.runtime import loop


class Holdfast(System):
    name = "holdfast"
    form = "publish_many, and async for over subscriptions (overflow='block', window=16384); no data on disk"
    guarantee = "every event acknowledged, deduplicated, in order, flow-controlled; found by content through an index"
    distributions = (("uvloop", "uvloop"), ("msgspec", "msgspec"))
    kinds = frozenset({"throughput", "latency", "clients", "in-flight", "filters"})
    speed = 15.0

    def versions(self) -> str:
        return f"Holdfast {__version__}, {super().versions()}"

    def servers(self, folder: Path, port: int) -> list[Server]:
        site = folder / "site.toml"
        site.write_text(f'[[broker]]\nid = "b1"\naddress = "127.0.0.1:{port}"\n')
        return [Server([sys.executable, "-m", "holdfast.cli", "broker", str(site), "--log-level", "quiet"])]

    def publish(self, job: Job) -> None:
        loop.run(_publish(job))

    def subscribe(self, job: Job) -> None:
        if job.load.kind == "clients":
            asyncio.run(_subscribe_clients(job))
        else:
            loop.run(_subscribe(job))


def _url(job: Job) -> str:
    return f"holdfast://127.0.0.1:{job.port}"


def _events(load: Load, count: int) -> Iterator[tuple[Attributes, str]]:
    made = {number: loads.attributes_of_size(load.size, number) for number in set(loads.keys_in_turn(load, 10_000))}
    if load.kind != "filters":
        return islice(cycle([(made[0], TOPIC)]), count)
    return ((made[number], TOPIC) for number in loads.keys_in_turn(load, count))


async def _publish(job: Job) -> None:
    async with connect(_url(job)) as bus:
        if job.load.kind == "latency":
            await _publish_paced(bus, job)
        elif job.load.kind == "in-flight":
            await _publish_in_flight(bus, job)
        elif job.load.kind == "clients":
            attributes = loads.attributes_of_size(job.load.size)
            with Publishing():
                await publish_in_pace(job, lambda topic: bus.post(attributes, topic=topic))
                await bus.flush()
        else:
            events = _events(job.load, job.events)
            with Publishing():
                await bus.publish_many(events)


async def _publish_paced(bus: Bus, job: Job) -> None:
    attributes = loads.attributes_of_size(job.load.size - 11)  # a name of one letter, and a time

    async def send() -> None:
        await bus.post({**attributes, "t": now()}, topic=TOPIC)

    with Publishing():
        await paced(job.events, send)
        await bus.flush()


async def _publish_in_flight(bus: Bus, job: Job) -> None:
    """A thousand tasks, each of which waits for the acknowledgement of its event before it publishes the next."""
    events = _events(job.load, job.events)

    async def work() -> None:
        for attributes, topic in events:
            await bus.publish(attributes, topic=topic)

    with Publishing():
        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


async def _subscribe(job: Job) -> None:
    load, arrivals = job.load, Arrivals(job)
    wanted = [f"topic = '{TOPIC}'"] * load.subscriptions
    if load.kind == "filters":
        wanted = [loads.filter_text(number) for number in range(load.subscriptions)]
    tasks: list[asyncio.Task[None]] = []
    async with contextlib.AsyncExitStack() as open_buses:
        for start in range(0, len(wanted), SUBSCRIPTIONS_PER_CONNECTION):
            bus = await open_buses.enter_async_context(connect(_url(job)))
            made = [
                bus.subscribe(text, overflow="block", window=16384)
                for text in wanted[start : start + SUBSCRIPTIONS_PER_CONNECTION]
            ]
            await asyncio.gather(*(subscription.__aenter__() for subscription in made))
            count = _time_each if load.kind == "latency" else _count_each
            tasks += [asyncio.create_task(count(subscription, arrivals)) for subscription in made]
        arrivals.ready()
        await arrivals.wait()
        arrivals.report()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _subscribe_clients(job: Job) -> None:
    arrivals = Arrivals(job)
    tasks: list[asyncio.Task[None]] = []
    async with contextlib.AsyncExitStack() as open_buses:
        for topic in loads.topics(job.load):
            bus = await open_buses.enter_async_context(connect(_url(job)))
            subscription = await open_buses.enter_async_context(bus.subscribe(f"topic = '{topic}'"))
            tasks.append(asyncio.create_task(_count_paced(subscription, arrivals)))
        arrivals.ready()
        await arrivals.wait()
        arrivals.report()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _count_paced(subscription: Subscription, arrivals: Arrivals) -> None:
    async for _ in subscription:
        arrivals.arrived_paced()


async def _count_each(subscription: Subscription, arrivals: Arrivals) -> None:
    async for _ in subscription:
        arrivals.count += 1
        if arrivals.count == arrivals.expected:
            arrivals.complete()


async def _time_each(subscription: Subscription, arrivals: Arrivals) -> None:
    async for event in subscription:
        sent_at = event.attributes["t"]
        assert isinstance(sent_at, int)
        arrivals.arrived_after(now() - sent_at)
