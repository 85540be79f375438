"""A real broker with its data on disk: what was acknowledged is there after kills, and a bad disk stops it."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import holdfast
from experiments.durability.broker import problems
from experiments.durability.kills import run_kills
from experiments.durability.power_cuts import run_power_cuts, why_impossible
from holdfast.cli.main import STORAGE_FAILED
from tests.runtime.broker_process import BrokerProcess, free_port

# Of the thread that commits: others prepare segments, and may fail without harm.
FAILING_SYNC = """\
import os, threading
real, calls = os.fdatasync, [0]

def fail_once(descriptor):
    calls[0] += threading.current_thread().name == "holdfast log: writer"
    if calls[0] == 20:
        calls[0] += 1
        raise OSError(5, "Input/output error")
    real(descriptor)

os.fdatasync = fail_once
"""


def durable(folder: Path, **options: Any) -> BrokerProcess:
    return BrokerProcess(folder, entry=f'data = "{folder}/data"\n', **options)


def run(scene: Callable[[], Awaitable[Any]]) -> Any:
    async def within_time() -> Any:
        async with asyncio.timeout(60):
            return await scene()

    return asyncio.run(within_time())


async def numbers(bus: holdfast.Bus, **range: Any) -> list[int]:
    return [int(event.attributes["n"]) async for event in bus.read(**range)]


def test_a_named_subscriber_that_was_away_during_a_kill_gets_everything(tmp_path: Path) -> None:
    async def scene() -> None:
        with durable(tmp_path) as broker:
            async with holdfast.connect(broker.url, name="p") as publisher:
                async with holdfast.connect(broker.url) as bus, bus.subscribe("n > 0", name="risk") as events:
                    await publisher.publish_many({"n": n} for n in range(1, 11))
                    first = [await events.next() for _ in range(5)]
                    await events.ack(first[2])
                await publisher.publish_many({"n": n} for n in range(11, 2001))
                broker.kill()
                broker.start()
                await publisher.publish_many({"n": n} for n in range(2001, 2101))
                async with holdfast.connect(broker.url) as bus, bus.subscribe("n > 0", name="risk") as events:
                    got = []
                    async for event in events:
                        got.append(event)
                        if event.attributes["n"] == 2100:
                            break
            # 4 was dealt with when 5 was asked for.
            assert [event.attributes["n"] for event in got] == list(range(5, 2101))
            assert [event.position.number for event in got if event.position] == list(range(5, 2101))
            assert got[0].attempt > 1

    run(scene)


def test_an_event_is_read_back_by_its_position_and_a_range_is_the_same_twice(tmp_path: Path) -> None:
    async def scene() -> None:
        with durable(tmp_path) as broker:
            async with holdfast.connect(broker.url) as bus, bus.subscribe("n = 7") as events:
                before = datetime.now(UTC)
                await bus.publish_many({"n": n} for n in range(1, 101))
                seven = await events.next()
                assert seven.position is not None
                assert seven.position.number == 7
                assert (await bus.head()).number == 100
                assert (await bus.tail()).number == 1
                assert await numbers(bus, start=seven.position, end=9) == [7, 8, 9]
                for _ in range(2):
                    assert await numbers(bus, filter="n > 95") == [96, 97, 98, 99, 100]
                assert await numbers(bus, start=before - timedelta(seconds=5), end=3) == [1, 2, 3]
                assert await numbers(bus, start=datetime.now(UTC) + timedelta(hours=1)) == []
                reading = bus.read("n > 95")
                assert len([event async for event in reading]) == 5
                assert reading.scanned == 100
                with pytest.raises(holdfast.PositionAhead):
                    await numbers(bus, end=101)
                with pytest.raises(holdfast.PositionGone, match="of another log"):
                    await numbers(bus, start=holdfast.Position("f" * 32, 1))
                with pytest.raises(holdfast.FilterError):
                    await numbers(bus, filter="n >")
                waiting = asyncio.create_task(bus.head(at_least=101))
                await bus.publish({"n": 101})
                assert (await waiting).number == 101

    run(scene)


def test_a_second_subscriber_takes_a_name_over_and_the_first_is_told(tmp_path: Path) -> None:
    async def scene() -> None:
        with durable(tmp_path) as broker:
            async with holdfast.connect(broker.url) as one, holdfast.connect(broker.url) as other:
                async with one.subscribe("n > 0", name="risk") as first:
                    await one.publish_many({"n": n} for n in (1, 2))
                    assert (await first.next()).attributes["n"] == 1
                    async with other.subscribe("n > 0", name="risk") as second:
                        again = [await second.next(), await second.next()]
                        assert [(e.attributes["n"], e.attempt) for e in again] == [(1, 2), (2, 2)]
                        await first.next()  # what had come already
                        with pytest.raises(holdfast.Superseded):
                            await first.next()
                assert await other.forget("risk")
                assert not await other.forget("risk")

    run(scene)


def test_staged_events_are_published_all_at_once_and_once(tmp_path: Path) -> None:
    async def scene() -> None:
        with durable(tmp_path) as broker:
            async with holdfast.connect(broker.url) as bus, bus.subscribe("n > 0", name="sink") as events:
                stages = [await bus.stage("q", 1, task, [{"n": 10 * task + n} for n in (1, 2)]) for task in (0, 1)]
                orphan = await bus.stage("q", 1, 0, [{"n": 99}])
                assert (await bus.head()).number == 0
                broker.kill()
                broker.start()
                for already in (False, True):
                    done = await bus.commit("q", 1, stages)
                    assert (done.first and done.first.number, done.last and done.last.number) == (1, 4)
                    assert done.already is already
                assert [(await events.next()).attributes["n"] for _ in range(4)] == [1, 2, 11, 12]
                with pytest.raises(holdfast.StageLost):
                    await bus.commit("q", 2, [orphan])
                with pytest.raises(holdfast.EpochCommitted):
                    await bus.stage("q", 1, 0, [{"n": 5}])
                with pytest.raises(holdfast.EventError):
                    await bus.stage("q", 2, 0, [{"n": float("nan")}])
                assert (await bus.head()).number == 4

    run(scene)


def test_a_broker_without_data_has_no_log_and_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        with BrokerProcess(tmp_path) as broker:
            async with holdfast.connect(broker.url) as bus:
                with pytest.raises(holdfast.NoLog, match="give it 'data'"):
                    await bus.head()
                with pytest.raises(holdfast.NoLog):
                    await bus.subscribe("", name="risk").__aenter__()
                with pytest.raises(ValueError, match="from_ is for named subscriptions"):
                    bus.subscribe("", from_="earliest")  # type: ignore[call-overload]

    run(scene)


def test_kills_at_random_moments_lose_double_and_reorder_nothing() -> None:
    result = run_kills(10, seed=7)
    assert result.problems == []
    assert result.acknowledged > 0
    assert result.delivered == result.read_back >= result.acknowledged


def test_a_power_cut_loses_nothing_that_was_acknowledged() -> None:
    impossible = why_impossible()
    if impossible:
        pytest.skip(impossible)
    result = run_power_cuts(1, seed=3)
    assert result.problems == []
    assert result.acknowledged > 0


def test_the_durability_check_finds_what_is_missing_doubled_or_out_of_order() -> None:
    assert problems({"p": 3}, {"p": [1, 2, 3, 4]}, "x") == []
    for found in ({}, {"p": [1, 2]}, {"p": [1, 2, 2, 3]}, {"p": [1, 3, 2]}, {"p": [2, 3, 4]}):
        assert problems({"p": 3}, found, "x")


def test_a_failed_sync_stops_the_broker_and_nothing_is_acknowledged_after_it(tmp_path: Path) -> None:
    faults = tmp_path / "faults"
    faults.mkdir()
    (faults / "sitecustomize.py").write_text(FAILING_SYNC)
    with durable(tmp_path) as broker:  # makes the log, which takes many syncs
        broker.stop()

    async def scene() -> int:
        with durable(tmp_path, environment={"PYTHONPATH": str(faults)}) as broker:
            async with holdfast.connect(broker.url, timeout_s=5) as bus:
                publishing = asyncio.create_task(_publish_for_ever(bus))
                assert await asyncio.to_thread(broker.process.wait, 30) == STORAGE_FAILED
                publishing.cancel()
                acknowledged = len(await publishing)
                with durable(tmp_path, port=broker.port):
                    found = await numbers(bus)
        assert found[:acknowledged] == list(range(1, acknowledged + 1))
        return acknowledged

    assert run(scene) > 0


async def _publish_for_ever(bus: holdfast.Bus) -> list[int]:
    """What was acknowledged, when it is cancelled."""
    acknowledged: list[int] = []
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            await bus.publish({"n": len(acknowledged) + 1})
            acknowledged.append(len(acknowledged) + 1)
    return acknowledged


def _start(folder: Path, port: int) -> subprocess.CompletedProcess[str]:
    site = folder / "again.toml"
    site.write_text(f'[[broker]]\nid = "b1"\naddress = "127.0.0.1:{port}"\ndata = "{folder}/data"\n')
    command = [sys.executable, "-m", "holdfast.cli", "broker", str(site)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def test_damage_to_what_was_acknowledged_keeps_the_broker_from_starting(tmp_path: Path) -> None:
    with durable(tmp_path) as broker, holdfast.blocking.connect(broker.url) as bus:
        bus.publish_many({"n": n, "text": "findable " * 20} for n in range(1, 2001))
        locked = _start(tmp_path, free_port())
        assert locked.returncode == STORAGE_FAILED
        assert "another process has the log open" in locked.stderr
    (segment,) = [path for path in (tmp_path / "data").iterdir() if b"findable" in path.read_bytes()]
    data = bytearray(segment.read_bytes())
    data[data.index(b"findable")] ^= 1
    segment.write_bytes(data)
    refused = _start(tmp_path, free_port())
    assert refused.returncode == STORAGE_FAILED
    assert segment.name in refused.stderr
    assert "Traceback" not in refused.stderr


def test_without_a_site_file_data_is_in_the_users_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.cli.broker import default_site

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_site().brokers[0].data == str(tmp_path / "holdfast" / "b1")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_site().brokers[0].data == str(tmp_path / ".local" / "state" / "holdfast" / "b1")


def copies_on_disk(folder: Path, text: bytes) -> int:
    return sum(path.read_bytes().count(text) for path in folder.rglob("*.segment"))


def test_an_event_is_on_the_disk_once_and_in_journal_and_log_after_a_kill(tmp_path: Path) -> None:
    """The journal has what a subscription gets that was away; the log, what is read by position."""

    async def scene() -> None:
        texts = [f"<number {n:04} of them>" for n in range(1, 1001)]
        with durable(tmp_path) as broker:
            async with (
                holdfast.connect(broker.url, name="p") as publisher,
                holdfast.connect(broker.url, name="s") as bus,
                bus.subscribe() as events,
            ):
                await publisher.publish_many({"text": text} for text in texts[:500])
                await publisher.publish({"text": texts[500]})
                assert [copies_on_disk(tmp_path / "data", text.encode()) for text in texts[:501]] == [1] * 501
                broker.kill()
                broker.start()
                await publisher.publish_many({"text": text} for text in texts[501:])
                assert [(await events.next()).attributes["text"] for _ in texts] == texts
                assert [event.attributes["text"] async for event in publisher.read()] == texts

    run(scene)
