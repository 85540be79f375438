"""The port between a broker's sessions and whatever carries events between brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.core.outputs import Entered
from holdfast.protocols.core.session import Session
from holdfast.protocols.sessions.messages import Publish


class PublicationReleased(Notice, frozen=True):
    """A publication that the overlay held may be taken in."""

    client: str
    message: Publish


class Overlay(Protocol):
    @property
    def parts(self) -> Sequence[Part]:
        """Its parts, in the order in which a node lists them."""
        ...

    def admits(self, session: Session, message: Publish, out: Outbox) -> bool:
        """Whether a publication may be taken in now. If not, the overlay holds it, and tells `PublicationReleased`."""
        ...

    def entered(self, entered: Entered, out: Outbox) -> None:
        """Events were published here, for other brokers."""
        ...

    def facts(self) -> dict[str, str]:
        """What operators are told of it."""
        ...


class Alone:
    """The overlay of a broker on its own."""

    parts: Sequence[Part] = ()

    def admits(self, session: Session, message: Publish, out: Outbox) -> bool:
        return True

    def entered(self, entered: Entered, out: Outbox) -> None:
        pass

    def facts(self) -> dict[str, str]:
        return {}
