"""The brokers of a site, each `holdfast broker` in a process of its own, as on machines of their own."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import SIGCONT, SIGKILL, Signals
from typing import ClassVar, Self

from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.messages import Inspected

LOOK_EVERY_S = 0.02


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [int(free.getsockname()[1]) for free in sockets]
    finally:
        for free in sockets:
            free.close()


class SiteProcesses:
    """`start` starts all of them; used with `with`, all are killed at the end. `program` is the module that is
    `holdfast`, with the schemes that it knows."""

    program: ClassVar[str] = "holdfast.cli"

    def __init__(self, folder: Path, listed: Sequence[str], site: str, log_level: str) -> None:
        """`site` is the site file's name; `listed` are all brokers that it has."""
        ports = free_ports(2 * len(listed))
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(listed, ports[::2], strict=True)}
        self.peers = {name: f"127.0.0.1:{port}" for name, port in zip(listed, ports[1::2], strict=True)}
        self.names = list(listed)  # those that `start` starts
        self.folder = folder
        self.site = folder / site
        self._log_level = log_level
        self._views: dict[str, Path] = {}  # site files of single brokers
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def site_text(self, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        """The site file, with these addresses in it."""
        raise NotImplementedError

    def broker_text(self, name: str, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        """A broker's table in the site file."""
        return (
            f'[[broker]]\nid = "{name}"\naddress = "{addresses[name]}"\npeer_address = "{peers[name]}"\n'
            f'data = "{self.folder}/{name}"\n'
        )

    def write_view(self, name: str, addresses: Mapping[str, str], peers: Mapping[str, str]) -> None:
        """Lets one broker find the others somewhere else than they are; it listens where it always does."""
        self._views[name] = self.folder / f"{self.site.stem}-{name}.toml"
        own = ({name: self.addresses[name]}, {name: self.peers[name]})
        text = self.site_text({**self.addresses, **addresses, **own[0]}, {**self.peers, **peers, **own[1]})
        self._views[name].write_text(text)

    def forget_view(self, name: str) -> None:
        """From its next start on, a broker finds the others where they are."""
        self._views.pop(name, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self.stop(name)

    def more_arguments(self, name: str) -> Sequence[str]:
        """What a broker is started with besides."""
        return ()

    def start(self, *names: str) -> None:
        """Starts some, or all that are not there."""
        started = []
        for name in names or [name for name in self.names if name not in self.processes]:
            site = self._views.get(name, self.site)
            command = [sys.executable, "-m", self.program, "broker", str(site), "--id", name]
            with (self.folder / f"{name}.log").open("a") as log:
                self.processes[name] = subprocess.Popen(
                    [*command, "--log-level", self._log_level, *self.more_arguments(name)],
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
            started.append(name)
        for name in started:
            process = self.processes[name]
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith(f"broker {name} serves"):
                del self.processes[name]
                process.stdout.close()
                raise RuntimeError(f"{name} did not start: {line!r}, exit code {process.wait()}")

    async def start_beside(self, *names: str) -> None:
        """As `start`, while the event loop goes on. Who is cancelled waits for it: no process is left behind."""
        starting = asyncio.ensure_future(asyncio.to_thread(self.start, *names))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.gather(starting, return_exceptions=True)
            raise

    def send(self, name: str, number: Signals) -> None:
        self.processes[name].send_signal(number)

    def stop(self, name: str, number: Signals = SIGKILL) -> int:
        process = self.processes.pop(name)
        process.send_signal(number)
        if number is not SIGKILL:
            process.send_signal(SIGCONT)
        code = process.wait()
        assert process.stdout is not None
        process.stdout.close()
        return code

    async def inspect(self, name: str) -> Inspected | None:
        async with BrokerDesk(self.addresses[name], timeout_s=1.0) as desk:
            answer = await desk.inspect(0)
            return answer if isinstance(answer, Inspected) else None
