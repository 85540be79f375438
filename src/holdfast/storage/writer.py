"""One thread that writes a log: group commit by natural batching.

Whoever appends goes on while a sync is under way; all that was submitted meanwhile is the next group: one write, one
sync, one report. There is no timer to wait for company. After a quiet time the thread writes a closing mark.

A group lies in one segment, so what waits is written in several if it is much: behind a slow disk one group would be a
segment of any size, and as long as one record in it is needed, all of it stays on the disk.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from holdfast.errors import LogError
from holdfast.storage.group import Block
from holdfast.storage.log import Log

BLOCKS_AT_ONCE: Final = 32_768  # a block's place in its group has 16 bits
SEGMENT_SHARE: Final = 4  # a group of several submissions takes at most one part in so many of a segment


class _Submission(NamedTuple):
    blocks: list[Block]
    token: int
    bytes: int


class LogWriter:
    """Appends stay with the thread that calls `submit`; `durable` and `failed` are called in the writer's thread."""

    def __init__(self, log: Log, durable: Callable[[int], None], failed: Callable[[LogError], None]) -> None:
        self._log = log
        self._durable = durable
        self._failed = failed
        self._changed = threading.Condition()
        self._waiting: deque[_Submission] = deque()
        self._group_bytes = log.settings.segment_bytes // SEGMENT_SHARE
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="holdfast log: writer", daemon=True)
        self._thread.start()

    def submit(self, token: int) -> None:
        """Hands over what was appended. `durable` will be called with this token, or with a later one."""
        blocks = self._log.take()
        submission = _Submission(blocks, token, sum([block.size for block in blocks]))
        with self._changed:
            self._waiting.append(submission)
            self._changed.notify()

    def close(self) -> None:
        """Writes what was submitted, and ends the thread. The log stays open."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        reported = 0
        try:
            while True:
                group, stopping = self._next()
                blocks = [block for submission in group for block in submission.blocks]
                for start in range(0, len(blocks), BLOCKS_AT_ONCE):
                    self._log.write(blocks[start : start + BLOCKS_AT_ONCE])
                if group and group[-1].token > reported:
                    reported = group[-1].token
                    self._durable(reported)
                elif not group:
                    if stopping:
                        return
                    self._log.mark()
        except LogError as failure:
            self._failed(failure)

    def _next(self) -> tuple[list[_Submission], bool]:
        """Waits for something to do, and takes what makes a group: whole submissions. Nothing comes back after a quiet
        time, and the first time only."""
        with self._changed:
            quiet_s = self._log.settings.quiet_ms / 1000
            while not (self._waiting or self._stopping):
                if not self._changed.wait(None if self._log.ends_in_mark else quiet_s):
                    break
            group: list[_Submission] = []
            room, blocks = self._group_bytes, BLOCKS_AT_ONCE
            while self._waiting:
                submission = self._waiting[0]
                if group and (submission.bytes > room or len(submission.blocks) > blocks):
                    break
                group.append(self._waiting.popleft())
                room, blocks = room - submission.bytes, blocks - len(submission.blocks)
            return group, self._stopping
