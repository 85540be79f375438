"""A replica on a real log: what a cut or a flipped bit leaves is the state before, the state after, or no start.

tests/storage has the same for the log by itself, at every system call and for every page.
"""

from __future__ import annotations

from itertools import pairwise

from holdfast.errors import LogCorrupt
from holdfast.kernel.messages import Record
from holdfast.schemes.catalogue import RECORDS
from holdfast.schemes.paxos.messages import (
    AcceptedVotes,
    AcceptorState,
    Formed,
    Promised,
    ReplicaState,
)
from holdfast.schemes.paxos.parts import GroupParts
from holdfast.storage import Log, open_log
from tests.paxos.bench import DISK, Bench
from tests.paxos.test_catching_up import STATE, value
from tests.storage.disk import MemoryDisk
from tests.storage.model import FOLDER, small

FORMED = Formed(dict.fromkeys(["r0", "r1", "r2"], DISK), True)
BATCHES: list[list[tuple[str, Record]]] = [
    [("group", FORMED)],
    [("acceptor", Promised(65)), ("acceptor", AcceptedVotes(65, 8, [value(1), value(2)]))],
    [("state", STATE), ("acceptor", AcceptorState(65, []))],
    [("acceptor", AcceptedVotes(129, 10, [value(5)])), ("acceptor", Promised(193))],
]


def write(log: Log, batch: list[tuple[str, Record]]) -> None:
    for stream, record in batch:
        put = log.snapshot if isinstance(record, ReplicaState | AcceptorState) else log.append
        put(stream, *RECORDS.encode(record))
    log.commit()


def written() -> list[MemoryDisk]:
    """The disk of one log, before the first batch and after each."""
    disk = MemoryDisk()
    log = open_log(FOLDER, small(), disk)
    disks = [disk.copy()]
    for batch in BATCHES:
        write(log, batch)
        disks.append(disk.copy())
    return disks


def replica_of(disk: MemoryDisk) -> GroupParts:
    log = open_log(FOLDER, small(), disk)
    streams = {
        name: [RECORDS.decode(kind, body) for records in log.scan(name) for *_, kind, body in records]
        for name in log.streams()
    }
    return Bench(streams=streams).parts


def known(parts: GroupParts) -> tuple[object, ...]:
    votes = {slot: (vote.ballot, bytes(vote.value)) for slot, vote in parts.memory.acceptor.votes.items()}
    return (
        parts.memory.acceptor.promised,
        votes,
        parts.memory.decided.executed,
        parts.learner.commands,
        parts.view.formation.standing,
    )


def segment(disk: MemoryDisk) -> str:
    [path] = [path for path in disk.paths() if path.endswith(".segment")]
    return path


def test_a_cut_at_any_byte_of_the_last_batch_leaves_the_replica_before_or_after_it() -> None:
    for before, after in pairwise(written()):
        old, new = bytes(before.bytes_of(segment(before))), bytes(after.bytes_of(segment(after)))
        old = old.ljust(len(new), b"\0")
        changed = [at for at in range(len(new)) if old[at] != new[at]]
        allowed = [known(replica_of(before.copy())), known(replica_of(after.copy()))]
        assert allowed[0] != allowed[1]
        found = []
        for at in range(changed[0], changed[-1] + 2):
            cut = after.copy()
            cut.bytes_of(segment(cut))[at:] = old[at:]
            found.append(known(replica_of(cut)))
        assert all(state in allowed for state in found)
        assert (found[0], found[-1]) == (allowed[0], allowed[1])


def test_a_flipped_bit_in_what_was_acknowledged_stops_the_replica_or_changes_nothing() -> None:
    disk = written()[-1]
    open_log(FOLDER, small(), disk).close()  # writes a mark: all before it was acknowledged
    wanted = known(replica_of(disk.copy()))
    stopped = 0
    used = len(bytes(disk.bytes_of(segment(disk))).rstrip(b"\0"))
    for at in range(used):
        damaged = disk.copy()
        damaged.bytes_of(segment(damaged))[at] ^= 1 << at % 8
        try:
            assert known(replica_of(damaged)) == wanted, f"byte {at}"
        except LogCorrupt:
            stopped += 1
    assert stopped > used // 2
