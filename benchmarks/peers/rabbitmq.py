"""RabbitMQ, with aio-pika."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from benchmarks.peers import loads
from benchmarks.peers.loads import TOPIC, Job
from benchmarks.peers.process import Arrivals, Publishing, now, paced
from benchmarks.peers.servers import free_port
from benchmarks.peers.system import Server, System, program
from holdfast.runtime import loop

# The command on the path changes the user first, who may not write here.
SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class RabbitMq(System):
    name = "rabbitmq"
    form = "aio-pika, transient messages without confirms, consumers without acknowledgements, a queue for each"
    guarantee = "at most once, nothing acknowledged, by routing key"
    programs = ("rabbitmq-server", "epmd")
    distributions = (("aio_pika", "aio-pika"),)
    speed = 0.1

    def servers(self, folder: Path, port: int) -> list[Server]:
        names = free_port()
        environment = {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"peers{os.getpid()}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder),
            "RABBITMQ_LOG_BASE": str(folder),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            # Idle schedulers do not spin: the other systems are being measured meanwhile.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +sbwtdcpu none +sbwtdio none",
        }
        script = str(SCRIPT) if SCRIPT.exists() else program("rabbitmq-server")
        # Erlang's name server is started here, and not by the first node, or it would outlive this run.
        return [Server([program("epmd"), "-port", str(names)], environment), Server([script], environment)]

    def publish(self, job: Job) -> None:
        loop.run(_publish(job))

    def subscribe(self, job: Job) -> None:
        loop.run(_subscribe(job))


async def _channel(job: Job) -> tuple[Any, Any, Any]:
    """A connection, a channel and the exchange that passes each message to every queue."""
    aio_pika = importlib.import_module("aio_pika")
    connection = await aio_pika.connect(f"amqp://guest:guest@127.0.0.1:{job.port}/")
    channel = await connection.channel(publisher_confirms=False)
    return connection, channel, await channel.declare_exchange(TOPIC, "fanout", durable=False)


async def _publish(job: Job) -> None:
    aio_pika = importlib.import_module("aio_pika")
    connection, _, exchange = await _channel(job)
    if job.load.kind == "latency":
        with Publishing():
            await paced(
                job.events,
                lambda: exchange.publish(aio_pika.Message(loads.stamped(now(), job.load.size)), routing_key=TOPIC),
            )
    else:
        message = aio_pika.Message(loads.message_of_size(job.load.size))
        with Publishing():
            for _ in range(job.events):
                await exchange.publish(message, routing_key=TOPIC)
    await connection.close()


async def _subscribe(job: Job) -> None:
    arrivals = Arrivals(job)

    async def count(message: Any) -> None:
        arrivals.arrived()

    async def measure(message: Any) -> None:
        arrivals.arrived_after(now() - loads.stamp_of(message.body))

    connection, channel, exchange = await _channel(job)
    for _ in range(job.load.subscriptions):
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(exchange)
        await queue.consume(measure if job.load.kind == "latency" else count, no_ack=True)
    arrivals.ready()
    await arrivals.wait()
    arrivals.report()
    await connection.close()
