"""MQTT with amqtt, a broker and a client in Python."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

from benchmarks.peers import loads
from benchmarks.peers.loads import TOPIC, Job
from benchmarks.peers.process import Arrivals, Publishing, now, paced
from benchmarks.peers.system import Server, System
from holdfast.runtime import loop


class Amqtt(System):
    name = "amqtt"
    form = "QoS 0, publish() and deliver_message(); a client for each subscription"
    guarantee = "at most once, nothing acknowledged, by topic"
    distributions = (("amqtt", "amqtt"),)
    speed = 0.03

    def servers(self, folder: Path, port: int) -> list[Server]:
        return [Server([sys.executable, "-m", "benchmarks.peers.amqtt", str(port)])]

    def publish(self, job: Job) -> None:
        loop.run(_publish(job))

    def subscribe(self, job: Job) -> None:
        loop.run(_subscribe(job))


async def _connect(job: Job) -> Any:
    client = importlib.import_module("amqtt.client").MQTTClient(config={"auto_reconnect": False})
    await client.connect(f"mqtt://127.0.0.1:{job.port}/")
    return client


async def _publish(job: Job) -> None:
    client = await _connect(job)
    if job.load.kind == "latency":
        with Publishing():
            await paced(job.events, lambda: client.publish(TOPIC, loads.stamped(now(), job.load.size), qos=0))
    else:
        message = loads.message_of_size(job.load.size)
        with Publishing():
            for _ in range(job.events):
                await client.publish(TOPIC, message, qos=0)
    await client.disconnect()


async def _subscribe(job: Job) -> None:
    arrivals = Arrivals(job)
    latency = job.load.kind == "latency"

    async def consume(client: Any) -> None:
        while True:
            message = await client.deliver_message()
            if latency:
                arrivals.arrived_after(now() - loads.stamp_of(bytes(message.data)))
            else:
                arrivals.arrived()

    clients = [await _connect(job) for _ in range(job.load.subscriptions)]
    for client in clients:
        await client.subscribe([(TOPIC, 0)])
    tasks = [asyncio.create_task(consume(client)) for client in clients]
    arrivals.ready()
    await arrivals.wait()
    arrivals.report()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for client in clients:
        await client.disconnect()


async def _serve(port: int) -> None:
    config = {
        "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{port}", "max_connections": 100}},
        "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
    }
    broker = importlib.import_module("amqtt.broker").Broker(config)
    await broker.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    loop.run(_serve(int(sys.argv[1])))
