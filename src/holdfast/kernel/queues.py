"""Output queues: what a node wants to say to one peer, until the driver takes it.

A queue belongs to the node, not to a link. The node drops it when what waits in it is not to be said any more, at
`LinkDown` as a rule. The driver takes from queues while there is a link.

Control leaves before user traffic; inside a lane, order is kept. What is in here is as good as sent. Events that wait
for another broker wait in its feed (`protocols/routing/feed.py`), which can be suspended, moved and put in order.
"""

from __future__ import annotations

import enum
from collections import deque

import msgspec

from holdfast.kernel.inputs import Drained
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken


class Lane(enum.Enum):
    """Control leaves before user traffic."""

    CONTROL = 0
    USER = 1


class Queued(msgspec.Struct, frozen=True, gc=False):
    """A message on its way out. It may leave once everything up to `token` is durable; 0 waits for nothing."""

    message: Message
    lane: Lane
    token: int
    weight: int


class OutputQueue:
    """One peer's queue. `touched` are the queues that the driver looks at after the turn, in the order of touching.

    A message that waits for nothing may overtake those of its lane that still wait for the disk: a heartbeat is not
    to be late because a sync is slow. Among themselves both kinds stay in order.
    """

    __slots__ = (
        "_count",
        "_lanes",
        "_touched",
        "bytes",
        "is_closed",
        "low_water",
        "peer",
        "taken_bytes",
        "taken_count",
    )

    def __init__(self, peer: str, touched: dict[OutputQueue, None]) -> None:
        self.peer = peer
        self.is_closed = False
        self.bytes = 0
        self.low_water: int | None = None  # set by `notify_below`
        self.taken_count = 0
        self.taken_bytes = 0
        self._touched = touched
        # In the order of leaving: control that waits for nothing, control that waits for the disk, then user traffic
        # likewise. Queues are many and mostly empty, so that a deque is made only when it is needed.
        self._lanes: list[deque[Queued] | None] = [None, None, None, None]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, entry: Queued) -> None:
        if self.is_closed:
            broken("nothing is put into a closed queue", peer=self.peer)
        place = (0 if entry.lane is Lane.CONTROL else 2) + (1 if entry.token else 0)
        lane = self._lanes[place]
        if lane is None:
            lane = self._lanes[place] = deque()
        lane.append(entry)
        self._count += 1
        self.bytes += entry.weight
        self._touched[self] = None

    def touch(self) -> None:
        """Makes the driver look at the queue after this turn."""
        self._touched[self] = None

    def take(self, durable: int, bytes_max: int) -> tuple[list[Queued], int]:
        """For the driver: removes and gives what may leave now, and says how many messages are left. That is nothing
        whose token is above `durable`, and not much more than `bytes_max` in all."""
        taken: list[Queued] = []
        if self._count:
            room = bytes_max
            for lane in self._lanes:
                while lane and room > 0 and lane[0].token <= durable:
                    entry = lane.popleft()
                    room -= entry.weight
                    taken.append(entry)
            self._count -= len(taken)
            weight = bytes_max - room
            self.bytes -= weight
            if self.low_water is not None:
                self.taken_count += len(taken)
                self.taken_bytes += weight
        return taken, self._count

    def drained(self) -> Drained:
        """For the driver, when no more messages wait than `notify_below` asked for: that, once."""
        self.low_water = None
        return Drained(self.peer, self.taken_count, self.taken_bytes)

    def close(self) -> None:
        """For good: drops what waits."""
        self.is_closed = True
        self._lanes = [None, None, None, None]
        self._count = self.bytes = 0
        self.low_water = None  # a new queue of this peer may be waited for: nobody is to take this one for it
        self.touch()

    def notify_below(self, length: int) -> None:
        """Asks for one `Drained` when at most `length` messages wait."""
        self.low_water = length
        self.taken_count = self.taken_bytes = 0
        self.touch()
