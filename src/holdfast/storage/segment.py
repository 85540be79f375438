"""A segment as a log in use knows it: its header, its index, how far it may be read, and who is reading it."""

from __future__ import annotations

import threading
from typing import Final

from holdfast.storage.files import Files
from holdfast.storage.header import Header
from holdfast.storage.index import StreamIndex

NO_FILE: Final = -1


class Segment:
    """Shared by the thread that writes and those that read; `end` and `index` change under the log's lock."""

    def __init__(self, files: Files, path: str, header: Header, index: dict[int, StreamIndex], end: int) -> None:
        self.path = path
        self.header = header
        self.index = index
        self.end = end  # of what is durable
        self._files = files
        self._file = NO_FILE
        self._readers = 0
        self._lock = threading.Lock()

    def open(self) -> None:
        """Readers come in pairs of `open` and `close`; the file stays open between them, even if it is removed."""
        with self._lock:
            if self._file == NO_FILE:
                self._file = self._files.open(self.path)
            self._readers += 1

    def close(self) -> None:
        with self._lock:
            self._readers -= 1
            if not self._readers:
                self._files.close(self._file)
                self._file = NO_FILE

    def read(self, count: int, offset: int) -> bytes:
        return self._files.read(self._file, count, offset)
