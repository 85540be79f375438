"""Up to which slot a replica holds, on its disk, what came of commands and is no part of its state."""

from __future__ import annotations

from collections import deque


class Holding:
    """Marks of what was made, looked at now and then: each look makes one for the next, and a mark counts when the disk
    has reached it."""

    def __init__(self) -> None:
        self._through = 0
        self._marks: deque[tuple[int, int]] = deque()  # (slot, how much was made up to it)

    def look(self, executed: int, made: int, durable: int) -> int:
        """The slot, given how far was executed, how much came of that, and how much of it is on the disk."""
        while self._marks and self._marks[0][1] <= durable:
            self._through = self._marks.popleft()[0]
        if made <= durable:
            self._through = executed
        elif not self._marks or self._marks[-1][0] < executed:
            self._marks.append((executed, made))
        return self._through
