"""`publisher-order`: every subscription gets the events of one publisher in the order of their publication (D0-C2).

Without faults every scheme promises that (D0-C25); which keep it through a failure is each scheme's own matter. The
order is that of (incarnation, sequence). The first delivery of an event counts: a second one is for `at-most-once` to
find, and a declared redelivery (`attempt` > 1) comes when it comes. Events that nobody published are for
`only-matching`. A broker that forgot everything numbers what its application derives anew, under an incarnation that
need not be larger: it counts as another publisher.

In a network the order is that of what a publisher publishes at one broker: if it moves, what waits at its old home for
a broker that is down may come after what it publishes at the new one.
"""

from __future__ import annotations

from holdfast.trace.checkers.checker import Checker, Handlers
from holdfast.trace.schema import Accepted, Delivered, Published


class _Stream:
    """What one subscription got of one publisher."""

    __slots__ = ("event", "last", "seen")

    def __init__(self) -> None:
        self.last = (-1, -1)  # (incarnation, sequence) of the latest event so far, in the publisher's order
        self.event = ""
        self.seen: set[tuple[int, int]] = set()


class PublisherOrder(Checker):
    """Keeps the latest event of each publisher, for each subscription."""

    def __init__(self, name: str = "publisher-order") -> None:
        handlers: Handlers = {
            Accepted: self._on_accepted,
            Delivered: self._on_delivered,
            Published: self._on_published,
        }
        super().__init__(name, handlers)
        self._places: dict[str, tuple[str, tuple[int, int]]] = {}  # event → publisher and (incarnation, sequence)
        self._homes: dict[str, str] = {}  # event → the broker of a network that took it in first
        self._streams: dict[tuple[str, str, str], _Stream] = {}

    def _on_published(self, row: Published) -> None:
        publisher = f"{row.publisher}/{row.incarnation}" if row.derived else row.publisher
        self._places[row.event] = (publisher, (row.incarnation, row.sequence))

    def _on_accepted(self, row: Accepted) -> None:
        for event in row.events:
            self._homes.setdefault(event, row.node)

    def _on_delivered(self, row: Delivered) -> None:
        found = self._places.get(row.event)
        if found is None or row.attempt > 1:
            return
        publisher, place = found
        key = (row.subscription, publisher, self._homes.get(row.event, ""))
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream()
        if place > stream.last:
            stream.last = place
            stream.event = row.event
        elif place not in stream.seen:
            message = f"{row.subscription} got {row.event} after {stream.event}, which {publisher} published later"
            self.violate(row.t, message, (row.event, stream.event), (row.subscription,))
        stream.seen.add(place)
