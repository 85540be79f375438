"""Repairs: what is provably good stays, what is lost is named and never read as something else, nothing is deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest

from holdfast.errors import LogCorrupt, LogLocked, NotALog, RecordsGone, RecordsLost
from holdfast.storage import Log, open_log
from holdfast.storage.inspection import inspect
from holdfast.storage.repair import UNKNOWN_NUMBERS, RepairReport, repair
from tests.storage.disk import MemoryDisk, PowerCut
from tests.storage.model import FOLDER, small

RECORDS = 120


def body(stream: str, number: int) -> bytes:
    return f"{stream}-{number:04}-".encode() * 40


def written() -> MemoryDisk:
    """A log of several segments with two streams."""
    disk = MemoryDisk()
    log = open_log(FOLDER, small(), disk)
    for number in range(1, RECORDS + 1):
        log.append("a", 1, body("a", number))
        if number % 2:
            log.append("b", 2, body("b", (number + 1) // 2))
        log.commit()
    log.close()
    disk.kill()
    return disk


def segments(disk: MemoryDisk) -> list[str]:
    return [path for path in disk.paths() if path.endswith(".segment")]


def readable(log: Log, stream: str) -> tuple[dict[int, bytes], list[tuple[int, int]]]:
    """Everything that can be read of a stream, and the ranges that can't."""
    found: dict[int, bytes] = {}
    lost: list[tuple[int, int]] = []
    start = log.first(stream)
    while start < log.end(stream):
        try:
            for number, count, _, _, data in log.read(stream, start, max_bytes=10**9):
                found[number] = data
                start = number + count
        except RecordsLost as gap:
            lost.append((gap.first, gap.next))
            start = gap.next
    return found, lost


def check_repaired(disk: MemoryDisk, report: RepairReport, before: dict[str, bytes]) -> None:
    """What is not lost is there and right; what is lost was reported; what was set aside is as it was."""
    log = open_log(FOLDER, small(), disk)
    for stream, count in (("a", RECORDS), ("b", RECORDS // 2)):
        found, lost = readable(log, stream)
        assert found == {number: body(stream, number) for number in found}
        missing = set(range(1, count + 1)) - set(found)
        reported = {n for a, b in report.lost.get(stream, []) for n in range(a, min(b, count + 1))}
        assert missing == reported
        assert all(log.first(stream) > b - 1 or (a, b) in report.lost[stream] for a, b in lost)
        assert log.append(stream, 1, b"new") > count
    log.commit()
    assert [json.loads(note)["set_aside"] for note in log.opening.repairs] != []
    log.close()
    assert inspect(disk, FOLDER, every=True).damages == []
    for name in report.set_aside:
        original = f"{FOLDER}/{name.partition('.')[0]}.segment"
        assert bytes(disk.bytes_of(f"{FOLDER}/{name}")) == before[original]


def damages(seed: int) -> Iterator[MemoryDisk]:
    """Disks with a flipped bit, a zeroed page, a missing file, a short file, a damaged header."""
    rng = Random(seed)
    for kind in ("bit", "page", "missing", "short", "header", "two"):
        disk = written()
        path = rng.choice(segments(disk))
        data = disk.bytes_of(path)
        used = len(bytes(data).rstrip(b"\0"))
        if kind == "bit":
            data[rng.randrange(4096, used)] ^= 1
        elif kind == "page":
            start = rng.randrange(4096, used)
            data[start : start + 4096] = bytes(len(data[start : start + 4096]))
        elif kind == "missing":
            disk.remove(path)
        elif kind == "short":
            del data[rng.randrange(used) :]
        elif kind == "header":
            data[rng.randrange(200)] ^= 1
        else:
            for other in segments(disk):
                disk.bytes_of(other)[rng.randrange(4096, 20_000)] ^= 1
        yield disk


@pytest.mark.parametrize("seed", range(25))
def test_a_repair_keeps_what_is_good_and_names_what_is_lost(seed: int) -> None:
    for disk in damages(seed):
        before = {path: bytes(disk.bytes_of(path)) for path in segments(disk)}
        report = repair(disk, FOLDER, small())
        if report.needed:
            check_repaired(disk, report, before)
        else:
            open_log(FOLDER, small(), disk)
        disk.kill()


def test_one_flipped_bit_loses_one_commit() -> None:
    disk = written()
    path = segments(disk)[0]
    disk.bytes_of(path)[disk.bytes_of(path).index(body("a", 5))] ^= 1
    report = repair(disk, FOLDER, small())
    assert report.lost == {"a": [(5, 6)], "b": [(3, 4)]}
    log = open_log(FOLDER, small(), disk)
    assert [r[0] for r in log.read("a", 1)] == [1, 2, 3, 4]
    with pytest.raises(RecordsLost) as lost:
        log.read("a", 5)
    assert (lost.value.stream, lost.value.first, lost.value.next) == ("a", 5, 6)
    assert log.read("a", 6, 1)[0][4] == body("a", 6)


def test_times_are_kept() -> None:
    disk = written()
    times = {r[0]: r[2] for part in open_log(FOLDER, small(), disk).scan("a") for r in part}
    disk.kill()
    path = segments(disk)[0]
    disk.bytes_of(path)[disk.bytes_of(path).index(body("a", 1))] ^= 1
    repair(disk, FOLDER, small())
    log = open_log(FOLDER, small(), disk)
    assert {r[0]: r[2] for part in log.scan("a", 2) for r in part} == {n: t for n, t in times.items() if n > 1}


def test_a_missing_first_segment_moves_the_beginning() -> None:
    disk = written()
    disk.remove(segments(disk)[0])
    with pytest.raises(LogCorrupt):
        open_log(FOLDER, small(), disk)
    disk.kill()
    report = repair(disk, FOLDER, small())
    log = open_log(FOLDER, small(), disk)
    assert report.lost["a"] == [(1, log.first("a"))]
    with pytest.raises(RecordsGone):
        log.read("a", 1)


def test_numbers_after_a_lost_end_are_not_used_again() -> None:
    disk = written()
    disk.remove(segments(disk)[-1])
    report = repair(disk, FOLDER, small())
    assert sorted(report.unknown_end) == ["a", "b"]
    assert open_log(FOLDER, small(), disk).append("a", 1, b"") > UNKNOWN_NUMBERS


def test_a_whole_log_is_left_alone() -> None:
    disk = written()
    before = {path: bytes(disk.bytes_of(path)) for path in disk.paths()}
    assert repair(disk, FOLDER, small()) == RepairReport()
    assert {path: bytes(disk.bytes_of(path)) for path in disk.paths()} == before


def test_an_open_log_is_not_repaired() -> None:
    disk = written()
    open_log(FOLDER, small(), disk)
    with pytest.raises(LogLocked):
        repair(disk, FOLDER, small())


def test_a_folder_without_segments_can_not_be_repaired() -> None:
    disk = MemoryDisk()
    disk.make_folder(FOLDER)
    with pytest.raises(NotALog):
        repair(disk, FOLDER, small())
    with pytest.raises(NotALog):
        inspect(disk, FOLDER, every=False)


def test_a_repair_that_is_interrupted_anywhere_is_finished_by_the_next_one() -> None:
    damaged = written()
    path = segments(damaged)[-1]
    damaged.bytes_of(path)[damaged.bytes_of(path).index(body("a", RECORDS - 1))] ^= 1
    before = {path: bytes(damaged.bytes_of(path)) for path in segments(damaged)}
    reference = repair(damaged.copy(), FOLDER, small())
    interrupted = 0
    for stop in range(2000):
        disk = damaged.copy()
        disk.stop_after = stop
        try:
            repair(disk, FOLDER, small())
            break
        except PowerCut:
            interrupted += 1
        disk.cut_power(Random(stop))
        with pytest.raises(LogCorrupt):
            open_log(FOLDER, small(), disk)
        disk.kill()
        report = repair(disk, FOLDER, small())
        assert report.lost == reference.lost
        check_repaired(disk, report, before)
        disk.kill()
    assert interrupted > 10
