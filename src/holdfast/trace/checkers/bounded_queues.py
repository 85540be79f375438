"""`bounded-queues`: no queue grows beyond the limit that its node claims for it.

Queues without a limit are not judged.
"""

from __future__ import annotations

from holdfast.trace.checkers.checker import Checker
from holdfast.trace.schema import QueueLength


class BoundedQueues(Checker):
    """Reports a queue when it passes its limit, and again only after it was within it."""

    def __init__(self, name: str = "bounded-queues") -> None:
        super().__init__(name, {QueueLength: self._on_queue_length})
        self._over: set[tuple[str, str]] = set()

    def _on_queue_length(self, row: QueueLength) -> None:
        queue = (row.node, row.queue)
        if not 0 < row.limit < row.length:
            self._over.discard(queue)
        elif queue not in self._over:
            self._over.add(queue)
            self.violate(row.t, f"queue {row.queue!r} of {row.node} holds {row.length}; its limit is {row.limit}")
