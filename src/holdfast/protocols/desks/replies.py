"""What a broker says to its clients at the end of a turn, when the sequencer has journalled it.

Answers to what was published go as far as the overlay lets them; the rest is owed until it does.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kernel.messages import Message
from holdfast.protocols.core.outputs import Reply
from holdfast.protocols.core.session import Session
from holdfast.protocols.desks.attachments import Attachments
from holdfast.protocols.desks.overlay import Overlay
from holdfast.protocols.sessions.messages import Accepted, Refusal


class Replies:
    """Of this turn, and those that are owed. Nothing is said on a link but what was meant for it."""

    def __init__(self, clients: Attachments, overlay: Overlay) -> None:
        self._clients = clients
        self._overlay = overlay
        self._said: list[tuple[str, Message]] = []
        self._answered: dict[str, None] = {}  # whose publications are to be answered
        # That say that events are published; one that is asked for again is owed as before.
        self._owed: dict[tuple[str, int, Message], Reply] = {}

    def say(self, peer: str, message: Message) -> None:
        self._said.append((peer, message))

    def reply(self, reply: Reply) -> None:
        if reply.published > self._overlay.answerable_commands():
            self._owed.setdefault((reply.client, reply.epoch, reply.message), reply)
            return
        # The client may be there in another life by now, which must not get it.
        attachment = self._clients.links.get(reply.client)
        if attachment is not None and attachment.epoch == reply.epoch:
            self.say(reply.client, reply.message)

    def answer(self, client: str) -> None:
        """What the client published is to be answered at the end of the turn."""
        self._answered[client] = None

    def answer_now(self, client: str) -> None:
        """The same, before what is said next."""
        if client in self._answered:
            del self._answered[client]
            session = self._clients.session(client)
            if session is not None:
                self.say(client, Accepted(self.answerable(session), self.refusals(session)))

    def answer_more(self, clients: Sequence[str]) -> None:
        """The overlay lets more be answered, of what these clients have published among others."""
        for client in clients:
            if self._clients.session(client) is not None:
                self.answer(client)
        if self._owed:
            owed, self._owed = self._owed, {}
            for reply in owed.values():
                self.reply(reply)

    def answerable(self, session: Session) -> int:
        """The last of its publications that the session's client may be told of."""
        return min(session.accepted, self._overlay.answerable_through(session))

    def refusals(self, session: Session) -> tuple[tuple[int, Refusal, str], ...]:
        through = self.answerable(session) if session.refused else 0
        return tuple((number, *why) for number, why in session.refused.items() if number <= through)

    def forget(self, peer: str) -> None:
        """Its link is gone: the next one may be another client's."""
        self._said = [said for said in self._said if said[0] != peer]
        self._answered.pop(peer, None)
        if self._owed:
            self._owed = {key: reply for key, reply in self._owed.items() if reply.client != peer}

    def take(self) -> list[tuple[str, Message]]:
        """All that is to be said now."""
        for client in list(self._answered):
            self.answer_now(client)
        said, self._said = self._said, []
        return said
