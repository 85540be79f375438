"""One thread that writes a log: group commit by natural batching.

Whoever appends goes on while a sync is under way; all that was submitted meanwhile is the next group: one write, one
sync, one report. There is no timer to wait for company. After a quiet time the thread writes a closing mark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from holdfast.errors import LogError
from holdfast.storage.group import Block
from holdfast.storage.log import Log

BLOCKS_AT_ONCE: Final = 32_768  # a block's place in its group has 16 bits


class LogWriter:
    """Appends stay with the thread that calls `submit`; `durable` and `failed` are called in the writer's thread."""

    def __init__(self, log: Log, durable: Callable[[int], None], failed: Callable[[LogError], None]) -> None:
        self._log = log
        self._durable = durable
        self._failed = failed
        self._changed = threading.Condition()
        self._waiting: list[Block] = []
        self._token = 0
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="holdfast log: writer", daemon=True)
        self._thread.start()

    def submit(self, token: int) -> None:
        """Hands over what was appended. `durable` will be called with this token, or with a later one."""
        blocks = self._log.take()
        with self._changed:
            self._waiting += blocks
            self._token = token
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
                blocks, token, stopping = self._next(reported)
                if blocks:
                    for start in range(0, len(blocks), BLOCKS_AT_ONCE):
                        self._log.write(blocks[start : start + BLOCKS_AT_ONCE])
                if token > reported:
                    reported = token
                    self._durable(token)
                elif stopping:
                    return
                elif not blocks:
                    self._log.mark()
        except LogError as failure:
            self._failed(failure)

    def _next(self, reported: int) -> tuple[list[Block], int, bool]:
        """Waits for something to do; nothing comes back after a quiet time, and the first time only."""
        with self._changed:
            quiet_s = self._log.settings.quiet_ms / 1000
            while not (self._waiting or self._token > reported or self._stopping):
                if not self._changed.wait(None if self._log.ends_in_mark else quiet_s):
                    break
            blocks, self._waiting = self._waiting, []
            return blocks, self._token, self._stopping
