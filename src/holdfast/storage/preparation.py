"""Makes the next segment's file before it is needed: filled with zeros, and on the disk.

A sync in a file that already has its blocks and its size needs no change of the file system's own data, which halves
its time. Filling 64 MiB takes a while, so a thread of its own does it, one for each file.

On a disk that is too full a smaller file is tried. One that can't be filled is removed: others need the room, and
whoever is to make some needs a little.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from holdfast.errors import renewed
from holdfast.storage.files import Files, write_zeros
from holdfast.storage.recovery import PREPARED
from holdfast.storage.trouble import FULL


class Preparation:
    """At most one file is being prepared or ready."""

    def __init__(self, files: Files, folder: str, ahead: bool) -> None:
        self._files = files
        self._path = os.path.join(folder, PREPARED)
        self._ahead = ahead
        self._thread: threading.Thread | None = None
        self._size = 0  # of the file that is ready
        self._failure: OSError | None = None
        self._given_up = threading.Event()

    def start(self, size: int, least: int) -> None:
        """Begins to make a file, in the background if that is wanted."""
        if self._ahead:
            self._thread = threading.Thread(
                target=self._prepare, args=(size, least), name="holdfast log: next segment", daemon=True
            )
            self._thread.start()

    def take(self, size: int, least: int) -> tuple[str, int]:
        """The path of a file, which the caller will rename, and its size: that one if there is room for it, and at
        least the other. Raises what went wrong."""
        self._wait()
        if self._failure is not None:
            raise renewed(self._failure)
        if not least <= self._size <= size:
            self._make_fitting(size, least)
        made, self._size = self._size, 0
        return self._path, made

    def close(self) -> None:
        """Gives up. What was begun is made anew by the next opening."""
        self._given_up.set()
        self._wait()

    def _wait(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _prepare(self, size: int, least: int) -> None:
        try:
            self._make_fitting(size, least)
        except OSError as failure:
            if failure.errno not in FULL:  # until the file is needed, there may be room again
                self._failure = failure  # raised to whoever needs the file

    def _make_fitting(self, size: int, least: int) -> None:
        while True:
            try:
                return self._make(size)
            except OSError as failure:
                if failure.errno not in FULL or size <= least:
                    raise
                size = max(least, size // 2)

    def _make(self, size: int) -> None:
        self._size = 0
        with suppress(FileNotFoundError):
            self._files.remove(self._path)
        file = self._files.open(self._path, write=True, create=True)
        try:
            step = 1024 * 1024
            for start in range(0, size, step):
                if self._given_up.is_set():
                    return
                write_zeros(self._files, file, start, min(size, start + step))
        except OSError:
            with suppress(OSError):
                self._files.remove(self._path)
            raise
        finally:
            self._files.close(file)
        self._size = size
