"""What the runtime asks of storage. The node's thread never waits for it: syncs go on while inputs are handled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from holdfast.kernel.messages import Record
from holdfast.kernel.outbox import Append, Snapshot, Truncate
from holdfast.kernel.storage import StoredStreams

Operation = Append | Snapshot | Truncate


class Storage(Protocol):
    """One node's streams."""

    def start(self, durable: Callable[[int], None], failed: Callable[[str], None]) -> StoredStreams:
        """What was kept. From now on `durable` is called, in the loop's thread, with the token that is safe."""
        ...

    def write(self, operations: Sequence[Operation]) -> None:
        """Takes in a turn's appends, and sees to it that they become safe."""
        ...

    def read(self, stream: str, start: int, limit: int) -> tuple[list[tuple[int, Record]], int]:
        """Safe records from a number on, and the number to go on from."""
        ...

    def close(self) -> None: ...
