"""A node's streams in a segment log on disk; a thread writes and syncs while the node goes on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from holdfast.errors import LogError, LogPoisoned, RecordsGone, RecordsLost
from holdfast.kernel.outbox import Append, Snapshot, Truncate
from holdfast.kernel.storage import LOGS, LogBounds, LogPart, StoredStreams
from holdfast.protocols.catalogue import RECORDS
from holdfast.runtime.storage import Operation
from holdfast.storage import Log, LogSettings, LogWriter, open_log

LIVES = "lives"  # one record: the incarnation of the last life
_LIFE_KIND = 255

log = logging.getLogger("holdfast")


class SegmentStorage:
    """Opened by `start`, which raises LogError if the log can't be used."""

    def __init__(self, folder: str, settings: LogSettings | None = None) -> None:
        self._folder = folder
        self._settings = settings or LogSettings()
        self._log: Log | None = None
        self._writer: LogWriter | None = None
        self._token = 0
        self._incarnation = 0
        self._durable: Callable[[int], None] = lambda token: None
        self._failed: Callable[[str], None] = lambda reason: None
        self._has_failed = False

    @property
    def log_id(self) -> str:
        return self._open.log_id

    @property
    def repairs(self) -> int:
        return len(self._open.opening.repairs)

    @property
    def _open(self) -> Log:
        if self._log is None:
            raise RuntimeError("the storage is not open")
        return self._log

    def start(self, durable: Callable[[int], None], failed: Callable[[str], None]) -> StoredStreams:
        try:
            opened = self._log = open_log(self._folder, self._settings)
        except OSError as error:
            raise LogPoisoned(self._folder, f"{type(error).__name__}: {error}") from error
        if opened.opening.cut is not None:
            cut = opened.opening.cut
            log.warning(
                "%s: the last commit was torn: bytes %d to %d of %s are cut", self._folder, cut.start, cut.end, cut.file
            )
        self._incarnation = self._begin_life(opened)
        self._durable, self._failed = durable, failed
        # Only now: a log is committed to from one thread.
        loop = asyncio.get_running_loop()
        self._writer = LogWriter(
            opened,
            lambda token: _in_loop(loop, self._on_durable, token),
            lambda error: _in_loop(loop, self._on_failed, str(error)),
        )
        return {
            stream: [RECORDS.decode(kind, body) for records in opened.scan(stream) for _, _, _, kind, body in records]
            for stream in opened.streams()
            if stream not in LOGS and stream != LIVES
        }

    def next_incarnation(self) -> int:
        return self._incarnation

    def _begin_life(self, opened: Log) -> int:
        """Larger than any before on this disk, whatever the clock says; on the disk when this returns."""
        last = 0
        for records in opened.scan(LIVES):
            last = int.from_bytes(records[-1][4], "big")
        incarnation = max(last + 1, time.time_ns())
        opened.snapshot(LIVES, _LIFE_KIND, incarnation.to_bytes(8, "big"))
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
            for operation in operations:
                match operation:
                    case Append():
                        kind, body = RECORDS.encode(operation.record)
                        opened.append(operation.stream, kind, body, operation.count)
                        self._token = operation.token
                    case Snapshot():
                        opened.snapshot(operation.stream, *RECORDS.encode(operation.record))
                        self._token = operation.token
                    case Truncate():
                        opened.truncate(operation.stream, operation.before)
            writer.submit(self._token)
        except LogError as error:
            self._on_failed(str(error))

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
        records = [(number, RECORDS.decode(kind, body)) for number, _, _, kind, body in found]
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


def _in_loop(loop: asyncio.AbstractEventLoop, call: Callable[..., None], argument: object) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call, argument)
