"""The port to a client's links beside that of its session: a scheme's client may have some, or take some.

Between two nodes there is one link. So the session asks before it dials whether an attempt is under way already, asks
about every link that it does not want itself, and closes what nobody takes.
"""

from __future__ import annotations

from typing import Protocol

from holdfast.kernel.inputs import LinkUp
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.sessions.messages import OpenDirect, Publish


class OtherLinks(Protocol):
    """Asked and told by the client's session and by its publisher."""

    @property
    def is_open(self) -> bool:
        """Whether what is published is to be said on some of them, too."""
        ...

    def is_dialling(self, address: str) -> bool:
        """Whether an attempt to connect is under way, of which a link or a failure will come."""
        ...

    def check(self, addresses: tuple[str, ...]) -> None:
        """Refuses, with ProtocolError, what no broker may name."""
        ...

    def opened(self, opening: OpenDirect, address: str, addresses: tuple[str, ...], out: Outbox) -> None:
        """The session is open, at that address; its broker named others to publish to. `opening` says whose it is."""
        ...

    def close(self, reason: str, out: Outbox) -> None:
        """There is no session any more, or not here."""
        ...

    def takes(self, up: LinkUp, out: Outbox) -> bool:
        """Whether a link that the session does not want is one of these."""
        ...

    def send(self, message: Publish, out: Outbox) -> None:
        """Says what the session's broker is told."""
        ...


class NoOtherLinks:
    """A client with one link, to its broker."""

    @property
    def is_open(self) -> bool:
        return False

    def is_dialling(self, address: str) -> bool:
        return False

    def check(self, addresses: tuple[str, ...]) -> None: ...

    def opened(self, opening: OpenDirect, address: str, addresses: tuple[str, ...], out: Outbox) -> None: ...

    def close(self, reason: str, out: Outbox) -> None: ...

    def takes(self, up: LinkUp, out: Outbox) -> bool:
        return False

    def send(self, message: Publish, out: Outbox) -> None: ...
