"""One subscription at its broker: its filter, and the events that its client has not received.

Events are numbered from 1 without gaps. Those kept are the last ones: a client that receives them makes room, from the
oldest on; so does dropping the oldest, and giving up those that have expired. What became of events is counted.
"""

from __future__ import annotations

import msgspec

from holdfast.kernel.node import require
from holdfast.model import Filter
from holdfast.model.batch import EventBatch
from holdfast.model.event import EventBytes
from holdfast.protocols.core.backlog import NO_POSITIONS, Backlog, Run, batch_of, positions_of
from holdfast.protocols.core.lifetimes import Deadlines, Outcomes
from holdfast.protocols.sessions.messages import Overflow


class SubscriptionState(msgspec.Struct, frozen=True, array_like=True):
    client: str
    number: int
    filter: str
    overflow: Overflow
    window: int
    last: int
    dropped_through: int
    kept: EventBytes  # a msgpack array of events
    positions: list[int] = []
    late: int = 0
    outcomes: Outcomes = msgspec.field(default_factory=Outcomes)
    deadlines: list[tuple[int, int]] = []
    expired: list[tuple[int, int]] = []


class Ledger:
    """What the subscriptions of one session keep together: `bytes`, of which they may have `bytes_max`."""

    __slots__ = ("blocking", "bytes", "bytes_max")

    def __init__(self, bytes_max: int) -> None:
        self.bytes = 0
        self.bytes_max = bytes_max
        self.blocking: dict[Subscription, None] = {}  # those of the session's whose publishers wait

    @property
    def makes_wait(self) -> bool:
        """Whether half of the room is taken, and some of its publishers would wait for more."""
        return bool(self.blocking) and 2 * self.bytes > self.bytes_max

    def grow(self, size: int) -> None:
        self.bytes += size


class Subscription:
    """Compared by identity: a subscription is itself and no other."""

    __slots__ = (
        "_backlog", "_dropped", "_expired", "_late", "_on_time", "client", "deadlines", "dropped_through", "filter",
        "last", "ledger", "number", "overflow", "window",
    )  # fmt: skip

    def __init__(self, client: str, number: int, filter: Filter, overflow: Overflow, window: int) -> None:
        self.client = client
        self.number = number
        self.filter = filter
        self.overflow = overflow
        self.window = window  # how many events the client is ready to hold
        self.last = 0  # the number of the last event
        self.dropped_through = 0  # events up to this number may have been dropped
        self.ledger = Ledger(2**63)  # its session's, once it belongs to one
        # What became of its events: the client had them on time, they expired, there was no room for them.
        self._on_time = self._expired = self._dropped = 0
        self.deadlines: Deadlines | None = None  # while some of its events have one
        self._late = 0  # events that the client says came too late
        self._backlog = Backlog()  # the last events

    def __len__(self) -> int:
        """How many events are kept."""
        return self._backlog.count

    @property
    def bytes(self) -> int:
        """Of the events that are kept."""
        return self._backlog.bytes

    @property
    def outcomes(self) -> Outcomes:
        """What became of its events."""
        return Outcomes(self._on_time, self._expired, self._dropped)

    def miss(self, count: int) -> None:
        """It does not get so many events that it wants, which have expired before they were there."""
        self._expired += count

    def join(self, ledger: Ledger) -> None:
        """It belongs to a session from now on, and shares its room."""
        self.ledger = ledger
        ledger.grow(self.bytes)
        if self.overflow is Overflow.BLOCK:
            ledger.blocking[self] = None

    def leave(self) -> None:
        self.ledger.grow(-self.bytes)
        self.ledger.blocking.pop(self, None)

    def is_crowded(self, events_max: int, bytes_max: int) -> bool:
        """Whether half of its room is taken."""
        backlog = self._backlog
        return 2 * backlog.count > events_max or 2 * backlog.bytes > bytes_max

    @property
    def first_kept(self) -> int:
        """The number of the oldest event that is kept; one more than `last` if none is."""
        return self.last - self._backlog.count + 1

    def add(self, run: Run, events_max: int, bytes_max: int) -> int:
        """Keeps events, as far as there is room. How many it has dealt with: fewer than all if its owner is to be told
        that there is no room for the next one."""
        count, size = run.batch.count, run.batch.bytes
        if self._has_room(count, size, events_max, bytes_max):
            self._keep(run, size)
            return count
        for row in range(count):
            if not self._add_one(run.take([row]), events_max, bytes_max):
                return row
        return count

    def _has_room(self, count: int, size: int, events_max: int, bytes_max: int) -> bool:
        ledger, backlog = self.ledger, self._backlog
        return (
            backlog.count + count <= events_max
            and backlog.bytes + size <= bytes_max
            and ledger.bytes + size <= ledger.bytes_max
        )

    def _keep(self, run: Run, size: int) -> None:
        self.last += run.batch.count
        self._backlog.add(run)
        self.ledger.grow(size)

    def _add_one(self, run: Run, events_max: int, bytes_max: int) -> bool:
        size = run.batch.bytes
        if not self._has_room(1, size, events_max, bytes_max):
            if self.overflow is Overflow.DISCONNECT:
                return False
            if self.overflow is Overflow.DROP_OLDEST:
                self._add_for_oldest(run, size, events_max, bytes_max)
                return True
            # Publishers wait for room in the session, so that it is passed by one batch at most; the subscription's own
            # limits hold for each event.
            if len(self) >= events_max or self.bytes + size > bytes_max:
                return False
        self._keep(run, size)
        return True

    def _add_for_oldest(self, run: Run, size: int, events_max: int, bytes_max: int) -> None:
        """Keeps an event in place of older ones, or drops it, if others of the session have all the room."""
        while len(self) and not self._has_room(1, size, events_max, bytes_max):
            self._release(1)
            self._dropped += 1
        if self.ledger.bytes + size <= self.ledger.bytes_max:
            self._keep(run, size)
        else:
            self.last += 1
            self._dropped += 1
        self.dropped_through = self.first_kept - 1

    def receive(self, number: int, late: int = 0) -> None:
        """The client has everything up to this number; of all that it ever had, so many events came too late."""
        number = min(number, self.last)
        count = number - self.first_kept + 1
        if count > 0:
            expired = min(max(0, late - self._late), count)
            self._on_time += count - expired
            self._expired += expired
            self._release(count)
        self._late = max(self._late, min(late, number))
        if self.deadlines is not None:
            self.deadlines.received(number)
            self.deadlines.let_go(self.first_kept)
            if not self.deadlines:
                self.deadlines = None

    def perish(self, mortal: list[tuple[int, int]]) -> None:
        """Events that were just added have deadlines: (number, deadline), by number. Some may not be kept any more."""
        first, last = self.first_kept, self.last
        if mortal[0][0] < first or mortal[-1][0] > last:
            mortal = [(number, deadline) for number, deadline in mortal if first <= number <= last]
        if mortal:
            if self.deadlines is None:
                self.deadlines = Deadlines()
            else:
                self.deadlines.let_go(first)
            self.deadlines.add(mortal)

    def has_expired(self, before: int) -> bool:
        return self.deadlines is not None and self.deadlines.count_expired(self.first_kept, before) > 0

    def expire(self, before: int) -> list[Run]:
        """Gives up the oldest events as far as their deadlines are not behind `before`, and returns them."""
        count = 0 if self.deadlines is None else self.deadlines.count_expired(self.first_kept, before)
        if self.deadlines is None or not count:
            return []
        first = self.first_kept
        runs = self.read(first - 1, count)
        self._release(count)
        self.deadlines.expire(first, count)
        self._expired += count
        self.dropped_through = self.first_kept - 1
        return runs

    def expired_runs(self, after: int, through: int) -> tuple[int, ...]:
        """Which events of a range of numbers are not kept since they expired: first and last number of each run."""
        return () if self.deadlines is None else self.deadlines.runs(after, through)

    def _release(self, count: int) -> None:
        self.ledger.grow(-self._backlog.drop(count))

    def read(self, after: int, count: int) -> list[Run]:
        """Up to `count` events that are kept, from the first after number `after` on."""
        return self._backlog.read(max(0, after + 1 - self.first_kept), count)

    def get_state(self) -> SubscriptionState:
        runs = self.read(0, len(self))
        return SubscriptionState(
            self.client,
            self.number,
            str(self.filter),
            self.overflow,
            self.window,
            self.last,
            self.dropped_through,
            batch_of(runs).encoded,
            positions_of(runs),
            self._late,
            self.outcomes,
            *(([], []) if self.deadlines is None else self.deadlines.get_state()),
        )

    @classmethod
    def from_state(cls, state: SubscriptionState) -> Subscription:
        subscription = cls(state.client, state.number, Filter(state.filter), state.overflow, state.window)
        subscription._restore(state)
        return subscription

    def _restore(self, state: SubscriptionState) -> None:
        self.last, self.dropped_through = state.last, state.dropped_through
        self._backlog = Backlog()
        kept = EventBatch.read(state.kept.copy(), bounded=False)
        if kept:
            # Without a log, positions were once written as zeros.
            self._backlog.add(Run(kept, state.positions if any(state.positions) else NO_POSITIONS))
        self._late = state.late
        self._on_time, self._expired, self._dropped = msgspec.structs.astuple(state.outcomes)
        if state.deadlines or state.expired:
            self.deadlines = Deadlines.from_state(state.deadlines, state.expired)

    def check_invariants(self, events_max: int) -> None:
        require(len(self) <= events_max, "a backlog is bounded", length=len(self), limit=events_max)
        runs = self.read(0, len(self))
        require(self.bytes == sum([run.batch.bytes for run in runs]), "a backlog's bytes are counted", bytes=self.bytes)
        require(len(self) == sum([len(run.batch) for run in runs]), "a backlog's events are counted", length=len(self))
        require(0 <= self.dropped_through < self.first_kept, "what is kept was not dropped", number=self.number)
        if self.deadlines is not None:
            self.deadlines.check_invariants(self.first_kept, self.last)
