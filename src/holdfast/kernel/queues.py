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
from typing import Protocol

import msgspec

from holdfast.kernel.inputs import Drained
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require


class Lane(enum.Enum):
    """Control leaves before user traffic."""

    CONTROL = 0
    USER = 1


class QueueState(enum.Enum):
    OPEN = "open"
    SUSPENDED = "suspended"
    CLOSED = "closed"


class Queued(msgspec.Struct, frozen=True, gc=False):
    """A message on its way out. It may leave once everything up to `token` is durable; 0 waits for nothing."""

    message: Message
    lane: Lane
    token: int
    weight: int


class Discipline(Protocol):
    """In which order messages leave a queue."""

    def put(self, entry: Queued) -> None: ...

    def take(self, durable: int, bytes_max: int) -> list[Queued]:
        """Removes and gives what may leave now: nothing whose token is above `durable`, and not much more than
        `bytes_max` in all."""
        ...

    def drain(self) -> list[Queued]:
        """Removes and gives everything, in the order in which it would leave."""
        ...

    def __len__(self) -> int: ...


class Lanes:
    """Control before user traffic; FIFO inside a lane.

    A message that waits for nothing may overtake those of its lane that still wait for the disk: a heartbeat is not
    to be late because a sync is slow. Among themselves both kinds stay in order.
    """

    __slots__ = ("_count", "_lanes")

    def __init__(self) -> None:
        # In the order of leaving: control that waits for nothing, control that waits for the disk, then user traffic
        # likewise. Queues are many and mostly empty, so that a deque is made only when it is needed.
        self._lanes: list[deque[Queued] | None] = [None, None, None, None]
        self._count = 0

    def put(self, entry: Queued) -> None:
        place = (0 if entry.lane is Lane.CONTROL else 2) + (1 if entry.token else 0)
        lane = self._lanes[place]
        if lane is None:
            lane = self._lanes[place] = deque()
        lane.append(entry)
        self._count += 1

    def take(self, durable: int, bytes_max: int) -> list[Queued]:
        taken: list[Queued] = []
        if self._count:
            for lane in self._lanes:
                while lane and bytes_max > 0 and lane[0].token <= durable:
                    entry = lane.popleft()
                    bytes_max -= entry.weight
                    taken.append(entry)
            self._count -= len(taken)
        return taken

    def drain(self) -> list[Queued]:
        entries = [entry for lane in self._lanes if lane is not None for entry in lane]
        self._lanes = [None, None, None, None]
        self._count = 0
        return entries

    def __len__(self) -> int:
        return self._count


class OutputQueue:
    """One peer's queue. `touched` are the queues that the driver looks at after the turn, in the order of touching."""

    __slots__ = ("_discipline", "_touched", "bytes", "low_water", "peer", "state", "taken_bytes", "taken_count")

    def __init__(self, peer: str, touched: dict[OutputQueue, None]) -> None:
        self.peer = peer
        self.state = QueueState.OPEN
        self.bytes = 0
        self.low_water: int | None = None  # set by `notify_below`
        self.taken_count = 0
        self.taken_bytes = 0
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

    def put(self, entry: Queued) -> None:
        if self.state is QueueState.CLOSED:
            broken("nothing is put into a closed queue", peer=self.peer)
        self._discipline.put(entry)
        self.bytes += entry.weight
        self._touched[self] = None

    def touch(self) -> None:
        """Makes the driver look at the queue after this turn."""
        self._touched[self] = None

    def take(self, durable: int, bytes_max: int) -> tuple[list[Queued], int]:
        """For the driver: what may leave now, and how many messages are left."""
        discipline = self._discipline
        if self.state is not QueueState.OPEN:
            return [], len(discipline)
        taken = discipline.take(durable, bytes_max)
        if taken:
            weight = taken[0].weight if len(taken) == 1 else sum([entry.weight for entry in taken])
            self.bytes -= weight
            if self.low_water is not None:
                self.taken_count += len(taken)
                self.taken_bytes += weight
        return taken, len(discipline)

    def drained(self) -> Drained:
        """For the driver, when no more messages wait than `notify_below` asked for: that, once."""
        self.low_water = None
        return Drained(self.peer, self.taken_count, self.taken_bytes)

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
        self.low_water = None  # a new queue of this peer may be waited for: nobody is to take this one for it
        return dropped

    def clear(self) -> list[Message]:
        """Drops what waits and gives it back, in order."""
        entries = self._discipline.drain()
        self.bytes = 0
        self.touch()  # whoever waits for the queue to drain is to hear of it
        return [entry.message for entry in entries]

    def move_to(self, other: OutputQueue) -> None:
        """Puts everything that waits here behind what waits in the other queue, in order."""
        require(other is not self, "a queue is not moved to itself", peer=self.peer)
        require(other.state is not QueueState.CLOSED, "nothing is moved to a closed queue", peer=other.peer)
        for entry in self._discipline.drain():
            other.put(entry)
        self.bytes = 0
        self.touch()

    def notify_below(self, length: int) -> None:
        """Asks for one `Drained` when at most `length` messages wait."""
        self.low_water = length
        self.taken_count = self.taken_bytes = 0
        self.touch()
