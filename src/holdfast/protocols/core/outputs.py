"""What comes of commands: for the node, which tells clients and keeps the log."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from holdfast.kernel.messages import Message
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.backlog import Run
from holdfast.protocols.core.cursor import Cursor
from holdfast.protocols.core.subscriptions import Subscription
from holdfast.protocols.sessions import messages


class Reply(msgspec.Struct, frozen=True, gc=False):
    """A message for the client of a session, if it is there; not for another life of the client. `published`: it says
    that events are published, by commands up to this one; 0 if it says nothing of the kind."""

    client: str
    epoch: int
    message: Message
    published: int = 0


class Opened(msgspec.Struct, frozen=True, gc=False):
    """A client has a session."""

    client: str
    instance: int
    epoch: int


class NotOpened(msgspec.Struct, frozen=True, gc=False):
    """A client gets no session."""

    client: str
    instance: int
    refusal: messages.SessionRefused


class Answered(msgspec.Struct, frozen=True, gc=False):
    """What a session has published was taken in or refused: its client is to be told how far it is."""

    client: str


class Woken(msgspec.Struct, frozen=True, gc=False):
    """These subscriptions have events that they did not have before."""

    subscriptions: list[Subscription]


class Expired(msgspec.Struct, frozen=True, gc=False):
    """Events that a subscription wanted and does not get, since they have expired."""

    subscription: Subscription
    batch: EventBatch


class Removed(msgspec.Struct, frozen=True, gc=False):
    """A subscription is gone. What it had before is still in it."""

    subscription: Subscription


class Freed(msgspec.Struct, frozen=True, gc=False):
    """Subscriptions have room again, or ended: publishers that wait may try."""


class MadeByApplication(msgspec.Struct, frozen=True, gc=False):
    """Events that the hosted application made; they are accepted right after this."""

    batch: EventBatch


class Entered(msgspec.Struct, frozen=True, gc=False):
    """Events that were published here by command `number`, for the other brokers of the network. Those of a client have
    its session's numbers, from `first` on, with gaps where events were refused. Those of stages and of the hosted
    application have no client."""

    number: int
    batch: EventBatch
    client: str = ""
    epoch: int = 0
    first: int = 0


class Logged(msgspec.Struct, frozen=True, gc=False):
    """Events that were accepted, from position `first` on: they belong into the log."""

    first: int
    wall: int
    batch: EventBatch

    @property
    def last(self) -> int:
        return self.first + len(self.batch) - 1


class CursorTaken(msgspec.Struct, frozen=True, gc=False):
    """A client has a cursor, and wants its events from behind a position; of those before, its application has still
    to take `unconsumed`."""

    cursor: Cursor
    window: int
    after: int
    unconsumed: int = 0


class CursorLeft(msgspec.Struct, frozen=True, gc=False):
    """A client has a cursor no more."""

    owner: tuple[str, int, int]


class CursorFed(msgspec.Struct, frozen=True, gc=False):
    """Events that a cursor is to have, and that were just accepted."""

    cursor: Cursor
    run: Run


class Kept(msgspec.Struct, frozen=True, gc=False):
    """The log is not needed before this position any more."""

    tail: int


class LogLookedAt(msgspec.Struct, frozen=True, gc=False):
    """Everything that was accepted before the question was put is in the log now."""

    client: str
    request: int


class NameRemoval(msgspec.Struct, frozen=True, gc=False):
    """What came of an operator's request to give a name up. `owner` is the client that has it, or had it until now, if
    one does; `behind` how many events it had not acknowledged."""

    operator: str
    request: int
    name: str
    removed: bool
    owner: str = ""
    behind: int = -1  # there is no such name


SessionOutput: TypeAlias = (
    Reply | Opened | NotOpened | Answered | Woken | Expired | Removed | Freed | MadeByApplication | Entered
)
LogOutput: TypeAlias = Logged | CursorTaken | CursorLeft | CursorFed | Kept | LogLookedAt | NameRemoval
Output: TypeAlias = SessionOutput | LogOutput
