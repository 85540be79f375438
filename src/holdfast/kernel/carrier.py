"""Carries out what a node asked for in a turn: what both drivers share, so that the simulator tests what happens over
sockets.

After every turn, in this order: records to the disk, timers, notes, what may leave the queues, everything else, and the
end of the node if it asked for that. Of the queues the one that was touched last comes first: a broker speaks of events
after it has answered, and each write takes its time. Subscribers wait for the event; publishers have room in their
windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from holdfast.kernel.inputs import Input, LogRead, LogSent, TimerKey
from holdfast.kernel.node import Node
from holdfast.kernel.outbox import Complete, Connect, Deliver, Disconnect, Note, Operation, Outbox, ReadLog, SendLog
from holdfast.kernel.queues import Lane, OutputQueue, Queued
from holdfast.kernel.storage import LogPart, message_of

TAKE_BYTES: Final = 256 * 1024  # from a queue for one write
READ_BYTES: Final = 1024 * 1024  # of a log for one `read_log`
READ_RECORDS: Final = 65_536  # of a log for one `send_log`

Link = TypeVar("Link")
_Link_contra = TypeVar("_Link_contra", contravariant=True)


class Driver(Protocol[_Link_contra]):
    """What carrying out takes: a disk, a clock, links."""

    def store(self, operations: Sequence[Operation]) -> None:
        """Takes in a turn's records, and says `durable` of the carrier when they are safe."""
        ...

    def set_timers(self, timers: Sequence[tuple[TimerKey, int | None]]) -> None:
        """Each to fire after so many nanoseconds; None: never."""
        ...

    def note(self, note: Note) -> None: ...

    def has_room(self, link: _Link_contra) -> bool:
        """Whether the link takes more now. If not, `writable` of the carrier is said when it does."""
        ...

    def put(self, link: _Link_contra, entries: list[Queued]) -> None:
        """Puts messages on the link."""
        ...

    def connect(self, wanted: Connect) -> None: ...

    def disconnect(self, wanted: Disconnect) -> None: ...

    def read(self, wanted: ReadLog | SendLog, limit: int, bytes_max: int) -> None:
        """Reads a part of a log, now or a little later; `found` of the carrier makes an input of it."""
        ...

    def hand(self, event: Input) -> None:
        """For the node, in a turn to come."""
        ...

    def end(self, reason: str) -> None:
        """The node asked to be stopped."""
        ...


class Program(Protocol):
    """What stands beside a client's node: who asked for something, and gets events."""

    def on_deliver(self, subscription: int, events: Any) -> None: ...

    def on_complete(self, request: int, result: Any) -> None: ...


class Carrier(Generic[Link]):
    """Of one life of a node: its outbox, and the links that it knows."""

    __slots__ = ("_blocked", "_checking", "_driver", "_durable", "_fresh", "_links", "_program", "out")

    def __init__(
        self, driver: Driver[Link], program: Program | None = None, tracing: bool = False, checking: bool = False
    ) -> None:
        """`checking`: the node's invariants, after every turn."""
        self.out = Outbox(tracing)
        self._driver = driver
        self._program = program
        self._checking = checking
        self._links: dict[str, Link] = {}  # by peers; the node was told of them
        self._fresh: dict[str, Link] = {}  # of which the next turn tells the node
        self._blocked: dict[OutputQueue, None] = {}  # with something left that waits for the disk or for the link
        self._durable = 0  # token

    # -------------------------------------------------------------------------------------------------------- links
    def link_up(self, peer: str, link: Link) -> None:
        """There is a link, of which the node is told in its next turn. Until then nothing leaves to the peer: what is
        queued was meant for the link whose place this one took."""
        self._links.pop(peer, None)
        self._fresh[peer] = link

    def link_down(self, peer: str, link: Link) -> None:
        for links in (self._fresh, self._links):
            if links.get(peer) is link:
                del links[peer]

    # -------------------------------------------------------------------------------------------------------- turns
    def turn(self, node: Node, inputs: list[Input], now: int, wall: int) -> None:
        """Hands the node what happened, and carries out what it asks for."""
        out = self.out
        out.begin(now, wall)
        node.handle(inputs, out)
        if self._checking:
            node.check_invariants()
        if self._fresh:
            # From here on what is queued for these peers is meant for these links; it may have been queued before.
            for peer, link in self._fresh.items():
                self._links[peer] = link
                if peer in out.queues:
                    out.queues[peer].touch()
            self._fresh.clear()
        self.carry_out()

    def carry_out(self) -> None:
        # Everything is copied before it is cleared: what is carried out may lead to another turn.
        out, driver = self.out, self._driver
        if out.stored:
            operations = out.stored[:]
            out.stored.clear()
            driver.store(operations)
        if out.timers:
            timers = out.timers[:]
            out.timers.clear()
            driver.set_timers(timers)
        if out.notes:
            notes = out.notes[:]
            out.notes.clear()
            for note in notes:
                driver.note(note)
        if out.touched:
            touched = list(out.touched)
            out.touched.clear()
            for queue in reversed(touched):
                self._transmit(queue)
        if out.actions:
            actions = out.actions[:]
            out.actions.clear()
            for action in actions:
                self._act(action)
        if out.stopping is not None:
            driver.end(out.stopping)

    def _act(self, action: ReadLog | SendLog | Connect | Disconnect | Deliver | Complete) -> None:
        match action:
            case Deliver():
                if self._program is not None:
                    self._program.on_deliver(action.subscription, action.events)
            case Complete():
                if self._program is not None:
                    self._program.on_complete(action.request, action.result)
            case Connect():
                self._driver.connect(action)
            case Disconnect():
                self._driver.disconnect(action)
            case ReadLog():
                self._driver.read(action, action.limit, READ_BYTES)
            case SendLog():
                self._driver.read(action, READ_RECORDS, action.bytes_max)

    def found(self, wanted: ReadLog | SendLog, part: LogPart) -> LogRead | LogSent:
        """What the node is to hear of a part of a log that was read; one that is for a peer is on its way then."""
        if isinstance(wanted, ReadLog):
            return LogRead(wanted.request, part.records, part.next)
        message, through, count = message_of(wanted.message, wanted.start, part)
        queue = self.out.queues.get(wanted.to)
        if queue is not None:
            # Behind what was sent before, also if that waits for the disk.
            queue.put(Queued(message, Lane.USER, wanted.token, message.weight()))
            self._transmit(queue)
        return LogSent(wanted.request, wanted.to, through, count, part.gone)

    # ------------------------------------------------------------------------------------------------------ sending
    def durable(self, token: int) -> None:
        """Everything up to a token is safe."""
        self._durable = token
        self.send_blocked()

    def writable(self, peer: str) -> None:
        """The link to a peer takes something again."""
        queue = self.out.queues.get(peer)
        if queue is not None:
            self._transmit(queue)

    def send_blocked(self) -> None:
        """What waited may leave now."""
        for queue in list(self._blocked):
            self._transmit(queue)

    def _transmit(self, queue: OutputQueue) -> None:
        """Takes from a queue what may leave, and puts it on the link, if there is one that the node knows of."""
        link = self._links.get(queue.peer)
        if link is None:
            self._blocked.pop(queue, None)
            return
        driver = self._driver
        while driver.has_room(link):
            entries, left = queue.take(self._durable, TAKE_BYTES)
            if entries:
                driver.put(link, entries)
            if not (entries and left):
                break
        else:
            left = len(queue)
        if left:
            self._blocked[queue] = None
        elif self._blocked:
            self._blocked.pop(queue, None)
        if queue.low_water is not None and left <= queue.low_water:
            driver.hand(queue.drained())
