"""What several records of a commit have in common is written once, and read as if it were written each time."""

from __future__ import annotations

import pytest

from holdfast.errors import LogCorrupt
from holdfast.storage import Log, open_log
from holdfast.storage.format import BORROWS
from holdfast.storage.group import Block, Group, Stream
from holdfast.storage.sharing import SHARED_BYTES_MIN, Shared, whole_body
from tests.storage.disk import MemoryDisk
from tests.storage.model import FOLDER, small

PART, OTHER = bytes(range(200)), bytes(range(200, 0, -1))


def fresh(disk: MemoryDisk) -> Log:
    return open_log(FOLDER, small(), disk)


def copies(disk: MemoryDisk, part: bytes) -> int:
    return sum(bytes(disk.bytes_of(path)).count(part) for path in disk.paths())


def bodies(log: Log, stream: str) -> list[bytes]:
    return [record[4] for record in log.read(stream, log.first(stream), max_bytes=1 << 30)]


def test_a_part_that_two_records_of_a_commit_have_is_written_once() -> None:
    disk = MemoryDisk()
    log = fresh(disk)
    log.append("state", 1, b"journal:" + PART + b"!", parts=[PART])
    log.append("events", 2, b"log:" + PART, count=3, parts=[memoryview(PART)])
    log.append("feeds", 3, b"x" + PART + b"y" + OTHER, parts=[PART, OTHER])
    log.commit()
    assert copies(disk, PART) == 1
    for each in (log, fresh_copy(disk)):
        assert bodies(each, "state") == [b"journal:" + PART + b"!"]
        assert each.read("events", 2)[0][:2] == (1, 3)
        assert bodies(each, "events") == [b"log:" + PART]
        assert bodies(each, "feeds") == [b"x" + PART + b"y" + OTHER]


def fresh_copy(disk: MemoryDisk) -> Log:
    disk = disk.copy()
    disk.kill()
    return fresh(disk)


@pytest.mark.parametrize("size", [SHARED_BYTES_MIN, SHARED_BYTES_MIN + 1, 63, 64, 65])
def test_a_small_part_is_written_once_too(size: int) -> None:
    disk = MemoryDisk()
    log = fresh(disk)
    log.append("state", 1, b"journal:" + PART[:size] + b"!", parts=[PART[:size]])
    log.append("events", 2, b"log:" + PART[:size] + b"more", parts=[PART[:size]])
    log.commit()
    assert copies(disk, PART[:size]) == 1
    assert bodies(log, "events") == [b"log:" + PART[:size] + b"more"]


def test_several_parts_side_by_side_are_found_in_one() -> None:
    """As a store has the events of several publications in one record."""
    disk = MemoryDisk()
    log = fresh(disk)
    log.append("state", 1, b"a" + PART + b"b" + OTHER, parts=[PART, OTHER])
    log.append("feeds", 1, b"head" + PART + OTHER + b"tail", parts=[PART + OTHER])
    log.append("feeds", 1, b"head" + OTHER + PART + b"own" + b"tail", parts=[OTHER + PART + b"own"])
    log.commit()
    assert (copies(disk, PART), copies(disk, OTHER)) == (1, 1)
    assert bodies(log, "feeds") == [b"head" + PART + OTHER + b"tail", b"head" + OTHER + PART + b"own" + b"tail"]


def test_a_record_lends_though_the_block_is_full_with_it() -> None:
    disk = MemoryDisk()
    log = fresh(disk)
    large = PART * 50  # a block of these settings holds 700 bytes
    log.append("state", 1, b"")
    log.append("events", 1, b"")
    log.commit()
    log.append("state", 1, large, parts=[large])
    log.append("events", 1, b"log" + large, parts=[large])
    log.append("state", 1, b"of another block")
    log.append("events", 1, large, parts=[large])
    log.commit()
    assert copies(disk, large) == 2
    assert bodies(log, "events") == [b"", b"log" + large, large]


def test_nothing_is_borrowed_from_another_commit() -> None:
    """Its segment may go before this one does."""
    disk = MemoryDisk()
    log = fresh(disk)
    for _ in range(2):
        log.append("state", 1, PART, parts=[PART])
        log.commit()
    assert copies(disk, PART) == 2


def test_a_record_is_read_though_the_one_that_lends_was_given_up() -> None:
    disk = MemoryDisk()
    log = fresh(disk)
    log.append("state", 1, PART, parts=[PART])
    log.append("events", 1, b"log" + PART, parts=[PART])
    log.commit()
    log.snapshot("state", 2, b"all")
    for _ in range(60):
        log.append("other", 1, bytes(2000))
        log.snapshot("other", 1, b"")
        log.commit()
    log.snapshot("state", 2, b"all of it")
    log.commit()
    assert len([path for path in disk.paths() if path.endswith(".segment")]) > 3
    assert log.holders() == ["events"]
    for each in (log, fresh_copy(disk)):
        assert bodies(each, "events") == [b"log" + PART]
        assert bodies(each, "state") == [b"all of it"]


def test_what_alike_is_short_or_only_looks_alike_is_written_again() -> None:
    disk = MemoryDisk()
    log = fresh(disk)
    short = PART[: SHARED_BYTES_MIN - 1]
    like = PART[:-1] + b"?"
    log.append("state", 1, short + PART, parts=[short, PART])
    log.append("events", 1, b"." + short + like, parts=[short, like])
    log.commit()
    assert bodies(log, "events") == [b"." + short + like]
    assert copies(disk, short) == 4
    assert copies(disk, like) == 1


def test_a_part_is_found_where_it_is_and_not_where_it_begins_alike() -> None:
    disk = MemoryDisk()
    log = fresh(disk)
    body = PART[:80] + PART + b"end"
    log.append("state", 1, body, parts=[PART])
    log.append("events", 1, body, parts=[PART])
    log.commit()
    assert copies(disk, PART) == 1
    assert bodies(log, "state") == bodies(log, "events") == [body]


def test_the_sizes_of_streams_are_those_of_whole_records() -> None:
    """Retention by bytes keeps as much of a log as it did."""
    for parts in ([], [PART]):
        log = fresh(MemoryDisk())
        log.append("state", 1, PART, parts=parts)
        log.append("events", 1, PART, parts=parts)
        log.append("events", 1, PART, parts=parts)
        log.commit()
        assert (log.bytes("state"), log.bytes("events")) == (220, 440)
        log.close()


def test_sizes_are_the_same_after_a_restart() -> None:
    disk = MemoryDisk()
    log = fresh(disk)
    log.append("state", 1, PART, parts=[PART])
    log.append("events", 1, PART, parts=[PART])
    log.commit()
    again = fresh_copy(disk)
    assert (again.bytes("state"), again.bytes("events")) == (log.bytes("state"), log.bytes("events"))


# ------------------------------------------------------------------------------------------------------ what is broken
@pytest.mark.parametrize(
    ("place", "size", "before"),
    [(1_000, 1, 0), (0, 1_000, 0), (20, 200, 1_000), (0xFFFFFFFF, 0xFFFFFFFF, 0), (280, 30, 0)],
)
def test_a_record_that_borrows_what_is_not_there_is_refused(place: int, size: int, before: int) -> None:
    """Nobody writes such a one; its checksum is right all the same."""
    piece = b"".join(number.to_bytes(4, "little") for number in (1, place, size, before))
    disk = MemoryDisk()
    log = fresh(disk)
    log.append("state", 1, PART)
    log._open.add(log._declare("events"), 1, piece, flags=BORROWS)
    log.commit()
    with pytest.raises(LogCorrupt, match="borrows what does not stand before it"):
        log.read("events", 1)
    with pytest.raises(LogCorrupt, match="borrows what does not stand before it"):
        fresh_copy(disk)


@pytest.mark.parametrize("body", [b"", b"\1\0\0", b"\xff\xff\xff\xff", b"\2\0\0\0" + bytes(12)])
def test_a_list_of_pieces_that_does_not_end_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="borrows"):
        whole_body(PART + body, 0, len(PART), len(PART) + len(body))


def test_who_has_nothing_to_borrow_from_is_written_as_it_is() -> None:
    shared = Shared()
    assert shared.borrow(PART, [PART]) is None
    shared.lend(PART, [PART], 20)
    assert shared.borrow(OTHER, [OTHER]) is None
    borrowing = shared.borrow(b"a" + PART + b"z", [PART])
    assert borrowing is not None
    assert whole_body(bytes(20) + PART + borrowing, 0, 220, 220 + len(borrowing)) == b"a" + PART + b"z"


def test_a_block_is_as_large_as_what_is_written_in_it() -> None:
    group, state, events = Group(64 * 1024), Stream(1, "state", 1, 1), Stream(2, "events", 1, 1)
    group.add(state, 1, PART, parts=[PART])
    group.add(events, 1, PART, parts=[PART])
    (block,) = group.take()
    assert isinstance(block, Block)
    assert block.size == sum(map(len, block.payload)) == 20 + 200 + 20 + 4 + 12
