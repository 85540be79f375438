"""A node's streams on the disk: what lives long does not keep what is old."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import pwd
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import holdfast
from experiments.broker_network import BrokerNetwork
from experiments.replication.group import ReplicaGroup
from holdfast.cli.main import STORAGE_FAILED
from holdfast.errors import LogUnusable, WrongLog
from holdfast.kernel.outbox import Append, Truncate
from holdfast.kernel.storage import EVENTS, FEEDS
from holdfast.model.event import encode_batch
from holdfast.protocols.core.commands import LoggedEvents
from holdfast.protocols.routing.messages import EventsStored
from holdfast.runtime.segment_storage import ALARM_SEGMENTS, SegmentStorage
from holdfast.schemes.catalogue import RECORDS
from holdfast.schemes.paxos.messages import Formed
from holdfast.storage import LogSettings, SystemFiles
from tests.runtime.broker_process import BrokerProcess
from tests.sessions.bench import event

MIB = 1024 * 1024
SEGMENT = 64 * 1024
SMALL = LogSettings(segment_bytes=SEGMENT, block_bytes=4096, index_bytes=4096, prepare_ahead=False)
ONCE = Formed({"b1": "disk"}, True, ("b1",))
STORED = EventsStored(1, 0, {}, {}, encode_batch([]), [])


class Storage:
    """Drives a storage as a runner does: a turn is written, and is safe when the call returns."""

    def __init__(self, folder: Path) -> None:
        self.storage = SegmentStorage(str(folder), RECORDS, SMALL)
        self._safe = asyncio.Event()
        self.streams = self.storage.start(lambda token: self._safe.set(), self._fail)
        self._token = 0
        self.head = 0

    @staticmethod
    def _fail(reason: str) -> None:
        raise AssertionError(reason)

    async def write(self, stream: str, record: Formed | EventsStored | LoggedEvents, keep: int = 0) -> None:
        self._token += 1
        operations: list[Append | Truncate] = [Append(stream, record, self._token, 1)]
        if keep:
            operations.append(Truncate(EVENTS, self.head - keep))
        self._safe.clear()
        self.storage.write(operations)
        await self._safe.wait()

    async def log(self, count: int) -> None:
        """Events of 4 KiB each, of which the newest ten are kept."""
        for _ in range(count):
            self.head += 1
            batch = encode_batch([event(1, text="x" * 4096)])
            await self.write(EVENTS, LoggedEvents(self.head, 0, batch), keep=10)


def play(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), 60))


def test_a_record_that_was_written_once_keeps_no_segment_and_is_there_at_the_next_start(tmp_path: Path) -> None:
    async def scene() -> None:
        opened = Storage(tmp_path)
        await opened.write("group", ONCE)
        most = 0
        for _ in range(20):
            await opened.log(20)
            most = max(most, opened.storage.bytes_on_disk)
        assert most <= 5 * SEGMENT, "of the 27 that were written"
        assert not opened.storage.is_held
        opened.storage.close()
        assert Storage(tmp_path).streams["group"] == [ONCE]

    play(scene)


def test_a_stream_that_its_node_truncates_by_number_is_left_alone_and_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        opened = Storage(tmp_path)
        await opened.write(FEEDS, STORED)
        with caplog.at_level(logging.WARNING, "holdfast"):
            await opened.log(16 * ALARM_SEGMENTS)
        assert opened.storage.is_held
        assert len([line for line in caplog.messages if "are held by feeds" in line]) == 1
        opened.storage.close()
        assert Storage(tmp_path).streams[FEEDS] == [STORED]

    play(scene)


def test_a_life_is_later_than_all_before_also_when_the_clock_was_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids of entries and events would be used again, and what is new taken for a repetition."""
    lives = []

    async def scene() -> None:
        for now in (10**18, 10**18 - 10**12, 10**18 - 10**12, 2 * 10**18):
            monkeypatch.setattr("holdfast.runtime.segment_storage.time.time_ns", lambda now=now: now)
            opened = Storage(tmp_path)
            lives.append(opened.storage.next_incarnation())
            opened.storage.close()

    play(scene)
    assert lives == [10**18, 10**18 + 1, 10**18 + 2, 2 * 10**18]


def test_a_stream_of_which_something_is_under_way_is_not_written_anew() -> None:
    """What is not on the disk yet would be lost, and acknowledged later."""

    class Opened:
        def __init__(self, end: int) -> None:
            self._end = end

        def end(self, stream: str) -> int:
            return self._end

        def next(self, stream: str) -> int:
            return 5

        def bytes(self, stream: str) -> int:
            return 100

    assert SegmentStorage._is_renewable(Opened(5), "acceptor")  # type: ignore[arg-type]
    assert not SegmentStorage._is_renewable(Opened(4), "acceptor")  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "then", "refused"), [("b1", "b3", True), ("b1", "b1", False), ("", "b3", False)])
def test_a_folder_is_one_brokers_and_is_handed_to_no_other(
    tmp_path: Path, first: str, then: str, refused: bool
) -> None:
    async def scene() -> None:
        for owner, wrong in ((first, False), (then, refused), (first, False) if refused else (then, False)):
            storage = SegmentStorage(str(tmp_path), RECORDS, SMALL, owner)
            if wrong:
                with pytest.raises(WrongLog, match=f"{tmp_path}: the data are those of {first}, not of {owner}: give"):
                    storage.start(lambda token: None, Storage._fail)
            else:
                storage.start(lambda token: None, Storage._fail)
                storage.close()

    play(scene)


# ---------------------------------------------------------------------------------------------------------- processes
def test_a_broker_of_a_network_does_not_start_with_anothers_folder(tmp_path: Path) -> None:
    links = (("b1", "b2"), ("b2", "b3"))
    with BrokerNetwork(tmp_path, links, "buffered", "") as network:
        asyncio.run(network.begin())
        site = network.site
    site.write_text(site.read_text().replace('/b1"', '/x"').replace('/b3"', '/b1"').replace('/x"', '/b3"'))
    command = [sys.executable, "-m", "holdfast.cli", "broker", str(site), "--id", "b1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == STORAGE_FAILED
    assert "the data are those of b3, not of b1" in done.stderr


RETENTION = f"\n[retention]\nbytes = {16 * MIB}\n"
PUBLISHED = 600 * MIB
PAYLOAD = b"x" * (256 * 1024)


async def publish(url: str) -> None:
    async with holdfast.connect(url) as bus:
        for _ in range(PUBLISHED // len(PAYLOAD) // 40):
            await asyncio.gather(*(bus.publish({}, payload=PAYLOAD) for _ in range(40)))


def taken(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


async def until_freed(url: str, folders: list[Path], limit: int) -> None:
    """Retention is looked at now and then, and what it gave up goes with the next commits."""
    assert min(map(taken, folders)) > 0, "they are the brokers' own"
    async with asyncio.timeout(40), holdfast.connect(url) as bus:
        while max(map(taken, folders)) > limit:
            await bus.publish({})
            await asyncio.sleep(0.1)


@pytest.mark.full
def test_a_running_broker_gives_its_disk_back(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, entry=f'data = "{tmp_path / "data"}"\n', rest=RETENTION) as broker:
        asyncio.run(publish(broker.url))
        asyncio.run(until_freed(broker.url, [tmp_path / "data"], 4 * 64 * MIB))


@pytest.mark.full
def test_a_running_group_gives_its_disks_back(tmp_path: Path) -> None:
    with ReplicaGroup(tmp_path, rest=RETENTION) as group:
        group.start()
        asyncio.run(publish(group.url))
        folders = [tmp_path / name for name in group.names]
        asyncio.run(until_freed(group.url, folders, 5 * 64 * MIB))


@pytest.mark.parametrize(
    ("failure", "problem"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "/srv/b1/log"),
            "permission denied at /srv/b1/log: let {user} read and write there, or name another folder as data in"
            " the site file",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "the disk is full: make room on it (df -h {folder}), or keep less ([retention] in the site file); what was"
            " acknowledged is safe ([Errno 28] No space left on device)",
        ),
        (
            OSError(errno.EROFS, "Read-only file system", "/srv/b1"),
            "the file system is read-only: mount it for writing, or name another folder as data in the site file"
            " ([Errno 30] Read-only file system: '/srv/b1')",
        ),
        (
            NotADirectoryError(errno.ENOTDIR, "Not a directory", "/srv/b1"),
            "/srv/b1 is no folder: name another one as data in the site file",
        ),
        (OSError(errno.EBADF, "Bad file descriptor"), "OSError: [Errno 9] Bad file descriptor"),
    ],
)
def test_a_folder_that_can_not_be_opened_is_explained(
    failure: OSError, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not said that the log takes no more until a restart: a restart would end the same way."""

    def refuse(files: SystemFiles, path: str, write: bool = False, create: bool = False) -> int:
        raise failure

    monkeypatch.setattr(SystemFiles, "open", refuse)
    folder, user = str(tmp_path / "b1"), pwd.getpwuid(os.geteuid()).pw_name
    with pytest.raises(LogUnusable) as raised:
        SegmentStorage(folder, RECORDS).start(lambda token: None, lambda reason: None)
    assert str(raised.value) == f"{folder}: {problem.format(user=user, folder=folder)}"


def test_a_folder_below_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LogUnusable, match=f"{tmp_path}/file.* is no folder: name another one"):
        SegmentStorage(str(tmp_path / "file" / "b1"), RECORDS).start(lambda token: None, lambda reason: None)
