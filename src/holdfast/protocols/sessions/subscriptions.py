"""One subscription at its broker: its filter, and the events that its client has not received.

Events are numbered from 1 without gaps. Those kept are the last ones: a client that receives them makes room, from the
oldest on; so does dropping the oldest.
"""

from __future__ import annotations

import msgspec

from holdfast.kernel.node import require
from holdfast.model import Filter
from holdfast.model.event import EventBytes
from holdfast.protocols.sessions.messages import Overflow


class SubscriptionState(msgspec.Struct, frozen=True, array_like=True):
    client: str
    number: int
    filter: str
    overflow: Overflow
    window: int
    last: int
    dropped_through: int
    kept: list[msgspec.Raw]
    positions: list[int] = []


class Ledger:
    """What the subscriptions of one session keep together: `bytes`, of which they may have `bytes_max`."""

    __slots__ = ("blocking", "bytes", "bytes_max")

    def __init__(self, bytes_max: int) -> None:
        self.bytes = 0
        self.bytes_max = bytes_max
        self.blocking: dict[Subscription, None] = {}  # those of the session's whose publishers wait

    @property
    def is_crowded(self) -> bool:
        """Whether half of the room is taken."""
        return 2 * self.bytes > self.bytes_max


class Subscription:
    """Compared by identity: a subscription is itself and no other."""

    __slots__ = (
        "_events", "_head", "_positions", "bytes", "client", "dropped_through", "filter", "last", "ledger", "number",
        "overflow", "window",
    )  # fmt: skip

    def __init__(self, client: str, number: int, filter: Filter, overflow: Overflow, window: int) -> None:
        self.client = client
        self.number = number
        self.filter = filter
        self.overflow = overflow
        self.window = window  # how many events the client is ready to hold
        self.last = 0  # the number of the last event
        self.bytes = 0  # of the events that are kept
        self.dropped_through = 0  # events up to this number may have been dropped
        self.ledger = Ledger(2**63)  # its session's, once it belongs to one
        # The last events; those before the head are gone, and cut off now and then.
        self._events: list[EventBytes | None] = []
        self._positions: list[int] = []  # of these events in the log; 0 without one
        self._head = 0

    def __len__(self) -> int:
        """How many events are kept."""
        return len(self._events) - self._head

    def is_crowded(self, events_max: int, bytes_max: int) -> bool:
        """Whether half of its room is taken."""
        return 2 * (len(self._events) - self._head) > events_max or 2 * self.bytes > bytes_max

    @property
    def first_kept(self) -> int:
        """The number of the oldest event that is kept; one more than `last` if none is."""
        return self.last - len(self._events) + self._head + 1

    def add(self, event: EventBytes, position: int, events_max: int, bytes_max: int) -> bool:
        """Keeps an event. False if it has no room and its owner must be told; the event is then not kept."""
        size = len(event)
        ledger = self.ledger
        if (
            len(self._events) - self._head >= events_max
            or self.bytes + size > bytes_max
            or ledger.bytes + size > ledger.bytes_max
        ):
            if self.overflow is Overflow.DISCONNECT:
                return False
            if self.overflow is Overflow.DROP_OLDEST:
                return self._add_for_oldest(event, position, events_max, bytes_max)
            # Publishers wait for room in the session, so that it is passed by one batch at most; the subscription's own
            # limits hold for each event.
            if len(self) >= events_max or self.bytes + size > bytes_max:
                return False
        self.last += 1
        self._events.append(event)
        self._positions.append(position)
        self.bytes += size
        ledger.bytes += size
        return True

    def add_all(self, events: list[EventBytes], positions: list[int], events_max: int, bytes_max: int) -> bool:
        """Keeps events if there is room for all of them. False, and none is kept, if not: then they go one by one."""
        size = sum(map(len, events))
        ledger = self.ledger
        if (
            len(self._events) - self._head + len(events) > events_max
            or self.bytes + size > bytes_max
            or ledger.bytes + size > ledger.bytes_max
        ):
            return False
        self.last += len(events)
        self._events += events
        self._positions += positions
        self.bytes += size
        ledger.bytes += size
        return True

    def _add_for_oldest(self, event: EventBytes, position: int, events_max: int, bytes_max: int) -> bool:
        """Keeps an event in place of older ones, or drops it, if others of the session have all the room."""
        size, ledger = len(event), self.ledger
        while len(self) and (
            len(self) >= events_max or self.bytes + size > bytes_max or ledger.bytes + size > ledger.bytes_max
        ):
            self._release(1)
        self.last += 1
        if ledger.bytes + size <= ledger.bytes_max:
            self._events.append(event)
            self._positions.append(position)
            self.bytes += size
            ledger.bytes += size
        self.dropped_through = self.first_kept - 1
        return True

    def receive(self, number: int) -> None:
        """The client has everything up to this number."""
        count = min(number, self.last) - self.first_kept + 1
        if count > 0:
            self._release(count)

    def _release(self, count: int) -> None:
        head, following = self._head, self._head + count
        size = sum(map(len, self._events[head:following]))  # type: ignore[arg-type]  # none of them is None
        self.bytes -= size
        self.ledger.bytes -= size
        self._events[head:following] = [None] * count
        self._head = following
        if self._head * 2 >= len(self._events):
            del self._events[: self._head]
            del self._positions[: self._head]
            self._head = 0

    def read(self, after: int, count: int) -> list[EventBytes]:
        """Up to `count` events that are kept, from the first after number `after` on."""
        start = self._head + max(0, after + 1 - self.first_kept)
        return self._events[start : start + count]  # type: ignore[return-value]  # behind the head, none is None

    def positions(self, after: int, count: int) -> list[int]:
        """Those of the events that `read` gives."""
        start = self._head + max(0, after + 1 - self.first_kept)
        return self._positions[start : start + count]

    def get_state(self) -> SubscriptionState:
        return SubscriptionState(
            self.client,
            self.number,
            str(self.filter),
            self.overflow,
            self.window,
            self.last,
            self.dropped_through,
            self.read(0, len(self)),
            self.positions(0, len(self)),
        )

    @classmethod
    def from_state(cls, state: SubscriptionState) -> Subscription:
        subscription = cls(state.client, state.number, Filter(state.filter), state.overflow, state.window)
        subscription.last, subscription.dropped_through = state.last, state.dropped_through
        subscription._events = [event.copy() for event in state.kept]
        subscription._positions = list(state.positions) or [0] * len(state.kept)
        subscription.bytes = sum(map(len, state.kept))
        return subscription

    def check_invariants(self, events_max: int) -> None:
        require(len(self) <= events_max, "a backlog is bounded", length=len(self), limit=events_max)
        require(self.bytes == sum(map(len, self.read(0, len(self)))), "a backlog's bytes are counted", bytes=self.bytes)
        require(0 <= self.dropped_through < self.first_kept, "what is kept was not dropped", number=self.number)
