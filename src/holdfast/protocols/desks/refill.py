"""Fetches events that a replica lacks when another's state takes the place of commands that it missed.

A snapshot says how many events there were, and does not hold them. Until a replica has them it may not lead: those who
read the log by position, or have a name in it, would find a hole. Events are taken from any replica that has them; what
is accepted meanwhile is kept behind the hole, or fetched too.

If what it lacks is not much, a replica fetches it before it takes the state over, and stays as it was when nobody gives
it: a group may depend on it. Votes are forgotten when a majority holds what came of them; whoever holds that can lead,
and would not any more with a state whose events went with the one replica that had them. A replica that lacks much was
away for long, and the group does not depend on it: it takes the state at once, so that it can vote and follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Protocol

import msgspec

from holdfast.errors import EventError, ProtocolError
from holdfast.kernel.inputs import LinkDown, LinkUp, Started, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.node import broken
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.sequencing import HoldingsFetched, StateReplaced
from holdfast.kernel.storage import EVENTS
from holdfast.kernel.time import MILLISECOND
from holdfast.model.batch import EventBatch
from holdfast.model.event import count_events
from holdfast.protocols.core.commands import LoggedEvents
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.log_state import LogState
from holdfast.protocols.cursors.messages import AskEvents, EventsGone, EventsTold, LoggedBatch
from holdfast.protocols.desks.event_log import EventLog

REPLICAS: Final = frozenset({Role.BROKER})
ASK_AGAIN: Final = 200 * MILLISECOND
PART_BYTES: Final = 1024 * 1024
FETCHED_FIRST_BYTES: Final = 64 * 1024 * 1024  # of events, at most, that a state waits for
GIVE_UP_AFTER: Final = 10  # questions in a row that brought nothing, for a state that waits


class EventsPart(msgspec.Struct, frozen=True, gc=False):
    """A `LogMessage`: batches of the log as they are, from the one that holds `first` on."""

    first: int

    def make(self, records: Sequence[tuple[int, Record]], end: int) -> tuple[Message, int, int]:
        batches: list[LoggedBatch] = []
        through = self.first - 1
        for number, record in records:
            if not isinstance(record, LoggedEvents) or record.first != number:
                broken("the log holds batches of events, at their positions", number=number)
            batches.append(LoggedBatch(record.first, record.wall, record.events))
            through = record.first + count_events(record.events) - 1
        return EventsTold(self.first, batches), through, len(batches)

    def gone(self, first: int) -> Message:
        return EventsGone(self.first, first)


class Sources(Protocol):
    def others(self) -> list[str]:
        """The replicas to ask, best first."""
        ...


class Refill(Part):
    """Tells when all that a state waited for is here, or that nobody gives it."""

    name: ClassVar[str] = "refill"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (AskEvents, EventsTold, EventsGone), REPLICAS
    )
    notices: ClassVar[tuple[type[Notice], ...]] = (StateReplaced,)

    def __init__(self, log: EventLog, sources: Sources, core: BrokerCore) -> None:
        self._log = log
        self._sources = sources
        self._core = core
        self._ahead: LogState | None = None  # of a state that waits for its events
        self._asked = 0  # the position that was asked for last
        self._tries = 0
        self._linked: dict[str, int] = {}  # peer → link

    @property
    def _core_log(self) -> LogState:
        """The log as the core has it."""
        return self._core.log or LogState()

    @property
    def missing(self) -> int:
        """How many events are to be fetched."""
        last = max(self._core_log.head, 0 if self._ahead is None else self._ahead.head)
        return max(0, last - self._log.head) if self._lacks else 0

    @property
    def _lacks(self) -> bool:
        return self._log.has_hole or self._ahead is not None

    def fetch_first(self, log: LogState, out: Outbox) -> bool:
        """Whether the events that another's state speaks of are fetched before it is taken over."""
        lacking = min(log.bytes - self._core_log.bytes, log.kept_bytes)
        if self._log.has_hole or lacking > FETCHED_FIRST_BYTES:
            self._ahead = None
            return False
        self._log.give_up(min(log.tail - 1, log.head), log.wall, out)
        self._ahead, self._tries = log, 0
        self._look(out)
        return self._ahead is not None

    def _look(self, out: Outbox) -> None:
        """Whether all is here; else asks for more."""
        if self._ahead is not None and self._log.head >= self._ahead.head:
            self._ahead = None
            out.tell(HoldingsFetched(True))
        self.fetch(out)

    def on_started(self, started: Started, out: Outbox) -> None:
        self.fetch(out)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        if up.role is Role.BROKER:
            self._linked[up.peer] = up.link

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        if self._linked.get(down.peer) == down.link:
            del self._linked[down.peer]

    def on_state_replaced(self, replaced: StateReplaced, out: Outbox) -> None:
        self.fetch(out)

    def fetch(self, out: Outbox) -> None:
        """Asks for what is missing, now and until it is there."""
        if not self._lacks:
            return
        if self._ahead is not None and self._tries >= GIVE_UP_AFTER:
            self._ahead = None
            out.tell(HoldingsFetched(False))
            return
        sources = [peer for peer in self._sources.others() if peer in self._linked]
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
        if peer not in self._sources.others():
            return  # whoever is not listened to is told nothing either; its link may be closed already
        if ask.first <= self._log.durable_head:
            out.queue(peer)
            out.send_log(peer, 0, EVENTS, ask.first, PART_BYTES, EventsPart(ask.first))

    def on_events_told(self, peer: str, told: EventsTold, out: Outbox) -> None:
        if told.first != self._asked or not self._lacks:
            return  # of an earlier question
        before = self._log.head
        for batch in told.batches:
            try:
                events = EventBatch.read(batch.events)
            except EventError as error:
                raise ProtocolError(f"in EventsTold, {error}") from error
            if batch.first > self._log.head + 1 or batch.first < 1:
                raise ProtocolError(f"events from {batch.first} on leave a hole behind {self._log.head}")
            self._log.fill(batch.first, batch.wall, events, out)
        if self._log.has_hole:
            self._log.close_hole(self._core_log.head, out)
        if self._log.head > before:
            self._tries = 0
            self._look(out)

    def on_events_gone(self, peer: str, gone: EventsGone, out: Outbox) -> None:
        """They were given up by a decision of the group, which we execute some time: then the log begins there."""
        if self._ahead is not None and gone.first == self._asked and peer in self._sources.others():
            self._log.give_up(min(gone.tail - 1, self._ahead.head), self._ahead.wall, out)
            self._look(out)

    def measure(self) -> dict[str, int]:
        return {"replica_events_missing": self.missing}
