"""MQTT with mosquitto, and paho-mqtt, which has a thread for the network instead of an event loop."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from typing import Any

from benchmarks.peers import loads
from benchmarks.peers.loads import TOPIC, Job
from benchmarks.peers.process import Arrivals, Publishing, now, paced_blocking
from benchmarks.peers.system import Server, System, first_line, program


class Mosquitto(System):
    name = "mosquitto"
    form = "paho-mqtt, QoS 0, publish() and on_message with its own thread; a client for each subscription"
    guarantee = "at most once, nothing acknowledged, by topic"
    programs = ("mosquitto",)
    distributions = (("paho", "paho-mqtt"),)
    speed = 0.2

    def versions(self) -> str:
        return f"{first_line(program('mosquitto'), '-h')}, {super().versions()}"

    def servers(self, folder: Path, port: int) -> list[Server]:
        config = folder / "mosquitto.conf"
        config.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n"
            f"max_queued_messages 0\nlog_type none\nuser root\n"
        )
        return [Server([program("mosquitto"), "-c", str(config)])]

    def publish(self, job: Job) -> None:
        client = _client(job)
        if job.load.kind == "latency":
            with Publishing():
                paced_blocking(job.events, lambda: client.publish(TOPIC, loads.stamped(now(), job.load.size)))
        else:
            message = loads.message_of_size(job.load.size)
            with Publishing():
                for _ in range(job.events):
                    last = client.publish(TOPIC, message)
                last.wait_for_publish()
        client.disconnect()
        client.loop_stop()

    def subscribe(self, job: Job) -> None:
        arrivals, lock = Arrivals(job), threading.Lock()

        def count(client: Any, data: Any, message: Any) -> None:
            with lock:
                arrivals.arrived()

        def measure(client: Any, data: Any, message: Any) -> None:
            arrivals.arrived_after(now() - loads.stamp_of(message.payload))

        on_message = measure if job.load.kind == "latency" else count
        clients = [_client(job, on_message) for _ in range(job.load.subscriptions)]
        arrivals.ready()
        arrivals.wait_blocking()
        arrivals.report()
        for client in clients:
            client.disconnect()
            client.loop_stop()


def _client(job: Job, on_message: Any = None) -> Any:
    """A client that is connected and, if it has something to do with messages, subscribed."""
    mqtt = importlib.import_module("paho.mqtt.client")
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    settled = threading.Event()
    client.on_connect = lambda *arguments: settled.set()
    client.on_subscribe = lambda *arguments: settled.set()
    client.max_queued_messages_set(0)
    client.connect("127.0.0.1", job.port)
    client.loop_start()
    settled.wait(10)
    if on_message is not None:
        settled.clear()
        client.on_message = on_message
        client.subscribe(TOPIC, qos=0)
        settled.wait(10)
    return client
