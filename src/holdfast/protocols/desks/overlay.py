"""The port between a broker's core and whatever carries events between brokers.

A broker asks its overlay whether it takes a publication in, hands it what was published here, and answers publishers
when the overlay lets it: some are sure of an event only when other brokers have it, too. What comes from other brokers
the overlay hands to the broker's `Home`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.interests import Key
from holdfast.protocols.core.outputs import Entered
from holdfast.protocols.core.session import Session
from holdfast.protocols.operating.changes import NO_CHANGES
from holdfast.protocols.sessions.messages import Publish

EVERYTHING: Final = 2**63 - 1


class PublicationReleased(Notice, frozen=True):
    """A publication that the overlay held may be taken in."""

    client: str
    message: Publish


class PublicationsAnswerable(Notice, frozen=True):
    """More may be answered of what was published, by these clients among others: `answerable_through` and
    `answerable_commands` say how far."""

    clients: Sequence[str]


class ClientsSentElsewhere(Notice, frozen=True):
    """Clients are not to go on at this broker as if nothing had happened: `elsewhere` says where they are to go; if
    that is empty, they come again, and hear of another `member_since`."""


class SubscriptionState(enum.Enum):
    """How far a subscription has come, beyond its own broker."""

    PENDING = "pending"  # it is under way to brokers whose events it may miss until then
    PARTIAL = "partial"  # a part of the network can't be reached: events from there may be missing
    CONFIRMED = "confirmed"  # what its scheme promises, holds for it


class Overlay(Protocol):
    @property
    def parts(self) -> Sequence[Part]:
        """Its parts, in the order in which a node lists them."""
        ...

    def admits(self, session: Session, message: Publish, batch: EventBatch, out: Outbox) -> bool:
        """Whether a publication, with these events, may be taken in now. If not, the overlay holds it, and tells
        `PublicationReleased`."""
        ...

    def entered(self, entered: Entered, out: Outbox) -> None:
        """Events were published here, for other brokers."""
        ...

    def answerable_through(self, session: Session) -> int:
        """The last of a session's publications that its client may be told of; EVERYTHING if it waits for nothing. When
        it may be told of more, the overlay tells `PublicationsAnswerable`. What is on this broker's disk only when a
        turn has been carried out is the broker's own affair: its answers wait for that."""
        ...

    def answerable_commands(self) -> int:
        """The last command of which, and of all before it, everything that was published may be answered; EVERYTHING if
        nothing waits. For who asks about what others may have published, such as a commit of stages."""
        ...

    def interests_changed(self, out: Outbox) -> None:
        """What clients want or advertise here has changed: `Home.interests` says how."""
        ...

    def subscription_state(self, key: Key) -> SubscriptionState:
        """Of a subscription here, or a name."""
        ...

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Addresses of brokers that clients are sent to, in place of this one; none if they may stay. When that
        changes, the overlay tells `ClientsSentElsewhere`."""
        ...

    @property
    def member_since(self) -> int:
        """Rises when this broker comes back to its network, in which it was not for a while: what was published
        meanwhile has not come here. 0: it was always there."""
        ...

    def facts(self) -> dict[str, str]:
        """What operators are told of it."""
        ...

    def change(self, action: str, told: Mapping[str, str], out: Outbox) -> str:
        """Begins a change of the network that an operator asked for; gives what is against it, empty if it has
        begun."""
        ...


class Alone:
    """The overlay of a broker on its own."""

    parts: Sequence[Part] = ()
    elsewhere: tuple[str, ...] = ()
    member_since: int = 0

    def admits(self, session: Session, message: Publish, batch: EventBatch, out: Outbox) -> bool:
        return True

    def entered(self, entered: Entered, out: Outbox) -> None:
        pass

    def answerable_through(self, session: Session) -> int:
        return EVERYTHING

    def answerable_commands(self) -> int:
        return EVERYTHING

    def interests_changed(self, out: Outbox) -> None:
        pass

    def subscription_state(self, key: Key) -> SubscriptionState:
        return SubscriptionState.CONFIRMED

    def facts(self) -> dict[str, str]:
        return {}

    def change(self, action: str, told: Mapping[str, str], out: Outbox) -> str:
        return NO_CHANGES
