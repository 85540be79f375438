"""Looking at a log from outside: nothing is changed, and a log that is being written is not taken for a damaged one."""

from __future__ import annotations

import threading
from pathlib import Path

from holdfast.storage import LogSettings, SystemFiles, open_log
from holdfast.storage.inspection import inspect
from tests.storage.disk import MemoryDisk
from tests.storage.model import FOLDER, small


def test_a_report_has_segments_streams_and_times() -> None:
    disk = MemoryDisk()
    log = open_log(FOLDER, small(), disk)
    for _ in range(50):
        log.append("a", 1, bytes(980), count=2)
        log.commit()
    log.snapshot("b", 1, b"")
    log.truncate("a", 11)
    log.commit()
    log.close()
    before = {path: bytes(disk.bytes_of(path)) for path in disk.paths()}
    report = inspect(disk, FOLDER, every=True)
    assert (report.log_id, report.verdict, len(report.segments)) == (log.log_id, "clean", 2)
    a, b = report.streams
    assert (a.name, a.first, a.next, a.records, a.bytes, a.oldest) == ("a", 11, 101, 50, 50_000, 1001)
    assert (b.name, b.first, b.next, b.records, b.bytes) == ("b", 1, 2, 1, 20)
    assert {path: bytes(disk.bytes_of(path)) for path in disk.paths()} == before


def test_a_torn_tail_is_reported_and_left() -> None:
    disk = MemoryDisk()
    log = open_log(FOLDER, small(), disk)
    log.append("a", 1, b"x")
    log.commit()
    disk.kill()
    path = disk.paths()[0]
    disk.bytes_of(path)[8000:8010] = b"remains..."
    assert (inspect(disk, FOLDER, every=False).verdict, bytes(disk.bytes_of(path)[8000:8010])) == (
        "torn",
        b"remains...",
    )


def test_a_log_that_is_being_written_does_not_look_damaged(tmp_path: Path) -> None:
    folder = str(tmp_path / "log")
    log = open_log(folder, LogSettings(segment_bytes=64 * 1024, prepare_ahead=False))
    ended = threading.Event()

    def write() -> None:
        while not ended.is_set():
            log.append("a", 1, bytes(3000))
            log.truncate("a", log.end("a") - 50)
            log.commit()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        verdicts = {inspect(SystemFiles(), folder, every=True).verdict for _ in range(100)}
    finally:
        ended.set()
        writer.join()
    log.close()
    assert verdicts <= {"clean", "torn"}
