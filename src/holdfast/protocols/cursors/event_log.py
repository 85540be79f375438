"""The broker's side of writing the log: appends what the core accepted, and knows how far it is on the disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from holdfast.kernel.inputs import Durable, Started
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.storage import EVENTS, LogBounds
from holdfast.model.event import EventBytes, encode_batch
from holdfast.protocols.sessions.commands import EventBatch
from holdfast.protocols.sessions.outputs import Kept, Logged


class EventLog:
    """What was accepted in a turn is appended at its end, behind the journal: a disk that keeps a part of a turn's
    appends keeps the journal's first, from which what is missing here is made again."""

    def __init__(self, recovered: Iterable[Logged] = ()) -> None:
        self.durable_head = 0
        self._head = 0  # appended
        self._turn: list[Logged] = list(recovered)
        self._keep_from = 0
        self._under_way: deque[tuple[int, int]] = deque()  # (token, head)

    def on_started(self, started: Started, tail: int, head: int, replicated: bool = False) -> None:
        """In a group the log may be ahead of the core, which executes again what was decided since its snapshot."""
        bounds = started.logs.get(EVENTS, LogBounds())
        self.durable_head = self._head = bounds.next - 1
        known = max([self._head, *(logged.first + len(logged.events) - 1 for logged in self._turn)])
        holds = known >= head if replicated else known == head
        require(holds, "the log holds what the journal speaks of", log=self._head, known=known, journal=head)
        if tail > bounds.first:
            self._keep_from = tail

    def add(self, output: Logged | Kept) -> None:
        if isinstance(output, Kept):
            self._keep_from = output.tail
        else:
            self._turn.append(output)

    def finish(self, out: Outbox) -> None:
        turn, self._turn = self._turn, []
        for logged in turn:
            self._append(logged.first, logged.wall, logged.events, out)
        if self._keep_from:
            out.truncate(EVENTS, self._keep_from)
            self._keep_from = 0

    def _append(self, first: int, wall: int, events: list[EventBytes], out: Outbox) -> None:
        known = self._head + 1 - first  # on the disk since before a restart
        if known > 0:
            events, first = events[known:], first + known
        if not events:
            return
        require(first == self._head + 1, "the log has no gap", first=first, head=self._head)
        token = out.append(EVENTS, EventBatch(first, wall, encode_batch(events)), len(events))
        self._head += len(events)
        self._under_way.append((token, self._head))

    def skip_to(self, head: int, wall: int, out: Outbox) -> None:
        """The core was replaced by one that is further: positions in between are not here, and never will be."""
        missing = head - self._head
        if missing > 0:
            out.append(EVENTS, EventBatch(self._head + 1, wall, encode_batch([])), missing)
            self._head = self.durable_head = head
            out.truncate(EVENTS, head + 1)

    def on_durable(self, durable: Durable) -> None:
        while self._under_way and self._under_way[0][0] <= durable.token:
            self.durable_head = self._under_way.popleft()[1]

    def check_invariants(self, head: int, replicated: bool = False) -> None:
        if not self._turn:
            holds = self._head >= head if replicated else self._head == head
            require(holds, "what was accepted is in the log", head=head, appended=self._head)
