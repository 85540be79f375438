"""The thin file layer: every system call that a log makes, and nothing else.

It is an interface, so that tests can put a disk in its place that fails, tears and forgets. Errors are OSErrors.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from typing import Protocol

ZEROS_AT_ONCE = bytes(1024 * 1024)


class Files(Protocol):
    """What a log asks of an operating system."""

    def make_folder(self, path: str) -> None:
        """Makes the folder, unless it is there, and sees to it that it stays."""
        ...

    def names(self, folder: str) -> list[str]:
        """The names in the folder, in order; raises FileNotFoundError without one."""
        ...

    def open(self, path: str, write: bool = False, create: bool = False) -> int: ...

    def close(self, file: int) -> None: ...

    def lock(self, file: int) -> bool:
        """Takes the file for this process until it is closed. False if another has it."""
        ...

    def size(self, file: int) -> int: ...

    def read(self, file: int, count: int, offset: int) -> bytes:
        """Up to `count` bytes; fewer only at the end of the file."""
        ...

    def write(self, file: int, data: bytes, offset: int) -> int:
        """Gives how many bytes were taken, as the system call does."""
        ...

    def sync(self, file: int) -> None:
        """Returns when the file's bytes and its size are on the disk."""
        ...

    def sync_folder(self, folder: str) -> None:
        """Returns when the folder's names are on the disk."""
        ...

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None: ...


class SystemFiles:
    """The files of this machine."""

    def make_folder(self, path: str) -> None:
        if os.path.isdir(path):
            return
        parent = os.path.dirname(os.path.abspath(path))
        self.make_folder(parent)
        with suppress(FileExistsError):  # another replica may be making the folder that they share
            os.mkdir(path, 0o750)
        self.sync_folder(parent)

    def names(self, folder: str) -> list[str]:
        return sorted(os.listdir(folder))

    def open(self, path: str, write: bool = False, create: bool = False) -> int:
        flags = os.O_RDWR if write else os.O_RDONLY
        return os.open(path, flags | (os.O_CREAT if create else 0) | os.O_CLOEXEC, 0o640)

    def close(self, file: int) -> None:
        os.close(file)

    def lock(self, file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def size(self, file: int) -> int:
        return os.fstat(file).st_size

    def read(self, file: int, count: int, offset: int) -> bytes:
        data = os.pread(file, count, offset)
        if len(data) == count or not data:
            return data
        parts = [data]
        got = len(data)
        while got < count and (data := os.pread(file, count - got, offset + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def write(self, file: int, data: bytes, offset: int) -> int:
        return os.pwrite(file, data, offset)

    def sync(self, file: int) -> None:
        os.fdatasync(file)

    def sync_folder(self, folder: str) -> None:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def remove(self, path: str) -> None:
        os.unlink(path)


def write_whole(files: Files, file: int, data: bytes, offset: int) -> None:
    """Writes all of the data. A short write is a failed one: what stopped it (a full disk, a limit) is not gone."""
    taken = files.write(file, data, offset)
    if taken != len(data):
        files.write(file, data[taken:], offset + taken)  # only now the system says why, by an error
        raise OSError(errno.EIO, f"only {taken} of {len(data)} bytes were written")


def write_zeros(files: Files, file: int, start: int, end: int, step: bytes = ZEROS_AT_ONCE) -> None:
    """Fills [start, end) with zeros, a piece at a time, and each piece is on the disk before the next one follows.

    Syncing in pieces keeps the syncs of whoever commits meanwhile short.
    """
    while start < end:
        piece = step if end - start >= len(step) else bytes(end - start)
        write_whole(files, file, piece, start)
        files.sync(file)
        start += len(piece)
