"""The part of a client that reads named subscriptions: cursors into the broker's log."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import ClassVar

from holdfast.errors import EventError, ProtocolError
from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.model.batch import EventBatch
from holdfast.model.received import ReceivedEvents
from holdfast.protocols.cursors import requests
from holdfast.protocols.cursors.following import CursorPhase, FollowedCursor
from holdfast.protocols.cursors.messages import (
    Acknowledge,
    Acknowledged,
    CloseCursor,
    CursorClosed,
    CursorEnded,
    CursorEvents,
    CursorOpened,
    CursorRefused,
)
from holdfast.protocols.sessions.conversation import Conversation, Phase
from holdfast.protocols.sessions.messages import Refusal
from holdfast.protocols.sessions.requests import APART, APART_TOLD, UNSOLICITED, EventsExpired, EventsMissed


class Consumer(Part):
    """A part of a client's node."""

    name: ClassVar[str] = "consumer"
    due = False
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (CursorOpened, CursorRefused, CursorClosed, CursorEnded, CursorEvents, Acknowledged), frozenset({Role.BROKER})
    )
    asked: ClassVar[tuple[type, ...]] = requests.CURSOR_REQUESTS

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._cursors: dict[int, FollowedCursor] = {}
        self._last_number = 0
        self._unreported: dict[FollowedCursor, None] = {}
        self._unacknowledged: dict[FollowedCursor, None] = {}  # to be said at the end of the turn
        self._report_due = False

    @property
    def is_waiting(self) -> bool:
        """Whether answers are missing."""
        return any(
            cursor.phase is not CursorPhase.LIVE or cursor.acknowledged < cursor.wanted
            for cursor in self._cursors.values()
        )

    def _find(self, peer: str, number: int, phase: CursorPhase) -> FollowedCursor | None:
        found = self._cursors.get(number) if self._conversation.is_open_with(peer) else None
        return found if found is not None and found.phase is phase else None

    # ----------------------------------------------------------------------------------------------------- requests
    def on_make_cursor(self, request: int, command: requests.MakeCursor, out: Outbox) -> None:
        if self._conversation.phase is Phase.CLOSED:
            out.complete(request, requests.RefusedByLog(None, "the client is closed"))
            return
        self._last_number += 1
        cursor = self._cursors[self._last_number] = FollowedCursor(self._last_number, request, command)
        out.note(
            "subscribed",
            subscription=self._text(cursor),
            subscriber=self._conversation.name,
            filter=command.filter,
            name=command.name,
        )
        if self._conversation.is_open:
            self._conversation.ask(cursor.opening(), out)

    def on_end_cursor(self, request: int, command: requests.EndCursor, out: Outbox) -> None:
        number = command.cursor
        cursor = self._cursors.get(number)
        if cursor is None or self._conversation.phase is Phase.CLOSED:
            out.complete(request, requests.CursorOver(number))
            return
        cursor.enders.append(request)
        self._over(cursor, "ended before it was confirmed", out, reason="")
        if self._conversation.is_open:
            if cursor.acknowledged < cursor.wanted:
                self._conversation.send(Acknowledge(number, cursor.wanted), out)
            self._conversation.ask(CloseCursor(number), out)

    def _text(self, cursor: FollowedCursor) -> str:
        return f"{self._conversation.name}/{self._conversation.incarnation}/-{cursor.number}"

    def _over(
        self,
        cursor: FollowedCursor,
        problem: str,
        out: Outbox,
        refused: requests.RefusedByLog | None = None,
        reason: str | None = None,
    ) -> None:
        """No event of the cursor is handed over any more. `reason`: as a trace tells it, if not as the problem."""
        if cursor.phase is not CursorPhase.CLOSING:
            text, name = self._text(cursor), self._conversation.name
            out.note("unsubscribed", subscription=text, subscriber=name, reason=problem if reason is None else reason)
        if (maker := cursor.take_maker()) is not None:
            out.complete(maker, refused or requests.RefusedByLog(None, problem))
        self._unreported.pop(cursor, None)
        self._unacknowledged.pop(cursor, None)
        for request in cursor.end():
            out.complete(request, refused or requests.RefusedByLog(None, problem))

    def on_consume_cursor(self, request: int, command: requests.ConsumeCursor, out: Outbox) -> None:
        cursor = self._cursors.get(command.cursor)
        if cursor is not None and cursor.phase is not CursorPhase.CLOSING:
            cursor.consume(command.count)
            self._unreported[cursor] = None
            self.due = True

    def on_acknowledge_up_to(self, request: int, command: requests.AcknowledgeUpTo, out: Outbox) -> None:
        cursor = self._cursors.get(command.cursor)
        if cursor is None or cursor.phase is CursorPhase.CLOSING:
            if request:
                out.complete(request, requests.RefusedByLog(None, "the subscription is over"))
            return
        if command.position > cursor.received:
            # Nobody has it: an event of another log, or a position made up.
            problem = f"position {command.position} was not received; the last one is {cursor.received}"
            if request:
                out.complete(request, requests.RefusedByLog(Refusal.POSITION_AHEAD, problem))
            return
        if request and command.position <= cursor.acknowledged:
            out.complete(request, requests.AcknowledgedUpTo(cursor.acknowledged))
            return
        cursor.want(command.position, request)
        self._unacknowledged[cursor] = None
        self.due = True

    # ------------------------------------------------------------------------------------------------------ answers
    def on_cursor_opened(self, peer: str, message: CursorOpened, out: Outbox) -> None:
        cursor = self._find(peer, message.cursor, CursorPhase.OPENING)
        if cursor is None:
            self._disown(peer, message.cursor, out)
            return
        if message.after < message.acknowledged or message.acknowledged < 0:
            raise ProtocolError("a cursor begins behind what is acknowledged")
        cursor.opened(message, self._conversation.log_id, self._conversation.member_since)
        out.note("confirmed", subscription=self._text(cursor), subscriber=self._conversation.name, via=peer)
        self._conversation.progressed(out)
        if (maker := cursor.take_maker()) is not None:
            out.complete(maker, requests.CursorMade(cursor.number, message.acknowledged))
        self._answer_waiters(cursor, out)
        if cursor.acknowledged < cursor.wanted:
            self._unacknowledged[cursor] = None
        self._unreported[cursor] = None
        self.due = True

    def _answer_waiters(self, cursor: FollowedCursor, out: Outbox) -> None:
        for request in cursor.take_answered():
            out.complete(request, requests.AcknowledgedUpTo(cursor.acknowledged))

    def _disown(self, peer: str, number: int, out: Outbox) -> None:
        """The broker believes that we have a cursor which we have not: a message of ours came late."""
        if number not in self._cursors and self._conversation.is_open_with(peer):
            self._conversation.send(CloseCursor(number), out)

    def on_cursor_refused(self, peer: str, refused: CursorRefused, out: Outbox) -> None:
        cursor = self._find(peer, refused.cursor, CursorPhase.OPENING)
        if cursor is None:
            return
        del self._cursors[refused.cursor]
        result = requests.RefusedByLog(refused.reason, refused.problem, refused.offset, refused.expected, refused.tail)
        if cursor.maker is None:
            lost = requests.CursorLost(cursor.number, refused.reason, refused.problem, refused.tail)
            out.complete(UNSOLICITED, lost)
        self._over(cursor, refused.problem, out, result)

    def on_cursor_closed(self, peer: str, message: CursorClosed, out: Outbox) -> None:
        cursor = self._find(peer, message.cursor, CursorPhase.CLOSING)
        if cursor is None:
            return
        del self._cursors[message.cursor]
        self._conversation.progressed(out)
        for request in cursor.enders:
            out.complete(request, requests.CursorOver(cursor.number))

    def on_cursor_ended(self, peer: str, ended: CursorEnded, out: Outbox) -> None:
        if not self._conversation.is_open_with(peer):
            return
        cursor = self._cursors.get(ended.cursor)
        if cursor is not None and cursor.phase is not CursorPhase.CLOSING:
            lost = requests.CursorLost(cursor.number, ended.reason, ended.problem, ended.tail)
            out.complete(UNSOLICITED, lost)
            self._over(cursor, ended.problem, out, requests.RefusedByLog(ended.reason, ended.problem, tail=ended.tail))
        self._conversation.ask(CloseCursor(ended.cursor), out)

    def on_acknowledged(self, peer: str, message: Acknowledged, out: Outbox) -> None:
        cursor = self._find(peer, message.cursor, CursorPhase.LIVE)
        if cursor is None or message.position <= cursor.acknowledged:
            return
        cursor.acknowledge(message.position)
        self._conversation.progressed(out)
        self._answer_waiters(cursor, out)

    def on_cursor_events(self, peer: str, message: CursorEvents, out: Outbox) -> None:
        count = len(message.positions)
        if len(message.attempts) not in (0, count):
            raise ProtocolError("CursorEvents has positions, events and attempts in different counts")
        cursor = self._find(peer, message.cursor, CursorPhase.LIVE)
        if cursor is None:
            self._disown(peer, message.cursor, out)
            return
        if list(message.positions) != sorted(set(message.positions)) or (
            count and not message.after < message.positions[0] <= message.positions[-1] <= message.through
        ):
            raise ProtocolError("CursorEvents has positions out of order or out of its range")
        self._unreported[cursor] = None
        self.due = True
        if message.after > cursor.received:
            cursor.note_gap()
            return
        if message.through <= cursor.received:
            cursor.note_asked()
            return
        events = self._read(message)
        known = bisect_right(message.positions, cursor.received)
        events = events.part(known, count)
        deadlines = events.batch.deadlines or ()
        late = [row for row, deadline in enumerate(deadlines) if 0 < deadline <= out.wall]
        taken = events
        if late or message.expired:
            left_out = sum(cursor.received < position <= message.through for position in message.expired)
            self._expire(cursor, events.take(late), len(late) + left_out, out)
            gone = set(late)
            taken = events.take([row for row in range(len(events)) if row not in gone])
        cursor.hand_over(taken.positions, message.through)
        if len(taken):
            if out.tracing:
                self._note_delivered(cursor, taken, peer, out)
            out.deliver(-cursor.number, taken)

    def _read(self, message: CursorEvents) -> ReceivedEvents:
        try:
            batch = EventBatch.read(message.events)
        except EventError as error:
            raise ProtocolError(f"in CursorEvents, {error}") from error
        if len(batch) != len(message.positions):
            raise ProtocolError("CursorEvents has positions, events and attempts in different counts")
        return ReceivedEvents(batch, self._conversation.log_id, message.positions, message.attempts)

    def _expire(self, cursor: FollowedCursor, late: ReceivedEvents, count: int, out: Outbox) -> None:
        """What has expired counts as received, and is not handed over (D1-A4)."""
        cursor.expire(count)
        if count:
            out.complete(UNSOLICITED, EventsExpired(-cursor.number, count))
        for event in late if out.tracing else ():
            text, name = self._text(cursor), self._conversation.name
            out.note("expired", event=event.id, subscription=text, subscriber=name, node=name)

    def _note_delivered(self, cursor: FollowedCursor, events: ReceivedEvents, via: str, out: Outbox) -> None:
        text, name = self._text(cursor), self._conversation.name
        for event in events:
            out.note(
                "delivered",
                event=event.id,
                subscription=text,
                subscriber=name,
                via=via,
                attempt=event.attempt,
                position=None if event.position is None else (event.position.log, event.position.number),
                left=event.deadline - out.wall if event.lifetime else None,
            )

    # ----------------------------------------------------------------------------------------------------- progress
    def finish(self, out: Outbox) -> None:
        if not self._conversation.is_open:
            return  # until it is
        self.due = False
        if self._unacknowledged:
            cursors, self._unacknowledged = self._unacknowledged, {}
            for cursor in cursors:
                if cursor.phase is CursorPhase.LIVE:
                    self._conversation.ask(Acknowledge(cursor.number, cursor.wanted), out)
        if any(cursor.urgent for cursor in self._unreported):
            self._report(out)
        elif self._unreported and not self._report_due:
            self._report_due = True
            out.set_timer((self.name, "report"), self._conversation.settings.report_after)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        self._report_due = False
        if not self._conversation.is_open:
            self.due = True
        elif self._unreported:
            self._report(out)

    def _report(self, out: Outbox) -> None:
        cursors, self._unreported = self._unreported, {}
        for cursor in cursors:
            if cursor.phase is CursorPhase.LIVE:
                self._conversation.send(cursor.progress(), out)
                cursor.report()

    # ----------------------------------------------------------------------------------------- called by the client
    def opened(self, out: Outbox) -> None:
        """A session is open; the broker may have given our cursors up with an earlier one."""
        for cursor in list(self._cursors.values()):
            if cursor.phase is CursorPhase.LIVE:
                cursor.reopen()
            if cursor.phase is CursorPhase.OPENING and cursor.generation:
                self._check_log(cursor, out)
        self.repeat(out)

    def _check_log(self, cursor: FollowedCursor, out: Outbox) -> None:
        """A broker with another log has other events at our positions: what we wait for is gone. The log of one that
        was not in its network for a while lacks what was published meanwhile, whoever reads it."""
        if cursor.log_id != self._conversation.log_id:
            del self._cursors[cursor.number]
            problem = "the broker has another log than the one that was read"
            lost = requests.CursorLost(cursor.number, Refusal.POSITION_GONE, problem)
            out.complete(UNSOLICITED, lost)
            self._over(cursor, problem, out, requests.RefusedByLog(Refusal.POSITION_GONE, problem))
        elif cursor.came_back(self._conversation.member_since):
            text, name = self._text(cursor), self._conversation.name
            out.note("missed", subscription=text, subscriber=name, reason=APART)
            out.complete(UNSOLICITED, EventsMissed(-cursor.number, None, APART_TOLD))

    def repeat(self, out: Outbox) -> None:
        """Says again what was not answered."""
        for cursor in self._cursors.values():
            if cursor.phase is CursorPhase.OPENING:
                self._conversation.ask(cursor.opening(), out)
            elif cursor.phase is CursorPhase.CLOSING:
                self._conversation.ask(CloseCursor(cursor.number), out)
            elif cursor.acknowledged < cursor.wanted:
                self._conversation.ask(Acknowledge(cursor.number, cursor.wanted), out)

    def end_all(self, reason: str, out: Outbox) -> None:
        for cursor in self._cursors.values():
            self._over(cursor, reason, out)
            for request in cursor.enders:
                out.complete(request, requests.CursorOver(cursor.number))
        self._cursors = {}
        out.cancel_timer((self.name, "report"))

    def check_invariants(self) -> None:
        for cursor in self._cursors.values():
            cursor.check_invariants()
        require(all(cursor.number in self._cursors for cursor in self._unreported), "what is reported exists")
        idle = not (self._unreported or self._unacknowledged)
        require(self.due or self._report_due or idle, "progress is reported")
