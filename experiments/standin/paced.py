"""Simulated brokers that take as long as they really take: each on a processor of its own.

Many brokers do not fit on two cores. Here one processor plays all of them, one turn after the other, and what a turn
took it is charged: the CPU time of the node's own code, with reading and writing its messages. A broker that is busy
lets what comes wait, as its process would; what a turn says leaves when its time is over. So time is virtual, and
costs are measured where they arise, with everything that they depend on: how many entries a message has, how many
events, how many neighbours. Not charged are sockets, the event loop, and the garbage collector, which is off: what it
would walk over here is all brokers at once.

`Fixed` costs take the place of the clock where a run is to come out the same each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from holdfast.codec import UNREADABLE
from holdfast.kernel.inputs import Input, Received
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import Node
from holdfast.kernel.outbox import Note
from holdfast.kernel.queues import Queued
from holdfast.protocols.routing.messages import AcknowledgeEvents
from holdfast.schemes.tree.standin.messages import StandInAdvertised, StandInForward, StandInSubscribed
from holdfast.schemes.tree.standin.teaching import Teaching
from holdfast.sim.disk import Disk
from holdfast.sim.machine import Machine, NodeFactory, Program
from holdfast.sim.network import End, Frame, Packet
from holdfast.sim.simulation import Simulation

MICROSECOND: Final = 1_000
ANSWER_US: Final = 100


class Work(msgspec.Struct):
    """What kind of turns a broker spent its time on: by what came in."""

    turns: int = 0
    entries: int = 0  # of tables that were told
    events: int = 0
    nanoseconds: int = 0

    def add(self, more: Work) -> None:
        self.turns += more.turns
        self.entries += more.entries
        self.events += more.events
        self.nanoseconds += more.nanoseconds


class Costs(Protocol):
    """What a turn takes."""

    def of_turn(self, broker: str, inputs: list[Input], spent_ns: int) -> int:
        """In nanoseconds; `spent_ns` is what it has just taken here."""
        ...


class Measured:
    """What it has just taken."""

    def of_turn(self, broker: str, inputs: list[Input], spent_ns: int) -> int:
        return spent_ns


class Slowed(msgspec.Struct, frozen=True):
    """What it has just taken, and of these brokers so much more for each event."""

    brokers: tuple[str, ...]
    event_us: int

    def of_turn(self, broker: str, inputs: list[Input], spent_ns: int) -> int:
        if broker not in self.brokers:
            return spent_ns
        messages = [message for each in inputs if isinstance(each, Received) for message in each.messages]
        return spent_ns + sum(contents(message)[1] for message in messages) * self.event_us * MICROSECOND


class Fixed(msgspec.Struct, frozen=True):
    """So much for each message, for each entry of a table in it, and for each event; of some brokers, times more."""

    message_us: float = 20.0
    entry_us: float = 10.0
    event_us: float = 20.0
    slower: Mapping[str, float] = {}

    def of_turn(self, broker: str, inputs: list[Input], spent_ns: int) -> int:
        messages = [message for each in inputs if isinstance(each, Received) for message in each.messages]
        entries, events = map(sum, zip(*map(contents, messages), strict=True)) if messages else (0, 0)
        cost = self.message_us * len(messages) + self.entry_us * entries + self.event_us * events
        return int(cost * self.slower.get(broker, 1.0) * MICROSECOND)


def contents(message: Message) -> tuple[int, int]:
    """How many entries of tables, and how many events a message between brokers has."""
    match message:
        case StandInAdvertised(advertisements=told) | StandInSubscribed(subscriptions=told):
            return len(told), 0
        case StandInForward(wanted=wanted):
            return 0, len(wanted)
        case _:
            return 0, len(message.event_ids())


class PacedMachine(Machine):
    """Charged for its turns from `begin_paces` on."""

    def __init__(
        self,
        simulation: PacedSimulation,
        name: str,
        role: Role,
        make: NodeFactory,
        disk: Disk | None,
        program: Program | None,
    ) -> None:
        super().__init__(simulation, name, role, make, disk, program)
        self._paced = simulation
        self._effects: list[Callable[[], None]] | None = None  # of the turn that is under way
        self._decoding_ns = 0
        self._aside_ns = 0  # what the simulator itself took meanwhile

    def begin_paces(self) -> None:
        self._direct = False

    def receive(self, end: End, frames: list[Frame]) -> None:
        if self._direct:
            super().receive(end, frames)
            return
        began = time.thread_time_ns()
        decoders = self._paced.messages.decoders
        try:
            messages = [decoders[kind](body) for kind, body in frames]
        except (KeyError, *UNREADABLE) as error:
            self._paced.network.close(end, f"no message: {error}")
            return
        self._decoding_ns += time.thread_time_ns() - began
        for some in [[message] for message in messages] if self._paced.one_by_one else [messages]:
            self._take(Received(end.link, end.peer, some))

    def _take_turn(self, life: int) -> None:
        rest: list[Input] = []
        if self._paced.one_by_one and life == self.life:
            rest, self._inbox = self._inbox[1:], self._inbox[:1]
        super()._take_turn(life)
        self._inbox = rest + self._inbox
        if self._inbox and not self._turn_due:
            self._plan_turn()

    def _turn(self, inputs: list[Input]) -> None:
        if self._direct or self.node is None:
            super()._turn(inputs)
            return
        paced = self._paced
        self._effects, self._aside_ns = [], 0
        began = time.thread_time_ns()
        super()._turn(inputs)
        spent = time.thread_time_ns() - began - self._aside_ns + self._decoding_ns
        self._decoding_ns = 0
        cost = paced.costs.of_turn(self.name, inputs, spent)
        paced.note_work(self.name, inputs, cost)
        paced.note_indexed(self.node)
        self._busy_until = paced.now + cost
        effects, self._effects = self._effects, None
        for effect in effects:
            paced.at(self._busy_until, self._release, (self.life, effect))

    def _release(self, arguments: tuple[int, Callable[[], None]]) -> None:
        life, effect = arguments
        if life == self.life:
            effect()

    def _later(self, effect: Callable[[], None]) -> None:
        if self._effects is not None:
            self._effects.append(effect)
        elif self._busy_until > self._paced.now:
            self._paced.at(self._busy_until, self._release, (self.life, effect))
        else:
            effect()

    def note(self, note: Note) -> None:
        self._later(lambda: self._paced.note(self.name, note))

    def has_room(self, link: End) -> bool:
        return not self.paused if self._paced.item_us else super().has_room(link)

    def put(self, link: End, entries: list[Queued]) -> None:
        if self._direct:
            super().put(link, entries)
            return
        kinds, encode = self._paced.messages.kinds, self._paced.messages.encoder
        packet = Packet([(kinds[type(each.message)], encode(each.message)) for each in entries])
        began = time.thread_time_ns()
        self._later(lambda: self._send(link, entries, packet))
        self._aside_ns += time.thread_time_ns() - began

    def _send(self, link: End, entries: list[Queued], packet: Packet) -> None:
        paced = self._paced
        if not link.up:
            return
        if not paced.item_us or link.other.station.role is not Role.BROKER:
            paced.note_hops(self, link, entries)
            paced.network.send(link, packet)
            return
        for entry, frame in zip(entries, packet.frames, strict=True):
            if isinstance(entry.message, AcknowledgeEvents):
                paced.after(ANSWER_US * MICROSECOND, self._answer, (link.other, frame))
                continue
            link.occupy(paced.now, sum(contents(entry.message)) * paced.item_us * MICROSECOND)
            paced.at(max(paced.now, link.free_at), self._release, (self.life, partial(self._note_hop, link, entry)))
            paced.network.send(link, Packet([frame]))

    @staticmethod
    def _answer(arguments: tuple[End, Frame]) -> None:
        """A call that has returned: that waits behind no other call."""
        end, frame = arguments
        if end.up:
            end.station.receive(end, [frame])

    def _note_hop(self, link: End, entry: Queued) -> None:
        self._paced.note_hops(self, link, [entry])


class PacedSimulation(Simulation):
    """Of one run; `costs` is set by whoever makes the type, `paced_from` says when turns begin to take time."""

    costs: Costs = Measured()
    one_by_one: bool = False  # each message has a turn of its own
    item_us: int = 0  # that each entry and each event takes on a link between brokers
    paced_from: int = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.tracing_brokers = False  # they note what they always do; what they put on links is noted here
        self.indexed_max = 0
        self.work: dict[tuple[str, str], Work] = {}  # by broker, and by what it was spent on
        self.at(self.paced_from, self._begin_paces, None)

    def _begin_paces(self, _: object) -> None:
        for machine in self.machines.values():
            if isinstance(machine, PacedMachine):
                machine.begin_paces()

    def add_machine(
        self,
        name: str,
        role: Role,
        make: NodeFactory,
        disk: Disk | None = None,
        program: Program | None = None,
        address: str = "",
    ) -> Machine:
        machine = super().add_machine(name, role, make, disk, program, address)
        if role is Role.BROKER:
            machine = PacedMachine(self, name, role, make, disk, program)
            self.machines[name] = self.addresses[address or name] = machine
        return machine

    def note_indexed(self, node: Node | None) -> None:
        """The most places that events have had in wait and ready queues (D0-C24)."""
        for part in getattr(node, "parts", ()):
            if isinstance(part, Teaching):
                self.indexed_max = max(self.indexed_max, part.measure()["stand_in_events_indexed"])

    def note_work(self, broker: str, inputs: list[Input], cost: int) -> None:
        """Under the type of the message that has most in it."""
        messages = [message for each in inputs if isinstance(each, Received) for message in each.messages]
        heaviest = max(messages, key=lambda message: sum(contents(message)), default=None)
        what = "–" if heaviest is None else type(heaviest).__name__
        work = self.work.setdefault((broker, what), Work())
        entries, events = map(sum, zip(*map(contents, messages), strict=True)) if messages else (0, 0)
        work.add(Work(1, entries, events, cost))
