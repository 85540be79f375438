"""Disks that fail: the log stops, says why, acknowledges nothing more, and has lost nothing when it is opened again."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from holdfast.errors import LogPoisoned
from holdfast.storage import Log, LogSettings, open_log
from holdfast.storage.settings import MEBIBYTE
from tests.storage.disk import MemoryDisk
from tests.storage.model import FOLDER, contents, small

Fail = Callable[[str, str], OSError | int | None]


def failing(call: str, outcome: OSError | int, after: int = 0) -> Fail:
    """The call fails once, after it went well a few times."""
    left = [after]

    def fail(made: str, path: str) -> OSError | int | None:
        if made != call or left[0] < 0:
            return None
        left[0] -= 1
        return outcome if left[0] < 0 else None

    return fail


FAULTS: dict[str, tuple[str, OSError | int]] = {
    "EIO at a write": ("write", OSError(errno.EIO, "input/output error")),
    "a full disk": ("write", OSError(errno.ENOSPC, "no space left on device")),
    "a short write": ("write", 5),
    "a failed sync": ("sync", OSError(errno.EIO, "input/output error")),
    "a failed sync of the folder": ("sync_folder", OSError(errno.EIO, "input/output error")),
    "a failed rename": ("rename", OSError(errno.EIO, "input/output error")),
}


def append_until_it_fails(log: Log) -> int:
    """How many commits were acknowledged."""
    for acknowledged in range(5000):
        log.append("a", 1, b"%d" % acknowledged * 50)
        try:
            log.commit()
        except LogPoisoned:
            return acknowledged
    raise AssertionError("nothing failed")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("after", [0, 1, 20])
def test_after_a_failure_nothing_is_acknowledged(fault: str, after: int) -> None:
    call, outcome = FAULTS[fault]
    disk = MemoryDisk()
    log = open_log(FOLDER, small(segment_bytes=16 * 1024), disk)
    disk.fail = failing(call, outcome, after)
    acknowledged = append_until_it_fails(log)
    durable = contents(log)
    disk.fail = lambda call, path: None  # The disk is well again; the log does not believe it.
    disk.calls.clear()
    for attempt in (
        lambda: log.append("a", 1, b""),
        lambda: log.append("new", 1, b""),
        lambda: log.snapshot("a", 1, b""),
        lambda: log.truncate("a", 1),
        log.commit,
        log.mark,
        log.take,
    ):
        with pytest.raises(LogPoisoned) as poisoned:
            attempt()
        assert str(outcome) in poisoned.value.cause or "only 5" in poisoned.value.cause
    assert contents(log) == durable
    log.close()
    assert disk.calls == []
    disk.kill()
    again = contents(open_log(FOLDER, small(), disk))
    assert again.get("a", (1, 1, []))[1] - 1 in (acknowledged, acknowledged + 1)


def test_what_is_read_after_a_failed_sync_and_a_restart_stays() -> None:
    """After a failed sync the page cache holds what the disk does not; opening must not trust it as it is."""
    for seed in range(50):
        disk = MemoryDisk()
        log = open_log(FOLDER, small(), disk)
        log.append("a", 1, b"safe")
        log.commit()
        disk.fail = failing("sync", OSError(errno.EIO, "input/output error"))
        log.append("a", 1, bytes(10_000))
        with pytest.raises(LogPoisoned):
            log.commit()
        disk.kill()
        shown = contents(open_log(FOLDER, small(), disk))
        assert shown["a"][1] == 3
        disk.cut_power(Random(seed))
        assert contents(open_log(FOLDER, small(), disk)) == shown


def test_a_failure_while_opening_leaves_a_log_that_can_be_opened() -> None:
    disk = MemoryDisk()
    log = open_log(FOLDER, small(), disk)
    log.append("a", 1, b"safe")
    log.commit()
    disk.kill()
    for call, outcome in FAULTS.values():
        for after in range(6):
            disk.fail = failing(call, outcome, after)
            with suppress(OSError, LogPoisoned):
                open_log(FOLDER, small(), disk)
            disk.fail = lambda call, path: None
            disk.kill()
            assert contents(open_log(FOLDER, small(), disk))["a"][1] == 2
            disk.kill()


def test_a_segment_that_could_not_be_prepared_stops_the_log_when_it_is_needed() -> None:
    disk = MemoryDisk()
    log = open_log(FOLDER, small(segment_bytes=16 * 1024), disk)
    disk.fail = lambda call, path: (
        OSError(errno.ENOSPC, "no space left on device") if call == "write" and path.endswith("prepared") else None
    )
    assert append_until_it_fails(log) > 10
    assert log.poisoned is not None
    assert "no space left" in str(log.poisoned)


def test_a_segment_that_could_not_be_prepared_gives_its_room_back() -> None:
    """Others need it, and so does whoever wants to make room."""
    disk = MemoryDisk()
    log = open_log(FOLDER, small(segment_bytes=4 * 1024 * 1024), disk)
    written = [0]

    def full_after_two_pieces(call: str, path: str) -> OSError | None:
        if call == "write" and path.endswith("prepared"):
            written[0] += 1
            return OSError(errno.ENOSPC, "no space left on device") if written[0] > 2 else None
        return None

    disk.fail = full_after_two_pieces
    log.append("a", 1, bytes(5 * 1024 * 1024))
    with pytest.raises(LogPoisoned, match="no space left"):
        log.commit()
    assert written == [3]
    assert not [path for path in disk.paths() if path.endswith("prepared")]


class SmallDisk(MemoryDisk):
    """With so much room, and an end: as a real one does, it takes what fits, and refuses the next write."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def write(self, file: int, data: bytes, offset: int) -> int:
        room = self.capacity - sum(len(content.cache) for content in self._names.values())
        fits = self.size(file) + room - offset
        if fits <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(file, data[:fits], offset)


@pytest.mark.parametrize("ahead", [False, True])
def test_a_disk_is_used_to_its_end_and_then_said_to_be_full(ahead: bool) -> None:
    """Segments that do not fit are made smaller, and what is said is not how many bytes were taken."""
    disk = SmallDisk(10 * MEBIBYTE)
    log = open_log(FOLDER, LogSettings(prepare_ahead=ahead), disk)
    for _ in range(100):
        log._tail._preparation._wait()  # the disk in memory is no place for two threads at once
        log.append("a", 1, bytes(300_000))
        try:
            log.commit()
        except LogPoisoned as poisoned:
            problem = str(poisoned)
            break
    assert [s.header.size // MEBIBYTE for s in log._shelf.segments] == [1, 2, 4, 2]
    assert problem.startswith(f"{FOLDER}: the disk is full: ")
    assert "make room" in problem
    assert "[Errno 28] No space left on device" in problem
    assert "of 1048576 bytes" not in problem
    kept = contents(log)
    disk.kill()
    assert contents(open_log(FOLDER, LogSettings(prepare_ahead=False), disk)) == kept


def test_what_stopped_a_short_write_is_asked_for() -> None:
    disk = MemoryDisk()
    log = open_log(FOLDER, small(), disk)
    outcomes: list[OSError | int] = [5, OSError(errno.EDQUOT, "Disk quota exceeded")]
    disk.fail = lambda call, path: outcomes.pop(0) if call == "write" else None
    log.append("a", 1, b"more than five bytes")
    with pytest.raises(LogPoisoned, match=r"the quota of this user is used up.*Disk quota exceeded"):
        log.commit()
    assert outcomes == []
