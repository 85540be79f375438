"""A machine's disk: streams of records, written and not yet safe until a sync is through.

Records are kept as the bytes that a real disk would hold. What was appended is safe when a sync that began later has
ended. A power cut loses a suffix of what is not safe; a killed process loses nothing that it had written. A disk can be
slow, full or wiped.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from holdfast.codec import Registry
from holdfast.kernel.messages import Record
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Append, Snapshot, Truncate
from holdfast.kernel.storage import LOGS, LogBounds, LogPart
from holdfast.kernel.time import MICROSECOND

_Stored = tuple[int, int, int, bytes]  # number, count, kind, body


class _Stream:
    __slots__ = ("first", "next", "records")

    def __init__(self) -> None:
        self.first = 1
        self.next = 1
        self.records: list[_Stored] = []

    def append(self, count: int, kind: int, body: bytes) -> None:
        self.records.append((self.next, count, kind, body))
        self.next += count

    def truncate(self, before: int) -> None:
        """A record that holds the number is kept whole."""
        self.first = max(self.first, min(before, self.next))
        self.records = [record for record in self.records if record[0] + record[1] > self.first]


class Disk:
    """Outlives the node that writes to it."""

    def __init__(self, records: Registry[Record], rng: Random, sync_us: tuple[int, int] = (100, 5_000)) -> None:
        self._records = records
        self._rng = rng
        self._sync_us = sync_us
        self.slowness = 1
        self.full = False
        self.failed = ""  # why it takes no more in this life of the node
        self._streams: dict[str, _Stream] = {}
        self._pending: list[Append | Snapshot | Truncate] = []
        self.durable = 0  # token
        self._wipes = 0

    @property
    def log_id(self) -> str:
        """A wiped disk has another one."""
        return f"disk-{self._wipes}"

    @property
    def dirty(self) -> bool:
        return bool(self._pending)

    def fill(self, full: bool) -> None:
        """Whether there is no room."""
        self.full = full

    def slow_down(self, times: int) -> None:
        """Syncs take so many times as long."""
        self.slowness = times

    def write(self, operations: Sequence[Append | Snapshot | Truncate]) -> bool:
        """Takes in what a node appended in a turn. False if it can't."""
        if self.full and not self.failed:
            self.failed = "no space left on the disk"
        if self.failed:
            return False
        self._pending.extend(operations)
        return True

    def sync_delay(self) -> int:
        low, high = self._sync_us
        return int((low + (high - low) * self._rng.random()) * MICROSECOND) * self.slowness

    def written(self) -> int:
        """How many operations a sync that begins now will make safe."""
        return len(self._pending)

    def make_safe(self, count: int) -> int:
        """A sync is through; gives the token up to which everything is safe."""
        for operation in self._pending[:count]:
            self._carry_out(operation)
        del self._pending[:count]
        return self.durable

    def _carry_out(self, operation: Append | Snapshot | Truncate) -> None:
        stream = self._streams.setdefault(operation.stream, _Stream())
        if isinstance(operation, Truncate):
            stream.truncate(operation.before)
            return
        if isinstance(operation, Snapshot):
            stream.truncate(stream.next)
        count = 1 if isinstance(operation, Snapshot) else operation.count
        stream.append(count, *self._records.encode(operation.record))
        require(operation.token > self.durable, "tokens rise", token=operation.token)
        self.durable = operation.token

    def stop(self, power_cut: bool) -> None:
        """The node is gone. Of what was not safe, a power cut leaves a prefix of any length."""
        kept = self._rng.randint(0, len(self._pending)) if power_cut and self._pending else len(self._pending)
        self.make_safe(kept)
        self._pending = []

    def start(self) -> dict[str, list[Record]]:
        """What a node that is started now finds."""
        self.durable = 0
        self.failed = ""
        return {
            name: [self._records.decode(kind, body) for _, _, kind, body in stream.records]
            for name, stream in self._streams.items()
            if name not in LOGS
        }

    def bounds(self) -> dict[str, LogBounds]:
        """Where the logs begin and end."""
        return {name: LogBounds(s.first, s.next) for name, s in self._streams.items() if name in LOGS}

    def read(self, stream: str, start: int, limit: int, bytes_max: int = 1 << 62) -> LogPart:
        """Safe records of a stream from the one that holds a number on: at least one, if there is one."""
        kept = self._streams.get(stream) or _Stream()
        if start < kept.first:
            return LogPart([], start, kept.next, kept.first)
        found: list[tuple[int, Record]] = []
        following, size = start, 0
        for number, count, kind, body in kept.records:
            if number + count <= start:
                continue
            size += len(body)
            if len(found) == limit or (found and size > bytes_max):
                break
            found.append((number, self._records.decode(kind, body)))
            following = number + count
        return LogPart(found, following, kept.next)

    def wipe(self) -> None:
        """Everything is gone."""
        self._streams = {}
        self._pending = []
        self._wipes += 1
