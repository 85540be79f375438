"""ZeroMQ with pyzmq, PUB and SUB: no broker between them, nothing confirmed. The mark to see."""

from __future__ import annotations

import asyncio
import importlib
import time
from typing import Any

from benchmarks.peers import loads
from benchmarks.peers.loads import TOPIC, Job
from benchmarks.peers.process import FIRST_S, QUIET_S, Arrivals, Publishing, now, paced_blocking, publish_in_pace
from benchmarks.peers.system import System

# The topic stands in front of the message: a frame of its own would cost much, and subscriptions match beginnings.
PREFIX = TOPIC.encode()
DRAINED = 256  # messages of one socket, before the next is looked at


class ZeroMq(System):
    name = "zeromq"
    form = "pyzmq, PUB and SUB directly, without a broker; a socket for each subscription"
    guarantee = "at most once, nothing acknowledged, by a message's first bytes"
    distributions = (("zmq", "pyzmq"),)
    kinds = frozenset({"throughput", "latency", "clients"})
    speed = 15.0

    def servers(self, folder: object, port: int) -> list[Any]:
        return []

    def publish(self, job: Job) -> None:
        zmq = importlib.import_module("zmq")
        with zmq.Context() as context, context.socket(zmq.XPUB) as publisher:
            publisher.set_hwm(0)
            publisher.setsockopt(zmq.XPUB_VERBOSE, 1)  # says every subscription, also one that another has made before
            publisher.bind(f"tcp://127.0.0.1:{job.port}")
            for _ in range(job.load.subscriptions):
                publisher.recv()  # who subscribes has come
            _publish(publisher, job)

    def subscribe(self, job: Job) -> None:
        if job.load.kind == "clients":
            asyncio.run(_subscribe_clients(job))
        else:
            _subscribe(job)


def _publish(publisher: Any, job: Job) -> None:
    if job.load.kind == "latency":
        with Publishing():
            paced_blocking(job.events, lambda: publisher.send(PREFIX + loads.stamped(now(), job.load.size)))
    elif job.load.kind == "clients":
        asyncio.run(_publish_in_pace(publisher, job))
    else:
        message = PREFIX + loads.message_of_size(job.load.size)
        with Publishing():
            for _ in range(job.events):
                publisher.send(message)


async def _publish_in_pace(publisher: Any, job: Job) -> None:
    body = loads.message_of_size(job.load.size)

    async def send(topic: str) -> None:
        publisher.send(topic.encode() + body)

    with Publishing():
        await publish_in_pace(job, send)


def _sockets(context: Any, job: Job) -> list[Any]:
    zmq = importlib.import_module("zmq")
    sockets = []
    for topic in loads.topics(job.load):
        socket = context.socket(zmq.SUB)
        socket.set_hwm(0)
        socket.setsockopt(zmq.RECONNECT_IVL, 10)  # the publisher comes later, and is waited for
        socket.subscribe(topic.encode())
        socket.connect(f"tcp://127.0.0.1:{job.port}")
        sockets.append(socket)
    return sockets


def _subscribe(job: Job) -> None:
    zmq = importlib.import_module("zmq")
    with zmq.Context() as context:
        arrivals, latency = Arrivals(job), job.load.kind == "latency"
        poller = zmq.Poller()
        for socket in _sockets(context, job):
            poller.register(socket, zmq.POLLIN)
        arrivals.ready()
        deadline = time.monotonic() + FIRST_S
        while not arrivals.done and time.monotonic() < deadline:
            for socket, _ in poller.poll(1_000):
                deadline = time.monotonic() + QUIET_S
                for _ in range(DRAINED):
                    try:
                        message = socket.recv(zmq.NOBLOCK)
                    except zmq.Again:
                        break
                    if latency:
                        arrivals.arrived_after(now() - loads.stamp_of(message[len(PREFIX) :]))
                    else:
                        arrivals.arrived()
        arrivals.report()
        context.destroy(linger=0)


async def _subscribe_clients(job: Job) -> None:
    context = importlib.import_module("zmq.asyncio").Context()
    context.set(importlib.import_module("zmq").MAX_SOCKETS, job.load.subscriptions + 16)
    arrivals = Arrivals(job)

    async def count(socket: Any) -> None:
        while True:
            await socket.recv()
            arrivals.arrived_paced()

    tasks = [asyncio.create_task(count(socket)) for socket in _sockets(context, job)]
    arrivals.ready()
    await arrivals.wait()
    arrivals.report()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    context.destroy(linger=0)
