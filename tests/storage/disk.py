"""A disk in memory, as a file layer: it fails when asked to, and a power cut leaves what a real one might.

Written bytes are in the page cache; a sync makes them safe. A power cut keeps what is safe, and of the rest any subset
of pages and any subset of the changes to folders. A sync that fails leaves its pages clean and unsafe, as Linux does.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from random import Random

PAGE = 4096


class PowerCut(BaseException):
    """The machine stops here. No `except Exception` may survive it."""


class _Content:
    """A file's bytes: in the cache, and safe."""

    def __init__(self) -> None:
        self.cache = bytearray()
        self.safe = bytearray()
        self.dirty: set[int] = set()


_Change = tuple[str, str, _Content | None]  # create | remove | rename-to, path, content


class MemoryDisk:
    """Implements `Files`. One process at a time uses it; `crash` and `kill` end that process."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.stop_after: int | None = None  # how many changing calls until the power goes
        self.fail: Callable[[str, str], OSError | int | None] = lambda call, path: None
        self._names: dict[str, _Content] = {}
        self._safe_names: dict[str, _Content] = {}
        self._changes: list[tuple[str, _Change]] = []  # with their folder
        self._folders: set[str] = set()
        self._open: dict[int, tuple[str, _Content]] = {}
        self._locked: dict[int, str] = {}
        self._next = 3

    # ----------------------------------------------------------------------------------------------------- the calls
    def make_folder(self, path: str) -> None:
        self._folders.add(path)

    def names(self, folder: str) -> list[str]:
        if folder not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder", folder)
        return sorted(os.path.basename(path) for path in self._names if os.path.dirname(path) == folder)

    def open(self, path: str, write: bool = False, create: bool = False) -> int:
        content = self._names.get(path)
        if content is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self._call("create", path)
            content = self._names[path] = _Content()
            self._change(path, ("create", path, content))
        self._next += 1
        self._open[self._next] = (path, content)
        return self._next

    def close(self, file: int) -> None:
        del self._open[file]
        self._locked.pop(file, None)

    def lock(self, file: int) -> bool:
        path = self._open[file][0]
        if path in self._locked.values():
            return False
        self._locked[file] = path
        return True

    def size(self, file: int) -> int:
        return len(self._open[file][1].cache)

    def read(self, file: int, count: int, offset: int) -> bytes:
        return bytes(self._open[file][1].cache[offset : offset + count])

    def write(self, file: int, data: bytes, offset: int) -> int:
        path, content = self._open[file]
        short = self._call("write", path)
        if short is not None:
            data = data[:short]
        if content.safe is content.cache:
            content.safe = bytearray(content.cache)
        end = offset + len(data)
        if end > len(content.cache):
            content.cache.extend(bytes(end - len(content.cache)))
        content.cache[offset:end] = data
        content.dirty.update(range(offset // PAGE, -(-end // PAGE)))
        return len(data)

    def sync(self, file: int) -> None:
        path, content = self._open[file]
        try:
            self._call("sync", path)
        except OSError:
            content.dirty.clear()  # The kernel marks them clean, although they are not on the disk.
            raise
        self._make_safe(content, content.dirty)
        content.dirty.clear()

    def sync_folder(self, folder: str) -> None:
        self._call("sync_folder", folder)
        for place, change in self._changes:
            if place == folder:
                self._carry_out(self._safe_names, change)
        self._changes = [(place, change) for place, change in self._changes if place != folder]

    def rename(self, old: str, new: str) -> None:
        self._call("rename", new)
        content = self._names.pop(old)
        self._names[new] = content
        self._change(new, ("rename " + old, new, content))
        for file, (path, opened) in list(self._open.items()):
            if path == old:
                self._open[file] = (new, opened)

    def remove(self, path: str) -> None:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._call("remove", path)
        del self._names[path]
        self._change(path, ("remove", path, None))

    # ---------------------------------------------------------------------------------------------------- what happens
    def kill(self) -> None:
        """The process is gone; the page cache is not."""
        self._open.clear()
        self._locked.clear()
        self.stop_after = None

    def cut_power(self, rng: Random) -> None:
        """The machine is gone, and with it what was not safe: any part of it."""
        self.kill()
        for _, change in self._changes:
            if rng.random() < 0.5:
                self._carry_out(self._safe_names, change)
        self._changes = []
        share = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
        for content in self._safe_names.values():
            kept = {page for page in sorted(content.dirty) if rng.random() < share}
            self._make_safe(content, kept)
            content.cache[:] = content.safe
            content.dirty.clear()
        self._names = dict(self._safe_names)

    def keep_pages(self, path: str, pages: set[int]) -> None:
        """A power cut that keeps exactly these unsafe pages of the file."""
        content = self._names[path]
        self._make_safe(content, content.dirty & pages)
        content.dirty.clear()
        content.cache[:] = content.safe
        self.kill()

    def bytes_of(self, path: str) -> bytearray:
        """A file's bytes, to look at or to damage; what is done to them is on the disk."""
        content = self._names[path]
        self._make_safe(content, content.dirty)
        content.dirty.clear()
        content.safe = content.cache
        return content.cache

    def dirty_pages(self, path: str) -> set[int]:
        return set(self._names[path].dirty)

    def paths(self) -> list[str]:
        return sorted(self._names)

    def copy(self) -> MemoryDisk:
        """The same files, all safe."""
        other = MemoryDisk()
        other._folders = set(self._folders)
        for path, content in self._names.items():
            twin = _Content()
            twin.cache[:] = twin.safe[:] = content.cache
            other._names[path] = other._safe_names[path] = twin
        return other

    # ------------------------------------------------------------------------------------------------------- below them
    def _call(self, call: str, path: str) -> int | None:
        if self.stop_after is not None:
            if self.stop_after == 0:
                raise PowerCut
            self.stop_after -= 1
        self.calls.append(f"{call} {os.path.basename(path)}")
        outcome = self.fail(call, path)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    def _change(self, path: str, change: _Change) -> None:
        self._changes.append((os.path.dirname(path), change))

    @staticmethod
    def _carry_out(names: dict[str, _Content], change: _Change) -> None:
        kind, path, content = change
        if kind == "remove":
            names.pop(path, None)
        elif content is not None:
            if kind.startswith("rename "):
                names.pop(kind.removeprefix("rename "), None)
            names[path] = content

    @staticmethod
    def _make_safe(content: _Content, pages: set[int]) -> None:
        if pages:
            needed = min((max(pages) + 1) * PAGE, len(content.cache))
            if needed > len(content.safe):
                content.safe.extend(bytes(needed - len(content.safe)))
        for page in pages:
            start, end = page * PAGE, min((page + 1) * PAGE, len(content.cache))
            content.safe[start:end] = content.cache[start:end]
