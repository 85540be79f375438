"""The part of a broker that takes requests for the hosted application, and answers those again that come again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.errors import ProtocolError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.desks.sequencer import Sequencer
from holdfast.protocols.desks.session_desk import SessionDesk
from holdfast.protocols.sessions.messages import NO_APPLICATION, ApplicationAnswered, AskApplication, Refusal

CLIENTS: Final = frozenset({Role.CLIENT})
# Larger numbers would not fit where they are kept.
NUMBER_MAX: Final = 2**62


class ApplicationDesk(Part):
    """Behind the sequencer and the session desk, which says what comes of requests."""

    name: ClassVar[str] = "application"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {AskApplication: CLIENTS}

    def __init__(self, core: BrokerCore, sequencer: Sequencer, sessions: SessionDesk) -> None:
        self._core = core
        self._sequencer = sequencer
        self._sessions = sessions

    def on_ask_application(self, peer: str, asked: AskApplication, out: Outbox) -> None:
        """D4-B6: a new request gets its place among the commands, an old one the answer that is kept for it."""
        session, hosting = self._sessions.session(peer), self._core.hosting
        if session is None:
            return
        number = asked.number
        if hosting.application is None:
            refusal = ApplicationAnswered(number, b"", Refusal.NO_APPLICATION, NO_APPLICATION)
            self._sessions.reply(peer, refusal)
            return
        if not 0 <= asked.confirmed < number <= min(asked.confirmed + hosting.window, NUMBER_MAX):
            raise ProtocolError(f"request {number} is beyond the window after {asked.confirmed}")
        if number <= session.confirmed:
            return  # sent before the client had the answer
        allowed = hosting.limits.request_bytes
        if len(asked.request) > allowed:
            problem = f"a request's bytes are {len(asked.request)}, beyond request_bytes, {allowed}"
            refusal = ApplicationAnswered(number, b"", Refusal.LIMIT, problem, "request_bytes", allowed)
            self._sessions.reply(peer, refusal)
            return
        answer = session.answers.get(number)
        if answer is not None:
            self._sessions.reply(peer, answer.message(number))
        else:
            command = commands.Execute(peer, session.epoch, number, asked.confirmed, asked.request)
            self._sequencer.submit(command, out)

    def measure(self) -> dict[str, int]:
        return self._core.hosting.measure()
