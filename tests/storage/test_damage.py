"""Damaged files: noticed, or harmless; never wrong data, and nothing acknowledged is missing in silence.

One window remains, and a test says what happens in it: damage to the last commit before a closing mark is written.
"""

from __future__ import annotations

from itertools import chain, combinations
from random import Random

import pytest

from holdfast.errors import LogCorrupt, LogFormatUnknown
from holdfast.storage import LogSettings, open_log
from holdfast.storage.format import PAGE, extend
from tests.storage.disk import MemoryDisk
from tests.storage.model import FOLDER, LogModel, contents, do_something, expected, small

SETTINGS = small()
THOROUGH = LogSettings(segment_bytes=32 * 1024, block_bytes=700, index_bytes=2048, prepare_ahead=False, verify="all")
FIRST = f"{FOLDER}/0000000001.segment"


def written(commits: int, seed: int = 1, close: bool = True) -> tuple[MemoryDisk, LogModel, LogModel]:
    """A disk with a log, what the log holds, and what it held before the last commit."""
    disk, rng, model = MemoryDisk(), Random(seed), LogModel()
    log = open_log(FOLDER, small(), disk)
    before = model
    for _ in range(commits):
        before = model.copy()
        for _ in range(4):
            do_something(log, model, rng)
        log.append("events", 1, b"the last one")
        model.stream("events").append(1, b"the last one", 1)
        log.commit()
    if close:
        log.close()
    disk.kill()
    return disk, model, before


def outcome(disk: MemoryDisk, settings: LogSettings = SETTINGS) -> object:
    """What a log is found to hold, or the error."""
    try:
        return contents(open_log(FOLDER, settings, disk))
    except LogCorrupt as corrupt:
        return corrupt
    finally:
        disk.kill()


def newest(disk: MemoryDisk) -> str:
    return max(path for path in disk.paths() if path.endswith(".segment"))


def used(disk: MemoryDisk, path: str) -> int:
    return len(bytes(disk.bytes_of(path)).rstrip(b"\0"))


def test_a_flipped_bit_anywhere_is_noticed_or_harmless() -> None:
    disk, model, _ = written(25)
    whole = expected(model)
    rng = Random(5)
    noticed = 0
    paths = [path for path in disk.paths() if path.endswith(".segment")]
    assert len(paths) >= 2
    for _ in range(1500):
        damaged = disk.copy()
        path = rng.choice(paths)
        place = rng.randrange(used(disk, path))
        damaged.bytes_of(path)[place] ^= 1 << rng.randrange(8)
        found = outcome(damaged)
        if isinstance(found, LogCorrupt):
            noticed += 1
        else:
            assert found == whole, (path, place)
    assert noticed > 1000


def test_a_flipped_bit_in_any_segment_is_noticed_at_opening_if_all_are_to_be_verified() -> None:
    disk, _, _ = written(25)
    paths = [path for path in disk.paths() if path.endswith(".segment")]
    rng = Random(6)
    for path in paths[:-1]:
        for _ in range(100):
            damaged = disk.copy()
            # The unused rest after the seal holds nothing.
            damaged.bytes_of(path)[rng.randrange(used(disk, path))] ^= 1 << rng.randrange(8)
            with pytest.raises(LogCorrupt):
                open_log(FOLDER, THOROUGH, damaged)


def test_every_byte_of_the_newest_commits_is_protected() -> None:
    """Byte by byte over a small log: the report names the damaged place, or the log is as it was."""
    disk, model, _ = written(4)
    path = newest(disk)
    whole = expected(model)
    for place in range(used(disk, path)):
        damaged = disk.copy()
        damaged.bytes_of(path)[place] ^= 0x10
        found = outcome(damaged)
        if isinstance(found, LogCorrupt):
            assert found.file == path
            assert found.start <= place < found.end
        else:
            assert found == whole


def test_zeroed_pages_are_noticed() -> None:
    disk, model, _ = written(25)
    for path in [path for path in disk.paths() if path.endswith(".segment")]:
        for page in range(used(disk, path) // PAGE + 1):
            damaged = disk.copy()
            data = damaged.bytes_of(path)
            lost = any(data[page * PAGE : (page + 1) * PAGE])
            data[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
            found = outcome(damaged)
            assert isinstance(found, LogCorrupt) or not lost or found == expected(model), (path, page)


def test_a_file_that_is_cut_short_anywhere_is_noticed() -> None:
    disk, _, _ = written(6)
    path = newest(disk)
    end = used(disk, path)
    for length in chain(range(end - 1500, end + 100), range(0, end, 97), [len(disk.bytes_of(path)) - 1]):
        damaged = disk.copy()
        del damaged.bytes_of(path)[length:]
        assert isinstance(outcome(damaged), LogCorrupt)


def test_a_missing_segment_is_noticed_wherever_it_was() -> None:
    disk, _, _ = written(60, seed=3)
    paths = [path for path in disk.paths() if path.endswith(".segment")]
    assert len(paths) >= 3
    for path in paths:
        damaged = disk.copy()
        damaged.remove(path)
        assert isinstance(outcome(damaged), LogCorrupt), path


def test_a_segment_of_another_log_or_place_is_noticed() -> None:
    disk, _, _ = written(60, seed=3)
    other, _, _ = written(60, seed=3)
    paths = [path for path in disk.paths() if path.endswith(".segment")]
    for path in paths[:2]:
        damaged = disk.copy()
        damaged.bytes_of(path)[:] = other.bytes_of(path)
        assert isinstance(outcome(damaged), LogCorrupt)
    damaged = disk.copy()
    damaged.bytes_of(paths[1])[:] = disk.bytes_of(paths[2])
    assert isinstance(outcome(damaged), LogCorrupt)


def test_the_report_names_the_numbers_that_are_lost() -> None:
    disk = MemoryDisk()
    log = open_log(FOLDER, small(), disk)
    for n in range(6):
        log.append("a", 1, b"a%d" % n, count=10)
        log.append("b", 1, b"b%d" % n)
        log.commit()
    log.close()
    disk.kill()
    damaged = disk.copy()
    place = disk.bytes_of(FIRST).index(b"a3")
    damaged.bytes_of(FIRST)[place] ^= 1
    found = outcome(damaged)
    assert isinstance(found, LogCorrupt)
    assert found.streams == {"a": (31, 41), "b": (4, 5)}
    assert "stream 'a': numbers from 31 to 40" in str(found)
    # The last commit, which only the mark follows: the mark knows where the streams ended.
    damaged = disk.copy()
    damaged.bytes_of(FIRST)[disk.bytes_of(FIRST).index(b"a5")] ^= 1
    found = outcome(damaged)
    assert isinstance(found, LogCorrupt)
    assert found.streams == {"a": (51, 61), "b": (6, 7)}


def test_the_last_commit_before_a_mark_is_the_window() -> None:
    """While no mark and no later commit is on the disk, damage to the last commit looks like a torn tail.

    It is cut, the opening says which bytes, and everything before is there. A mark closes the window.
    """
    disk, _, before = written(4, close=False)
    path = newest(disk)
    damaged = disk.copy()
    end = used(disk, path)
    damaged.bytes_of(path)[end - 3] ^= 1
    log = open_log(FOLDER, SETTINGS, damaged)
    assert contents(log) == expected(before)
    assert log.opening.verdict == "torn"
    assert log.opening.cut is not None
    assert log.opening.cut.file == path
    assert log.opening.cut.start < end - 3 < log.opening.cut.end

    disk, _, _ = written(4, close=True)
    last = disk.bytes_of(path).rindex(b"the last one")
    disk.bytes_of(path)[last] ^= 1
    assert isinstance(outcome(disk), LogCorrupt)


@pytest.mark.parametrize("streams", [["a"], ["b"], ["a", "b"]])
def test_a_mark_says_nothing_of_what_was_appended_and_not_written(streams: list[str]) -> None:
    disk = MemoryDisk()
    log = open_log(FOLDER, SETTINGS, disk)
    log.append("a", 1, b"written")
    log.commit()
    durable = contents(log)
    for stream in streams:
        log.append(stream, 1, b"not written")
    log.mark()
    disk.kill()
    assert outcome(disk) == durable


@pytest.mark.parametrize("segment_bytes", [32 * 1024, 12 * 1024])
def test_an_older_version_of_a_block_is_not_taken_for_the_one_that_was_written(segment_bytes: int) -> None:
    """A disk that lost a write may show what was there before: valid in itself, in the right place, and stale."""
    disk = MemoryDisk()
    log = open_log(FOLDER, small(lambda: 5, segment_bytes), disk)
    log.append("a", 1, b"first")
    log.commit()
    log.close()
    twin = disk.copy()
    for version, place in ((b"stale", twin), (b"fresh", disk)):
        log = open_log(FOLDER, small(lambda: 5, segment_bytes), place)
        log.append("a", 1, version)
        log.commit()
        for _ in range(3):
            log.append("a", 1, bytes(2000))
            log.commit()
        log.close()
        place.kill()
    old, new = twin.bytes_of(FIRST), disk.bytes_of(FIRST)
    start = new.index(b"fresh") - 20 - 56
    assert old.index(b"stale") == new.index(b"fresh")
    new[start : start + 56 + 25] = old[start : start + 56 + 25]
    assert isinstance(outcome(disk), LogCorrupt)


# ----------------------------------------------------------------------------------------------------------- torn tails
def torn(body: bytes) -> tuple[MemoryDisk, str, set[int]]:
    """A disk with one safe commit, and one of about ten pages whose sync is not through."""
    disk = MemoryDisk()
    log = open_log(FOLDER, small(segment_bytes=128 * 1024), disk)
    log.append("a", 1, b"safe" * 10)
    log.commit()
    sync = disk.sync
    disk.sync = lambda file: None  # type: ignore[method-assign]
    for start in range(0, len(body), 600):
        log.append("a", 1, body[start : start + 600])
    log.commit()
    disk.sync = sync  # type: ignore[method-assign]
    return disk, FIRST, disk.dirty_pages(FIRST)


def subsets(pages: set[int]) -> list[set[int]]:
    ordered = sorted(pages)
    return [set(c) for n in range(len(ordered) + 1) for c in combinations(ordered, n)]


def test_any_subset_of_the_pages_of_an_unacknowledged_commit_is_a_torn_tail() -> None:
    _, _, pages = torn(Random(2).randbytes(24_000))
    assert len(pages) in range(6, 9)
    for kept in subsets(pages):
        disk, path, _ = torn(Random(2).randbytes(24_000))
        disk.keep_pages(path, kept)
        log = open_log(FOLDER, small(), disk)
        whole = kept == pages
        assert [r[0] for r in log.read("a", 1)] == (list(range(1, 42)) if whole else [1])
        assert (log.opening.cut is None) == (whole or not kept)
        # What is written over the cut is not mixed up with what was there.
        log.append("a", 1, b"new")
        log.commit()
        disk.kill()
        assert log.end("a") == open_log(FOLDER, small(), disk).end("a")


def test_any_missing_page_of_an_acknowledged_commit_is_damage_once_a_mark_follows() -> None:
    disk, path, pages = torn(Random(2).randbytes(24_000))
    disk.kill()
    open_log(FOLDER, small(), disk).close()  # finds the commit whole, and writes a mark
    for kept in subsets(pages)[:-1]:
        damaged = disk.copy()
        data = damaged.bytes_of(path)
        for page in pages - kept:
            data[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
        assert isinstance(outcome(damaged), LogCorrupt)


def test_blocks_inside_a_record_are_not_taken_for_blocks() -> None:
    """A body that holds blocks of this very log, even of later groups from a copy that went on, proves nothing."""
    disk, _, _ = written(3)
    twin = disk.copy()
    log = open_log(FOLDER, small(), twin)
    for _ in range(20):
        log.append("copies", 1, b"later")
        log.commit()
    copied = bytes(twin.bytes_of(FIRST))[used(disk, FIRST) : used(twin, FIRST)]
    log = open_log(FOLDER, small(), disk)
    log.append("copies", 1, b"safe")
    log.commit()
    sync = disk.sync
    disk.sync = lambda file: None  # type: ignore[method-assign]
    log.append("copies", 1, bytes(5000) + copied)
    log.commit()
    disk.sync = sync  # type: ignore[method-assign]
    disk.keep_pages(FIRST, set(sorted(disk.dirty_pages(FIRST))[1:]))
    log = open_log(FOLDER, small(), disk)
    assert log.opening.verdict == "torn"
    assert [r[4] for r in log.read("copies", 1)] == [b"safe"]


def test_an_unknown_version_is_refused_by_name() -> None:
    disk, _, _ = written(1)
    data = disk.bytes_of(FIRST)
    data[16] = 99
    length = int.from_bytes(data[4:8], "little")
    data[0:4] = extend(0, bytes(data[4:length])).to_bytes(4, "little")
    with pytest.raises(LogFormatUnknown) as unknown:
        open_log(FOLDER, SETTINGS, disk)
    assert (unknown.value.version, unknown.value.file) == (99, FIRST)


def lost_end(disk: MemoryDisk, keep: int) -> None:
    """Everything behind so many bytes of the newest segment reads as zeros, marks and all."""
    data = disk.bytes_of(newest(disk))
    data[keep:] = bytes(len(data) - keep)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_log_that_was_closed_and_has_lost_its_end_is_not_taken_for_clean(share: float) -> None:
    disk, _, _ = written(8)
    path = newest(disk)
    lost_end(disk, PAGE + int(share * (used(disk, path) - PAGE)))
    found = outcome(disk)
    assert isinstance(found, LogCorrupt)
    assert "the log was closed properly, and has lost its end since" in str(found)


def test_a_log_that_went_on_after_it_was_closed_is_longer_than_the_file_says() -> None:
    disk, model, _ = written(3)
    log = open_log(FOLDER, small(), disk)
    log.append("events", 1, b"one more")
    model.stream("events").append(1, b"one more", 1)
    log.commit()
    disk.kill()
    assert outcome(disk) == expected(model)


def test_half_a_word_about_the_closing_is_none() -> None:
    disk, model, _ = written(3)
    data = disk.bytes_of(f"{FOLDER}/closed")
    data[40:45] = b"99999"
    assert outcome(disk) == expected(model)
