"""A simulated machine: a node, its outbox, its timers, its links and its disk; and what can befall it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from holdfast.codec import UNREADABLE
from holdfast.kernel.inputs import (
    ConnectFailed,
    Drained,
    Durable,
    Input,
    LinkDown,
    LinkUp,
    LogRead,
    LogSent,
    Received,
    Requested,
    Started,
    StorageFailed,
    TimerFired,
    TimerKey,
)
from holdfast.kernel.links import Role, peer_name
from holdfast.kernel.node import Node, broken, require
from holdfast.kernel.outbox import Complete, Connect, Deliver, Disconnect, Note, Outbox, ReadLog, SendLog
from holdfast.kernel.queues import Entry, Lane, OutputQueue, QueueState
from holdfast.kernel.storage import StoredStreams, message_of
from holdfast.protocols.catalogue import MESSAGES
from holdfast.sim.disk import Disk
from holdfast.sim.network import End, Frame, Packet

if TYPE_CHECKING:
    from holdfast.sim.simulation import Simulation

NodeFactory = Callable[[Random, StoredStreams], Node]

TAKE_BYTES = 256 * 1024  # from a queue for one packet
READ_DELAY = 200_000


class Application:
    """What stands beside a client's node. The scenario's clients override this; a broker has none."""

    def on_started(self, host: Host) -> None:
        """The node is up and has connected nothing yet."""

    def on_deliver(self, host: Host, subscription: int, events: list[Any]) -> None:
        """Events for a subscription."""

    def on_complete(self, host: Host, request: int, result: Any) -> None:
        """An answer, or a report."""


class Host:
    """One machine. `life` counts its starts: whatever was meant for an earlier life is void."""

    def __init__(
        self,
        simulation: Simulation,
        name: str,
        role: Role,
        make: NodeFactory,
        disk: Disk | None,
        application: Application | None = None,
    ) -> None:
        self.name = name
        self.role = role
        self.peer = peer_name(role, name)
        self.disk = disk
        self.life = 0
        self.node: Node | None = None
        self.out = Outbox()
        self.dark = False  # without power: no one answers
        self.paused = False
        self.wall_offset = 0
        self._simulation = simulation
        self._make = make
        self._application = application
        self._ends: dict[str, End] = {}  # peer → the link's end here
        self._by_link: dict[int, End] = {}
        self._new_links: list[End] = []  # that the next turn tells the node of
        self._timers: dict[TimerKey, int] = {}
        self._inbox: list[Input] = []
        self._turn_due = False
        self._in_turn = False
        self._blocked: dict[OutputQueue, None] = {}  # with something left that waits for the disk or the link
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

    # --------------------------------------------------------------------------------------------------------- life
    @property
    def running(self) -> bool:
        return self.node is not None

    def start(self) -> None:
        require(not self.running, "a host that runs is not started", host=self.name)
        simulation = self._simulation
        self.life += 1
        self.dark = False
        self.out = Outbox(simulation.tracing if self.role is Role.CLIENT else simulation.tracing_brokers)
        streams: StoredStreams = self.disk.start() if self.disk is not None else {}
        self.node = self._make(simulation.rng_for(self.name, self.life), streams)
        started = Started(self.life)
        if self.disk is not None:
            started = Started(self.life, self.disk.log_id, self.disk.bounds())
        self._turn([started])
        if self._application is not None and self.node is not None:
            self._application.on_started(self)

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
        self._blocked, self._new_links = {}, []
        self._turn_due = self._syncing = self._in_turn = False
        if self.disk is not None:
            self.disk.stop(power_cut)

    def pause(self) -> None:
        self.paused = self.node is not None

    def resume(self) -> None:
        if self.paused:
            self.paused = False
            for queue in list(self._blocked):
                self._transmit(queue)
            if self._inbox and not self._turn_due:
                self._plan_turn()

    # ------------------------------------------------------------------------------------------------------- inputs
    def request(self, request: int, command: Any) -> None:
        """For the application: asks the node for something."""
        if self.node is not None:
            self._hand(Requested(request, command))

    def receive(self, end: End, frames: list[Frame]) -> None:
        decoders = MESSAGES.decoders
        try:
            messages = [decoders[kind](body) for kind, body in frames]
        except (KeyError, *UNREADABLE) as error:
            self._simulation.network.close(end, f"no message: {error}")
            return
        received = Received(end.link, end.peer, messages)
        self._hand(received)

    def end_to(self, peer: str) -> End | None:
        return self._ends.get(peer)

    def link_up(self, end: End, initiated: bool) -> None:
        """The network made a link."""
        self._ends[end.peer] = end
        self._by_link[end.link] = end
        self._new_links.append(end)
        other = end.other
        self._hand(LinkUp(end.link, end.peer, other.life, other.host.role, initiated, end.address))

    def link_down(self, end: End, reason: str) -> None:
        """The network took the link away."""
        if self._ends.get(end.peer) is end:
            del self._ends[end.peer]
        self._by_link.pop(end.link, None)
        self._hand(LinkDown(end.link, end.peer, reason))

    def _hand(self, event: Input) -> None:
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
        """For when the host is through with its last turn."""
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
        simulation, out, node = self._simulation, self.out, self.node
        if node is None:
            return
        out.now = simulation.now
        out.wall = simulation.wall + simulation.now + self.wall_offset
        if not self._direct:
            count = sum(len(i.messages) if type(i) is Received else 1 for i in inputs)
            self._busy_until = simulation.now + self._service_ns_per_turn + count * self._service_ns_per_message
        simulation.steps += 1
        if simulation.steps > simulation.steps_max or simulation.sent_bytes > simulation.sent_bytes_max:
            broken("a run does not become a storm", steps=simulation.steps, sent_bytes=simulation.sent_bytes)
        self._in_turn = True
        new_links = self._new_links
        if new_links:
            self._new_links = []
            for end in new_links:
                end.known = True
        node.handle(inputs, out)
        if simulation.checking:
            node.check_invariants()
        for end in new_links:
            if end.peer in out.queues:
                out.queues[end.peer].touch()  # something may have waited for the link
        self._carry_out(out)
        self._in_turn = False

    # ------------------------------------------------------------------------------------------------------ effects
    def _carry_out(self, out: Outbox) -> None:
        if out.stored:
            self._store(out)
        if out.timers:
            self._set_timers(out)
        actions: list[Any] = []
        if out.actions:
            actions, out.actions = out.actions, []
            for action in actions:
                if type(action) is Note:
                    self._simulation.note(self.name, action)
        if out.touched:
            touched = out.touched[:]
            out.touched.clear()
            for queue in touched:
                queue.seen = False
                self._transmit(queue)
        for action in actions:
            match action:
                case Deliver():
                    if self._application is not None:
                        self._application.on_deliver(self, action.subscription, action.events)
                case Complete():
                    if self._application is not None:
                        self._application.on_complete(self, action.request, action.result)
                case Connect():
                    self._connect(action)
                case Disconnect():
                    end = self._by_link.get(action.link)
                    if end is not None:
                        self._simulation.network.close(end, action.reason)
                case ReadLog():
                    require(self.disk is not None, "a node without a disk reads nothing", host=self.name)
                    self._simulation.after(READ_DELAY, self._read, (self.life, action))
                case SendLog():
                    require(self.disk is not None, "a node without a disk reads nothing", host=self.name)
                    self._simulation.after(READ_DELAY, self._send_log, (self.life, action))
        if out.stopping is not None:
            self._simulation.stop_host(self, out.stopping)

    def _set_timers(self, out: Outbox) -> None:
        simulation = self._simulation
        for key, after in out.timers:
            if after is None:
                self._timers.pop(key, None)
            else:
                require(after >= 0, "a timer fires in the future", key=key, after=after)
                self._timers[key] = simulation.after(after, self._fire, (self.life, key))
        out.timers.clear()

    def _fire(self, arguments: tuple[int, TimerKey]) -> None:
        life, key = arguments
        if life == self.life and self._timers.get(key) == self._simulation.order:
            del self._timers[key]
            self._hand(TimerFired(key))

    def _connect(self, action: Connect) -> None:
        life = self.life
        network = self._simulation.network

        def fail(reason: str) -> None:
            if life == self.life:
                self._hand(ConnectFailed(action.peer, action.address, reason))

        target = self._simulation.addresses.get(action.address)
        network.connect(self, target, action.peer, action.address, fail)

    def _read(self, arguments: tuple[int, ReadLog]) -> None:
        life, action = arguments
        if life == self.life and self.disk is not None:
            part = self.disk.read(action.stream, action.start, action.limit)
            self._hand(LogRead(action.request, part.records, part.next))

    def _send_log(self, arguments: tuple[int, SendLog]) -> None:
        life, action = arguments
        if life != self.life or self.disk is None:
            return
        part = self.disk.read(action.stream, action.start, 1 << 30, action.bytes_max)
        message, through, count = message_of(action.message, action.start, part)
        queue = self.out.queues.get(action.to)
        if queue is not None and queue.state is not QueueState.CLOSED:
            # Behind what was sent before, also if that waits for the disk.
            queue.put(Entry(message, Lane.USER, action.token, message.weight()))
            self._transmit(queue)
        self._hand(LogSent(action.request, action.to, through, count, part.gone))

    # ------------------------------------------------------------------------------------------------------ storage
    def _store(self, out: Outbox) -> None:
        operations, out.stored = out.stored, []
        require(self.disk is not None, "a node without a disk appends nothing", host=self.name)
        disk = self.disk
        if disk is None:
            return
        failed_before = disk.failed
        if not disk.write(operations):
            if not failed_before:
                self._simulation.after(0, self._storage_failed, (self.life, disk.failed))
        elif not self._syncing:
            self._sync(disk)

    def _storage_failed(self, arguments: tuple[int, str]) -> None:
        life, reason = arguments
        if life == self.life:
            self._hand(StorageFailed(reason))

    def _sync(self, disk: Disk) -> None:
        self._syncing = True
        self._simulation.after(disk.sync_delay(), self._synced, (self.life, disk.written()))

    def _synced(self, arguments: tuple[int, int]) -> None:
        life, count = arguments
        disk = self.disk
        if life != self.life or disk is None:
            return
        self._syncing = False
        before = disk.durable
        token = disk.make_safe(count)
        for queue in list(self._blocked):
            self._transmit(queue)
        if disk.dirty:
            self._sync(disk)
        if token > before:
            self._hand(Durable(token))

    # ------------------------------------------------------------------------------------------------------ sending
    def _transmit(self, queue: OutputQueue) -> None:
        """Takes from a queue what may leave, and puts it on the link, if there is one that the node knows of.

        Before the node has heard that a link took another's place, what it meant for the other does not leave.
        """
        if self.paused:
            self._blocked[queue] = None
            return
        end = self._ends.get(queue.peer)
        if end is None or not end.known or queue.state is QueueState.CLOSED:
            self._blocked.pop(queue, None)
            return
        network = self._simulation.network
        disk = self.disk
        durable = self.out.token if disk is None else disk.durable
        kinds, encode = MESSAGES.kinds, MESSAGES.encoder
        while True:
            if end.free_at > self._simulation.now:
                if not end.waking:
                    end.waking = True
                    self._simulation.at(end.free_at, self._writable, end)
                return
            entries = queue.take(durable, TAKE_BYTES)
            if entries:
                if self._simulation.tracing_brokers:
                    self._simulation.note_hops(self, end, entries)
                frames = [(kinds[type(entry.message)], encode(entry.message)) for entry in entries]
                for _, body in frames:
                    self._simulation.sent_bytes += len(body)
                network.send(end, Packet(frames))
            left = len(queue)
            if not (left and entries):
                break
        if left:
            self._blocked[queue] = None
        elif self._blocked:
            self._blocked.pop(queue, None)
        if queue.low_water is not None and left <= queue.low_water:
            queue.low_water = None
            drained = Drained(queue.peer, queue.taken_count, queue.taken_bytes)
            self._simulation.after(0, self._drained, (self.life, drained))

    def _writable(self, end: End) -> None:
        end.waking = False
        if end.peer in self.out.queues:
            self._transmit(self.out.queues[end.peer])

    def _drained(self, arguments: tuple[int, Drained]) -> None:
        life, drained = arguments
        if life == self.life:
            self._hand(drained)
