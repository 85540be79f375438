"""The bytes of a small log, kept: whoever changes them changes the format, and its version."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.storage import LogSettings, open_log
from tests.storage.disk import MemoryDisk
from tests.storage.model import FOLDER, contents, ticking

GOLDEN = Path(__file__).parent / "golden"
LOG_ID = bytes(range(16))
SETTINGS = LogSettings(segment_bytes=12 * 1024, block_bytes=200, index_bytes=512, prepare_ahead=False)


def small_log(monkeypatch: pytest.MonkeyPatch) -> MemoryDisk:
    """Two segments: several groups, one of several blocks, a snapshot, a truncation, a mark and a seal."""
    monkeypatch.setattr("holdfast.storage.opening.secrets.token_bytes", lambda count: LOG_ID)
    disk = MemoryDisk()
    settings = LogSettings(12 * 1024, 200, 512, prepare_ahead=False, clock=ticking(1_794_700_800_000_000_000))
    log = open_log(FOLDER, settings, disk)
    log.append("events", 1, b"first", count=3)
    log.append("state", 2, b"begin")
    log.commit()
    log.mark()
    for number in range(4):
        log.append("events", 3, b"%d" % number * 100)
    log.commit()
    log.snapshot("state", 4, b"all")
    log.truncate("events", 2)
    log.commit()
    log.append("events", 5, b"x" * 4000)
    log.commit()
    log.close()
    return disk


def names() -> list[str]:
    return ["log", "0000000001.segment", "0000000002.segment", "closed"]


def test_a_log_is_written_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = small_log(monkeypatch)
    assert [path.rpartition("/")[2] for path in disk.paths()] == sorted(names())
    for name in names():
        # Zeros at the end are left out of the file that is kept.
        assert bytes(disk.bytes_of(f"{FOLDER}/{name}")).rstrip(b"\0") == (GOLDEN / name).read_bytes(), name


def test_the_golden_log_is_read_as_ever() -> None:
    disk = MemoryDisk()
    disk.make_folder(FOLDER)
    for name in names():
        file = disk.open(f"{FOLDER}/{name}", write=True, create=True)
        data = (GOLDEN / name).read_bytes()
        disk.write(file, data.ljust(12 * 1024, b"\0") if name.endswith(".segment") else data, 0)
        disk.close(file)
    log = open_log(FOLDER, SETTINGS, disk)
    assert log.log_id == LOG_ID.hex()
    assert contents(log) == {
        "events": (
            2,
            9,
            [(1, 3, 1, b"first"), *[(4 + n, 1, 3, b"%d" % n * 100) for n in range(4)], (8, 1, 5, b"x" * 4000)],
        ),
        "state": (2, 3, [(2, 1, 4, b"all")]),
    }
    assert [record[2] - 1_794_700_800_000_000_000 for record in log.read("events", 3)] == [1, 2, 2, 2, 2, 4]
