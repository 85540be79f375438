"""A group of replicas, each `holdfast broker` in a process of its own, as on machines of their own."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from signal import SIGCONT, SIGKILL, Signals

from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.messages import Inspected

LOOK_EVERY_S = 0.02
NO_PROTOCOL = "none"


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [int(free.getsockname()[1]) for free in sockets]
    finally:
        for free in sockets:
            free.close()


class ReplicaGroup:
    """`start` starts all of them; used with `with`, all are killed at the end."""

    def __init__(
        self,
        folder: Path,
        replicas: int = 3,
        protocol: str = "batch",
        pipeline: int = 10,
        rest: str = "",
        log_level: str = "warning",
        spares: int = 0,
    ) -> None:
        """`rest` is more of the site file. The protocol `NO_PROTOCOL` is for one broker that is no group."""
        ports = free_ports(2 * (replicas + spares))
        listed = [f"r{number}" for number in range(1, replicas + spares + 1)]
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(listed, ports[::2], strict=True)}
        self.peers = {name: f"127.0.0.1:{port}" for name, port in zip(listed, ports[1::2], strict=True)}
        self.names, self.spares = listed[:replicas], listed[replicas:]  # members, and those that are none yet
        self._log_level = log_level
        self.site = folder / "group.toml"
        self.folder = folder
        if protocol == NO_PROTOCOL:
            self._scheme = '[scheme]\nkind = "tree"\n'
        else:
            self._scheme = f'[scheme]\nkind = "paxos"\nprotocol = "{protocol}"\npipeline = {pipeline}\n'
        self._rest = rest
        self._views: dict[str, Path] = {}  # site files of single replicas
        self._write(self.site, self.addresses, self.peers)
        self.processes: dict[str, subprocess.Popen[str]] = {}

    @property
    def url(self) -> str:
        """Where clients find the members."""
        return "holdfast://" + ",".join(self.addresses[name] for name in self.names)

    def _write(self, path: Path, addresses: Mapping[str, str], peers: Mapping[str, str]) -> None:
        entries = [
            f'[[broker]]\nid = "{name}"\naddress = "{addresses[name]}"\npeer_address = "{peers[name]}"\n'
            f'data = "{self.folder}/{name}"\n' + ("spare = true\n" if name in self.spares else "")
            for name in self.addresses
        ]
        path.write_text(self._scheme + "".join(entries) + self._rest)

    def write_view(self, name: str, addresses: Mapping[str, str], peers: Mapping[str, str]) -> None:
        """Lets one replica find the others somewhere else than they are; it listens where it always does."""
        self._views[name] = self.folder / f"group-{name}.toml"
        own = ({name: self.addresses[name]}, {name: self.peers[name]})
        self._write(self._views[name], {**self.addresses, **addresses, **own[0]}, {**self.peers, **peers, **own[1]})

    def __enter__(self) -> ReplicaGroup:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.processes):
            self.stop(name)

    def start(self, *names: str) -> None:
        """Starts some, or all that are not there."""
        started = []
        for name in names or [name for name in self.names if name not in self.processes]:
            site = self._views.get(name, self.site)
            command = [sys.executable, "-m", "holdfast.cli", "broker", str(site), "--id", name]
            with (self.folder / f"{name}.log").open("a") as log:
                self.processes[name] = subprocess.Popen(
                    [*command, "--log-level", self._log_level], stdout=subprocess.PIPE, stderr=log, text=True
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

    async def leader(self, within_s: float = 20.0) -> str:
        """Who leads: of those who think so, the one of the highest ballot."""
        deadline = asyncio.get_running_loop().time() + within_s
        while asyncio.get_running_loop().time() < deadline:
            answers = await asyncio.gather(*(self.inspect(name) for name in self.processes))
            leading = [
                (answer.measures["replica_ballot"], answer.broker)
                for answer in answers
                if answer is not None and answer.measures["replica_is_leading"]
            ]
            if leading:
                return max(leading)[1]
            await asyncio.sleep(LOOK_EVERY_S)
        raise RuntimeError(f"nobody leads within {within_s:g} s")

    async def caught_up(self, within_s: float = 60.0) -> None:
        """Returns when every replica that runs hears all others and has executed what the leader had at some moment."""
        deadline = asyncio.get_running_loop().time() + within_s
        wanted = 0
        while asyncio.get_running_loop().time() < deadline:
            answers = await asyncio.gather(*(self.inspect(name) for name in self.processes))
            measures = [answer.measures for answer in answers if answer is not None]
            wanted = wanted or max((each["replica_slots_executed"] for each in measures), default=0)
            if len(measures) == len(self.processes) and all(
                each["replica_slots_executed"] >= wanted and each["replica_peers"] == len(self.processes) - 1
                for each in measures
            ):
                return
            await asyncio.sleep(LOOK_EVERY_S)
        raise RuntimeError(f"the replicas have not caught up within {within_s:g} s")

    async def heads(self, within_s: float = 20.0) -> dict[str, int]:
        """The last position of every replica's log, once all have executed as much, or when time is up."""
        deadline = asyncio.get_running_loop().time() + within_s
        while True:
            answers = await asyncio.gather(*(self.inspect(name) for name in self.processes))
            told = {answer.broker: answer.measures for answer in answers if answer is not None}
            same = len({each["replica_slots_executed"] for each in told.values()}) == 1
            if (same and len(told) == len(self.processes)) or asyncio.get_running_loop().time() > deadline:
                return {name: told[name]["log_head"] if name in told else -1 for name in self.processes}
            await asyncio.sleep(LOOK_EVERY_S)
