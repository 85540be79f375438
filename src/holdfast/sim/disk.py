"""A host's disk: streams of records, written and not yet safe until a sync is through.

Records are kept as the bytes that a real disk would hold. What was appended is safe when a sync that began later has
ended. A power cut loses a suffix of what is not safe; a killed process loses nothing that it had written. A disk can be
slow, full or wiped.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from holdfast.kernel.messages import Record
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Append, Snapshot, Truncate
from holdfast.kernel.time import MICROSECOND
from holdfast.protocols.catalogue import RECORDS

_Stored = tuple[int, int, bytes]  # number, kind, body


class _Stream:
    __slots__ = ("next", "records")

    def __init__(self) -> None:
        self.next = 1
        self.records: list[_Stored] = []


class Disk:
    """Outlives the node that writes to it."""

    def __init__(self, rng: Random, sync_us: tuple[int, int] = (100, 5_000)) -> None:
        self._rng = rng
        self._sync_us = sync_us
        self.slowness = 1
        self.full = False
        self.failed = ""  # why it takes no more in this life of the node
        self._streams: dict[str, _Stream] = {}
        self._pending: list[Append | Snapshot | Truncate] = []
        self.durable = 0  # token

    @property
    def dirty(self) -> bool:
        return bool(self._pending)

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
            stream.records = [record for record in stream.records if record[0] >= operation.before]
            return
        if isinstance(operation, Snapshot):
            stream.records = []
        stream.records.append((stream.next, *RECORDS.encode(operation.record)))
        stream.next += 1
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
            name: [RECORDS.decode(kind, body) for _, kind, body in stream.records]
            for name, stream in self._streams.items()
        }

    def read(self, stream: str, start: int, limit: int) -> tuple[list[tuple[int, Record]], int]:
        """Safe records of a stream from a number on, and the number to go on from."""
        records = self._streams[stream].records if stream in self._streams else []
        found = [(n, RECORDS.decode(kind, body)) for n, kind, body in records if n >= start][:limit]
        return found, found[-1][0] + 1 if found else start

    def wipe(self) -> None:
        """Everything is gone."""
        self._streams = {}
        self._pending = []
