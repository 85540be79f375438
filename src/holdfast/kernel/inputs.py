"""Everything that can happen to a node. Inputs are values; a driver hands a node a list of them at a time."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.storage import LogBounds

# (part, name) or (part, name, peer)
TimerKey: TypeAlias = tuple[str, ...]


class _Input(msgspec.Struct, frozen=True, gc=False):
    pass


class Started(_Input, frozen=True):
    """The first input of a node's life. The incarnation is larger than at any start before.

    `log_id` names the disk, if there is one: another one means that everything was lost. `logs` says where the disk's
    logs begin and end. `repairs`: how often damaged records of it were given up.
    """

    incarnation: int
    log_id: str = ""
    logs: dict[str, LogBounds] = {}
    repairs: int = 0


class Received(_Input, frozen=True):
    """All messages of one read from a link, in order."""

    link: int
    peer: str
    messages: list[Message]


class LinkUp(_Input, frozen=True):
    """A link is ready: both sides know who the other is. If this side dialled, `address` is what it dialled, and
    `scheme` how the other side says that its network works: what is spoken there."""

    link: int
    peer: str
    incarnation: int
    role: Role
    initiated: bool
    address: str = ""
    scheme: str = ""


class LinkDown(_Input, frozen=True):
    """A link is gone, with whatever was on it. Comes once for every LinkUp, also after `disconnect`."""

    link: int
    peer: str
    reason: str


class ConnectFailed(_Input, frozen=True):
    """No link came of a `connect`. `refusal`: the other side's reason in a word, if it answered and did not want us."""

    peer: str
    address: str
    reason: str
    refusal: str = ""


class TimerFired(_Input, frozen=True):
    """A timer's time has come; it is not set any more."""

    key: TimerKey


class Durable(_Input, frozen=True):
    """Everything appended up to this token is on the disk."""

    token: int


class LogRead(_Input, frozen=True):
    """The answer to `read_log`: records with their numbers, and the number to go on from."""

    request: int
    records: list[tuple[int, Record]]
    next: int


class LogSent(_Input, frozen=True):
    """What came of `send_log`: the log is covered up to `through`, and so many events are on their way.

    `gone`: the log begins there, behind what was asked for; 0 if it had it.
    """

    request: int
    peer: str
    through: int
    count: int
    gone: int = 0


class StorageFailed(_Input, frozen=True):
    """The storage took no more, and will not again in this life: nothing appended since `Durable` may be claimed."""

    reason: str


class Drained(_Input, frozen=True):
    """A queue fell to its low-water mark; so much was taken from it since the mark was set."""

    peer: str
    count: int
    bytes: int


class Requested(_Input, frozen=True):
    """The application beside a client node asks for something. The answer is `complete(request, …)`."""

    request: int
    command: Any


Input: TypeAlias = (
    Started
    | Received
    | LinkUp
    | LinkDown
    | ConnectFailed
    | TimerFired
    | Durable
    | LogRead
    | LogSent
    | StorageFailed
    | Drained
    | Requested
)
