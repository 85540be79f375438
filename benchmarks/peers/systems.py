"""The systems that are measured, in the order in which they take turns."""

from __future__ import annotations

from benchmarks.peers.amqtt import Amqtt
from benchmarks.peers.holdfast import Holdfast
from benchmarks.peers.mosquitto import Mosquitto
from benchmarks.peers.nats import Nats
from benchmarks.peers.rabbitmq import RabbitMq
from benchmarks.peers.redis import Redis
from benchmarks.peers.system import System
from benchmarks.peers.zeromq import ZeroMq

SYSTEMS: dict[str, System] = {
    system.name: system for system in (Holdfast(), Nats(), Redis(), Mosquitto(), RabbitMq(), Amqtt(), ZeroMq())
}
