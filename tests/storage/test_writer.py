"""The writer's thread: what was submitted meanwhile is one group; failures are reported once and end it."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator

import pytest

from holdfast.errors import LogError, LogPoisoned
from holdfast.storage import Log, LogSettings, LogWriter, open_log
from holdfast.storage.inspection import inspect
from tests.storage.disk import MemoryDisk
from tests.storage.model import FOLDER, contents, small

PATIENCE_S = 30


class SlowDisk(MemoryDisk):
    """Syncs wait for leave, once they are to."""

    def __init__(self) -> None:
        super().__init__()
        self.leave = threading.Semaphore(0)
        self.waiting = threading.Semaphore(0)
        self.slow = False

    def sync(self, file: int) -> None:
        if self.slow:
            self.waiting.release()
            assert self.leave.acquire(timeout=PATIENCE_S)
        super().sync(file)


class Watched:
    """A writer and what it reported."""

    def __init__(self, disk: MemoryDisk, quiet_ms: int = 3_600_000) -> None:
        settings = small()
        self.log: Log = open_log(
            FOLDER, LogSettings(settings.segment_bytes, 700, 2048, prepare_ahead=False, quiet_ms=quiet_ms), disk
        )
        self.tokens: list[int] = []
        self.failures: list[LogError] = []
        self.changed = threading.Condition()
        self.writer = LogWriter(self.log, self._durable, self._failed)

    def _durable(self, token: int) -> None:
        with self.changed:
            self.tokens.append(token)
            self.changed.notify_all()

    def _failed(self, failure: LogError) -> None:
        with self.changed:
            self.failures.append(failure)
            self.changed.notify_all()

    def wait_for(self, token: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: token in self.tokens or self.failures, PATIENCE_S)


@pytest.fixture
def disk() -> SlowDisk:
    return SlowDisk()


@pytest.fixture
def watched(disk: SlowDisk) -> Iterator[Watched]:
    watched = Watched(disk)
    yield watched
    disk.slow = False
    disk.leave.release(100)
    watched.writer.close()


def test_what_was_submitted_is_durable_when_its_token_is_reported(watched: Watched) -> None:
    watched.log.append("a", 1, b"x")
    watched.writer.submit(7)
    watched.wait_for(7)
    assert [r[4] for r in watched.log.read("a", 1)] == [b"x"]


def test_all_that_is_submitted_during_a_sync_is_one_group(watched: Watched, disk: SlowDisk) -> None:
    disk.slow = True
    watched.log.append("a", 1, b"0")
    watched.writer.submit(1)
    assert disk.waiting.acquire(timeout=PATIENCE_S)
    disk.calls.clear()
    for n in range(2, 50):
        watched.log.append("a", 1, b"%d" % n)
        watched.writer.submit(n)
    disk.slow = False
    disk.leave.release()
    watched.wait_for(49)
    assert watched.tokens == [1, 49]
    assert [call.split()[0] for call in disk.calls] == ["sync", "write", "sync"]
    assert len(watched.log.read("a", 1)) == 49


def test_nothing_is_read_before_its_sync_is_through(watched: Watched, disk: SlowDisk) -> None:
    disk.slow = True
    watched.log.append("a", 1, b"x")
    watched.writer.submit(1)
    assert disk.waiting.acquire(timeout=PATIENCE_S)
    assert (watched.log.read("a", 1), watched.log.end("a"), watched.tokens) == ([], 1, [])


def test_closing_writes_what_was_submitted(disk: SlowDisk) -> None:
    watched = Watched(disk)
    for n in range(1, 20):
        watched.log.append("a", 1, b"%d" % n)
        watched.writer.submit(n)
    watched.writer.close()
    assert watched.tokens[-1] == 19
    assert watched.log.end("a") == 20


def test_a_token_without_appends_is_reported_too(watched: Watched) -> None:
    watched.writer.submit(3)
    watched.wait_for(3)
    assert watched.tokens == [3]


def test_after_a_quiet_time_the_log_ends_in_a_mark(disk: SlowDisk) -> None:
    watched = Watched(disk, quiet_ms=1)
    marked = threading.Event()
    write = disk.write

    def writing(file: int, data: bytes, offset: int) -> int:
        taken = write(file, data, offset)
        if offset == 2 * 4096:  # the page after that of the first group
            marked.set()
        return taken

    disk.write = writing  # type: ignore[method-assign]
    watched.log.append("a", 1, b"x")
    watched.writer.submit(1)
    assert marked.wait(PATIENCE_S)
    watched.writer.close()
    assert (watched.tokens, watched.log.ends_in_mark) == ([1], True)


@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_failure_is_reported_once_and_nothing_is_acknowledged_after_it(disk: SlowDisk, call: str) -> None:
    watched = Watched(disk)
    watched.log.append("a", 1, b"good")
    watched.writer.submit(1)
    watched.wait_for(1)
    disk.fail = lambda made, path: OSError(errno.EIO, "input/output error") if made == call else None
    watched.log.append("a", 1, b"bad")
    watched.writer.submit(2)
    watched.wait_for(2)
    disk.fail = lambda made, path: None
    with pytest.raises(LogPoisoned):
        watched.writer.submit(3)
    watched.writer.close()
    assert watched.tokens == [1]
    assert [str(failure) for failure in watched.failures] == [str(watched.log.poisoned)]
    disk.kill()
    assert contents(open_log(FOLDER, small(), disk))["a"][2][0] == (1, 1, 1, b"good")


def test_streams_may_appear_while_the_writer_works(watched: Watched) -> None:
    for n in range(1, 300):
        watched.log.append(f"stream {n}", 1, bytes(500))
        watched.writer.submit(n)
    watched.wait_for(299)
    assert watched.failures == []
    assert len(watched.log.streams()) == 299


def test_what_waited_for_a_slow_disk_makes_no_segment_larger_than_the_others(watched: Watched, disk: SlowDisk) -> None:
    """One record in a huge segment that is needed would keep all of it on the disk."""
    usual = watched.log.settings.segment_bytes
    disk.slow = True
    watched.log.append("a", 1, b"first")
    watched.writer.submit(1)
    assert disk.waiting.acquire(timeout=PATIENCE_S)
    submitted = range(2, 2 + 20 * usual // 500)
    for token in submitted:
        watched.log.append("a", 1, b"x" * 500)
        watched.writer.submit(token)
    disk.slow = False
    disk.leave.release()
    watched.wait_for(submitted[-1])
    assert watched.tokens == sorted(watched.tokens)
    segments = inspect(disk, FOLDER, every=False).segments
    assert len(segments) > 20
    assert {segment.bytes for segment in segments} == {usual}


def test_one_submission_is_one_group_however_large(watched: Watched, disk: SlowDisk) -> None:
    """Whoever writes records anew and gives up the old ones relies on it."""
    disk.calls.clear()
    for _ in range(watched.log.settings.segment_bytes // 2 // 500):
        watched.log.append("a", 1, b"x" * 500)
    watched.writer.submit(1)
    watched.wait_for(1)
    assert [call.split()[0] for call in disk.calls] == ["write", "sync"]
