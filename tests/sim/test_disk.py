"""Disks: what is safe and when, what a power cut leaves, full disks; and what waits for the disk before it leaves."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.inputs import Durable, LogRead, Received, StorageFailed
from holdfast.kernel.node import InvariantBroken
from holdfast.kernel.outbox import NOW, Append, Outbox, Snapshot, Truncate
from holdfast.kernel.storage import EVENTS, LogBounds, LogPart
from holdfast.kernel.time import MICROSECOND, MILLISECOND, SECOND
from holdfast.schemes.catalogue import RECORDS
from holdfast.sim.disk import Disk
from tests.sim.scripted import DELAY, Do, Place, World, message, number_of, record

SYNC_US = 5_000
SYNC = SYNC_US * MICROSECOND


def _world() -> tuple[World, Place, Place]:
    """a has a disk whose syncs take 5 ms, and a link to b."""
    world = World()
    a, b = world.add("a", sync_us=(SYNC_US, SYNC_US)), world.add("b")
    world.link(a, "b")
    return world, a, b


def _append_and_send(number: int) -> Do:
    def do(out: Outbox) -> None:
        out.append("log", record(number))
        out.send("b", message(number))

    return do


def _restart(place: Place, power_cut: bool) -> dict[str, list[int]]:
    place.host.stop(power_cut)
    place.host.start()
    return place.stored


# ---------------------------------------------------------------------------------------------------- durability order
def test_a_message_leaves_when_everything_appended_before_it_is_safe() -> None:
    world, a, b = _world()
    since = world.now
    a.do(_append_and_send(1))
    world.run_for(SECOND)
    assert a.times(Durable) == [since + SYNC]
    assert b.times(Received) == [since + SYNC + DELAY]


def test_a_message_waits_for_the_sync_that_began_after_its_append() -> None:
    world, a, b = _world()
    since = world.now
    a.do(_append_and_send(1))
    world.run_for(SYNC // 2)
    a.do(_append_and_send(2))  # behind the sync that is under way
    world.run_for(SECOND)
    assert [event.token for event in a.got(Durable)] == [1, 2]
    assert a.times(Durable) == [since + SYNC, since + 2 * SYNC]
    assert b.times(Received) == [since + SYNC + DELAY, since + 2 * SYNC + DELAY]


def test_a_message_without_new_appends_waits_for_the_old_ones() -> None:
    world, a, b = _world()
    since = world.now

    def append(out: Outbox) -> None:
        out.append("log", record(1))

    a.do(append)
    a.do(lambda out: out.send("b", message(2)))
    world.run_for(SECOND)
    assert b.times(Received) == [since + SYNC + DELAY]


def test_a_message_that_claims_nothing_does_not_wait() -> None:
    world, a, b = _world()
    since = world.now

    def do(out: Outbox) -> None:
        _append_and_send(1)(out)
        out.send("b", message(2), after=NOW)

    a.do(do)
    world.run_for(SECOND)
    assert b.numbers() == [2, 1]
    assert b.times(Received) == [since + DELAY, since + SYNC + DELAY]


def test_syncs_are_shared_by_what_was_appended_meanwhile() -> None:
    world, a, b = _world()
    for n in range(1, 101):
        a.do(_append_and_send(n))
        world.run_for(SYNC // 50)
    world.run_for(SECOND)
    assert b.numbers() == list(range(1, 101))
    tokens = [event.token for event in a.got(Durable)]
    assert tokens == sorted(set(tokens))
    assert len(tokens) <= 4
    assert tokens[-1] == 100


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_what_another_host_has_seen_is_on_the_disk_after_any_crash(seed: int) -> None:
    rng = Random(seed)
    world = World(seed)
    a, b = world.add("a", sync_us=(100, 20_000)), world.add("b")
    last = 0
    for _ in range(6):
        world.link(a, "b")
        for _ in range(rng.randint(1, 12)):
            last += 1
            if rng.random() < 0.2:

                def snapshot(out: Outbox, n: int = last) -> None:
                    out.snapshot("log", record(n))
                    out.send("b", message(n))

                a.do(snapshot)
            else:
                a.do(_append_and_send(last))
            world.run_for(rng.choice((0, 10, 3_000, 30_000)) * MICROSECOND)
        if rng.random() < 0.2:
            a.host.pause()
            world.run_for(50 * MILLISECOND)
        seen = max(b.numbers(), default=0)
        kept = _restart(a, power_cut=rng.random() < 0.8).get("log", [])
        assert seen <= max(kept, default=0)
        assert kept == list(range(kept[0], kept[-1] + 1)) if kept else not seen
        last = max(kept, default=0)
        b.turns.clear()  # what was lost is counted again


def test_a_mutant_that_does_not_wait_is_caught_by_a_power_cut() -> None:
    world, a, b = _world()

    def do(out: Outbox) -> None:
        out.append("log", record(1))
        out.send("b", message(1), after=NOW)

    a.do(do)
    world.run_for(2 * DELAY)
    lost = [seed for seed in range(20) if not _kept_of_one(seed)]
    assert b.numbers() == [1]
    assert 0 < len(lost) < 20


def _kept_of_one(seed: int) -> list[int]:
    disk = Disk(RECORDS, Random(seed))
    disk.write([Append("log", record(1), 1)])
    disk.stop(power_cut=True)
    return [number_of(r) for r in disk.start().get("log", [])]


# ------------------------------------------------------------------------------------------------------------ crashes
def test_a_killed_process_loses_nothing_that_it_had_written() -> None:
    world, a, _ = _world()
    a.do(_append_and_send(1))
    world.run_for(SYNC // 2)
    assert _restart(a, power_cut=False) == {"log": [1]}


def test_a_power_cut_leaves_a_prefix_of_what_was_not_safe() -> None:
    kept = set()
    for seed in range(200):
        disk = Disk(RECORDS, Random(seed))
        disk.write([Append("log", record(n), n) for n in range(1, 5)])
        assert disk.make_safe(1) == 1
        disk.stop(power_cut=True)
        kept.add(tuple(map(number_of, disk.start()["log"])))
    assert kept == {(1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)}


def test_a_sync_of_an_earlier_life_makes_nothing_safe() -> None:
    world, a, _ = _world()
    a.do(_append_and_send(1))
    world.run_for(SYNC // 2)
    a.host.stop(power_cut=True)
    a.host.start()
    a.do(_append_and_send(2))
    world.run_for(SYNC * 3 // 4)  # the first sync would be through by now
    assert a.got(Durable) == []
    world.run_for(SECOND)
    assert [event.token for event in a.got(Durable)] == [1]


def test_a_snapshot_takes_the_place_of_older_records_at_once_or_not_at_all() -> None:
    kept = set()
    for seed in range(200):
        disk = Disk(RECORDS, Random(seed))
        disk.write([Append("log", record(1), 1), Append("log", record(2), 2), Append("other", record(7), 3)])
        disk.make_safe(3)
        disk.write([Snapshot("log", record(10), 4), Append("log", record(11), 5)])
        disk.stop(power_cut=True)
        streams = disk.start()
        assert [number_of(r) for r in streams["other"]] == [7]
        kept.add(tuple(map(number_of, streams["log"])))
    assert kept == {(1, 2), (10,), (10, 11)}


def test_truncate_gives_up_the_records_below_a_number() -> None:
    disk = Disk(RECORDS, Random(0))
    disk.write([Append("log", record(10 * n), n) for n in range(1, 6)])
    disk.write([Truncate("log", 4)])
    assert disk.read("log", 1, 9) == LogPart([], 1, 1)
    disk.make_safe(6)
    assert disk.read("log", 3, 9) == LogPart([], 3, 6, gone=4)
    assert [(n, number_of(r)) for n, r in disk.read("log", 4, 9).records] == [(4, 40), (5, 50)]
    disk.write([Append("log", record(60), 6)])
    disk.stop(power_cut=False)
    assert [number_of(r) for r in disk.start()["log"]] == [40, 50, 60]
    assert [n for n, _ in disk.read("log", 4, 9).records] == [4, 5, 6]  # numbers go on


def test_a_record_may_stand_for_several_numbers_and_is_found_by_each_of_them() -> None:
    disk = Disk(RECORDS, Random(0))
    disk.write([Append(EVENTS, record(10), 1, 3), Append(EVENTS, record(20), 2, 2), Append(EVENTS, record(30), 3)])
    disk.make_safe(3)
    for start in (1, 2, 3):
        part = disk.read(EVENTS, start, 1)
        assert ([n for n, _ in part.records], part.next, part.end) == ([1], 4, 7)
    assert [n for n, _ in disk.read(EVENTS, 5, 9).records] == [4, 6]
    assert [n for n, _ in disk.read(EVENTS, 1, 9, bytes_max=1).records] == [1]  # one at least
    assert disk.bounds() == {EVENTS: LogBounds(1, 7)}
    disk.write([Truncate(EVENTS, 5)])
    disk.make_safe(1)
    assert disk.bounds() == {EVENTS: LogBounds(5, 7)}
    assert [n for n, _ in disk.read(EVENTS, 5, 9).records] == [4, 6]  # a record is kept whole
    assert disk.start() == {}  # logs are not handed over


def test_truncation_alone_makes_nothing_durable() -> None:
    world, a, _ = _world()
    a.do(lambda out: out.truncate("log", 3))
    world.run_for(SECOND)
    assert a.got(Durable) == []


def test_tokens_that_do_not_rise_are_refused() -> None:
    disk = Disk(RECORDS, Random(0))
    disk.write([Append("log", record(1), 2), Append("log", record(2), 2)])
    with pytest.raises(InvariantBroken, match="tokens rise"):
        disk.make_safe(2)


def test_a_wiped_disk_is_as_new() -> None:
    world, a, _ = _world()
    a.do(_append_and_send(1))
    world.run_for(SECOND)
    a.do(_append_and_send(2))
    a.host.stop(power_cut=True)
    assert a.host.disk is not None
    a.host.disk.wipe()
    a.host.start()
    assert a.stored == {}
    assert a.host.disk.read("log", 1, 9) == LogPart([], 1, 1)


def test_a_disk_that_is_wiped_keeps_nothing_that_was_on_its_way_to_it() -> None:
    disk = Disk(RECORDS, Random(0))
    disk.write([Append("log", record(1), 1)])
    disk.wipe()
    disk.stop(power_cut=False)
    assert disk.start() == {}


# ------------------------------------------------------------------------------------------------------------ reading
def test_read_log_gives_safe_records_only() -> None:
    world, a, _ = _world()

    def append(out: Outbox) -> None:
        for n in range(1, 4):
            out.append("log", record(10 * n))

    a.do(append)
    a.do(lambda out: out.read_log(7, "log", 1, 9))
    world.run_for(SYNC - 1)
    assert a.got(LogRead) == [LogRead(7, [], 1)]
    world.run_for(SYNC)
    a.do(lambda out: out.read_log(8, "log", 2, 1))
    a.do(lambda out: out.read_log(9, "log", 3, 9))
    a.do(lambda out: out.read_log(10, "none", 5, 9))
    world.run_for(SECOND)
    assert a.got(LogRead)[1:] == [
        LogRead(8, [(2, record(20))], 3),
        LogRead(9, [(3, record(30))], 4),
        LogRead(10, [], 5),
    ]


def test_an_answer_to_an_earlier_life_is_not_given() -> None:
    world, a, _ = _world()
    a.do(lambda out: out.read_log(7, "log", 1, 9))
    _restart(a, power_cut=False)
    world.run_for(SECOND)
    assert a.got(LogRead) == []


def test_a_node_without_a_disk_can_neither_append_nor_read() -> None:
    world = World()
    a = world.add("a")
    with pytest.raises(InvariantBroken, match="appends nothing"):
        a.do(_append_and_send(1))
    a = world.add("b")
    with pytest.raises(InvariantBroken, match="reads nothing"):
        a.do(lambda out: out.read_log(1, "log", 1, 1))


# ------------------------------------------------------------------------------------------------- slow and full disks
def test_a_slow_disk_takes_so_many_times_as_long() -> None:
    world, a, _ = _world()
    assert a.host.disk is not None
    a.host.disk.slowness = 20
    since = world.now
    a.do(_append_and_send(1))
    world.run_for(SECOND)
    assert a.times(Durable) == [since + 20 * SYNC]


def test_a_full_disk_is_reported_once_and_releases_nothing_in_this_life() -> None:
    world, a, b = _world()
    disk = a.host.disk
    assert disk is not None
    a.do(_append_and_send(1))
    disk.full = True
    a.do(_append_and_send(2))
    a.do(_append_and_send(3))
    disk.full = False
    a.do(_append_and_send(4))  # there is room again, and too late
    a.do(lambda out: out.send("b", message(5)))
    a.do(lambda out: out.send("b", message(6), after=NOW))
    world.run_for(60 * SECOND)
    assert a.got(StorageFailed) == [StorageFailed("no space left on the disk")]
    assert [event.token for event in a.got(Durable)] == [1]
    assert b.numbers() == [6, 1]
    assert _restart(a, power_cut=False) == {"log": [1]}
    world.link(a, "b")
    a.do(_append_and_send(7))
    world.run_for(SECOND)
    assert b.numbers() == [6, 1, 7]


def test_a_full_disk_fails_anew_in_the_next_life() -> None:
    world, a, _ = _world()
    assert a.host.disk is not None
    a.host.disk.full = True
    a.do(_append_and_send(1))
    world.run_for(SECOND)
    _restart(a, power_cut=False)
    a.do(_append_and_send(2))
    world.run_for(SECOND)
    assert len(a.got(StorageFailed)) == 2
