"""A node's streams in a segment log on disk; a thread writes and syncs while the node goes on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from holdfast.codec import Registry
from holdfast.errors import LogError, LogUnusable, RecordsGone, RecordsLost, StateLost, WrongLog
from holdfast.kernel.messages import Record
from holdfast.kernel.outbox import Append, Operation, Snapshot, Truncate
from holdfast.kernel.storage import LOGS, NUMBERED, LogBounds, LogPart, StoredStreams
from holdfast.storage import Log, LogSettings, LogWriter, open_log
from holdfast.storage.trouble import explained

LIVES = "lives"  # one record: the incarnation of the last life, in 8 bytes, and the name of who lived it
_LIFE_KIND = 255
FREE_EVERY = 32  # writes: then it is looked whether something old can go
RENEW_BYTES_MAX = 1024 * 1024  # of a stream that is written again so that others can go
ALARM_SEGMENTS = 8  # on the disk, and held by no log: then the log says so

log = logging.getLogger("holdfast")


class SegmentStorage:
    """Opened by `start`, which raises LogError if the log can't be used, WrongLog if it is someone else's."""

    def __init__(
        self, folder: str, records: Registry[Record], settings: LogSettings | None = None, owner: str = ""
    ) -> None:
        """`owner`: whose folder it is; another's is refused. Empty: anyone's."""
        self._folder = folder
        self._records = records
        self._owner = owner
        self._settings = settings or LogSettings()
        self._log: Log | None = None
        self._writer: LogWriter | None = None
        self._token = 0
        self._incarnation = 0
        self._durable: Callable[[int], None] = lambda token: None
        self._failed: Callable[[str], None] = lambda reason: None
        self._has_failed = False
        self._writes = 0
        self._alarm_segments = ALARM_SEGMENTS

    @property
    def log_id(self) -> str:
        return self._open.log_id

    @property
    def repairs(self) -> int:
        return len(self._open.opening.repairs)

    @property
    def bytes_on_disk(self) -> int:
        return self._open.bytes_on_disk()

    @property
    def is_held(self) -> bool:
        holders = self._open.holders()
        return self._segments >= ALARM_SEGMENTS and bool(holders) and not LOGS.intersection(holders)

    @property
    def _segments(self) -> int:
        return self._open.bytes_on_disk() // self._settings.segment_bytes

    @property
    def _open(self) -> Log:
        if self._log is None:
            raise RuntimeError("the storage is not open")
        return self._log

    def start(self, durable: Callable[[int], None], failed: Callable[[str], None]) -> StoredStreams:
        try:
            opened = self._log = open_log(self._folder, self._settings)
        except OSError as error:
            raise LogUnusable(self._folder, explained(self._folder, error)) from error
        if opened.opening.cut is not None:
            cut = opened.opening.cut
            log.warning(
                "%s: the last commit was torn: bytes %d to %d of %s are cut", self._folder, cut.start, cut.end, cut.file
            )
        try:
            self._incarnation = self._begin_life(opened)
            streams = {
                stream: [
                    self._decoded(stream, kind, body) for part in opened.scan(stream) for _, _, _, kind, body in part
                ]
                for stream in opened.streams()
                if stream not in LOGS and stream != LIVES
            }
        except RecordsLost as lost:
            self.close()
            raise StateLost(self._folder, lost.stream, lost.first, lost.next) from lost
        except LogError:
            self.close()
            raise
        self._durable, self._failed = durable, failed
        # Only now: a log is committed to from one thread.
        loop = asyncio.get_running_loop()
        self._writer = LogWriter(
            opened,
            lambda token: _in_loop(loop, self._on_durable, token),
            lambda error: _in_loop(loop, self._on_failed, str(error)),
        )
        return streams

    def next_incarnation(self) -> int:
        return self._incarnation

    def _decoded(self, stream: str, kind: int, body: bytes) -> Record:
        if kind not in self._records.types:
            problem = (
                "the data are those of a broker of another scheme, or of a later version:"
                f" {stream!r} holds records that this one does not know; it needs its own folder"
            )
            raise WrongLog(problem, str(self._folder))
        return self._records.decode(kind, body)

    def _begin_life(self, opened: Log) -> int:
        """Larger than any before on this disk, whatever the clock says; on the disk when this returns."""
        last, owner = 0, ""
        for records in opened.scan(LIVES):
            body = records[-1][4]
            last, owner = int.from_bytes(body[:8], "big"), body[8:].decode()
        if owner and self._owner and owner != self._owner:
            problem = f"the data are those of {owner}, not of {self._owner}: give each broker its own folder"
            raise WrongLog(problem, str(self._folder))
        incarnation = max(last + 1, time.time_ns())
        opened.snapshot(LIVES, _LIFE_KIND, incarnation.to_bytes(8, "big") + (self._owner or owner).encode())
        opened.commit()
        return incarnation

    def bounds(self) -> dict[str, LogBounds]:
        opened = self._open
        return {s: LogBounds(opened.first(s), opened.next(s)) for s in opened.streams() if s in LOGS}

    def write(self, operations: Sequence[Operation]) -> None:
        opened, writer = self._open, self._writer
        if self._has_failed or writer is None:
            return
        try:
            self._writes += 1
            if self._writes % FREE_EVERY == 0:
                self._free(opened)
            for operation in operations:
                match operation:
                    case Append():
                        record = operation.record
                        kind, body = self._records.encode(record)
                        opened.append(operation.stream, kind, body, operation.count, record.parts())
                        self._token = operation.token
                    case Snapshot():
                        opened.snapshot(operation.stream, *self._records.encode(operation.record))
                        self._token = operation.token
                    case Truncate():
                        opened.truncate(operation.stream, operation.before)
            writer.submit(self._token)
        except LogError as error:
            self._on_failed(str(error))

    def _free(self, opened: Log) -> None:
        """What lives long must not hold what is old: segments go from the oldest on, and one record that was written
        once would keep all of them. Where nothing but such records holds the oldest one, they are written again."""
        holders = opened.holders()
        if LOGS.intersection(holders):
            return
        if all(self._is_renewable(opened, stream) for stream in holders):
            for stream in holders:
                _renew(opened, stream)
        self._warn(opened, [stream for stream in holders if stream in NUMBERED])

    @staticmethod
    def _is_renewable(opened: Log, stream: str) -> bool:
        """Whether it is little, all of it is on the disk, and nobody counts by its numbers."""
        is_whole = opened.end(stream) == opened.next(stream)
        return stream not in NUMBERED and is_whole and opened.bytes(stream) <= RENEW_BYTES_MAX

    def _warn(self, opened: Log, holders: list[str]) -> None:
        """Says that the disk fills with what no log needs, the first time and with every doubling."""
        if not holders:
            self._alarm_segments = ALARM_SEGMENTS
        elif self._segments >= self._alarm_segments:
            self._alarm_segments = 2 * self._segments
            log.warning(
                "%s: %d MiB are on the disk, and old ones are held by %s: events that wait for a broker that is away",
                self._folder, opened.bytes_on_disk() >> 20, ", ".join(holders),
            )  # fmt: skip

    def read(self, stream: str, start: int, limit: int, bytes_max: int) -> LogPart:
        opened = self._open
        end = opened.end(stream)
        try:
            found = opened.read(stream, start, limit, bytes_max) if start < end else []
        except RecordsGone as gone:
            return LogPart([], start, end, gone.first)
        except RecordsLost as lost:
            return LogPart([], start, end, lost.next)
        except LogError as error:
            self._on_failed(str(error))
            return LogPart([], start, end)
        records = [(number, self._records.decode(kind, body)) for number, _, _, kind, body in found]
        return LogPart(records, found[-1][0] + found[-1][1] if found else start, end)

    def close(self) -> None:
        """Writes what was taken in, and closes."""
        if self._log is None:
            return
        opened, self._log = self._log, None
        if self._writer is not None:
            self._writer.close()
        opened.close()

    def _on_durable(self, token: int) -> None:
        if self._log is not None and not self._has_failed:
            self._durable(token)

    def _on_failed(self, reason: str) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._failed(reason)


def _renew(opened: Log, stream: str) -> None:
    """In one commit: the same records under higher numbers, and the end of the old ones."""
    first = opened.next(stream)
    for records in list(opened.scan(stream)):
        for _, count, _, kind, body in records:
            opened.append(stream, kind, body, count)
    opened.truncate(stream, first)


def _in_loop(loop: asyncio.AbstractEventLoop, call: Callable[..., None], argument: object) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call, argument)
