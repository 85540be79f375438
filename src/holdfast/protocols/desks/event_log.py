"""The broker's side of writing the log: appends what the core accepted, and knows how far it is on the disk.

In a group a core may come to speak of events that this log lacks (`restored`). It has a hole then: what is accepted
meanwhile waits behind it, as far as there is room, until the hole is filled with events from another replica. The log
may also be ahead of the core, with events that were fetched before the state that speaks of them is taken over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from holdfast.kernel.inputs import Durable, Started
from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.storage import EVENTS, LogBounds
from holdfast.model.batch import EventBatch
from holdfast.model.event import NO_EVENTS
from holdfast.protocols.core.commands import LoggedEvents
from holdfast.protocols.core.outputs import Kept, Logged

LATER_BYTES_MAX = 8 * 1024 * 1024  # of events that wait behind a hole; more are fetched like those in it


class EventLog:
    """What was accepted in a turn is appended at its end, behind the journal: a disk that keeps a part of a turn's
    appends keeps the journal's first, from which what is missing here is made again."""

    def __init__(self, recovered: Iterable[Logged] = (), is_shared: bool = False) -> None:
        """`is_shared`: by the replicas of a group, so that the core may be ahead of it, or behind it."""
        self._is_shared = is_shared
        self.durable_head = 0
        self.head = 0  # appended
        self.has_hole = False  # between the head and what the core speaks of
        self.waiting: list[Logged] = list(recovered)  # to be appended
        self._later: deque[Logged] = deque()  # behind the hole, without gaps
        self._later_bytes = 0
        self.keep_from = 0  # what comes before is to be given up
        self.under_way: deque[tuple[int, int]] = deque()  # (token, head)

    def on_started(self, started: Started, tail: int, head: int) -> None:
        """In a group the log may be ahead of the core, which executes again what was decided since its snapshot; or
        behind it, if it was stopped while a hole was being filled."""
        bounds = started.logs.get(EVENTS, LogBounds())
        self.durable_head = self.head = bounds.next - 1
        known = max([self.head, *[logged.last for logged in self.waiting]])
        self.has_hole = self._is_shared and known < head
        holds = known >= head if self._is_shared else known == head
        require(holds or self.has_hole, "the log holds what the journal speaks of", log=self.head, journal=head)
        if tail > bounds.first:
            self.keep_from = tail

    def add(self, output: Logged | Kept) -> None:
        if isinstance(output, Kept):
            self.keep_from = output.tail
        else:
            self.waiting.append(output)

    def finish(self, wanted: int, wall: int, out: Outbox) -> None:
        """Appends; `wanted` is the last position that the core has given, at the time `wall`. In a group that may be
        some turns later than it was accepted: until then the votes for it are on the disks."""
        turn, self.waiting = self.waiting, []
        if self.has_hole:
            self._put_later(turn)
        else:
            for logged in turn:
                self._append(logged.first, logged.wall, logged.batch, out)
        if self.keep_from:
            if self.keep_from > self.head + 1:
                self._skip_to(self.keep_from - 1, wall, out)
            out.truncate(EVENTS, self.keep_from)
            self.keep_from = 0
        if self.has_hole:
            self.close_hole(wanted, out)

    def _append(self, first: int, wall: int, batch: EventBatch, out: Outbox) -> None:
        known = self.head + 1 - first  # on the disk since before a restart
        if known > 0:
            batch, first = batch.behind(known), first + known
        if not batch:
            return
        if first != self.head + 1:
            broken("the log has no gap", first=first, head=self.head)
        token = out.append(EVENTS, LoggedEvents(first, wall, batch.encoded), len(batch))
        self.head += len(batch)
        self.under_way.append((token, self.head))

    def on_durable(self, durable: Durable) -> None:
        while self.under_way and self.under_way[0][0] <= durable.token:
            self.durable_head = self.under_way.popleft()[1]

    # ------------------------------------------------------------------------------------------------------- holes
    def restored(self, wanted: int, tail: int, out: Outbox) -> None:
        """The core was replaced by one that is further: its log begins at `tail`, and ends at `wanted`."""
        turn, self.waiting = self.waiting, []
        if not self.has_hole:
            for logged in turn:
                self._append(logged.first, logged.wall, logged.batch, out)
        self._later.clear()
        self._later_bytes = 0
        self.keep_from = max(self.keep_from, tail)
        self.has_hole = self.head < wanted

    def _put_later(self, turn: list[Logged]) -> None:
        for logged in turn:
            self._later.append(logged)
            self._later_bytes += logged.batch.bytes
        if self._later_bytes > LATER_BYTES_MAX:
            self._later.clear()
            self._later_bytes = 0

    def fill(self, first: int, wall: int, batch: EventBatch, out: Outbox) -> None:
        """Events from another replica, which it has at the same positions as everyone."""
        self._append(first, wall, batch, out)

    def give_up(self, through: int, wall: int, out: Outbox) -> None:
        """The group has given up what is before, though the core has not executed that yet."""
        if through > self.head:
            self._skip_to(through, wall, out)
            self.keep_from = max(self.keep_from, through + 1)

    def close_hole(self, wanted: int, out: Outbox) -> None:
        """Looks whether what waits fits now, and whether that is all."""
        if self._later and self._later[0].first <= self.head + 1:
            for logged in self._later:
                self._append(logged.first, logged.wall, logged.batch, out)
            self._later.clear()
            self._later_bytes = 0
        self.has_hole = self.head < wanted

    def _skip_to(self, head: int, wall: int, out: Outbox) -> None:
        """The group has given up what is before: nobody will ask for it."""
        token = out.append(EVENTS, LoggedEvents(self.head + 1, wall, NO_EVENTS), head - self.head)
        self.head = head
        self.under_way.append((token, head))

    def check_invariants(self, head: int) -> None:
        if not self.waiting and not self.has_hole:
            holds = self.head >= head if self._is_shared else self.head == head
            require(holds, "what was accepted is in the log", head=head, appended=self.head)
