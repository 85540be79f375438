"""Mistakes with named subscriptions, one each, made in the code as it runs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
import pytest

from holdfast.kernel.inputs import LogSent
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import LATEST, NOW, After, Outbox
from holdfast.kernel.queues import Lane
from holdfast.model import Filter
from holdfast.protocols.core.cursor import Cursor
from holdfast.protocols.core.cursor_table import CursorTable
from holdfast.protocols.core.outputs import Logged
from holdfast.protocols.cursors.consumer import Consumer
from holdfast.protocols.cursors.messages import Acknowledged, CursorEvents, CursorProgress
from holdfast.protocols.desks import ranges
from holdfast.protocols.desks.cursor_deliveries import CursorDeliveries, Delivery
from holdfast.protocols.desks.event_log import EventLog
from holdfast.protocols.desks.log_desk import LogDesk
from holdfast.protocols.desks.session_desk import SessionDesk
from tests.sim.named_world import Parts, problem

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class NamedMutant:
    mistake: str
    patch: Patch = lambda monkeypatch: None
    parts: Parts = field(default_factory=Parts)
    swarm: ClassVar[str] = "names"

    def seen(self, seed: int) -> str:
        with pytest.MonkeyPatch.context() as monkeypatch:
            self.patch(monkeypatch)
            return problem(seed, self.parts)

    def sound(self, seed: int) -> str:
        return problem(seed)


class _Early(Outbox):
    """Sends what is acknowledged without waiting for the disk."""

    def send(self, to: str, message: Message, lane: Lane = Lane.CONTROL, after: After = LATEST) -> None:
        super().send(to, message, lane, NOW if isinstance(message, Acknowledged) else after)


class AcknowledgesBeforeTheDisk(SessionDesk):
    def finish(self, out: Outbox) -> None:
        early = _Early(out.tracing)
        early.queues, early.touched, early.token = out.queues, out.touched, out.token
        early.actions, early.timers, early.stored = out.actions, out.timers, out.stored
        early.notes = out.notes
        early.now, early.wall = out.now, out.wall
        super().finish(early)


class SendsBeforeTheDisk(LogDesk):
    def finish(self, out: Outbox) -> None:
        assert self._core.log is not None
        self.events.finish(self._core.log.head, self._core.log.wall, out)
        token, out.token = out.token, 0
        self._deliveries.finish(out)
        out.token = token


def skips_at_a_takeover(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Cursor.take_over

    def take_over(self: Cursor, owner: Any, generation: int, sent: int) -> None:
        real(self, owner, generation, sent)
        if sent > self.acknowledged:
            self.acknowledge(self.acknowledged + 1)

    monkeypatch.setattr(Cursor, "take_over", take_over)


def skips_when_it_goes_live(monkeypatch: pytest.MonkeyPatch) -> None:
    real = CursorDeliveries.on_log_sent

    def on_log_sent(self: CursorDeliveries, sent: LogSent, out: Outbox) -> bool:
        (owner, _) = self._reading.get(sent.request, (None, None))
        found = real(self, sent, out)
        delivery = self._deliveries.get(owner) if owner is not None else None
        if delivery is not None and not delivery.reading and delivery.sent + 2 >= self._head():
            delivery.sent, delivery.live = self._head(), True
        return found

    monkeypatch.setattr(CursorDeliveries, "on_log_sent", on_log_sent)


def takes_what_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Consumer.on_cursor_events

    def on_cursor_events(self: Consumer, peer: str, message: CursorEvents, out: Outbox) -> None:
        cursor = self._cursors.get(message.cursor)
        if cursor is not None and cursor.received > message.after:
            cursor.received = cursor.consumed = message.after
        real(self, peer, message, out)

    monkeypatch.setattr(Consumer, "on_cursor_events", on_cursor_events)


def takes_what_leaves_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Consumer.on_cursor_events

    def on_cursor_events(self: Consumer, peer: str, message: CursorEvents, out: Outbox) -> None:
        cursor = self._cursors.get(message.cursor)
        if cursor is not None and cursor.received < message.after:
            cursor.received = message.after
        real(self, peer, message, out)

    monkeypatch.setattr(Consumer, "on_cursor_events", on_cursor_events)


def knows_no_generations(monkeypatch: pytest.MonkeyPatch) -> None:
    real = CursorTable.open

    def open(self: CursorTable, command: Any, wall: int, outputs: Any) -> None:
        cursor = self.cursors.get(command.name)
        self.ended.pop((command.client, command.epoch), None)
        if cursor is not None and command.generation:
            command = msgspec.structs.replace(command, generation=cursor.generation)
        real(self, command, wall, outputs)

    monkeypatch.setattr(CursorTable, "open", open)


def filters_what_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def change_filter(self: Cursor, filter: Filter, head: int) -> bool:
        self.filters = [(self.acknowledged, filter)]
        return True

    monkeypatch.setattr(Cursor, "change_filter", change_filter)


def reads_with_the_newest_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    real = ranges.CursorPart.make

    def make(self: ranges.CursorPart, records: Any, end: int) -> Any:
        newest = ((self.filters[0][0], self.filters[-1][1]),)
        return real(msgspec.structs.replace(self, filters=newest), records, end)

    monkeypatch.setattr(ranges.CursorPart, "make", make)


def gives_no_heed_to_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Delivery, "room", property(lambda self: 100))
    monkeypatch.setattr(CursorDeliveries, "check_invariants", lambda self: None)


def forgets_credit_when_it_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Delivery.rewind

    def rewind(self: Delivery) -> None:
        real(self)
        self.unconsumed = 0

    monkeypatch.setattr(Delivery, "rewind", rewind)


def counts_only_what_it_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was once: what a driver had read, or what was sent before it went back, was counted by guesses."""
    real = Delivery.land

    def land(self: Delivery, said: CursorProgress) -> None:
        known, before = self.unconsumed + self.under_way_count, self.sent
        real(self, said)
        if said.received > before:
            self.unconsumed = min(known, said.unconsumed)

    monkeypatch.setattr(Delivery, "land", land)


def forgets_credit_with_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    real = CursorDeliveries.take

    def take(self: CursorDeliveries, taken: Any, out: Outbox) -> None:
        real(self, msgspec.structs.replace(taken, unconsumed=0), out)

    monkeypatch.setattr(CursorDeliveries, "take", take)


def forgets_what_it_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CursorDeliveries, "sent_to_anyone", lambda self, cursor: 0)


def forgets_what_is_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def sent_to_anyone(self: CursorDeliveries, cursor: Cursor | None) -> int:
        return -1 if cursor is None else self._sent_in_life.get(cursor.name, -1)

    monkeypatch.setattr(CursorDeliveries, "sent_to_anyone", sent_to_anyone)


def never_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CursorDeliveries, "repeat", lambda self, out: None)


class MakesNoMissingTailAgain(EventLog):
    def __init__(self, recovered: Iterable[Logged] = ()) -> None:
        super().__init__()


MUTANTS = [
    NamedMutant("confirms an acknowledgement that is not on the disk", parts=Parts(sessions=AcknowledgesBeforeTheDisk)),
    NamedMutant("sends events that are not on the disk", parts=Parts(log=SendsBeforeTheDisk)),
    NamedMutant("writes the log before the journal", parts=Parts(log_first=True)),
    NamedMutant("skips an event at a takeover", skips_at_a_takeover),
    NamedMutant("skips events when it goes live", skips_when_it_goes_live),
    NamedMutant("a client takes what comes again for new", takes_what_comes_again),
    NamedMutant("a client takes what leaves a gap", takes_what_leaves_a_gap),
    NamedMutant("gives a cursor back to who lost it", knows_no_generations),
    NamedMutant("a new filter counts for what came before", filters_what_came_before),
    NamedMutant("the log is read with the newest filter", reads_with_the_newest_filter),
    NamedMutant("sends more than the window", gives_no_heed_to_credit),
    NamedMutant("forgets what is unconsumed when it goes back", forgets_credit_when_it_goes_back),
    NamedMutant("counts only what it sent again when it went back", counts_only_what_it_sent_again),
    NamedMutant("forgets what is unconsumed with a link", forgets_credit_with_a_link),
    NamedMutant("takes a second attempt for the first", forgets_what_it_sent),
    NamedMutant("forgets what is being read at a takeover", forgets_what_is_being_read),
    NamedMutant("does not repeat what was lost", never_repeats),
    NamedMutant("does not make the log's missing end again", parts=Parts(events=MakesNoMissingTailAgain)),
]
