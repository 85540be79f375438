"""The log of events, as what a group's replica holds beside its state."""

from __future__ import annotations

from holdfast.kernel.outbox import Outbox
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.desks.event_log import EventLog
from holdfast.protocols.desks.refill import Refill


class LogHoldings:
    def __init__(self, core: BrokerCore, events: EventLog, refill: Refill) -> None:
        self._core = core
        self._events = events
        self._refill = refill

    def settle(self, out: Outbox) -> None:
        if self._core.log is not None:
            self._events.finish(self._core.log.head, self._core.log.wall, out)

    def is_whole(self) -> bool:
        return not self._events.has_hole

    def fetch_first(self, state: bytes, out: Outbox) -> bool:
        return self._refill.fetch_first(self._core.log_of(state), out)

    def extent(self) -> tuple[int, int]:
        return (0 if self._core.log is None else self._core.log.head, self._events.durable_head)
