"""What drives the broker's core: commands, numbered and in order; and the records that keep them.

Commands are what clients ask for, with the client's name and epoch filled in by the node that heard it. A node may
apply them directly, keep them in its journal, or have a group of replicas agree on their order first.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from holdfast.kernel.messages import Record
from holdfast.model.event import EventBytes
from holdfast.protocols.sessions.messages import Overflow


class _Command(msgspec.Struct, frozen=True, array_like=True, gc=False):
    client: str


class OpenSession(_Command, frozen=True, tag=1):
    instance: int
    epoch: int


class EndSession(_Command, frozen=True, tag=2):
    """The client said goodbye."""

    epoch: int


class Subscribe(_Command, frozen=True, tag=3):
    epoch: int
    subscription: int
    filter: str
    overflow: Overflow
    window: int


class Unsubscribe(_Command, frozen=True, tag=4):
    epoch: int
    subscription: int


class EndSubscription(_Command, frozen=True, tag=5):
    """The broker's own decision, with a reason for the subscriber."""

    epoch: int
    subscription: int
    reason: str


class Publish(_Command, frozen=True, tag=6):
    epoch: int
    first: int
    confirmed: int
    events: EventBytes


class Receive(_Command, frozen=True, tag=7):
    """The client has the events of these subscriptions up to these numbers."""

    epoch: int
    subscriptions: tuple[int, ...]
    numbers: tuple[int, ...]


class DropSubscriptions(_Command, frozen=True, tag=8):
    """The client stayed away for too long: what it wanted and offered goes. How far it was with publishing is still
    known when it comes back."""

    epoch: int


class Advertise(_Command, frozen=True, tag=9):
    epoch: int
    advertisement: int
    filter: str


class Unadvertise(_Command, frozen=True, tag=10):
    epoch: int
    advertisement: int


Command: TypeAlias = (
    OpenSession
    | EndSession
    | Subscribe
    | Unsubscribe
    | EndSubscription
    | Publish
    | Receive
    | DropSubscriptions
    | Advertise
    | Unadvertise
)


# Raised when records change in a way that defaults can't bridge; an older reader then refuses them.
RECORD_FORMAT: Final = 1


class Applied(Record, frozen=True):
    """Commands that were applied in one turn, the first under `number`."""

    number: int
    wall: int
    commands: list[Command]
    format: int = RECORD_FORMAT


class CoreState(Record, frozen=True):
    """The core's whole state after command `number`."""

    number: int
    state: bytes
    format: int = RECORD_FORMAT


SESSION_RECORDS: dict[int, type[Record]] = {1: Applied, 2: CoreState}
