"""Output queues: what a node wants to say to one peer, until the driver takes it.

A queue belongs to the node, not to a link: it outlives links, and the node decides at `LinkDown` what becomes of its
contents. The driver takes from queues that are open while there is a link. A queue can be suspended, resumed, closed,
and moved behind another peer's queue as a whole.

In which order messages leave is the queue's discipline, and can be replaced: D0 needs a wait-ready queue, D3 one FIFO
with a pointer for each peer. The usual one is `Lanes`.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import NamedTuple, Protocol

from holdfast.kernel.messages import Message
from holdfast.kernel.node import require


class Lane(enum.IntEnum):
    """Control leaves before user traffic."""

    CONTROL = 0
    USER = 1


class QueueState(enum.Enum):
    OPEN = "open"
    SUSPENDED = "suspended"
    CLOSED = "closed"


class Entry(NamedTuple):
    """A message on its way out. It may leave once everything up to `token` is durable; 0 waits for nothing."""

    message: Message
    lane: Lane
    token: int
    weight: int


class Discipline(Protocol):
    """In which order messages leave a queue."""

    def put(self, entry: Entry) -> None: ...

    def take(self, durable: int, bytes_max: int) -> list[Entry]:
        """Removes and gives what may leave now: nothing whose token is above `durable`, and not much more than
        `bytes_max` in all."""
        ...

    def drain(self) -> list[Entry]:
        """Removes and gives everything, in the order in which it would leave."""
        ...

    def __len__(self) -> int: ...


class Lanes:
    """Control before user traffic; FIFO inside a lane.

    A message that waits for nothing may overtake those of its lane that still wait for the disk: a heartbeat is not
    to be late because a sync is slow. Among themselves both kinds stay in order.
    """

    __slots__ = ("_ready", "_waiting")

    def __init__(self) -> None:
        # By lane. Queues are many and mostly empty, so that a deque is made only when it is needed.
        self._ready: list[deque[Entry] | None] = [None, None]
        self._waiting: list[deque[Entry] | None] = [None, None]

    def put(self, entry: Entry) -> None:
        lanes = self._waiting if entry.token else self._ready
        lane = lanes[entry.lane]
        if lane is None:
            lane = lanes[entry.lane] = deque()
        lane.append(entry)

    def take(self, durable: int, bytes_max: int) -> list[Entry]:
        taken: list[Entry] = []
        for ready, waiting in zip(self._ready, self._waiting, strict=True):
            for lane in (ready, waiting):
                while lane and bytes_max > 0 and lane[0].token <= durable:
                    entry = lane.popleft()
                    bytes_max -= entry.weight
                    taken.append(entry)
        return taken

    def drain(self) -> list[Entry]:
        entries = [
            entry
            for pair in zip(self._ready, self._waiting, strict=True)
            for lane in pair
            if lane is not None
            for entry in lane
        ]
        self._ready, self._waiting = [None, None], [None, None]
        return entries

    def __len__(self) -> int:
        return sum(len(lane) for lane in (*self._ready, *self._waiting) if lane)


class OutputQueue:
    """One peer's queue. `touched` is the driver's list of queues to look at after the turn."""

    __slots__ = ("_discipline", "_touched", "bytes", "low_water", "peer", "seen", "state", "taken_bytes", "taken_count")

    def __init__(self, peer: str, touched: list[OutputQueue]) -> None:
        self.peer = peer
        self.state = QueueState.OPEN
        self.bytes = 0
        self.low_water: int | None = None  # set by `notify_below`
        self.taken_count = 0
        self.taken_bytes = 0
        self.seen = False  # whether `touched` holds this queue
        self._touched = touched
        self._discipline: Discipline = Lanes()

    def __len__(self) -> int:
        return len(self._discipline)

    @property
    def discipline(self) -> Discipline:
        return self._discipline

    def use(self, discipline: Discipline) -> None:
        """Replaces the discipline; what waits goes over to the new one, in order."""
        for entry in self._discipline.drain():
            discipline.put(entry)
        self._discipline = discipline
        self.touch()

    def put(self, entry: Entry) -> None:
        require(self.state is not QueueState.CLOSED, "nothing is put into a closed queue", peer=self.peer)
        self._discipline.put(entry)
        self.bytes += entry.weight
        if not self.seen:
            self.seen = True
            self._touched.append(self)

    def touch(self) -> None:
        """Makes the driver look at the queue after this turn."""
        if not self.seen:
            self.seen = True
            self._touched.append(self)

    def take(self, durable: int, bytes_max: int) -> list[Entry]:
        """For the driver: what may leave now."""
        if self.state is not QueueState.OPEN:
            return []
        taken = self._discipline.take(durable, bytes_max)
        if taken:
            weight = 0
            for entry in taken:
                weight += entry.weight
            self.bytes -= weight
            if self.low_water is not None:
                self.taken_count += len(taken)
                self.taken_bytes += weight
        return taken

    def suspend(self) -> None:
        """Nothing leaves until `resume`; messages may still be put."""
        require(self.state is not QueueState.CLOSED, "a closed queue is not suspended", peer=self.peer)
        self.state = QueueState.SUSPENDED

    def resume(self) -> None:
        require(self.state is not QueueState.CLOSED, "a closed queue is not resumed", peer=self.peer)
        self.state = QueueState.OPEN
        self.touch()

    def close(self) -> list[Message]:
        """For good: drops what waits and gives it back."""
        dropped = self.clear()
        self.state = QueueState.CLOSED
        return dropped

    def clear(self) -> list[Message]:
        """Drops what waits and gives it back, in order."""
        entries = self._discipline.drain()
        self.bytes = 0
        return [entry.message for entry in entries]

    def move_to(self, other: OutputQueue) -> None:
        """Puts everything that waits here behind what waits in the other queue, in order."""
        require(other is not self, "a queue is not moved to itself", peer=self.peer)
        for entry in self._discipline.drain():
            other.put(entry)
        self.bytes = 0

    def notify_below(self, length: int) -> None:
        """Asks for one `Drained` when at most `length` messages wait."""
        self.low_water = length
        self.taken_count = self.taken_bytes = 0
        self.touch()
