"""`in-time`: no event is handed over after its deadline (D1-A4).

By the clock of the subscriber, against the publisher's: a `Delivered` of an event with a lifetime says how much of it
is `left`, and that is more than nothing. And by the clock of the run, where both of theirs agree with it: from the
publication on, less than the lifetime has gone by. A host whose clock was wrong at any time in the run, which a `Fault`
says, is judged by its own clock only: that is all it can promise.
"""

from __future__ import annotations

from holdfast.trace.checkers.checker import Checker, Handlers
from holdfast.trace.schema import Delivered, Fault, Published

CLOCK = "clock"  # what the state of a fault begins with


class InTime(Checker):
    """Remembers the events that have a lifetime, and whose clock is not to be trusted."""

    def __init__(self, name: str = "in-time") -> None:
        handlers: Handlers = {Delivered: self._on_delivered, Fault: self._on_fault, Published: self._on_published}
        super().__init__(name, handlers)
        self._mortal: dict[str, Published] = {}
        self._wrong: set[str] = set()

    def _on_published(self, row: Published) -> None:
        if row.lifetime:
            self._mortal[row.event] = row

    def _on_fault(self, row: Fault) -> None:
        if row.state.startswith(CLOCK):
            self._wrong.add(row.component)

    def _on_delivered(self, row: Delivered) -> None:
        event = self._mortal.get(row.event)
        if event is None:
            return
        late = None if row.left is None else -row.left
        if late is None or late < 0:
            late = row.t - event.t - event.lifetime
            if late < 0 or event.publisher in self._wrong or row.subscriber in self._wrong:
                return
        message = f"{row.event} was handed over to {row.subscription} {late / 1e6:.3f} ms after its deadline"
        self.violate(row.t, message, (row.event,), (row.subscription,))
