"""Runs one node over asyncio: hands it what happened, and carries out what it asks for.

Everything that happens between two turns of the event loop is handed over in one list; everything that the node says to
a peer in a turn leaves in one write. While storage syncs, turns go on. A node that finds itself broken is stopped with
all its links: what it would say next can't be trusted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from holdfast.codec.catalogue import Catalogue
from holdfast.kernel.carrier import Carrier, Program
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
from holdfast.kernel.messages import Message
from holdfast.kernel.node import InvariantBroken, Node, broken
from holdfast.kernel.outbox import CONTROL, Connect, Disconnect, Note, Operation, ReadLog, SendLog
from holdfast.kernel.parts import BREACH
from holdfast.kernel.queues import Queued
from holdfast.kernel.storage import StoredStreams
from holdfast.runtime.connection import CLOSE_WITHIN_S, SECONDS, Connection
from holdfast.runtime.live_trace import LiveTrace
from holdfast.runtime.refusals import Refusals
from holdfast.runtime.storage import Storage
from holdfast.wire.addresses import split_address
from holdfast.wire.framing import encode_frame, encode_frames
from holdfast.wire.handshake import Dialling, Listening, Peer, Reason
from holdfast.wire.limits import WireLimits

NodeFactory = Callable[[Random, StoredStreams], Node]

CONNECT_WITHIN_S = 3.0

log = logging.getLogger("holdfast")


class NodeRunner:
    """One node and its connections. Made and used in the thread of one event loop."""

    def __init__(
        self,
        name: str,
        role: Role,
        make: NodeFactory,
        catalogue: Catalogue,
        program: Program | None = None,
        storage: Storage | None = None,
        limits: WireLimits | None = None,
        incarnation: int = 0,
        remote_operators: bool = False,
        make_trace: Callable[[], LiveTrace] | None = None,
        spoken_in: Callable[[str], Catalogue] | None = None,
    ) -> None:
        """`spoken_in` says what is spoken with those that were dialled, by the scheme that they name; without it, the
        catalogue is what is spoken with everyone."""
        self.name = name
        self._make_trace = make_trace
        self._trace: LiveTrace | None = None
        self._remote_operators = remote_operators
        self.role = role
        self.failure: str = ""  # why the node stopped, if it did by itself
        self.storage_failed = False  # and it did because of its disk
        self.stopped = asyncio.Event()
        self._make = make
        self._storage = storage
        self._limits = limits or WireLimits()
        # Larger at each start, as long as the clock does not go back; a disk knows better.
        self._incarnation = incarnation or time.time_ns()
        self._catalogue = catalogue
        self._spoken_in = spoken_in
        self._carrier = Carrier[Connection](self, program, tracing=make_trace is not None)
        # A broker hears many peers at a time, and takes together what they say; a client waits for nobody.
        self._at_once = role is Role.CLIENT
        self._node: Node | None = None
        self._loop = asyncio.get_running_loop()
        self._inbox: list[Input] = []
        self._turn_due = False
        self._timers: dict[TimerKey, asyncio.TimerHandle] = {}
        self._servers: list[asyncio.Server] = []
        self._late_roles: tuple[Role, ...] = ()
        self._connections: set[Connection] = set()  # all, also those that are not open yet
        self._greeting: dict[Connection, None] = {}  # accepted, and not open yet; oldest first
        self._refusals = Refusals(name, self._loop.time)
        self.refusals = self._refusals.counts  # what peers did that they may not, by reason
        self._lingering: set[Connection] = set()  # closed, and with something left to write
        self._all_gone = asyncio.Event()
        self._by_peer: dict[str, Connection] = {}
        self._by_link: dict[int, Connection] = {}
        self._heard: list[Connection] = []  # with messages that the node has not been given
        self._last_link = 0
        self._dialling: set[asyncio.Task[None]] = set()
        self._turns = 0
        self._opened = 0
        self._bytes_read = 0  # over connections that are gone
        self._bytes_written = 0

    # -------------------------------------------------------------------------------------------------------- life
    def start(self) -> None:
        """Makes the node from what storage kept, and starts it."""
        self.open()
        self.begin()

    def open(self) -> None:
        """The first half of it: the storage is this node's alone, and nobody has heard of it yet."""
        streams: StoredStreams = {}
        if self._storage is not None:
            streams = self._storage.start(self._on_durable, self._on_storage_failed)
            self._incarnation = self._storage.next_incarnation()
        self._node = self._make(Random(), streams)

    def begin(self) -> None:
        """The second half: from now on it dials."""
        if self._make_trace is not None:
            # Not before: a second process of a broker that runs must leave its trace alone.
            self._trace = self._make_trace()
            self._trace.fault(self.name, "up")
        if self._storage is None:
            self.hand(Started(self._incarnation))
        else:
            storage = self._storage
            self.hand(Started(self._incarnation, storage.log_id, storage.bounds(), storage.repairs))

    async def listen(self, roles: tuple[Role, ...], host: str, port: int, at_once: bool = True) -> int:
        """Accepts peers of some roles at an address; gives the port. Not at once: it is taken; `accept` opens it, and
        says the roles if they are not known yet."""
        server = await self._loop.create_server(lambda: self._accept(roles), host, port, start_serving=at_once)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def accept(self, roles: tuple[Role, ...] = (), catalogue: Catalogue | None = None) -> None:
        """From now on peers come in. What is not known from the beginning, a client learns from its first broker."""
        self._late_roles = roles
        self._catalogue = catalogue or self._catalogue
        for server in self._servers:
            await server.start_serving()

    async def stop(self, reason: str = "the node is stopping") -> None:
        """Closes everything, after what was said has left."""
        for server in self._servers:
            server.close()
        self._halt(reason)
        for task in list(self._dialling):
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)
        if self._lingering:
            self._all_gone.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_gone.wait(), CLOSE_WITHIN_S + 0.5)
        for server in self._servers:
            await server.wait_closed()

    def _halt(self, reason: str) -> None:
        self._node = None
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        self._inbox.clear()
        for server in self._servers:
            server.close()
        # A server that is closed leaves the connections that it accepted alive.
        for connection in list(self._connections):
            connection.close(reason)
        if self._storage is not None:
            self._storage.close()
            self._storage = None
        if self._trace is not None:
            trace, self._trace = self._trace, None
            trace.fault(self.name, "crashed" if self.failure else "stopped")
            trace.close()
        self.stopped.set()

    def measure(self) -> dict[str, int]:
        """What the node measures, and what is measured of its connections."""
        measure_node: Callable[[], dict[str, int]] = getattr(self._node, "measure", dict)
        return {
            **measure_node(),
            "connections": len(self._by_link),
            "connections_opened_total": self._opened,
            "connections_refused_total": self.refusals.total(),
            "bytes_read_total": self._bytes_read + sum(c.bytes_read for c in self._connections),
            "bytes_written_total": self._bytes_written + sum(c.bytes_written for c in self._connections),
            "turns_total": self._turns,
            "disk_bytes": self._storage.bytes_on_disk if self._storage is not None else 0,
            "disk_alarm": int(self._storage is not None and self._storage.is_held),
        }

    def measure_each(self) -> dict[str, dict[str, int]]:
        """What the node measures of each of several, by their names."""
        measure_node: Callable[[], dict[str, dict[str, int]]] = getattr(self._node, "measure_each", dict)
        return measure_node()

    def request(self, request: int, command: Any) -> None:
        """For the program beside it: asks the node for something."""
        self.hand(Requested(request, command))

    def hurry(self) -> None:
        """For the program, from the event loop: the node gets what waits for it now, not a turn later."""
        if self._turn_due:
            self._turn()

    # ------------------------------------------------------------------------------------------------------- turns
    def hand(self, event: Input) -> None:
        self._inbox.append(event)
        if not self._turn_due:
            self._turn_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_due = False
        self._turns += 1
        node = self._node
        if node is None or not self._inbox:
            return
        inputs, self._inbox = self._inbox, []
        heard, self._heard = self._heard, []
        try:
            self._carrier.turn(node, inputs, time.monotonic_ns(), time.time_ns())
            if self._trace is not None:
                self._trace.flush()
            for connection in heard:
                connection.digested()
        except InvariantBroken as error:
            self.end(str(error))
        except Exception as error:
            # A node that raises is as broken as one that finds itself so; going on would be guessing.
            log.exception("%s raised", self.name)
            self.end(f"{type(error).__name__}: {error}")

    # ---------------------------------------------------------------------- asked for by the node: kernel/carrier.py
    def store(self, operations: Sequence[Operation]) -> None:
        if self._storage is None:
            broken("a node without storage appends nothing", node=self.name)
        self._storage.write(operations)

    def set_timers(self, timers: Sequence[tuple[TimerKey, int | None]]) -> None:
        for key, after in timers:
            handle = self._timers.pop(key, None)
            if handle is not None:
                handle.cancel()
            if after is not None:
                self._timers[key] = self._loop.call_later(after * SECONDS, self._fire, key)

    def _fire(self, key: TimerKey) -> None:
        del self._timers[key]
        self.hand(TimerFired(key))

    def note(self, note: Note) -> None:
        if self._trace is not None:
            self._trace.note(note)
        if note.kind == CONTROL:  # others are for traces alone
            told = " ".join(f"{name}={value!r}" for name, value in note.fields["detail"].items())
            log.log(note.level.value, "%s: %s: %s", self.name, note.fields["what"], told)

    def has_room(self, link: Connection) -> bool:
        return link.writable

    def put(self, link: Connection, entries: list[Queued]) -> None:
        if self._trace is not None:  # before the peer can have it: rows of several brokers stand by their clocks
            for entry in entries:
                self._trace.sent(link.peer, entry.message, entry.weight)
        kinds, encode = link.kinds, link.encode
        if len(entries) == 1:
            message = entries[0].message
            link.write(encode_frame(kinds[type(message)], encode(message)))
        else:
            link.write(encode_frames([(kinds[type(e.message)], encode(e.message)) for e in entries]))

    def connect(self, wanted: Connect) -> None:
        task = self._loop.create_task(self._dial(wanted))
        self._dialling.add(task)
        task.add_done_callback(self._dialling.discard)

    def disconnect(self, wanted: Disconnect) -> None:
        connection = self._by_link.get(wanted.link)
        if connection is not None and wanted.reason.startswith(BREACH):
            connection.refuse(Reason.BREACH, wanted.reason.removeprefix(BREACH))
        elif connection is not None:
            connection.close(wanted.reason)

    def read(self, wanted: ReadLog | SendLog, limit: int, bytes_max: int) -> None:
        if self._storage is not None:
            part = self._storage.read(wanted.stream, wanted.start, limit, bytes_max)
            self.hand(self._carrier.found(wanted, part))

    def end(self, reason: str) -> None:
        """Stops by itself."""
        log.critical("%s stopped: %s", self.name, reason)
        self.failure = reason
        self._halt(reason)

    # ----------------------------------------------------------------------------------------------------- storage
    def _on_durable(self, token: int) -> None:
        self._carrier.durable(token)
        self.hand(Durable(token))

    def _on_storage_failed(self, reason: str) -> None:
        self.storage_failed = True
        self.hand(StorageFailed(reason))

    # ------------------------------------------------------------------------------------------------- connections
    def _accept(self, roles: tuple[Role, ...]) -> Connection:
        roles = roles or self._late_roles
        spoken = self._catalogue
        handshake = Listening(
            roles, self.name, self._incarnation, self._limits, spoken.versions, spoken.scheme, self.role
        )
        limits = self._limits.between_brokers() if roles == (Role.BROKER,) else self._limits
        connection = Connection(self, handshake, limits, spoken)
        self._connections.add(connection)
        if len(self._greeting) >= self._limits.handshakes:
            # Whoever means it has said who it is long before so many others came: the oldest is the slow one.
            problem = f"more than handshakes, {self._limits.handshakes}, connections have not said who they are"
            next(iter(self._greeting)).refuse(Reason.CROWDED, problem)
        self._greeting[connection] = None
        return connection

    async def _dial(self, action: Connect) -> None:
        spoken = self._catalogue
        scheme = spoken.scheme if self.role is Role.BROKER else ""
        handshake = Dialling(self.role, self.name, self._incarnation, self._limits, spoken.versions, scheme)
        limits = self._limits.between_brokers() if self.role is Role.BROKER else self._limits
        connection = Connection(self, handshake, limits, spoken, action.address, action.peer)
        self._connections.add(connection)
        try:
            host, port = split_address(action.address)  # which may be what a peer named, and no address at all
            dialled = self._loop.create_connection(lambda: connection, host, port)
            await asyncio.wait_for(dialled, CONNECT_WITHIN_S)
        except (OSError, ValueError, OverflowError, TimeoutError) as error:
            reason = "timed out" if isinstance(error, TimeoutError) else str(error)
            self._connections.discard(connection)
            self.hand(ConnectFailed(action.peer, action.address, reason))

    def on_open(self, connection: Connection, peer: Peer) -> bool:
        name = peer_name(peer.role, peer.name)
        if connection.expected not in ("", name):
            connection.close(f"{name} answered, not {connection.expected}")
            return False
        if len(self._by_link) >= self._limits.connections:
            problem = (
                f"the {self.role.value} has all the connections that it takes: connections, {self._limits.connections}"
            )
            return self._refuse(connection, Reason.LIMIT, problem)
        if peer.role is Role.OPERATOR and not connection.is_local and not self._remote_operators:
            problem = "operators of other machines are served only if the site file says [security] remote_operators"
            return self._refuse(connection, Reason.ROLE, problem)
        self._greeting.pop(connection, None)
        older = self._by_peer.get(name)
        if older is not None:
            older.close("superseded by a newer link")
        self._opened += 1
        self._last_link += 1
        connection.name(self._last_link, name)
        if self._spoken_in is not None and connection.address:
            connection.speak(self._spoken_in(peer.scheme))
        self._by_peer[name] = self._by_link[connection.link] = connection
        self._carrier.link_up(name, connection)
        address = connection.address
        if self._trace is not None:
            self._trace.link(name, is_up=True)
        self.hand(LinkUp(connection.link, name, peer.incarnation, peer.role, bool(address), address, peer.scheme))
        return True

    def _refuse(self, connection: Connection, reason: Reason, problem: str) -> bool:
        if connection.address:
            connection.close(problem)  # we dialled: the other side did nothing wrong
        else:
            connection.refuse(reason, problem)
        return False

    def on_refused(self, connection: Connection, reason: Reason, problem: str) -> None:
        self._refusals.add(reason, connection.peer or connection.origin, problem)

    def on_messages(self, connection: Connection, messages: list[Message]) -> bool:
        if self._trace is not None:
            self._trace.received(connection.peer, messages)
        received = Received(connection.link, connection.peer, messages)
        if self._at_once:
            self._inbox.append(received)
            self._turn()
            return True
        self._heard.append(connection)
        self.hand(received)
        return False

    def on_writable(self, connection: Connection) -> None:
        self._carrier.writable(connection.peer)

    def on_gone(self, connection: Connection) -> None:
        self._lingering.discard(connection)
        if not self._lingering:
            self._all_gone.set()

    def on_closed(self, connection: Connection, reason: str) -> None:
        self._connections.discard(connection)
        self._bytes_read += connection.bytes_read
        self._bytes_written += connection.bytes_written
        self._greeting.pop(connection, None)
        if connection.has_socket:
            self._lingering.add(connection)
        if connection.link:
            del self._by_link[connection.link]
            if self._by_peer.get(connection.peer) is connection:
                del self._by_peer[connection.peer]
            self._carrier.link_down(connection.peer, connection)
            if self._trace is not None:
                self._trace.link(connection.peer, is_up=False)
            self.hand(LinkDown(connection.link, connection.peer, reason))
        elif connection.address:
            self.hand(ConnectFailed(connection.expected, connection.address, reason, connection.refusal))
