"""The part of a client that asks a broker's log: where it begins and ends, events by position, stages.

Every request is one message and one answer, and may be asked again: it is, after a lost link, until it is answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.errors import EventError, ProtocolError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.model.batch import EventBatch
from holdfast.model.event import UNENCODABLE, Event
from holdfast.model.received import ReceivedEvents
from holdfast.protocols.cursors import messages as said
from holdfast.protocols.cursors import requests
from holdfast.protocols.sessions.conversation import Conversation, Phase
from holdfast.protocols.sessions.messages import Refusal


class LogAsker(Part):
    """A part of a client's node."""

    name: ClassVar[str] = "asker"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (said.LogTold, said.RangeRead, said.NameForgotten, said.Staged, said.StagesCommitted, said.LogRefused),
        frozenset({Role.BROKER}),
    )
    asked: ClassVar[tuple[type, ...]] = requests.LOG_REQUESTS

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._asked: dict[int, Message] = {}  # request → what was asked and not answered
        self._encoded: set[int] = set()  # of these, those whose events are wanted as they are

    @property
    def is_waiting(self) -> bool:
        """Whether answers are missing. Also one that waits for a position is asked for again: it may be lost."""
        return bool(self._asked)

    def on_ask_bounds(self, request: int, asked: requests.AskBounds, out: Outbox) -> None:
        self._ask(request, said.AskLog(request, asked.since, asked.at_least), out)

    def on_read_events(self, request: int, read: requests.ReadEvents, out: Outbox) -> None:
        if read.encoded:
            self._encoded.add(request)
        message = said.ReadRange(request, read.filter, read.start, read.end, read.at_least, read.bytes_max)
        self._ask(request, message, out)

    def on_forget_cursor(self, request: int, forget: requests.ForgetCursor, out: Outbox) -> None:
        self._ask(request, said.ForgetName(request, forget.name), out)

    def on_commit_parts(self, request: int, commit: requests.CommitParts, out: Outbox) -> None:
        self._ask(request, said.CommitStages(request, commit.query, commit.epoch, commit.stages), out)

    def on_stage_encoded(self, request: int, part: requests.StageEncoded, out: Outbox) -> None:
        place = (part.query, part.epoch, part.task, part.stage, part.part)
        self._ask(request, said.StageEvents(request, *place, part.events), out)

    def on_stage_part(self, request: int, part: requests.StagePart, out: Outbox) -> None:
        name = self._conversation.name
        batch = EventBatch.made(name, part.incarnation, part.first, part.events, out.wall)
        try:
            batch = batch if batch is not None else self._make_singly(part, out)
        except EventError as error:
            out.complete(request, requests.RefusedByLog(Refusal.EVENT, str(error)))
            return
        place = (part.query, part.epoch, part.task, part.stage, part.part)
        self._ask(request, said.StageEvents(request, *place, batch.encoded), out)

    def _make_singly(self, part: requests.StagePart, out: Outbox) -> EventBatch:
        """Of events of which some is none, or of an unusual type; EventError says which, and what is wrong."""
        events = []
        for place, new in enumerate(part.events):
            sequence = part.first + place
            try:
                fields = (new.topic, dict(new.attributes), new.payload, out.wall, new.lifetime)
                events.append(EventBatch.of_one(Event(self._conversation.name, part.incarnation, sequence, *fields)))
            except UNENCODABLE as error:
                raise EventError(f"{error} (event {place} of the batch)") from error
        return EventBatch.joined(events)

    def _ask(self, request: int, message: Message, out: Outbox) -> None:
        if self._conversation.phase is Phase.CLOSED:
            out.complete(request, requests.RefusedByLog(None, "the client is closed"))
            return
        self._asked[request] = message
        if self._conversation.is_open:
            self._conversation.ask(message, out)

    # ------------------------------------------------------------------------------------------------------ answers
    def _answer(self, peer: str, request: int, result: Any, out: Outbox, kind: type[Message] | None = None) -> None:
        asked = self._asked.get(request) if self._conversation.is_open_with(peer) else None
        if asked is None:
            return
        if kind is not None and not isinstance(asked, kind):
            raise ProtocolError(f"request {request} was {type(asked).__name__}, and is answered as if it were not")
        del self._asked[request]
        self._encoded.discard(request)
        self._conversation.progressed(out)
        out.complete(request, result)

    def on_log_told(self, peer: str, told: said.LogTold, out: Outbox) -> None:
        result = requests.Bounds(told.log_id, told.tail, told.head, told.found)
        self._answer(peer, told.request, result, out, said.AskLog)

    def on_range_read(self, peer: str, read: said.RangeRead, out: Outbox) -> None:
        if read.request not in self._asked:
            return
        if read.request in self._encoded:
            encoded = requests.EncodedEvents(read.through, read.log_id, read.positions, read.events, read.scanned)
            self._answer(peer, read.request, encoded, out, said.ReadRange)
            return
        try:
            batch = EventBatch.read(read.events)
        except EventError as error:
            raise ProtocolError(f"in RangeRead, {error}") from error
        if len(read.positions) != len(batch):
            raise ProtocolError("RangeRead has positions and events in different counts")
        events = ReceivedEvents(batch, read.log_id, read.positions)
        result = requests.EventsRead(read.through, events, read.scanned)
        self._answer(peer, read.request, result, out, said.ReadRange)

    def on_name_forgotten(self, peer: str, forgotten: said.NameForgotten, out: Outbox) -> None:
        self._answer(peer, forgotten.request, requests.CursorForgotten(forgotten.existed), out, said.ForgetName)

    def on_staged(self, peer: str, staged: said.Staged, out: Outbox) -> None:
        self._answer(peer, staged.request, requests.PartStaged(staged.count), out, said.StageEvents)

    def on_stages_committed(self, peer: str, done: said.StagesCommitted, out: Outbox) -> None:
        result = requests.PartsCommitted(done.first, done.last, done.already)
        self._answer(peer, done.request, result, out, said.CommitStages)

    def on_log_refused(self, peer: str, refused: said.LogRefused, out: Outbox) -> None:
        result = requests.RefusedByLog(refused.reason, refused.problem, refused.offset, refused.expected, refused.tail)
        self._answer(peer, refused.request, result, out)

    # ----------------------------------------------------------------------------------------- called by the client
    def opened(self, out: Outbox) -> None:
        self.repeat(out)

    def repeat(self, out: Outbox) -> None:
        for message in self._asked.values():
            self._conversation.ask(message, out)

    def end_all(self, reason: str, out: Outbox) -> None:
        for request in self._asked:
            out.complete(request, requests.RefusedByLog(None, reason))
        self._asked = {}
        self._encoded = set()
