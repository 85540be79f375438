"""The log: appends, commits, reads, and lets go of what is not needed.

One thread appends and commits; any thread may read what is durable. After a failed write or sync the log is poisoned:
what the disk holds is then unknown (a sync that is tried again may claim success for pages that the kernel dropped), so
that nothing more is acknowledged until the process is restarted and the log has been read anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.errors import (
    LogClosed,
    LogCorrupt,
    LogError,
    LogPoisoned,
    RecordRefused,
    RecordsGone,
    RecordsLost,
    renewed,
)
from holdfast.storage.closing import write_closing
from holdfast.storage.files import Files, SystemFiles
from holdfast.storage.format import BORROWING, salt_of
from holdfast.storage.group import Block, Group, Stream
from holdfast.storage.opening import Opened, open_folder
from holdfast.storage.reading import LogRecord, read_segment
from holdfast.storage.retention import Retention, beyond_bytes
from holdfast.storage.settings import STREAM_NAME_BYTES_MAX, STREAMS_MAX, LogSettings
from holdfast.storage.sharing import Part
from holdfast.storage.shelf import Shelf
from holdfast.storage.tail import Tail
from holdfast.storage.trouble import explained


def open_log(folder: str, settings: LogSettings | None = None, files: Files | None = None) -> Log:
    """Opens the log in a folder, or makes one if the folder is empty or absent. `Log.opening` says what was found."""
    settings = settings or LogSettings()
    files = files or SystemFiles()
    log = Log(files, folder, settings, open_folder(files, folder, settings))
    try:
        log.mark()  # What was found is durable now, and a later opening can know that it was.
    except BaseException:
        log.close()
        raise
    return log


class Log:
    """A log that is open."""

    def __init__(self, files: Files, folder: str, settings: LogSettings, opened: Opened) -> None:
        self.folder = folder
        self.settings = settings
        self.opening = opened.opening
        self.poisoned: LogPoisoned | None = None
        self._files = files
        self._identity = opened.identity
        self._log_id = opened.log_id
        self._salt = salt_of(opened.log_id)
        self._streams = opened.streams
        self._shelf = Shelf(opened.streams, opened.segments)
        self._tail = Tail(files, folder, settings, self._shelf, opened)
        self._open = Group(settings.block_bytes)
        self._borrows = self._shelf.newest.header.version >= BORROWING  # those behind it are no older
        self._stopped: LogError | None = None  # why nothing more is taken
        self._closed = False

    # ------------------------------------------------------------------------------------------------------ appending
    def append(self, stream: str, kind: int, body: bytes, count: int = 1, parts: Sequence[Part] = ()) -> int:
        """Adds a record to what the next commit writes, and gives its number. `parts`: larger parts of the body, in
        their order, that other records of the commit may have, too; they are written once."""
        known = self._streams.get(stream)
        if known is None or self._stopped is not None:
            known = self._declare(stream)
        if parts and not self._borrows:
            parts, self._borrows = (), self._shelf.newest.header.version >= BORROWING
        return self._open.add(known, kind, body, count, 0, parts)

    def append_all(self, stream: str, kind: int, bodies: Sequence[bytes]) -> int:
        """Appends several records of one number each, faster than one by one; gives the first number."""
        known = self._streams.get(stream)
        if known is None or self._stopped is not None:
            known = self._declare(stream)
        return self._open.add_all(known, kind, bodies)

    def snapshot(self, stream: str, kind: int, body: bytes, count: int = 1) -> int:
        """Adds a record that stands for all earlier ones of its stream: they go when it is durable."""
        number = self.append(stream, kind, body, count)
        self._open.truncate(self._streams[stream], number)
        return number

    def truncate(self, stream: str, before: int) -> None:
        """Gives up the records of the stream below a number, with the next commit. One that holds it is kept whole."""
        self._check()
        known = self._streams.get(stream)
        if known is None:
            return
        before = min(before, known.next)
        if before > known.truncated:
            self._open.truncate(known, before)

    def commit(self) -> None:
        """Writes what was appended, and returns when it is on the disk: all of it, or nothing."""
        self._check()
        self.write(self._open.take())

    def take(self) -> list[Block]:
        """What was appended since the last time, for a writer in another thread, which gives it to `write`."""
        self._check()
        return self._open.take()

    def write(self, blocks: list[Block]) -> None:
        """Writes blocks as one group; from one thread at a time."""
        self._check()
        if not blocks:
            return
        try:
            self._tail.write(blocks, self.settings.clock())
        except Exception as failure:
            raise self._poison(failure) from failure

    def mark(self) -> None:
        """Writes a closing mark, unless the log ends in one: from now on, damage to the last commit will be noticed."""
        self._check()
        if self._tail.marked:
            return
        try:
            self._tail.mark()
        except Exception as failure:
            raise self._poison(failure) from failure

    def close(self) -> None:
        """Closes the log, behind a mark; what was appended and not committed is dropped."""
        if self._closed:
            return
        try:
            if self.poisoned is None:
                self.mark()
                write_closing(self._files, self.folder, self._tail.group, self._log_id)
        finally:
            self._closed = True
            self._stopped = LogClosed(self.folder)
            self._tail.close()
            self._files.close(self._identity)

    # -------------------------------------------------------------------------------------------------------- reading
    @property
    def log_id(self) -> str:
        return self.opening.log_id

    @property
    def ends_in_mark(self) -> bool:
        """Whether all that is durable is also said to be: damage to any of it would be noticed."""
        return self._tail.marked

    def streams(self) -> list[str]:
        return list(self._streams)

    def first(self, stream: str) -> int:
        """The first number that is kept."""
        known = self._streams.get(stream)
        return known.first if known is not None else 1

    def next(self, stream: str) -> int:
        """The number that the next record appended gets."""
        known = self._streams.get(stream)
        return known.next if known is not None else 1

    def end(self, stream: str) -> int:
        """One past the last durable number: as far as can be read."""
        known = self._streams.get(stream)
        return known.durable if known is not None else 1

    def read(self, stream: str, start: int, max_records: int = 1000, max_bytes: int = 1024 * 1024) -> list[LogRecord]:
        """Durable records from the one that holds `start` on: at least one, if there is one.

        Raises `RecordsGone` below the first kept number, `RecordsLost` where a repair could not save it.
        """
        found: list[LogRecord] = []
        size = 0
        try:
            for records in self.scan(stream, start):
                for record in records:
                    size += len(record[4])
                    if found and (size > max_bytes or len(found) >= max_records):
                        return found
                    found.append(record)
        except (RecordsLost, LogCorrupt):
            if not found:
                raise  # Otherwise, whoever goes on from here will meet it.
        return found

    def scan(self, stream: str, start: int = 0) -> Iterator[list[LogRecord]]:
        """All durable records from the one that holds `start` on (0: the first kept one), in lists.

        What becomes durable meanwhile is included. Raises `RecordsGone` if retention overtakes it.
        """
        known = self._streams.get(stream)
        if known is None:
            self._check_open()
            return
        start = start or known.first
        while True:
            with self._shelf.lock:
                self._check_open()
                if start < known.first:
                    raise RecordsGone(stream, start, known.first)
                if start >= known.durable:
                    return
                segment = self._shelf.segment_of(known, start)
                end = segment.end
                segment.open()
            begun = start
            try:
                for records in read_segment(segment, end, self._salt, known.id, stream, start):
                    start = records[-1][0] + records[-1][1]
                    yield records
            finally:
                segment.close()
            if start == begun:
                raise LogCorrupt("numbers are missing", segment.path, 0, 0, {stream: (start, None)})

    def number_at(self, stream: str, time: int) -> int:
        """The first number that was appended at the time or later; the stream's end if there is none yet."""
        known = self._streams.get(stream)
        if known is None:
            return 1
        with self._shelf.lock:
            first, end = known.first, known.durable
            start = first
            for index in self._shelf.indexes_of(known):
                if index.times[0] < time:
                    start = max(first, index.before_time(time))
        for records in self.scan(stream, start) if start < end else ():
            for number, _, appended, _, _ in records:
                if appended >= time:
                    return max(number, first)
        return end

    def bytes(self, stream: str) -> int:
        """How many bytes the stream's kept records take, to within a step of the index."""
        known = self._streams.get(stream)
        if known is None:
            return 0
        with self._shelf.lock:
            return self._shelf.bytes_of(known)

    def bytes_on_disk(self) -> int:
        """What the segments take, the part of the newest one that is still empty included."""
        with self._shelf.lock:
            return sum(segment.header.size for segment in self._shelf.segments)

    def retain(self, stream: str, retention: Retention, floor: int) -> int:
        """Truncates the stream as far as its retention and the floor allow, with the next commit; gives the number."""
        known = self._streams.get(stream)
        if known is None:
            return 1
        before = floor
        if retention.bytes_max is not None or retention.age_ns_max is not None:
            before = 1
            if retention.bytes_max is not None:
                with self._shelf.lock:
                    indexes = self._shelf.indexes_of(known)
                before = beyond_bytes(indexes, retention.bytes_max)
            if retention.age_ns_max is not None:
                oldest = max(self._tail.time, self.settings.clock()) - retention.age_ns_max
                before = max(before, self.number_at(stream, oldest))
        before = min(before, floor, known.durable)
        self.truncate(stream, before)
        return max(before, known.truncated)

    def holders(self) -> list[str]:
        """The streams that keep the oldest segment from being removed."""
        with self._shelf.lock:
            return [stream.name for stream in self._shelf.holders()]

    # ---------------------------------------------------------------------------------------------------------- other
    def _declare(self, name: str) -> Stream:
        self._check()
        known = self._streams.get(name)
        if known is not None:
            return known
        if not name or len(name.encode()) > STREAM_NAME_BYTES_MAX or len(self._streams) >= STREAMS_MAX:
            raise RecordRefused(
                f"stream {name!r}: a log has up to {STREAMS_MAX}, with names of 1 to {STREAM_NAME_BYTES_MAX} bytes"
            )
        stream = Stream(max((s.id for s in self._streams.values()), default=0) + 1, name, 1, 1)
        self._streams[name] = stream
        self._open.declare(stream)
        return stream

    def _check(self) -> None:
        if self._stopped is not None:
            raise renewed(self._stopped)

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed(self.folder)

    def _poison(self, failure: Exception) -> LogPoisoned:
        self._stopped = self.poisoned = LogPoisoned(self.folder, explained(self.folder, failure))
        return self.poisoned
