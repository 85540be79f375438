"""The bytes of a small log, kept: whoever changes them changes the format, and its version."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.storage import LogSettings, open_log
from tests.storage.disk import MemoryDisk
from tests.storage.model import FOLDER, contents, ticking

GOLDEN = Path(__file__).parent / "golden"
SHARED = bytes(range(100, 200))
LOG_ID = bytes(range(16))
SETTINGS = LogSettings(segment_bytes=12 * 1024, block_bytes=200, index_bytes=512, prepare_ahead=False)


def small_log(monkeypatch: pytest.MonkeyPatch) -> MemoryDisk:
    """Two segments: several groups, one of several blocks, a snapshot, a truncation, a mark, a seal, and a record that
    borrows."""
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
    log.append("state", 6, b"journal" + SHARED, parts=[SHARED])
    log.append("events", 7, b"log" + SHARED + b".", parts=[SHARED])
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
        assert bytes(disk.bytes_of(f"{FOLDER}/{name}")).rstrip(b"\0") == (GOLDEN / "2" / name).read_bytes(), name


def golden(version: int) -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_folder(FOLDER)
    for name in names():
        file = disk.open(f"{FOLDER}/{name}", write=True, create=True)
        data = (GOLDEN / str(version) / name).read_bytes()
        disk.write(file, data.ljust(12 * 1024, b"\0") if name.endswith(".segment") else data, 0)
        disk.close(file)
    return disk


@pytest.mark.parametrize("version", [1, 2])
def test_the_golden_log_is_read_as_ever(version: int) -> None:
    log = open_log(FOLDER, SETTINGS, golden(version))
    assert log.log_id == LOG_ID.hex()
    events = [(1, 3, 1, b"first"), *[(4 + n, 1, 3, b"%d" % n * 100) for n in range(4)]]
    state = [(2, 1, 4, b"all")]
    if version == 2:
        state.append((3, 1, 6, b"journal" + SHARED))
        events.append((8, 1, 7, b"log" + SHARED + b"."))
    events.append((7 + version, 1, 5, b"x" * 4000))
    assert contents(log) == {"events": (2, 8 + version, events), "state": (2, 2 + version, state)}
    assert [record[2] - 1_794_700_800_000_000_000 for record in log.read("events", 3)] == [
        1,
        2,
        2,
        2,
        2,
        *range(4, 4 + version),
    ]


def test_nothing_borrows_in_a_segment_of_a_version_that_does_not_know_it() -> None:
    """Who reads only that version would take it for lost."""
    disk = golden(1)
    log = open_log(FOLDER, SETTINGS, disk)
    part = bytes(range(256)) * 2
    for _ in range(2):
        log.append("state", 1, part, parts=[part])
        log.append("events", 1, part, parts=[part])
        log.commit()
        while log._shelf.newest.header.version == 1:
            assert disk.bytes_of(f"{FOLDER}/0000000002.segment").count(part) % 2 == 0
            log.append("events", 1, b"x" * 4000)
            log.commit()
    newest = log._shelf.newest.path
    log.append("state", 1, part, parts=[part])
    log.append("events", 1, part, parts=[part])
    before = disk.bytes_of(newest).count(part)
    log.commit()
    assert disk.bytes_of(newest).count(part) == before + 1
