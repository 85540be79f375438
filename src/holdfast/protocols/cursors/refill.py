"""Fetches events that a replica lacks since another's state took the place of commands that it missed.

A snapshot says how many events there were, and does not hold them. Until a replica has them it may not lead: those who
read the log by position, or have a name in it, would find a hole. Events are taken from any replica that has them; what
is accepted meanwhile is kept behind the hole, or fetched too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

import msgspec

from holdfast.errors import EventError, ProtocolError
from holdfast.kernel.inputs import LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.node import broken
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.storage import EVENTS
from holdfast.kernel.time import MILLISECOND
from holdfast.model.event import slices_of
from holdfast.protocols.cursors.event_log import EventLog
from holdfast.protocols.cursors.messages import AskEvents, EventsGone, EventsTold, LoggedBatch
from holdfast.protocols.sessions.commands import EventBatch

REPLICAS: Final = frozenset({Role.BROKER})
ASK_AGAIN: Final = 200 * MILLISECOND
PART_BYTES: Final = 1024 * 1024


class EventsPart(msgspec.Struct, frozen=True, gc=False):
    """A `LogMessage`: batches of the log as they are, from the one that holds `first` on."""

    first: int

    def make(self, records: Sequence[tuple[int, Record]], end: int) -> tuple[Message, int, int]:
        batches: list[LoggedBatch] = []
        through = self.first - 1
        for number, record in records:
            if not isinstance(record, EventBatch) or record.first != number:
                broken("the log holds batches of events, at their positions", number=number)
            batches.append(LoggedBatch(record.first, record.wall, record.events))
            through = record.first + len(slices_of(record.events)) - 1
        return EventsTold(self.first, batches), through, len(batches)

    def gone(self, first: int) -> Message:
        return EventsGone(self.first, first)


class Refill:
    """A part of a replica's node. `sources` are the replicas to ask, best first; `wanted` is the log's last position as
    the core has it."""

    name: ClassVar[str] = "refill"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (AskEvents, EventsTold, EventsGone), REPLICAS
    )

    def __init__(self, log: EventLog, sources: Callable[[], list[str]], wanted: Callable[[], int]) -> None:
        self._log = log
        self._sources = sources
        self._wanted = wanted
        self._asked = 0  # the position that was asked for last
        self._tries = 0
        self._linked: dict[str, int] = {}  # peer → link

    @property
    def missing(self) -> int:
        """How many events are to be fetched."""
        return max(0, self._wanted() - self._log.head)

    def on_started(self, started: Started, out: Outbox) -> None:
        self.fetch(out)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is Role.BROKER:
            self._linked[up.peer] = up.link

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if self._linked.get(down.peer) == down.link:
            del self._linked[down.peer]

    def fetch(self, out: Outbox) -> None:
        """Asks for what is missing, now and until it is there."""
        if not self._log.has_hole:
            return
        sources = [peer for peer in self._sources() if peer in self._linked]
        if sources:
            # One after the other: the first may not have it, or may have gone.
            self._asked = self._log.head + 1
            out.send(sources[self._tries % len(sources)], AskEvents(self._asked), after=NOW)
        self._tries += 1
        out.set_timer((self.name, "again"), ASK_AGAIN)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self.fetch(out)

    def on_ask_events(self, peer: str, ask: AskEvents, out: Outbox) -> None:
        if ask.first < 1:
            raise ProtocolError(f"positions begin at 1, not at {ask.first}")
        if peer not in self._sources():
            return  # whoever is not listened to is told nothing either; its link may be closed already
        if ask.first <= self._log.durable_head:
            out.queue(peer)
            out.send_log(peer, 0, EVENTS, ask.first, PART_BYTES, EventsPart(ask.first))

    def on_events_told(self, peer: str, told: EventsTold, out: Outbox) -> None:
        if told.first != self._asked or not self._log.has_hole:
            return  # of an earlier question
        before = self._log.head
        for batch in told.batches:
            try:
                events = slices_of(batch.events)
            except EventError as error:
                raise ProtocolError(f"in EventsTold, {error}") from error
            if batch.first > self._log.head + 1 or batch.first < 1:
                raise ProtocolError(f"events from {batch.first} on leave a hole behind {self._log.head}")
            self._log.fill(batch.first, batch.wall, events, out)
        self._log.close_hole(self._wanted(), out)
        if self._log.head > before:
            self._tries = 0
            self.fetch(out)

    def on_events_gone(self, peer: str, gone: EventsGone, out: Outbox) -> None:
        """They were given up by a decision of the group, which we execute some time: then the log begins there."""

    def measure(self) -> dict[str, int]:
        return {"replica_events_missing": self.missing}
