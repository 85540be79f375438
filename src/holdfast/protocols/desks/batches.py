"""What a broker sends one client of its subscriptions in one turn, put into messages of bounded size."""

from __future__ import annotations

from holdfast.kernel.messages import Message
from holdfast.model.event import EventBytes
from holdfast.protocols.sessions.messages import Deliver


class Batch:
    """What one client is sent of its subscriptions in one turn: events, in messages of bounded size."""

    __slots__ = (
        "_bytes",
        "_bytes_max",
        "_events",
        "_events_max",
        "_messages",
        "_numbers",
        "_positions",
        "_subscriptions",
        "weight",
    )

    def __init__(self, events_max: int, bytes_max: int) -> None:
        self.weight = 0
        self._events_max = events_max  # in one message
        self._bytes_max = bytes_max
        self._messages: list[Message] = []
        self._clear()

    def _clear(self) -> None:
        self._subscriptions: list[int] = []
        self._numbers: list[int] = []
        self._events: list[EventBytes] = []
        self._positions: list[int] = []
        self._bytes = 0

    def add(self, subscription: int, after: int, events: list[EventBytes], positions: list[int]) -> None:
        size = sum(map(len, events))
        if len(self._events) + len(events) <= self._events_max and self._bytes + size <= self._bytes_max:
            self._subscriptions += [subscription] * len(events)
            self._numbers += range(after + 1, after + 1 + len(events))
            self._events += events
            self._positions += positions
            self._bytes += size
            self.weight += size
            return
        for number, (event, position) in enumerate(zip(events, positions, strict=True), after + 1):
            if len(self._events) >= self._events_max or (self._events and self._bytes + len(event) > self._bytes_max):
                self._flush()
            self._subscriptions.append(subscription)
            self._numbers.append(number)
            self._events.append(event)
            self._positions.append(position)
            self._bytes += len(event)
            self.weight += len(event)

    def say(self, message: Message) -> None:
        self._flush()
        self._messages.append(message)
        self.weight += message.weight()

    def _flush(self) -> None:
        if self._events:
            positions = self._positions if self._positions[0] else []
            self._messages.append(Deliver(self._subscriptions, self._numbers, self._events, positions))
            self._clear()

    def take(self) -> list[Message]:
        self._flush()
        return self._messages
