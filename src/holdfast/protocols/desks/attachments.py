"""The links of clients to a broker: who is there, when it was heard last, and who is away since when."""

from __future__ import annotations

from holdfast.kernel.inputs import LinkUp
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.time import SECOND
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.session import Session
from holdfast.protocols.desks.desk_settings import DeskSettings
from holdfast.protocols.sessions.messages import OpenSession


class Attachment:
    """A client's link, and what was said on it."""

    __slots__ = ("alternates", "direct", "epoch", "incarnation", "link", "opening")

    def __init__(self, link: int, incarnation: int) -> None:
        self.link = link
        self.incarnation = incarnation
        self.opening: OpenSession | None = None
        self.epoch = 0  # 0: no session yet
        self.direct: tuple[str, ...] = ()  # where the client was told that it may publish too
        self.alternates: tuple[str, ...] = ()  # where it was told that it may go if this broker fails

    def ask(self, opening: OpenSession) -> None:
        self.opening = opening

    def open(self, epoch: int) -> bool:
        """Whether it has another session than before."""
        before, self.epoch = self.epoch, epoch
        return before != epoch

    def tell_direct(self, addresses: tuple[str, ...]) -> None:
        self.direct = addresses

    def tell_alternates(self, addresses: tuple[str, ...]) -> None:
        self.alternates = addresses


class Attachments:
    """By client. `away` are clients with a session and no link."""

    def __init__(self, core: BrokerCore, settings: DeskSettings) -> None:
        self._core = core
        self._settings = settings
        self.links: dict[str, Attachment] = {}
        self.heard_at: dict[str, int] = {}  # of those with a link
        self.away: dict[str, int] = {}  # → since when

    def session(self, peer: str) -> Session | None:
        """The session that is open on the peer's link. Without one, a message came too early, and comes again."""
        attachment, session = self.links.get(peer), self._core.sessions.get(peer)
        return session if session is not None and attachment is not None and attachment.epoch == session.epoch else None

    def attach(self, up: LinkUp, out: Outbox) -> None:
        self.links[up.peer] = Attachment(up.link, up.incarnation)
        self.heard_at[up.peer] = out.now

    def detach(self, peer: str, out: Outbox) -> None:
        del self.links[peer], self.heard_at[peer]
        if peer in self._core.sessions and peer not in self._core.register.dormant:
            self.away[peer] = out.now

    def expect_all(self, out: Outbox) -> None:
        """Whoever has a session may come here, from now on."""
        self.away = {client: out.now for client in self._core.sessions if client not in self._core.register.dormant}

    def expect_nobody(self) -> None:
        self.away = {}

    def close_silent(self, out: Outbox) -> dict[str, Attachment]:
        """Closes links that are silent. The others."""
        after = self._settings.silent_after
        silent = {peer: None for peer, heard_at in self.heard_at.items() if out.now - heard_at >= after}
        for peer in silent:
            out.disconnect(self.links[peer].link, f"nothing heard for {after // SECOND} s")
            self.heard_at[peer] = out.now
        return {peer: attachment for peer, attachment in self.links.items() if peer not in silent}

    def give_up_late(self, out: Outbox) -> list[str]:
        """Those that are away for too long: they are not expected any more."""
        late = [client for client, since in self.away.items() if out.now - since >= self._settings.away_after]
        for client in late:
            del self.away[client]
        return late
