"""The log: appends, commits, reads, and lets go of what is not needed.

One thread appends and commits; any thread may read what is durable. After a failed write or sync the log is poisoned:
what the disk holds is then unknown (a sync that is tried again may claim success for pages that the kernel dropped), so
that nothing more is acknowledged until the process is restarted and the log has been read anew.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from holdfast.errors import LogClosed, LogCorrupt, LogPoisoned, RecordRefused, RecordsGone
from holdfast.storage.files import Files, SystemFiles, write_whole
from holdfast.storage.format import (
    BLOCK_BYTES,
    END,
    ENDS,
    MARK,
    OWN_STREAM,
    SEAL,
    TRUNCATION,
    align,
    encode_block,
    encode_record,
    salt_of,
)
from holdfast.storage.group import Block, Group, Stream
from holdfast.storage.header import Header, StreamEntry
from holdfast.storage.index import StreamIndex
from holdfast.storage.opening import Opened, make_segment, open_folder
from holdfast.storage.preparation import Preparation
from holdfast.storage.reading import LogRecord, read_segment
from holdfast.storage.retention import Retention, beyond_bytes
from holdfast.storage.segment import Segment
from holdfast.storage.settings import STREAM_NAME_BYTES_MAX, STREAMS_MAX, LogSettings


def open_log(folder: str, settings: LogSettings | None = None, files: Files | None = None) -> Log:
    """Opens the log in a folder, or makes one if the folder is empty or absent. `Log.opening` says what was found."""
    settings = settings or LogSettings()
    files = files or SystemFiles()
    log = Log(files, folder, settings, open_folder(files, folder, settings))
    log.mark()  # What was found is durable now, and a later opening can know that it was.
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
        self._repairs = [repair.encode() for repair in opened.opening.repairs]
        self._streams: dict[str, Stream] = opened.streams
        self._segments: list[Segment] = opened.segments
        self._file = opened.file  # of the newest segment, for writing
        self._chain = opened.chain
        self._group = opened.group
        self._time = opened.time
        self._marked = opened.marked  # whether the last group is a mark
        self._open = Group(settings.block_bytes)
        self._lock = threading.Lock()  # of what readers see: segments, their ends and indexes, what is durable
        self._closed = False
        self._preparation = Preparation(files, folder, settings.prepare_ahead)
        self._preparation.start(settings.segment_bytes)

    # ------------------------------------------------------------------------------------------------------ appending
    def append(self, stream: str, kind: int, body: bytes, count: int = 1) -> int:
        """Adds a record to what the next commit writes, and gives its number."""
        known = self._streams.get(stream)
        if known is None or self.poisoned is not None:
            known = self._declare(stream)
        return self._open.add(known, kind, body, count)

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
            self._write(blocks)
        except Exception as failure:
            raise self._poison(failure) from failure

    def mark(self) -> None:
        """Writes a closing mark, unless the log ends in one: from now on, damage to the last commit will be noticed."""
        self._check()
        if self._marked:
            return
        try:
            self._write_mark()
        except Exception as failure:
            raise self._poison(failure) from failure

    def close(self) -> None:
        """Closes the log, behind a mark; what was appended and not committed is dropped."""
        if self._closed:
            return
        try:
            if self.poisoned is None:
                self.mark()
        finally:
            self._closed = True
            self._preparation.close()
            self._files.close(self._file)
            self._files.close(self._identity)

    # -------------------------------------------------------------------------------------------------------- reading
    @property
    def log_id(self) -> str:
        return self._log_id.hex()

    @property
    def ends_in_mark(self) -> bool:
        """Whether all that is durable is also said to be: damage to any of it would be noticed."""
        return self._marked

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
        """Durable records from the one that holds `start` on: at least one, if there is one. Raises `RecordsGone`."""
        found: list[LogRecord] = []
        size = 0
        for records in self.scan(stream, start):
            for record in records:
                size += len(record[4])
                if found and (size > max_bytes or len(found) >= max_records):
                    return found
                found.append(record)
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
            with self._lock:
                self._check_open()
                if start < known.first:
                    raise RecordsGone(stream, start, known.first)
                if start >= known.durable:
                    return
                segment = self._segment_of(known.id, start)
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
        with self._lock:
            first, end = known.first, known.durable
            start = first
            for segment in self._segments:
                index = segment.index.get(known.id)
                if index is None or index.times[0] >= time:
                    continue
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
        with self._lock:
            return sum(
                index.bytes - index.size_before(known.first)
                for segment, following in zip(self._segments, [*self._segments[1:], None], strict=True)
                if (index := segment.index.get(known.id)) is not None
                and (following is None or following.header.streams[known.id].next > known.first)
            )

    def bytes_on_disk(self) -> int:
        """What the segments take, the part of the newest one that is still empty included."""
        with self._lock:
            return sum(segment.header.size for segment in self._segments)

    def retain(self, stream: str, retention: Retention, floor: int) -> int:
        """Truncates the stream as far as its retention and the floor allow, with the next commit; gives the number."""
        known = self._streams.get(stream)
        if known is None:
            return 1
        before = floor
        if retention.bytes_max is not None or retention.age_ns_max is not None:
            before = 1
            if retention.bytes_max is not None:
                with self._lock:
                    indexes = [s.index[known.id] for s in self._segments if known.id in s.index]
                before = beyond_bytes(indexes, retention.bytes_max)
            if retention.age_ns_max is not None:
                oldest = max(self._time, self.settings.clock()) - retention.age_ns_max
                before = max(before, self.number_at(stream, oldest))
        before = min(before, floor, known.durable)
        self.truncate(stream, before)
        return max(before, known.truncated)

    def holders(self) -> list[str]:
        """The streams that keep the oldest segment from being removed."""
        with self._lock:
            return [stream.name for stream in self._streams.values() if self._is_held(stream)]

    # -------------------------------------------------------------------------------------------------------- writing
    def _write(self, blocks: list[Block]) -> None:
        total = sum([len(block.payload) for block in blocks]) + BLOCK_BYTES * len(blocks)
        if self._segments[-1].end + total + BLOCK_BYTES > self._segments[-1].header.size:
            self._roll(total)
        segment = self._segments[-1]
        sequence, offset, chain = segment.header.segment, segment.end, self._chain
        group = self._group + 1
        time = self._time = max(self._time, self.settings.clock())
        parts: list[bytes] = []
        places: list[int] = []
        last = len(blocks) - 1
        for part, block in enumerate(blocks):
            flags = END if part == last else 0
            start, rest, chain = encode_block(
                chain, self._salt, offset, sequence, group, time, block.records, part, flags, block.payload
            )
            parts += (start, rest)
            places.append(offset)
            offset += BLOCK_BYTES + len(block.payload)
        write_whole(self._files, self._file, b"".join(parts), segment.end)
        self._files.sync(self._file)
        self._chain, self._group, self._marked = chain, group, False
        self._publish(segment, blocks, places, time, offset)

    def _publish(self, segment: Segment, blocks: list[Block], places: list[int], time: int, end: int) -> None:
        """The group is durable: readers may see it."""
        truncated = False
        with self._lock:
            for block, offset in zip(blocks, places, strict=True):
                for stream, number, next, records, size in block.entries:
                    index = segment.index.get(stream.id)
                    if index is None:
                        index = segment.index[stream.id] = StreamIndex(self.settings.index_bytes)
                    index.add(number, offset, time, records, size)
                    stream.durable = next
                for stream, before in block.truncations:
                    stream.first = before
                    truncated = True
            segment.end = end
        if truncated:
            self._drop()

    def _write_mark(self) -> None:
        segment = self._segments[-1]
        if self._group < segment.header.first_group:
            return  # The segment's header says as much.
        ends = b"".join([TRUNCATION.pack(s.id, s.durable) for s in self._streams.values() if s.durable > 1])
        payload = encode_record(OWN_STREAM, ENDS, 0, 0, 0, ends)
        # On a page of its own, so that whatever befalls the page of the last group leaves it.
        offset = align(segment.end)
        if offset + 2 * BLOCK_BYTES + len(payload) > segment.header.size:
            self._roll(0)
            return
        start, rest, chain = encode_block(
            self._chain,
            self._salt,
            offset,
            segment.header.segment,
            self._group + 1,
            self._time,
            1,
            0,
            END | MARK,
            payload,
        )
        write_whole(self._files, self._file, start + rest, offset)
        self._files.sync(self._file)
        self._chain, self._group, self._marked = chain, self._group + 1, True
        with self._lock:
            segment.end = offset + len(start) + len(rest)

    def _roll(self, need: int) -> None:
        """Goes on in a new segment. It is there, by its name and with its header, before the old one is sealed."""
        old = self._segments[-1]
        header = Header(
            self._log_id, old.header.segment + 1, self.settings.segment_bytes, old.end, self._group, self._group + 2,
            self._chain, self._time,
            {s.id: StreamEntry(s.name, s.durable, s.first) for s in self._streams.values()}, old.index, self._repairs,
        )  # fmt: skip
        header.size = max(header.size, len(header.encode()) + need + 2 * BLOCK_BYTES)
        path, file = make_segment(self._files, self.folder, self._preparation, header)
        start, rest, _ = encode_block(
            self._chain, self._salt, old.end, old.header.segment, self._group + 1, self._time, 0, 0, END | SEAL, b""
        )
        write_whole(self._files, self._file, start + rest, old.end)
        self._files.sync(self._file)
        self._files.close(self._file)
        self._file = file
        self._group += 1
        self._marked = True
        with self._lock:
            self._segments.append(Segment(self._files, path, header, {}, header.length))
        self._preparation.start(self.settings.segment_bytes)
        self._drop()

    def _drop(self) -> None:
        """Removes segments of which no stream needs anything, from the oldest on."""
        while len(self._segments) > 1 and not any(self._is_held(stream) for stream in self._streams.values()):
            with self._lock:
                path = self._segments.pop(0).path
            # One at a time: if several names were to vanish at a power cut, a hole could be left between two files.
            self._files.remove(path)
            self._files.sync_folder(self.folder)

    def _is_held(self, stream: Stream) -> bool:
        if len(self._segments) == 1:
            return False
        after = self._segments[1].header.streams.get(stream.id)
        return stream.id in self._segments[0].index and after is not None and stream.first < after.next

    # ---------------------------------------------------------------------------------------------------------- other
    def _segment_of(self, id: int, number: int) -> Segment:
        """The segment that holds the number, or the last one before it that holds anything of the stream."""
        for segment in reversed(self._segments):
            index = segment.index.get(id)
            if index is not None and index.numbers[0] <= number:
                return segment
        raise LogCorrupt("no segment holds the number", self.folder, 0, 0, {str(id): (number, None)})

    def _declare(self, name: str) -> Stream:
        self._check()
        known = self._streams.get(name)
        if known is not None:
            return known
        if not name or len(name.encode()) > STREAM_NAME_BYTES_MAX or len(self._streams) >= STREAMS_MAX:
            raise RecordRefused(
                f"stream {name!r}: a log has up to {STREAMS_MAX}, with names of 1 to {STREAM_NAME_BYTES_MAX} bytes"
            )
        stream = Stream(len(self._streams) + 1, name, 1, 1)
        self._streams[name] = stream
        self._open.declare(stream)
        return stream

    def _check(self) -> None:
        self._check_open()
        if self.poisoned is not None:
            raise self.poisoned

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed(self.folder)

    def _poison(self, failure: Exception) -> LogPoisoned:
        self.poisoned = LogPoisoned(self.folder, f"{type(failure).__name__}: {failure}")
        return self.poisoned
