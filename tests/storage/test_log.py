"""What a log takes in and gives back: numbers, times, snapshots, truncation, segments, retention, locks."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from holdfast.errors import LogClosed, LogCorrupt, LogLocked, NotALog, RecordRefused, RecordsGone
from holdfast.storage import Log, LogRecord, LogSettings, Retention, SystemFiles, open_log
from holdfast.storage.format import IMPLEMENTATION, extend
from holdfast.storage.settings import MEBIBYTE
from tests.storage.disk import MemoryDisk
from tests.storage.model import FOLDER, small, ticking


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def log(disk: MemoryDisk) -> Log:
    return open_log(FOLDER, small(), disk)


def reopened(log: Log, disk: MemoryDisk) -> Log:
    log.close()
    return open_log(FOLDER, small(lambda: 0), disk)


def bodies(records: list[LogRecord]) -> list[bytes]:
    return [body for _, _, _, _, body in records]


def segments(disk: MemoryDisk) -> list[str]:
    return [path.rpartition("/")[2] for path in disk.paths() if path.endswith(".segment")]


def fill(log: Log, stream: str, records: int, size: int = 1000) -> None:
    for _ in range(records):
        log.append(stream, 1, bytes(size))
        log.commit()


# ------------------------------------------------------------------------------------------------- appending, reading
def test_the_checksum_is_crc32c_and_computed_in_c() -> None:
    assert (extend(0, b"123456789"), IMPLEMENTATION) == (0xE3069283, "c")


def test_records_come_back_with_their_numbers_times_and_kinds(log: Log) -> None:
    assert [log.append("a", 7, b"one"), log.append("b", 8, b"two", count=5), log.append("a", 9, b"three")] == [1, 1, 2]
    log.commit()
    log.append("b", 1, b"four")
    log.commit()
    assert log.read("a", 1) == [(1, 1, 1001, 7, b"one"), (2, 1, 1001, 9, b"three")]
    assert log.read("b", 1) == [(1, 5, 1001, 8, b"two"), (6, 1, 1002, 1, b"four")]


def test_many_records_at_once_are_as_one_by_one() -> None:
    sizes = [0, 10, 650, 3, 3000, 100, 100, 699, 700, 1, 1, 1] * 3
    given = [b"%d" % n * size for n, size in enumerate(sizes)]
    found = []
    for at_once in (True, False):
        log = open_log(FOLDER, small(), MemoryDisk())
        log.append("b", 1, b"before")
        if at_once:
            assert log.append_all("a", 7, given) == 1
        else:
            assert [log.append("a", 7, body) for body in given] == list(range(1, len(given) + 1))
        assert log.append("a", 8, b"after") == len(given) + 1
        log.commit()
        assert log.append_all("a", 7, []) == len(given) + 2
        found.append((log.read("a", 1), log.read("a", 20), log.read("b", 1), log.bytes("a"), log.bytes("b")))
        with pytest.raises(RecordRefused):
            log.append_all("a", 256, [b""])
    assert found[0] == found[1]
    assert bodies(found[0][0]) == [*given, b"after"]


def test_streams_are_numbered_on_after_a_restart(log: Log, disk: MemoryDisk) -> None:
    log.append("a", 1, b"x", count=10)
    log.append("b", 1, b"y")
    log.commit()
    log = reopened(log, disk)
    assert [log.append("a", 1, b"z"), log.append("b", 1, b"z"), log.append("c", 1, b"z")] == [11, 2, 1]


def test_only_durable_records_are_read(log: Log) -> None:
    log.append("a", 1, b"x")
    assert (log.read("a", 1), log.end("a"), log.next("a")) == ([], 1, 2)
    log.commit()
    assert (bodies(log.read("a", 1)), log.end("a"), log.next("a")) == ([b"x"], 2, 2)


def test_what_was_not_committed_is_gone_after_a_restart(log: Log, disk: MemoryDisk) -> None:
    log.append("a", 1, b"x")
    log = reopened(log, disk)
    assert (log.streams(), log.next("a")) == ([], 1)


def test_reading_may_start_inside_a_batch(log: Log) -> None:
    log.append("a", 1, b"1 to 10", count=10)
    log.append("a", 1, b"11")
    log.commit()
    assert bodies(log.read("a", 10)) == [b"1 to 10", b"11"]
    assert bodies(log.read("a", 11)) == [b"11"]
    assert log.read("a", 12) == []


def test_reading_stops_at_its_limits_but_gives_at_least_one_record(log: Log) -> None:
    for _ in range(5):
        log.append("a", 1, bytes(100))
    log.commit()
    assert [r[0] for r in log.read("a", 2, max_records=2)] == [2, 3]
    assert [r[0] for r in log.read("a", 2, max_bytes=250)] == [2, 3]
    assert [r[0] for r in log.read("a", 2, max_bytes=1)] == [2]


def test_a_stream_that_nothing_was_appended_to_is_empty(log: Log) -> None:
    assert (log.first("a"), log.next("a"), log.end("a"), log.read("a", 1), log.bytes("a")) == (1, 1, 1, [], 0)
    assert log.number_at("a", 0) == 1


def test_times_never_go_back(disk: MemoryDisk) -> None:
    times = iter([500, 400, 600])
    log = open_log(FOLDER, small(lambda: next(times)), disk)
    fill(log, "a", 2)
    log = reopened(log, disk)
    fill(log, "a", 1)
    assert [record[2] for record in log.read("a", 1)] == [500, 500, 500]


def test_the_first_number_at_a_time_is_found_in_any_segment(log: Log) -> None:
    fill(log, "b", 1)
    fill(log, "a", 100)
    assert len(log.read("a", 1, max_bytes=10**9)) == 100
    for number, _, time, _, _ in log.read("a", 1, max_bytes=10**9):
        assert log.number_at("a", time) == number
    assert [log.number_at("a", 0), log.number_at("a", 10**18)] == [1, 101]


def test_a_sparse_stream_is_read_without_what_lies_between(log: Log, disk: MemoryDisk) -> None:
    for n in range(10):
        log.append("rare", 1, b"%d" % n)
        log.commit()
        fill(log, "a", 20)
    read = []
    pread = disk.read

    def counting(file: int, count: int, offset: int) -> bytes:
        read.append(count)
        return pread(file, count, offset)

    disk.read = counting  # type: ignore[method-assign]
    assert [b for part in log.scan("rare") for b in bodies(part)] == [b"%d" % n for n in range(10)]
    assert len(log.read("rare", 7, 1)) == 1
    assert len(read) <= 2 * 11


def test_an_empty_commit_writes_nothing(log: Log, disk: MemoryDisk) -> None:
    disk.calls.clear()
    log.commit()
    assert disk.calls == []


def test_a_commit_is_one_write_and_one_sync(log: Log, disk: MemoryDisk) -> None:
    disk.calls.clear()
    for n in range(10):
        log.append("a", 1, b"%d" % n)
    log.commit()
    assert disk.calls == ["write 0000000001.segment", "sync 0000000001.segment"]


def test_a_record_beyond_the_limits_is_refused(log: Log) -> None:
    for count in (0, -1, 2**32):
        with pytest.raises(RecordRefused):
            log.append("a", 1, b"", count=count)
    for kind in (-1, 256):
        with pytest.raises(RecordRefused):
            log.append("a", kind, b"")
    for name in ("", "é" * 128):
        with pytest.raises(RecordRefused):
            log.append(name, 1, b"")
    assert log.append("é" * 127, 1, b"") == 1


def test_a_commit_larger_than_a_segment_gets_a_larger_segment(log: Log, disk: MemoryDisk) -> None:
    body = bytes(range(256)) * 400
    log.append("a", 1, b"before")
    log.commit()
    log.append("a", 1, body)
    log.append("a", 1, body)
    log.commit()
    log.append("a", 1, b"after")
    log.commit()
    assert bodies(log.read("a", 1)) == [b"before", body, body, b"after"]
    assert bodies(reopened(log, disk).read("a", 1)) == [b"before", body, body, b"after"]


# ------------------------------------------------------------------------------------------- truncation and retention
def test_a_snapshot_stands_for_what_was_before_it(log: Log, disk: MemoryDisk) -> None:
    fill(log, "a", 3)
    assert log.snapshot("a", 2, b"all of it") == 4
    assert log.first("a") == 1
    log.commit()
    assert (log.first("a"), bodies(log.read("a", 4))) == (4, [b"all of it"])
    log = reopened(log, disk)
    assert (log.first("a"), bodies(log.read("a", 4))) == (4, [b"all of it"])


def test_reading_what_was_truncated_says_where_the_stream_begins(log: Log) -> None:
    fill(log, "a", 5)
    log.truncate("a", 4)
    log.commit()
    with pytest.raises(RecordsGone) as gone:
        log.read("a", 3)
    assert (gone.value.stream, gone.value.start, gone.value.first) == ("a", 3, 4)
    assert [r[0] for r in log.read("a", 4)] == [4, 5]


def test_a_batch_that_is_cut_by_a_truncation_is_kept_whole(log: Log) -> None:
    log.append("a", 1, b"1 to 10", count=10)
    log.truncate("a", 6)
    log.commit()
    assert (log.first("a"), log.read("a", 6)) == (6, [(1, 10, 1001, 1, b"1 to 10")])


def test_truncation_never_goes_back_or_past_the_end(log: Log) -> None:
    fill(log, "a", 3)
    log.truncate("a", 100)
    log.truncate("a", 2)
    log.truncate("nothing", 2)
    log.commit()
    assert (log.first("a"), log.next("a"), log.read("a", 4)) == (4, 4, [])


def test_segments_go_when_no_stream_needs_them(log: Log, disk: MemoryDisk) -> None:
    log.append("state", 1, b"old")
    fill(log, "a", 100)
    assert len(segments(disk)) == 4
    log.truncate("a", 90)
    log.commit()
    assert (len(segments(disk)), log.holders()) == (4, ["state"])
    log.snapshot("state", 1, b"new")
    log.commit()
    assert segments(disk) == ["0000000004.segment"]
    assert [r[0] for r in log.read("a", 90)] == list(range(90, 101))
    log = reopened(log, disk)
    assert (log.first("a"), log.first("state"), bodies(log.read("state", 2))) == (90, 2, [b"new"])


def test_streams_that_were_dropped_with_their_segments_keep_their_numbers(log: Log, disk: MemoryDisk) -> None:
    fill(log, "a", 10)
    fill(log, "b", 100)
    log.truncate("a", 11)
    log.truncate("b", 100)
    log.commit()
    log = reopened(log, disk)
    assert (log.first("a"), log.append("a", 1, b""), log.read("a", 11)) == (11, 11, [])


def test_retention_by_bytes_keeps_the_newest(log: Log) -> None:
    fill(log, "a", 100)
    assert log.bytes("a") == 100 * 1020
    before = log.retain("a", Retention(bytes_max=50_000), floor=101)
    log.commit()
    assert log.first("a") == before
    assert 50_000 - 4096 <= log.bytes("a") <= 50_000
    assert log.bytes_on_disk() == 2 * 32 * 1024


def test_retention_by_bytes_keeps_everything_that_fits(log: Log) -> None:
    fill(log, "a", 100)
    assert log.retain("a", Retention(bytes_max=1_000_000), floor=101) == 1


def test_retention_by_age_keeps_what_is_young(disk: MemoryDisk) -> None:
    clock = ticking()
    log = open_log(FOLDER, small(clock), disk)
    fill(log, "a", 100)
    now = log.read("a", 100)[0][2]
    before = log.retain("a", Retention(age_ns_max=10), floor=101)
    log.commit()
    assert all(record[2] >= now - 10 for record in log.read("a", before))
    assert log.first("a") == before == 91


def test_retention_never_goes_beyond_the_floor(log: Log) -> None:
    fill(log, "a", 100)
    assert log.retain("a", Retention(bytes_max=0, age_ns_max=0), floor=42) == 42
    assert log.retain("a", Retention(bytes_max=0), floor=10) == 42
    assert log.retain("nothing", Retention(bytes_max=0), floor=10) == 1


def test_without_limits_all_below_the_floor_goes(log: Log) -> None:
    fill(log, "a", 100)
    assert log.retain("a", Retention(), floor=77) == 77


# ------------------------------------------------------------------------------------------------- opening and closing
def test_a_new_log_says_so(log: Log, disk: MemoryDisk) -> None:
    assert (log.opening.created, log.opening.verdict, log.opening.segments) == (True, "clean", 1)
    again = reopened(log, disk)
    assert (again.opening.created, again.log_id) == (False, log.log_id)


def test_two_logs_have_different_ids(log: Log) -> None:
    assert open_log(FOLDER, small(), MemoryDisk()).log_id != log.log_id


def test_a_log_is_open_once(tmp_path: Path) -> None:
    settings = LogSettings(segment_bytes=65536)
    log = open_log(str(tmp_path / "log"), settings)
    with pytest.raises(LogLocked):
        open_log(str(tmp_path / "log"), settings)
    log.close()
    open_log(str(tmp_path / "log"), settings).close()


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(NotALog, match=r"thesis\.tex"):
        open_log(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_log_that_lost_all_its_segments_is_not_replaced_by_a_new_one(log: Log, disk: MemoryDisk) -> None:
    log.close()
    for path in disk.paths():
        if path.endswith(".segment"):
            disk.remove(path)
    with pytest.raises(LogCorrupt, match="lost all"):
        open_log(FOLDER, small(), disk)


def test_a_closed_log_takes_and_gives_nothing(log: Log) -> None:
    fill(log, "a", 1)
    log.close()
    log.close()
    for call in (
        lambda: log.append("a", 1, b""),
        lambda: log.append("b", 1, b""),
        log.commit,
        log.mark,
        lambda: log.read("a", 1),
    ):
        with pytest.raises(LogClosed):
            call()


def test_a_log_may_be_read_while_another_thread_appends(tmp_path: Path) -> None:
    log = open_log(str(tmp_path / "log"), LogSettings(segment_bytes=65536, index_bytes=4096))
    failures: list[BaseException] = []
    seen = 0

    def read() -> None:
        nonlocal seen
        try:
            while seen < 2000:
                for number, _, _, _, body in log.read("a", seen + 1):
                    assert (number, body) == (seen + 1, b"%d" % (seen + 1) * 20)
                    seen += 1
        except BaseException as failure:
            failures.append(failure)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(1, 2001):
        log.append("a", 1, b"%d" % number * 20)
        if number % 10 == 0:
            log.commit()
            log.truncate("a", min(seen, number))
    reader.join()
    log.close()
    assert failures == []


def test_settings_may_change_between_openings(log: Log, disk: MemoryDisk) -> None:
    fill(log, "a", 50)
    log.close()
    log = open_log(FOLDER, LogSettings(segment_bytes=8192, block_bytes=100, index_bytes=100, prepare_ahead=False), disk)
    fill(log, "a", 50)
    log = reopened(log, disk)
    assert [r[0] for part in log.scan("a") for r in part] == list(range(1, 101))
    assert [log.read("a", n, 1)[0][0] for n in range(1, 101)] == list(range(1, 101))


def test_the_next_segment_is_prepared_before_it_is_needed(tmp_path: Path) -> None:
    log = open_log(str(tmp_path / "log"), LogSettings(segment_bytes=65536), SystemFiles())
    log._tail._preparation._wait()
    assert (tmp_path / "log" / "prepared").stat().st_size == 65536
    fill(log, "a", 100)
    log.close()
    assert len(list((tmp_path / "log").glob("*.segment"))) == 2


def test_a_new_log_takes_little_room_and_its_segments_grow_with_it() -> None:
    """Two events are no reason to take 128 MiB; what writes much has large segments soon."""
    disk = MemoryDisk()
    log = open_log(FOLDER, LogSettings(), disk)
    log._tail._preparation._wait()
    fill(log, "a", 2)
    log.close()
    assert sum(len(disk.bytes_of(path)) for path in disk.paths()) < 4 * MEBIBYTE
    log = open_log(FOLDER, LogSettings(prepare_ahead=False), disk)
    sizes: list[int] = []
    for _ in range(80):
        log.append("a", 1, bytes(MEBIBYTE))
        log.commit()
        log.truncate("a", log.end("a"))
        size = log._shelf.newest.header.size // MEBIBYTE
        sizes += [size] if sizes[-1:] != [size] else []
    assert sizes == [2, 4, 8, 16, 32, 64]
    log.close()
    again = open_log(FOLDER, LogSettings(segment_bytes=32 * MEBIBYTE, prepare_ahead=False), disk)
    assert again._shelf.newest.header.size == 64 * MEBIBYTE  # files keep their sizes
    assert again.settings.next_segment_bytes(64 * MEBIBYTE) == 32 * MEBIBYTE


def test_a_commit_that_is_larger_than_the_next_segment_gets_one_with_room_behind_it() -> None:
    disk = MemoryDisk()
    log = open_log(FOLDER, LogSettings(prepare_ahead=False), disk)
    log.append("a", 1, bytes(5 * MEBIBYTE))
    log.commit()
    assert log._shelf.newest.header.size == 8 * MEBIBYTE
    log.append("a", 1, bytes(100 * MEBIBYTE))
    log.commit()
    assert 100 * MEBIBYTE < log._shelf.newest.header.size < 101 * MEBIBYTE
    assert [r[0] for part in reopened(log, disk).scan("a") for r in part] == [1, 2]


def test_a_commit_of_many_pieces_is_written_like_one_of_few(tmp_path: Path) -> None:
    """A block of few records is not put together before it is written."""
    log = open_log(str(tmp_path / "log"), small())
    expected = []
    for sizes in ([2_000] * 3, [2_000] * 300, [1] * 30, [2_000, 1] * 150):
        for number, size in enumerate(sizes):
            body = bytes([number % 256]) * size
            log.append("a", 1, body)
            expected.append(body)
        log.commit()
    assert bodies(log.read("a", 1, max_records=10_000, max_bytes=1 << 30)) == expected
    log.close()
    again = open_log(str(tmp_path / "log"), small())
    assert bodies(again.read("a", 1, max_records=10_000, max_bytes=1 << 30)) == expected
    again.close()
