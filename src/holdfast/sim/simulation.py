"""Virtual time: a heap of things to happen, and everything that they happen to.

A run is a function of its seed and its scenario. There is no clock, no thread and no file; ties in time are broken by
the order in which things were planned; randomness is drawn from generators that the seed names.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol

from holdfast.codec import Registry
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken
from holdfast.kernel.outbox import Note
from holdfast.kernel.queues import Queued
from holdfast.sim.disk import Disk
from holdfast.sim.machine import Machine, NodeFactory, Program
from holdfast.sim.network import Adversary, Delays, End, Network
from holdfast.trace import schema

WALL_AT_START = 1_700_000_000 * 10**9
NO_STORM = (1 << 62, 1 << 62)


class RowSink(Protocol):
    """Who wants to see the trace: a writer, or checkers."""

    def see(self, row: schema.Row) -> None: ...


class Simulation:
    """One run."""

    def __init__(
        self,
        messages: Registry[Message],
        seed: int,
        delays: Delays,
        adversary: Adversary | None = None,
        bytes_per_second: int = 0,
        sinks: Sequence[RowSink] = (),
        checking: bool = False,
        clients_only: bool = False,
        storm: tuple[int, int] = NO_STORM,
        when_stopped: Callable[[Machine], None] = lambda machine: None,
        scheme: str = "",
    ) -> None:
        """`when_stopped` sees to machines that stopped by themselves; `scheme` is what machines name as theirs."""
        self.messages = messages
        self.now = 0
        self.wall = WALL_AT_START
        self.order = 0  # of what is happening now
        self.steps = 0  # turns of nodes
        self._steps_max, self._sent_bytes_max = storm
        self.hops = 0
        self.tracing = bool(sinks)
        self.tracing_brokers = self.tracing and not clients_only  # and what is said on links
        self.checking = checking
        self.machines: dict[str, Machine] = {}
        self.addresses: dict[str, Machine] = {}
        self.when_stopped = when_stopped
        self.scheme = scheme
        self._seed = seed
        self._sinks = tuple(sinks)
        self._heap: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self._planned = 0
        self.network = Network(self, delays, self.rng_for("network", 0), adversary, bytes_per_second)

    def rng_for(self, name: str, life: int) -> Random:
        """A generator of its own for everything that needs one: what one draws never changes what another gets."""
        return self.rng_of(self._seed, name, life)

    @staticmethod
    def rng_of(seed: int, name: str, life: int) -> Random:
        return Random(f"{seed}/{name}/{life}")

    # --------------------------------------------------------------------------------------------------------- time
    def at(self, time: int, happen: Callable[[Any], None], argument: Any) -> int:
        """Plans something; gives its number in the order of planning."""
        if time < self.now:
            broken("nothing is planned for the past", time=time, now=self.now)
        self._planned += 1
        heapq.heappush(self._heap, (time, self._planned, happen, argument))
        return self._planned

    def after(self, delay: int, happen: Callable[[Any], None], argument: Any) -> int:
        if delay < 0:
            broken("nothing is planned for the past", delay=delay, now=self.now)
        self._planned += 1
        heapq.heappush(self._heap, (self.now + delay, self._planned, happen, argument))
        return self._planned

    def run(self, until: int, stop: Callable[[], bool] | None = None) -> None:
        """Lets time pass, up to and with `until`; ends early when `stop` says so."""
        heap = self._heap
        pop = heapq.heappop
        while heap and heap[0][0] <= until:
            self.now, self.order, happen, argument = pop(heap)
            happen(argument)
            if stop is not None and stop():
                return
        self.now = max(self.now, until)

    # -------------------------------------------------------------------------------------------------------- machines
    def count_step(self) -> None:
        """A node takes a turn."""
        self.steps += 1
        if self.steps > self._steps_max or self.network.sent_bytes > self._sent_bytes_max:
            broken("a run does not become a storm", steps=self.steps, sent_bytes=self.network.sent_bytes)

    def add_machine(
        self,
        name: str,
        role: Role,
        make: NodeFactory,
        disk: Disk | None = None,
        program: Program | None = None,
        address: str = "",
    ) -> Machine:
        machine = Machine(self, name, role, make, disk, program)
        self.machines[name] = machine
        self.addresses[address or name] = machine
        return machine

    def stop_machine(self, machine: Machine, reason: str) -> None:
        """The machine's node asked to be stopped."""
        if self.tracing:
            self.emit(schema.Control(t=self.now, node=machine.name, what="stopped", detail={"reason": reason}))
        self.fault(machine.name, "crashed")
        machine.stop(power_cut=False)
        self.when_stopped(machine)

    # -------------------------------------------------------------------------------------------------------- trace
    def emit(self, row: schema.Row) -> None:
        for sink in self._sinks:
            sink.see(row)

    def note(self, node: str, note: Note) -> None:
        """Turns a node's note into a row."""
        row_type = schema.KINDS[note.kind]
        fields = note.fields
        if row_type is schema.Control:
            fields = {"node": node, **fields}
        self.emit(row_type(t=self.now, **fields))

    def note_hops(self, machine: Machine, end: End, entries: list[Queued]) -> None:
        target = end.other.station.name
        for entry in entries:
            self.note_hop(machine.name, target, entry.message, entry.weight)

    def note_hop(self, source: str, target: str, message: Message, size: int) -> None:
        self.hops += 1
        self.emit(
            schema.Hop(
                t=self.now,
                message=self.hops,
                source=source,
                target=target,
                what=type(message).__name__,
                size=size,
                events=message.event_ids(),
            )
        )

    def fault(self, component: str, state: str) -> None:
        if self.tracing:
            self.emit(schema.Fault(t=self.now, component=component, state=state))
