"""What the core knows of the log of events: where it begins and ends, and when and how large it was on the way.

The log itself is written by the node, from what the core puts out; the core decides which event has which position, and
from where on events are kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import msgspec

from holdfast.kernel.node import require
from holdfast.kernel.time import MILLISECOND

MARK_BYTES = 1024 * 1024
MARK_NS = 60_000 * MILLISECOND


class LogMark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The event at this position was accepted at this time, when the log had come to so many bytes."""

    position: int
    wall: int
    bytes: int


class LogState(msgspec.Struct, array_like=True):
    """Mutable; part of the core's state as it is."""

    head: int = 0  # the last position
    tail: int = 1  # the first that is kept
    wall: int = 0  # of the last event; never goes back
    bytes: int = 0  # of all events so far
    marks: list[LogMark] = []

    def add(self, count: int, size: int, wall: int) -> int:
        """Positions for so many events; gives the first."""
        self.wall = max(self.wall, wall)
        last = self.marks[-1] if self.marks else None
        if last is None or self.bytes - last.bytes >= MARK_BYTES or self.wall - last.wall >= MARK_NS:
            self.marks.append(LogMark(self.head + 1, self.wall, self.bytes))
        first = self.head + 1
        self.head += count
        self.bytes += size
        return first

    def keep_from(self, tail: int) -> None:
        """What comes before is given up."""
        self.tail = max(self.tail, min(tail, self.head + 1))
        # The mark that the tail lies behind is still needed, to tell how large the log is.
        useless = bisect_right(self.marks, self.tail, key=lambda mark: mark.position) - 1
        if useless > 0:
            del self.marks[:useless]

    @property
    def kept_bytes(self) -> int:
        """About how many bytes of events are kept."""
        return self.bytes - self.marks[0].bytes if self.marks else 0

    def bytes_behind(self, position: int) -> int:
        """About how many bytes of events are kept behind a position: exact at marks, and even between them."""
        first = max(position + 1, self.tail)
        if first > self.head or not self.marks:
            return 0
        place = max(0, bisect_right(self.marks, first, key=lambda mark: mark.position) - 1)
        mark = self.marks[place]
        following = self.marks[place + 1] if place + 1 < len(self.marks) else LogMark(self.head + 1, 0, self.bytes)
        passed = (first - mark.position) * (following.bytes - mark.bytes) // (following.position - mark.position)
        return self.bytes - mark.bytes - passed

    def position_before(self, wall: int) -> int:
        """A position from which on to look for the first event accepted at a time or later."""
        place = bisect_left(self.marks, wall, key=lambda mark: mark.wall)
        return max(self.tail, self.marks[place - 1].position if place else 1)

    def expendable(self, bytes_max: int, wall_min: int) -> int:
        """From where on to keep events, so that about `bytes_max` are kept and nothing older than `wall_min`."""
        keep = self.tail
        for mark in self.marks[1:]:
            if self.bytes - mark.bytes >= bytes_max or mark.wall <= wall_min:
                keep = max(keep, mark.position)
            else:
                break
        return keep

    def check_invariants(self) -> None:
        require(1 <= self.tail <= self.head + 1, "the log begins before it ends", tail=self.tail, head=self.head)
        positions = [mark.position for mark in self.marks]
        require(positions == sorted(set(positions)), "marks are in order")
