"""NATS, with nats-py."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

from benchmarks.peers import loads
from benchmarks.peers.loads import IN_FLIGHT, TOPIC, Job
from benchmarks.peers.process import Arrivals, Publishing, now, paced, publish_in_pace
from benchmarks.peers.system import Server, System, first_line, program
from holdfast.runtime import loop

PENDING = 1 << 40  # the client drops nothing


class Nats(System):
    name = "nats"
    form = "publish(), and a subscription with a callback; ten subscriptions of one connection"
    guarantee = "at most once, nothing acknowledged, by subject"
    programs = ("nats-server",)
    kinds = frozenset({"throughput", "latency", "clients"})
    distributions = (("nats", "nats-py"),)
    speed = 3.0

    def versions(self) -> str:
        return f"{first_line(program('nats-server'), '--version')}, {super().versions()}"

    def servers(self, folder: Path, port: int) -> list[Server]:
        config = folder / "nats.conf"
        # JetStream is there for the acknowledged form of publishing only.
        config.write_text(f'listen: "127.0.0.1:{port}"\nmax_pending: 1GB\njetstream {{ store_dir: "{folder}" }}\n')
        return [Server([program("nats-server"), "-c", str(config), "-l", str(folder / "log")])]

    def publish(self, job: Job) -> None:
        loop.run(_publish(job))

    def subscribe(self, job: Job) -> None:
        if job.load.kind == "clients":
            asyncio.run(_subscribe_clients(job))
        else:
            loop.run(_subscribe(job))


async def _connect(job: Job) -> Any:
    nats = importlib.import_module("nats")
    return await nats.connect(f"nats://127.0.0.1:{job.port}")


async def _publish(job: Job) -> None:
    client = await _connect(job)
    match job.load.kind, job.load.form:
        case "latency", _:
            with Publishing():
                await paced(job.events, lambda: client.publish(TOPIC, loads.stamped(now(), job.load.size)))
                await client.flush()
        case "in-flight", "jetstream":
            await _publish_acknowledged(client, job)
        case "clients", _:
            message = loads.message_of_size(job.load.size)
            with Publishing():
                await publish_in_pace(job, lambda topic: client.publish(topic, message))
                await client.flush()
        case _, form:
            message = loads.message_of_size(job.load.size)
            flush_every = IN_FLIGHT if form == "flush" else job.events
            with Publishing():
                for number in range(1, job.events + 1):
                    await client.publish(TOPIC, message)
                    if number % flush_every == 0:
                        await client.flush()
                await client.flush(timeout=60)
    await client.close()


async def _publish_acknowledged(client: Any, job: Job) -> None:
    """JetStream, in memory, a thousand that wait for their acknowledgement: nearest to Holdfast's `publish`."""
    api = importlib.import_module("nats.js.api")
    context = client.jetstream(publish_async_max_pending=IN_FLIGHT)
    await context.add_stream(name="bench", subjects=[TOPIC], storage=api.StorageType.MEMORY, max_msgs=100_000)
    message = loads.message_of_size(job.load.size)
    with Publishing():
        for _ in range(job.events):
            await context.publish_async(TOPIC, message, wait_stall=30.0)
        await context.publish_async_completed()
    await context.delete_stream("bench")


async def _subscribe(job: Job) -> None:
    arrivals = Arrivals(job)

    async def count(message: Any) -> None:
        arrivals.count += 1
        if arrivals.count == arrivals.expected:
            arrivals.complete()

    async def measure(message: Any) -> None:
        arrivals.arrived_after(now() - loads.stamp_of(message.data))

    client = await _connect(job)
    callback = measure if job.load.kind == "latency" else count
    for _ in range(job.load.subscriptions):
        await client.subscribe(TOPIC, cb=callback, pending_msgs_limit=PENDING, pending_bytes_limit=PENDING)
    await client.flush()
    arrivals.ready()
    await arrivals.wait()
    arrivals.report()
    await client.close()
    await asyncio.sleep(0)


async def _subscribe_clients(job: Job) -> None:
    arrivals = Arrivals(job)

    async def count(message: Any) -> None:
        arrivals.arrived_paced()

    clients = []
    for topic in loads.topics(job.load):
        client = await _connect(job)
        await client.subscribe(topic, cb=count)
        await client.flush()
        clients.append(client)
    arrivals.ready()
    await arrivals.wait()
    arrivals.report()
    for client in clients:
        await client.close()
    await asyncio.sleep(0)
