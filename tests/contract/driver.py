"""What the contract's proofs need of a driver, and the simulator as one.

The proofs know nothing of virtual time: they start nodes, kill them, and wait for something to be true. A driver over
sockets answers the same calls.
"""

from collections.abc import Callable, Collection
from random import Random
from typing import Any, Protocol

from holdfast.codec import Registry
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import Node
from holdfast.kernel.storage import StoredStreams
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.schemes.catalogue import MESSAGES, RECORDS
from holdfast.sim.disk import Disk
from holdfast.sim.latency import Uniform, build
from holdfast.sim.machine import Machine, Program
from holdfast.sim.simulation import Simulation
from tests.taking_scheme import KIND
from tests.taking_scheme.client import CLIENT

SPOKEN = Registry[Message](MESSAGES.types | CLIENT.catalogue.messages.types)
# What the machines of a proof say that they are of.
SCHEME = KIND

MakeNode = Callable[[Random, StoredStreams], Node]


class Inbox(Program):
    """Collects what a client's node hands to its application, and consumes it at once."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.results: list[Any] = []

    def on_deliver(self, host: Machine, subscription: int, events: Collection[Any]) -> None:
        self.events += [event.id for event in events]

    def on_complete(self, host: Machine, request: int, result: Any) -> None:
        self.results.append(result)


class Driver(Protocol):
    """Runs nodes."""

    def address(self, name: str, by: Role = Role.BROKER) -> str:
        """Where a node is, or will be, found by peers of a role."""
        ...

    def add(self, name: str, role: Role, make: MakeNode, durable: bool = False) -> Inbox: ...

    def start(self, name: str) -> None: ...

    def kill(self, name: str, power_cut: bool = False) -> None: ...

    def request(self, name: str, command: Any) -> None: ...

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Lets things happen until something is true; fails after a while."""
        ...

    def settle(self) -> None:
        """Lets everything happen that is under way."""
        ...

    def close(self) -> None: ...


class SimulatedDriver:
    """The simulator, as the proofs see it."""

    def __init__(self, seed: int = 1) -> None:
        delays = build(Uniform(low_us=100, high_us=3_000), Random(seed))
        self.simulation = Simulation(SPOKEN, seed, delays, checking=True, scheme=SCHEME)
        self._last_request = 0

    def address(self, name: str, by: Role = Role.BROKER) -> str:
        return name

    def add(self, name: str, role: Role, make: MakeNode, durable: bool = False) -> Inbox:
        inbox = Inbox()
        disk = Disk(RECORDS, Random(name)) if durable else None
        self.simulation.add_machine(name, role, make, disk, inbox)
        return inbox

    def start(self, name: str) -> None:
        self.simulation.machines[name].start()

    def kill(self, name: str, power_cut: bool = False) -> None:
        self.simulation.machines[name].stop(power_cut)

    def request(self, name: str, command: Any) -> None:
        self._last_request += 1
        self.simulation.machines[name].request(self._last_request, command)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        self.simulation.run(self.simulation.now + 60 * SECOND, holds)
        assert holds()

    def settle(self) -> None:
        self.simulation.run(self.simulation.now + 200 * MILLISECOND)

    def close(self) -> None:
        pass
