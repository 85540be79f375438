"""The runtime, as the contract's proofs see it: real sockets on loopback, and storage that a restart finds again."""

import asyncio
import socket
import time
from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import Any

from holdfast.codec import Registry
from holdfast.codec.catalogue import Catalogue
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Record
from holdfast.kernel.outbox import Operation
from holdfast.kernel.storage import LogBounds, LogPart, StoredStreams
from holdfast.runtime.runner import NodeRunner
from holdfast.schemes.catalogue import CATALOGUE as EVERYTHING
from holdfast.schemes.catalogue import RECORDS
from holdfast.sim.disk import Disk
from tests.contract.driver import SCHEME, SPOKEN, MakeNode

DEADLINE_S = 20.0
LARGE = [EVERYTHING.messages.types[number] for number in sorted(EVERYTHING.large_kinds)]
CATALOGUE = Catalogue(SPOKEN, Registry[Record](RECORDS.types), LARGE, EVERYTHING.versions, SCHEME)


class MemoryStorage:
    """A simulated disk, with a sync that takes a turn of the loop; what was not synced when the node died is gone."""

    def __init__(self) -> None:
        self._disk = Disk(RECORDS, Random(1))
        self._life = 0

    repairs = bytes_on_disk = 0
    is_held = False

    @property
    def log_id(self) -> str:
        return self._disk.log_id

    def start(self, durable: Callable[[int], None], failed: Callable[[str], None]) -> StoredStreams:
        self._life += 1
        self._durable = durable
        return self._disk.start()

    def next_incarnation(self) -> int:
        return time.time_ns()

    def bounds(self) -> dict[str, LogBounds]:
        return self._disk.bounds()

    def write(self, operations: Sequence[Operation]) -> None:
        self._disk.write(operations)
        asyncio.get_running_loop().call_later(0.001, self._sync, self._life, self._disk.written())

    def _sync(self, life: int, count: int) -> None:
        if life == self._life and self._disk.dirty:
            before = self._disk.durable
            token = self._disk.make_safe(count)
            if token > before:
                self._durable(token)

    def read(self, stream: str, start: int, limit: int, bytes_max: int) -> LogPart:
        return self._disk.read(stream, start, limit, bytes_max)

    def close(self) -> None:
        self._life += 1
        self._disk.stop(power_cut=True)


class Inbox:
    """Collects what a client's node hands to its application."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.results: list[Any] = []

    def on_deliver(self, subscription: int, events: Collection[Any]) -> None:
        self.events += [event.id for event in events]

    def on_complete(self, request: int, result: Any) -> None:
        self.results.append(result)


class _Placed:
    """A node's place: everything that outlives its lives."""

    def __init__(self, name: str, role: Role, make: MakeNode, storage: MemoryStorage | None, inbox: Inbox) -> None:
        self.name, self.role, self.make, self.storage, self.inbox = name, role, make, storage, inbox
        self.runner: NodeRunner | None = None


class RuntimeDriver:
    """Runs nodes in one event loop, which turns only while a proof waits."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._placed: dict[str, _Placed] = {}
        self._ports: dict[tuple[str, Role], int] = {}
        self._last_request = 0

    def address(self, name: str, by: Role = Role.BROKER) -> str:
        if (name, by) not in self._ports:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self._ports[name, by] = free.getsockname()[1]
        return f"127.0.0.1:{self._ports[name, by]}"

    def add(self, name: str, role: Role, make: MakeNode, durable: bool = False) -> Inbox:
        storage = MemoryStorage() if durable else None
        self._placed[name] = _Placed(name, role, make, storage, Inbox())
        return self._placed[name].inbox

    def start(self, name: str) -> None:
        self._loop.run_until_complete(self._start(self._placed[name]))

    async def _start(self, placed: _Placed) -> None:
        runner = NodeRunner(placed.name, placed.role, placed.make, CATALOGUE, placed.inbox, placed.storage)
        placed.runner = runner
        runner.start()
        for role in (Role.BROKER, Role.CLIENT) if placed.role is Role.BROKER else (Role.CLIENT,):
            port = int(self.address(placed.name, role).rpartition(":")[2])
            await runner.listen((role,), "127.0.0.1", port)

    def kill(self, name: str, power_cut: bool = False) -> None:
        runner = self._placed[name].runner
        assert runner is not None
        self._loop.run_until_complete(runner.stop("killed"))

    def request(self, name: str, command: Any) -> None:
        self._last_request += 1
        runner = self._placed[name].runner
        assert runner is not None
        runner.request(self._last_request, command)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        async def poll() -> None:
            async with asyncio.timeout(DEADLINE_S):
                while not holds():
                    await asyncio.sleep(0.002)

        self._loop.run_until_complete(poll())

    def settle(self) -> None:
        self._loop.run_until_complete(asyncio.sleep(0.05))

    def close(self) -> None:
        for placed in self._placed.values():
            if placed.runner is not None:
                self._loop.run_until_complete(placed.runner.stop())
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()
