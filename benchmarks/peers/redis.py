"""Redis publish/subscribe, with redis-py's asyncio client."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

from benchmarks.peers import loads
from benchmarks.peers.loads import TOPIC, Job
from benchmarks.peers.process import Arrivals, Publishing, now, paced, publish_in_pace
from benchmarks.peers.system import Server, System, first_line, program
from holdfast.runtime import loop

PIPELINED = 256


class Redis(System):
    name = "redis"
    form = f"publish() in pipelines of {PIPELINED}, and listen(); a connection for each subscription"
    guarantee = "at most once; a pipeline's answers come before the next pipeline; by channel"
    programs = ("redis-server",)
    distributions = (("redis", "redis"), ("hiredis", "hiredis"))
    kinds = frozenset({"throughput", "latency", "clients"})
    speed = 0.5

    def versions(self) -> str:
        return f"{first_line(program('redis-server'), '--version').split(' sha')[0]}, {super().versions()}"

    def servers(self, folder: Path, port: int) -> list[Server]:
        options = {
            "port": str(port),
            "bind": "127.0.0.1",
            "dir": str(folder),
            "save": "",
            "appendonly": "no",
            "client-output-buffer-limit": "pubsub 0 0 0",  # or a slow subscriber is cut off
        }
        arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
        return [Server([program("redis-server"), *arguments])]

    def publish(self, job: Job) -> None:
        loop.run(_publish(job))

    def subscribe(self, job: Job) -> None:
        if job.load.kind == "clients":
            asyncio.run(_subscribe(job))
        else:
            loop.run(_subscribe(job))


def _client(job: Job) -> Any:
    return importlib.import_module("redis.asyncio").Redis(
        host="127.0.0.1", port=job.port, max_connections=job.load.subscriptions + 16
    )


async def _publish(job: Job) -> None:
    client = _client(job)
    if job.load.kind == "latency":
        await client.ping()
        with Publishing():
            await paced(job.events, lambda: client.publish(TOPIC, loads.stamped(now(), job.load.size)))
    elif job.load.kind == "clients":
        message = loads.message_of_size(job.load.size)
        with Publishing():
            await publish_in_pace(job, lambda topic: client.publish(topic, message))
    else:
        message, left = loads.message_of_size(job.load.size), job.events
        with Publishing():
            while left:
                pipeline = client.pipeline(transaction=False)
                for _ in range(min(left, PIPELINED)):
                    pipeline.publish(TOPIC, message)
                left -= len(pipeline)
                await pipeline.execute()
    await client.aclose()


async def _subscribe(job: Job) -> None:
    arrivals = Arrivals(job)
    latency = job.load.kind == "latency"
    arrived = arrivals.arrived_paced if job.load.kind == "clients" else arrivals.arrived

    async def consume(subscription: Any) -> None:
        async for message in subscription.listen():
            if message["type"] != "message":
                continue
            if latency:
                arrivals.arrived_after(now() - loads.stamp_of(message["data"]))
            else:
                arrived()

    client = _client(job)
    tasks = []
    topics = loads.topics(job.load)
    for topic in topics:
        subscription = client.pubsub()
        await subscription.subscribe(topic)
        tasks.append(asyncio.create_task(consume(subscription)))
    while sum(count for _, count in await client.pubsub_numsub(*set(topics))) < len(topics):
        await asyncio.sleep(0.01)
    arrivals.ready()
    await arrivals.wait()
    arrivals.report()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await client.aclose()
