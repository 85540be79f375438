"""A network whose directory is a group of three, in one simulation beside the other.

The network's simulation and that of the group go on in turn, some milliseconds at a time. Beside each broker of the
network stands a program that takes its errands; it asks the group over a client of its own, whose leader is killed at
times when something is proposed to it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from holdfast.apps.directory import Directory
from holdfast.apps.directory import messages as said
from holdfast.broker.any_client import AnyClient
from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import Making
from holdfast.kernel.links import Role
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.requests import ApplicationAnswer, AskApplication
from holdfast.schemes.tree.standin.cycle.errands import (
    Accepted,
    EndErrand,
    Failed,
    Given,
    Outcome,
    Propose,
    Release,
    Released,
    TakeErrand,
)
from holdfast.sim.machine import Machine, Program
from holdfast.sim.run import Factories, Run
from holdfast.sim.scenario import Broker, HostedApplication, Scenario
from holdfast.sim.simulation import Simulation

SLICE: Final = 5 * MILLISECOND
PATIENCE: Final = 5 * SECOND  # of a program with the group
NETWORK: Final = "network"
GROUP: Final = ("d1", "d2", "d3")
KILLED: Final = 0.6  # of the times at which something is proposed

_decode = msgspec.json.Decoder(said.Answer).decode


def group_of(seed: int) -> Run:
    """Played by whoever asks it; what it promises, others check."""
    scenario = Scenario(
        name="directory",
        seed=seed,
        system="paxos",
        brokers=[Broker(id=name, durable=True) for name in GROUP],
        clients=[],
        actions=[],
        faults=[],
        safety_ms=1_000,
        liveness_ms=1_000,
        application=HostedApplication(factory="holdfast.apps.directory:Directory"),
        checkers=["at-most-once"],
    )
    return Run(scenario, Factories(application=Directory), [])


class Asker(Program):
    """A client of the group, for the program beside one broker."""

    def __init__(self, simulation: Simulation, broker: str) -> None:
        self._waiting: dict[int, Callable[[Outcome], None]] = {}
        self._simulation = simulation
        self._last = 0
        settings = ClientSettings(f"asker-{broker}", GROUP)
        self._machine = simulation.add_machine(
            settings.name, Role.CLIENT, lambda rng, streams: AnyClient(settings, rng, streams), program=self
        )
        self._machine.start()

    def propose(self, errand: Propose, then: Callable[[Outcome], None]) -> None:
        self._last += 1
        self._waiting[self._last] = then
        before = errand.before
        request = said.Propose(said.VERSION, NETWORK, before.number, before.digest, errand.after)
        self._machine.request(self._last, AskApplication(msgspec.json.encode(request)))
        self._simulation.after(PATIENCE, self._lose_patience, self._last)

    def _lose_patience(self, request: int) -> None:
        if request in self._waiting:
            self._waiting.pop(request)(Failed("the group did not answer in time"))

    def on_complete(self, machine: Machine, request: int, result: Any) -> None:
        if request not in self._waiting:
            return
        answer = _decode(result.data) if isinstance(result, ApplicationAnswer) else None
        if isinstance(answer, said.Accepted | said.Other):
            self._waiting.pop(request)(Accepted(answer.map))
        else:
            self._waiting.pop(request)(Failed(f"the group answered {answer or result}"[:200]))


class BesideBroker(Program):
    """Takes a broker's errands. It ends with its broker, and knows nothing of what came before."""

    def __init__(self, simulation: NetworkWithDirectory, broker: str) -> None:
        self._simulation = simulation
        self._asker = Asker(simulation.group.simulation, broker)
        self._last = 0

    def on_started(self, machine: Machine) -> None:
        self._ask(machine, TakeErrand())

    def _ask(self, machine: Machine, command: Any) -> None:
        self._last += 1
        machine.request(self._last, command)

    def on_complete(self, machine: Machine, request: int, result: Any) -> None:
        if not isinstance(result, Given):
            return
        self._ask(machine, TakeErrand())
        number, life = result.number, machine.life

        def end(outcome: Outcome) -> None:
            if machine.life == life:
                self._ask(machine, EndErrand(number, outcome))

        match result.errand:
            case Propose():
                self._simulation.proposals += 1
                self._simulation.group_meets()
                self._asker.propose(result.errand, end)
            case Release():
                end(Released())
            case _:
                end(Failed("nothing is provided here"))


class NetworkWithDirectory(Simulation):
    """Lets the group go on with the network."""

    made: list[NetworkWithDirectory] = []  # noqa: RUF012  # for who counts what happened

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        seed = arguments[1]
        self.proposals = self.killed = 0
        self._luck = Random(f"directory {seed}")
        self.group = group_of(seed)
        for name in GROUP:
            self.group.simulation.machines[name].start()
        self.made.append(self)

    def add_machine(self, name: str, role: Role, make: Any, disk: Any = None, *more: Any, **options: Any) -> Machine:
        if role is Role.BROKER:
            options["program"] = BesideBroker(self, name)
        return super().add_machine(name, role, make, disk, *more, **options)

    def run(self, until: int, stop: Callable[[], bool] | None = None) -> None:
        while self.now < until:
            super().run(min(self.now + SLICE, until), stop)
            if stop is not None and stop():
                return
            self.group.simulation.run(self.now)

    def group_meets(self) -> None:
        """Something is proposed: the leader may fail before it has answered, and be back after a while."""
        group, luck = self.group.simulation, self._luck
        if luck.random() < KILLED:
            group.after(luck.randint(0, 12) * MILLISECOND, self._kill_leader, luck.randint(200, 4_000) * MILLISECOND)

    def _kill_leader(self, for_ns: int) -> None:
        group = self.group.simulation
        for name in GROUP:
            machine = group.machines[name]
            node: Any = machine.node
            if node is not None and node.measure().get("replica_is_leading"):
                machine.stop(power_cut=False)
                group.after(for_ns, self._start, machine)
                self.killed += 1
                return

    @staticmethod
    def _start(machine: Machine) -> None:
        if not machine.running:
            machine.start()


def with_directory() -> Factories:
    """Brokers ask a group before one of them is replaced."""

    def make(told: Any, rng: Random, streams: Any, application: Any) -> Any:
        in_group = replace(told.settings.stand_ins, in_group=True)
        told = replace(told, settings=replace(told.settings, stand_ins=in_group))
        return SCHEMES["tree"].make_node(Making(told, rng, streams, application))

    NetworkWithDirectory.made.clear()
    return Factories(node=make, simulation=NetworkWithDirectory)
