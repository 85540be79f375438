"""A durable broker in a process of its own, and a workload whose acknowledgements are written down."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import holdfast


class DurableBroker:
    """`holdfast broker` with its data in a folder."""

    def __init__(self, folder: Path, data: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"holdfast://127.0.0.1:{self.port}"
        self._site = folder / f"site-{self.port}.toml"
        self._site.write_text(f'[[broker]]\nid = "b1"\naddress = "127.0.0.1:{self.port}"\ndata = "{data}"\n')
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "holdfast.cli", "broker", str(self._site), "--log-level", "warning"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("broker b1 serves"):
            raise RuntimeError(f"the broker did not start: {line!r}, exit code {self.process.wait()}")

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGKILL) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.send_signal(number)
        code = self.process.wait()
        self.process.stdout.close()
        self.process = None
        return code


@dataclass
class Ledger:
    """What publishers were told."""

    acknowledged: dict[str, int] = field(default_factory=dict)  # publisher → up to which number, all before included


async def publish(url: str, name: str, ledger: Ledger, stop: asyncio.Event, batch: int = 50) -> None:
    """Publishes numbered events, one after the other in batches, and writes down what is acknowledged."""
    number = 0
    async with holdfast.connect(url, name=name, timeout_s=60) as bus:
        while not stop.is_set():
            await bus.publish_many({"publisher": name, "number": number + n} for n in range(1, batch + 1))
            number += batch
            ledger.acknowledged[name] = number


async def consume(url: str, name: str, got: dict[str, list[int]], stop: asyncio.Event) -> None:
    """Reads a named subscription, in one life or several; `got` is by publisher, in the order of arrival."""
    async with (
        holdfast.connect(url, name=f"consumer-{name}", timeout_s=60) as bus,
        bus.subscribe("number > 0", name=name, from_="earliest") as events,  # publishers may be faster
    ):
        waiting = asyncio.create_task(stop.wait())
        while True:
            taking = asyncio.create_task(events.take())
            await asyncio.wait({taking, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not taking.done():
                taking.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await taking
                return
            for event in taking.result():
                got.setdefault(str(event.attributes["publisher"]), []).append(int(event.attributes["number"]))


async def read_back(url: str) -> dict[str, list[int]]:
    """Everything in the log, by publisher."""
    found: dict[str, list[int]] = {}
    async with holdfast.connect(url, timeout_s=60) as bus:
        async for event in bus.read():
            found.setdefault(str(event.attributes["publisher"]), []).append(int(event.attributes["number"]))
    return found


def problems(acknowledged: dict[str, int], found: dict[str, list[int]], where: str) -> list[str]:
    """What is missing, doubled or out of order. More than was acknowledged is in order: the answer was lost."""
    wrong = []
    for name, last in acknowledged.items():
        numbers = found.get(name, [])
        if numbers != list(range(1, len(numbers) + 1)):
            wrong.append(f"{where}: the events of {name} are not 1, 2, 3 …, each once and in order")
        if len(numbers) < last:
            wrong.append(f"{where}: {last - len(numbers)} acknowledged events of {name} are missing")
    return wrong
