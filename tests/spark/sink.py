"""A durable broker to write to."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from holdfast.client.blocking import connect
from tests.runtime.broker_process import BrokerProcess, free_port


class DurableBroker(BrokerProcess):
    """One that tells what it measures."""

    def __init__(self, folder: Path, rest: str = "", port: int | None = None) -> None:
        address = f"127.0.0.1:{free_port()}"
        self.metrics = f"http://{address}/metrics"
        options = ("--metrics", address)
        super().__init__(folder, port, entry=f'data = "{folder}/data"\n', rest=rest, options=options)

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def staged_bytes(self) -> int:
        with urllib.request.urlopen(self.metrics, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        found = [line for line in lines if line.startswith("holdfast_staged_bytes")]
        return int(float(found[0].rsplit(" ", 1)[1]))

    def head(self) -> int:
        with connect(self.url) as bus:
            return bus.head().number

    @contextmanager
    def published(self) -> Iterator[list[dict[str, Any]]]:
        """What is published within a `with`, once it is over: attributes, with the topic if there is one."""
        found: list[dict[str, Any]] = []
        with connect(self.url) as bus:
            before = bus.head().number
            yield found
            if bus.head().number > before:
                for event in bus.read(start=before + 1):
                    topic = {"topic": event.topic} if event.topic else {}
                    payload = {"payload": event.payload} if event.payload else {}
                    found.append({**topic, **payload, **event.attributes})
