"""The part of a client that asks the application that a broker hosts.

Requests are numbered when they are first sent, and as many are under way as the broker grants. One that is not answered
is sent again, after a lost link to whoever leads then: the broker knows by its number whether it was executed. If the
broker has forgotten the session, nobody knows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import ClassVar

from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import require
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.conversation import Conversation, Phase
from holdfast.protocols.sessions.messages import NO_APPLICATION, ApplicationAnswered, AskApplication, Refusal

FORGOTTEN = "the broker has forgotten this client: nobody knows whether the request was executed"


class ApplicationAsker(Part):
    """A part of a client's node."""

    name: ClassVar[str] = "application"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {ApplicationAnswered: frozenset({Role.BROKER})}
    asked: ClassVar[tuple[type, ...]] = (requests.AskApplication,)

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._last = 0  # number
        self._asked: dict[int, tuple[int, bytes]] = {}  # number → request and what it is, in the order of numbers
        self._waiting: deque[tuple[int, bytes]] = deque()  # those that have no number yet

    @property
    def is_waiting(self) -> bool:
        return bool(self._asked)

    @property
    def _confirmed(self) -> int:
        """All up to this number are answered."""
        return next(iter(self._asked), self._last + 1) - 1

    def on_ask_application(self, request: int, command: requests.AskApplication, out: Outbox) -> None:
        if self._conversation.phase is Phase.CLOSED:
            out.complete(request, requests.NotAnswered(None, "the client is closed"))
            return
        self._waiting.append((request, command.data))
        self._go_on(out)

    def _go_on(self, out: Outbox) -> None:
        """Sends what may be under way."""
        if not self._conversation.is_open:
            return
        window = self._conversation.request_window
        while self._waiting and (not window or self._last < self._confirmed + window):
            request, data = self._waiting.popleft()
            if not window:
                out.complete(request, requests.NotAnswered(Refusal.NO_APPLICATION, NO_APPLICATION))
                continue
            self._last += 1
            self._asked[self._last] = (request, data)
            out.note("control", what="asked", detail={"client": self._conversation.name, "number": self._last})
            self._send(self._last, data, out)

    def _send(self, number: int, data: bytes, out: Outbox) -> None:
        self._conversation.ask(AskApplication(number, data, self._confirmed), out)

    def on_application_answered(self, peer: str, answered: ApplicationAnswered, out: Outbox) -> None:
        asked = self._asked.pop(answered.number, None) if self._conversation.is_open_with(peer) else None
        if asked is None:
            return
        self._conversation.progressed(out)
        self._note_answered(answered.number, "" if answered.reason is None else answered.reason.value, out)
        if answered.reason is None:
            out.complete(asked[0], requests.ApplicationAnswer(answered.answer))
        else:
            refused = requests.NotAnswered(answered.reason, answered.problem, answered.limit, answered.allowed)
            out.complete(asked[0], refused)
        self._go_on(out)

    def _note_answered(self, number: int, problem: str, out: Outbox) -> None:
        detail = {"client": self._conversation.name, "number": number, "problem": problem}
        out.note("control", what="answered", detail=detail)

    # ----------------------------------------------------------------------------------------- called by the client
    def opened(self, out: Outbox) -> None:
        if self._conversation.resumed:
            self.repeat(out)
        else:
            for number, (request, _) in self._asked.items():
                self._note_answered(number, "forgotten", out)
                out.complete(request, requests.AnswerLost(FORGOTTEN))
            self._asked = {}
        self._go_on(out)

    def repeat(self, out: Outbox) -> None:
        for number, (_, data) in self._asked.items():
            self._send(number, data, out)

    def end_all(self, reason: str, out: Outbox) -> None:
        for request, _ in [*self._asked.values(), *self._waiting]:
            out.complete(request, requests.NotAnswered(None, reason))
        self._asked, self._waiting = {}, deque()

    def check_invariants(self) -> None:
        require(list(self._asked) == sorted(self._asked), "requests are kept in the order of their numbers")
