"""A replica's side of direct links: publications that clients say to every replica, and not only to the leader (D4-B6).

The session lives at the leader, which answers. Here publications are only looked at, as the leader does, and handed to
the sequencer; the command has the same bytes at every replica, so that their votes are for the same value (D4-B4).

A client has at most one link to a node: if it comes with a session to where it had a direct link, since leaders
changed, the newer link takes the older one's place. A link is direct from its `OpenDirect` on, and never has a session.
It can do nothing that the session's own link could not: publish in the session's name, if it knows the session's
epoch and instance. Each event is handed on at most once a link, and no further ahead of what is accepted than a window.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import LinkDown, LinkUp, TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.register import EPOCH_MAX
from holdfast.protocols.core.session import Session
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.desks.publications import check_publication, direct_addresses
from holdfast.protocols.desks.sequencer import Sequencer
from holdfast.protocols.desks.session_desk import CLIENTS, SessionDesk
from holdfast.protocols.sessions.messages import OpenDirect, Publish


class _DirectLink:
    """A client's direct link."""

    __slots__ = ("heard_at", "link", "opening", "submitted")

    def __init__(self, link: int, opening: OpenDirect, now: int) -> None:
        self.link = link
        self.opening = opening
        self.heard_at = now
        self.submitted = 0  # the session's number of the last event that was handed on

    def hear(self, now: int) -> None:
        self.heard_at = now

    def hand_on(self, last: int) -> None:
        self.submitted = last


class DirectDesk(Part):
    """Comes behind the session desk, from which it takes links over."""

    name: ClassVar[str] = "direct"
    heard_from: ClassVar[frozenset[Role]] = CLIENTS
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {OpenDirect: CLIENTS, Publish: CLIENTS}

    def __init__(self, core: BrokerCore, sequencer: Sequencer, sessions: SessionDesk, settings: DeskSettings) -> None:
        self._core = core
        self._sequencer = sequencer
        self._sessions = sessions
        self._settings = settings
        self._links: dict[str, _DirectLink] = {}
        self._ticking = False
        self._handed_on = 0  # publications

    # -------------------------------------------------------------------------------------------------------- links
    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        self._links.pop(up.peer, None)  # the driver may say later that the older link is down

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        direct = self._links.get(down.peer)
        if direct is not None and direct.link == down.link:
            del self._links[down.peer]

    def on_heard(self, peer: str, out: Outbox) -> None:
        direct = self._links.get(peer)
        if direct is not None:
            direct.hear(out.now)

    def on_open_direct(self, peer: str, message: OpenDirect, out: Outbox) -> None:
        if not 1 <= message.epoch <= EPOCH_MAX:
            raise ProtocolError(f"the epoch of a session is 1 to {EPOCH_MAX}, not {message.epoch}")
        direct = self._links.get(peer)
        if direct is None:
            direct = _DirectLink(self._sessions.take_over(peer, out), message, out.now)
            self._links[peer] = direct
            self._keep_ticking(out)
        elif direct.opening != message:
            raise ProtocolError("a direct link is for one session")
        self._session(peer, direct)

    def _session(self, peer: str, direct: _DirectLink) -> Session | None:
        """The link's session, if this replica has heard of it yet; it may lag."""
        session, opening = self._core.sessions.get(peer), direct.opening
        if session is None or session.epoch < opening.epoch:
            return None
        if session.epoch > opening.epoch or session.instance != opening.instance:
            raise ProtocolError(f"the session of {peer} is another one")
        return session

    # --------------------------------------------------------------------------------------------------- publishing
    def on_publish(self, peer: str, message: Publish, out: Outbox) -> None:
        direct = self._links.get(peer)
        session = None if direct is None else self._session(peer, direct)
        if direct is None or session is None:
            return
        # By what the client says that it has seen: this replica may not know of it yet.
        batch = check_publication(peer, message, message.confirmed, self._settings.publish_window)
        last = message.first + max(0, len(batch) + message.skipped - 1)  # also one without events counts
        if self._sequencer.is_serving or not direct_addresses(self._core, self._sequencer):
            return  # a leader takes in what comes over the session's own link
        known = max(direct.submitted, session.accepted)
        if message.first <= known or last > session.accepted + self._settings.publish_window:
            return  # not new, or this replica is far behind
        direct.hand_on(last)
        self._handed_on += 1
        command = commands.Publish(peer, session.epoch, message.first, message.confirmed, message.events)
        self._sequencer.submit_direct(command, out)

    # --------------------------------------------------------------------------------------------------------- time
    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        """Closes links that are silent."""
        self._ticking = False
        for direct in self._links.values():
            if out.now - direct.heard_at >= self._settings.silent_after:
                out.disconnect(direct.link, f"nothing heard for {self._settings.silent_after // SECOND} s")
                direct.hear(out.now)
        self._keep_ticking(out)

    def _keep_ticking(self, out: Outbox) -> None:
        if self._links and not self._ticking:
            self._ticking = True
            out.set_timer((self.name, "tick"), self._settings.tick)

    def measure(self) -> dict[str, int]:
        return {"replica_clients_direct": len(self._links), "replica_direct_publications_total": self._handed_on}
