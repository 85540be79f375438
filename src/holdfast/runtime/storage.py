"""What the runtime asks of storage. The node's thread never waits for it: syncs go on while inputs are handled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from holdfast.kernel.outbox import Operation
from holdfast.kernel.storage import LogBounds, LogPart, StoredStreams


class Storage(Protocol):
    """One node's streams."""

    @property
    def log_id(self) -> str:
        """Names the disk: one that was wiped has another."""
        ...

    @property
    def repairs(self) -> int:
        """How often damaged records of it were given up."""
        ...

    @property
    def bytes_on_disk(self) -> int:
        """What it takes, with room that was made ahead."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether it takes much that no log needs."""
        ...

    def start(self, durable: Callable[[int], None], failed: Callable[[str], None]) -> StoredStreams:
        """The state streams. From now on `durable` is called, in the loop's thread, with the token that is safe."""
        ...

    def next_incarnation(self) -> int:
        """Larger than at any start before."""
        ...

    def bounds(self) -> dict[str, LogBounds]:
        """Where the logs begin and end."""
        ...

    def write(self, operations: Sequence[Operation]) -> None:
        """Takes in a turn's appends, and sees to it that they become safe."""
        ...

    def read(self, stream: str, start: int, limit: int, bytes_max: int) -> LogPart:
        """Safe records from the one that holds a number on: at least one, if there is one."""
        ...

    def close(self) -> None: ...
