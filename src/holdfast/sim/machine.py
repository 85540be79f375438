"""A simulated machine: a node, its outbox, its timers, its links and its disk; and what can befall it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from holdfast.codec import UNREADABLE
from holdfast.kernel.carrier import Carrier
from holdfast.kernel.inputs import (
    ConnectFailed,
    Durable,
    Input,
    LinkDown,
    LinkUp,
    Received,
    Requested,
    Started,
    StorageFailed,
    TimerFired,
    TimerKey,
)
from holdfast.kernel.links import Role, peer_name
from holdfast.kernel.node import Node, broken, require
from holdfast.kernel.outbox import Connect, Disconnect, Note, Operation, Outbox, ReadLog, SendLog
from holdfast.kernel.queues import Queued
from holdfast.kernel.storage import StoredStreams
from holdfast.sim.disk import Disk
from holdfast.sim.network import End, Frame, Packet

if TYPE_CHECKING:
    from holdfast.sim.simulation import Simulation

NodeFactory = Callable[[Random, StoredStreams], Node]

READ_DELAY = 200_000


class Program:
    """What stands beside a client's node. The scenario's clients override this; a broker has none."""

    def on_started(self, machine: Machine) -> None:
        """The node is up and has connected nothing yet."""

    def on_deliver(self, machine: Machine, subscription: int, events: Collection[Any]) -> None:
        """Events for a subscription."""

    def on_complete(self, machine: Machine, request: int, result: Any) -> None:
        """An answer, or a report."""


class Machine:
    """One machine. `life` counts its starts: whatever was meant for an earlier life is void."""

    def __init__(
        self,
        simulation: Simulation,
        name: str,
        role: Role,
        make: NodeFactory,
        disk: Disk | None,
        program: Program | None = None,
    ) -> None:
        self.name = name
        self.role = role
        self.peer = peer_name(role, name)
        self.disk = disk
        self.life = 0
        self.node: Node | None = None
        self.dark = False  # without power: no one answers
        self.paused = False
        self.wall_offset = 0
        self._simulation = simulation
        self._make = make
        self._program = program
        self._carrier = Carrier[End](self)  # of this life
        self._ends: dict[str, End] = {}  # peer → the link's end here
        self._by_link: dict[int, End] = {}
        self._timers: dict[TimerKey, int] = {}
        self._inbox: list[Input] = []
        self._turn_due = False
        self._in_turn = False
        self._syncing = False
        # Time that a turn takes, so that queues build up; and for how long inputs are gathered before a turn.
        self._service_ns_per_turn = 0
        self._service_ns_per_message = 0
        self._gather_ns = 0
        self._direct = True  # none of these is set
        self._busy_until = 0

    def set_pace(self, service_ns_per_turn: int, service_ns_per_message: int, gather_ns: int) -> None:
        """Makes turns take time, and gathers inputs into larger turns."""
        self._service_ns_per_turn = service_ns_per_turn
        self._service_ns_per_message = service_ns_per_message
        self._gather_ns = gather_ns
        self._direct = not (service_ns_per_turn or service_ns_per_message or gather_ns)

    def jump(self, by: int) -> None:
        """The wall clock is wrong by so much more."""
        self.wall_offset += by

    # --------------------------------------------------------------------------------------------------------- life
    @property
    def running(self) -> bool:
        return self.node is not None

    @property
    def out(self) -> Outbox:
        return self._carrier.out

    def start(self) -> None:
        require(not self.running, "a machine that runs is not started", machine=self.name)
        simulation = self._simulation
        self.life += 1
        self.dark = False
        tracing = simulation.tracing if self.role is Role.CLIENT else simulation.tracing_brokers
        self._carrier = Carrier[End](self, self, tracing, simulation.checking)
        streams: StoredStreams = self.disk.start() if self.disk is not None else {}
        self.node = self._make(simulation.rng_for(self.name, self.life), streams)
        started = Started(self.life)
        if self.disk is not None:
            started = Started(self.life, self.disk.log_id, self.disk.bounds())
        self._turn([started])
        if self._program is not None and self.node is not None:
            self._program.on_started(self)

    def stop(self, power_cut: bool) -> None:
        """The node is gone at once. A power cut also loses what was not safe on the disk, and no one is told."""
        if self.node is None:
            return
        self.node = None
        self.dark = power_cut
        self.paused = False
        self.life += 1
        for end in list(self._ends.values()):
            self._simulation.network.abandon(end, silently=power_cut)
        if power_cut:
            self._simulation.network.lose_power(self)
        self._ends, self._by_link, self._timers, self._inbox = {}, {}, {}, []
        self._turn_due = self._syncing = self._in_turn = False
        if self.disk is not None:
            self.disk.stop(power_cut)

    def pause(self) -> None:
        self.paused = self.node is not None

    def resume(self) -> None:
        if self.paused:
            self.paused = False
            self._carrier.send_blocked()
            if self._inbox and not self._turn_due:
                self._plan_turn()

    # ------------------------------------------------------------------------------------------------------- inputs
    def request(self, request: int, command: Any) -> None:
        """For the program: asks the node for something."""
        if self.node is not None:
            self._take(Requested(request, command))

    def receive(self, end: End, frames: list[Frame]) -> None:
        decoders = self._simulation.messages.decoders
        try:
            messages = [decoders[kind](body) for kind, body in frames]
        except (KeyError, *UNREADABLE) as error:
            self._simulation.network.close(end, f"no message: {error}")
            return
        received = Received(end.link, end.peer, messages)
        self._take(received)

    def end_to(self, peer: str) -> End | None:
        return self._ends.get(peer)

    def link_up(self, end: End, initiated: bool) -> None:
        """The network made a link."""
        self._ends[end.peer] = end
        self._by_link[end.link] = end
        self._carrier.link_up(end.peer, end)
        other, scheme = end.other, self._simulation.scheme if initiated else ""
        self._take(LinkUp(end.link, end.peer, other.life, other.station.role, initiated, end.address, scheme))

    def link_down(self, end: End, reason: str) -> None:
        """The network took the link away."""
        if self._ends.get(end.peer) is end:
            del self._ends[end.peer]
        self._by_link.pop(end.link, None)
        self._carrier.link_down(end.peer, end)
        self._take(LinkDown(end.link, end.peer, reason))

    def _take(self, event: Input) -> None:
        """To the node, now or, if it is busy, paused or gathering, in a turn to come."""
        if self._direct and not (self._turn_due or self.paused or self._in_turn):
            self._turn([event])
        elif self._turn_due or self.paused:
            self._inbox.append(event)
        elif self._in_turn:
            # Something that the node asked for in this turn has come true already; that is for the next one.
            self._inbox.append(event)
            self._plan_turn()
        elif self._busy_until > self._simulation.now:
            self._inbox.append(event)
            self._plan_turn()
        elif self._gather_ns:
            self._inbox.append(event)
            self._turn_due = True
            self._simulation.after(self._gather_ns, self._take_turn, self.life)
        else:
            self._turn([event])

    def _plan_turn(self) -> None:
        """For when the machine is through with its last turn."""
        self._turn_due = True
        self._simulation.at(max(self._simulation.now, self._busy_until), self._take_turn, self.life)

    def _take_turn(self, life: int) -> None:
        if life != self.life:
            return
        self._turn_due = False
        if self.paused or self.node is None:
            return
        inputs, self._inbox = self._inbox, []
        if inputs:
            self._turn(inputs)

    def _turn(self, inputs: list[Input]) -> None:
        simulation, node = self._simulation, self.node
        if node is None:
            return
        now = simulation.now
        if not self._direct:
            count = sum(len(i.messages) if type(i) is Received else 1 for i in inputs)
            self._busy_until = now + self._service_ns_per_turn + count * self._service_ns_per_message
        simulation.count_step()
        self._in_turn = True
        self._carrier.turn(node, inputs, now, simulation.wall + now + self.wall_offset)
        self._in_turn = False

    # ---------------------------------------------------------------------- asked for by the node: kernel/carrier.py
    def set_timers(self, timers: Sequence[tuple[TimerKey, int | None]]) -> None:
        simulation = self._simulation
        for key, after in timers:
            if after is None:
                self._timers.pop(key, None)
            else:
                if after < 0:
                    broken("a timer fires in the future", key=key, after=after)
                self._timers[key] = simulation.after(after, self._fire, (self.life, key))

    def _fire(self, arguments: tuple[int, TimerKey]) -> None:
        life, key = arguments
        if life == self.life and self._timers.get(key) == self._simulation.order:
            del self._timers[key]
            self._take(TimerFired(key))

    def note(self, note: Note) -> None:
        self._simulation.note(self.name, note)

    def hand(self, event: Input) -> None:
        self._simulation.after(0, self._hand_over, (self.life, event))

    def _hand_over(self, arguments: tuple[int, Input]) -> None:
        life, event = arguments
        if life == self.life:
            self._take(event)

    def connect(self, wanted: Connect) -> None:
        life = self.life

        def fail(reason: str) -> None:
            if life == self.life:
                self._take(ConnectFailed(wanted.peer, wanted.address, reason))

        target = self._simulation.addresses.get(wanted.address)
        self._simulation.network.connect(self, target, wanted.peer, wanted.address, fail)

    def disconnect(self, wanted: Disconnect) -> None:
        end = self._by_link.get(wanted.link)
        if end is not None:
            self._simulation.network.close(end, wanted.reason)

    def end(self, reason: str) -> None:
        self._simulation.stop_machine(self, reason)

    def on_deliver(self, subscription: int, events: Collection[Any]) -> None:
        if self._program is not None:
            self._program.on_deliver(self, subscription, events)

    def on_complete(self, request: int, result: Any) -> None:
        if self._program is not None:
            self._program.on_complete(self, request, result)

    # ------------------------------------------------------------------------------------------------------ storage
    def read(self, wanted: ReadLog | SendLog, limit: int, bytes_max: int) -> None:
        if self.disk is None:
            broken("a node without a disk reads nothing", machine=self.name)
        self._simulation.after(READ_DELAY, self._read, (self.life, self.disk, wanted, limit, bytes_max))

    def _read(self, arguments: tuple[int, Disk, ReadLog | SendLog, int, int]) -> None:
        life, disk, wanted, limit, bytes_max = arguments
        if life == self.life:
            self._take(self._carrier.found(wanted, disk.read(wanted.stream, wanted.start, limit, bytes_max)))

    def store(self, operations: Sequence[Operation]) -> None:
        disk = self.disk
        if disk is None:
            broken("a node without a disk appends nothing", machine=self.name)
        failed_before = disk.failed
        if not disk.write(operations):
            if not failed_before:
                self.hand(StorageFailed(disk.failed))
        elif not self._syncing:
            self._sync(disk)

    def _sync(self, disk: Disk) -> None:
        self._syncing = True
        self._simulation.after(disk.sync_delay(), self._synced, (self.life, disk, disk.written()))

    def _synced(self, arguments: tuple[int, Disk, int]) -> None:
        life, disk, count = arguments
        if life != self.life:
            return
        self._syncing = False
        before = disk.durable
        token = disk.make_safe(count)
        if disk.dirty:
            self._sync(disk)
        if token > before:
            self._carrier.durable(token)
            self._take(Durable(token))

    # ------------------------------------------------------------------------------------------------------ sending
    def has_room(self, link: End) -> bool:
        if self.paused:
            return False
        if link.free_at <= self._simulation.now:
            return True
        if link.is_to_be_woken():
            self._simulation.at(link.free_at, self._writable, link)
        return False

    def _writable(self, end: End) -> None:
        end.woken()
        self._carrier.writable(end.peer)

    def put(self, link: End, entries: list[Queued]) -> None:
        simulation = self._simulation
        if simulation.tracing_brokers:
            simulation.note_hops(self, link, entries)
        kinds, encode = simulation.messages.kinds, simulation.messages.encoder
        simulation.network.send(link, Packet([(kinds[type(e.message)], encode(e.message)) for e in entries]))
