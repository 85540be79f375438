"""What an application asks its client about a broker's log, and what it is told.

Events of a cursor are handed over under the cursor's number with the sign changed, so that no subscription has it too.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.model.event import EventBytes
from holdfast.model.received import ReceivedEvents
from holdfast.protocols.cursors.messages import NEW
from holdfast.protocols.sessions.messages import Refusal
from holdfast.protocols.sessions.requests import NewEvent


class _Value(msgspec.Struct, frozen=True, gc=False):
    pass


# --------------------------------------------------------------------------------------------------------- requests
class MakeCursor(_Value, frozen=True):
    """Answered with `CursorMade` or `RefusedByLog`."""

    name: str
    filter: str
    start: int = NEW
    move: bool = False
    window: int = 1024


class EndCursor(_Value, frozen=True):
    """Answered with `CursorOver`; the broker keeps the cursor."""

    cursor: int


class ConsumeCursor(_Value, frozen=True):
    """The application has dealt with so many of its events; not answered."""

    cursor: int
    count: int


class AcknowledgeUpTo(_Value, frozen=True):
    """Answered with `AcknowledgedUpTo`, when the broker has it safe; with request 0 it is not answered."""

    cursor: int
    position: int


class AskBounds(_Value, frozen=True):
    """Answered with `Bounds` or `RefusedByLog`."""

    since: int = 0
    at_least: int = 0


class ReadEvents(_Value, frozen=True):
    """Answered with `EventsRead`, or `EncodedEvents` if they are wanted so, which may end before `end`; or with
    `RefusedByLog`."""

    filter: str
    start: int
    end: int
    at_least: int = 0
    bytes_max: int = 256 * 1024
    encoded: bool = False


class ForgetCursor(_Value, frozen=True):
    """Answered with `CursorForgotten` or `RefusedByLog`."""

    name: str


class StagePart(_Value, frozen=True):
    """Answered with `PartStaged` or `RefusedByLog`. The events' ids are made of `incarnation` and `first`."""

    query: str
    epoch: int
    task: int
    stage: str
    part: int
    incarnation: int
    first: int
    events: list[NewEvent]


class StageEncoded(_Value, frozen=True):
    """The same, of events that are encoded, as a msgpack array of them."""

    query: str
    epoch: int
    task: int
    stage: str
    part: int
    events: EventBytes


class CommitParts(_Value, frozen=True):
    """Answered with `PartsCommitted` or `RefusedByLog`."""

    query: str
    epoch: int
    stages: tuple[str, ...]


CURSOR_REQUESTS: Final = (MakeCursor, EndCursor, ConsumeCursor, AcknowledgeUpTo)
LOG_REQUESTS: Final = (AskBounds, ReadEvents, ForgetCursor, StagePart, StageEncoded, CommitParts)


# ---------------------------------------------------------------------------------------------------------- results
class RefusedByLog(_Value, frozen=True):
    """`reason` None: the client was closed."""

    reason: Refusal | None
    problem: str
    offset: int = 0
    expected: str = ""
    tail: int = 0


class CursorMade(_Value, frozen=True):
    cursor: int
    acknowledged: int


class CursorOver(_Value, frozen=True):
    cursor: int


class AcknowledgedUpTo(_Value, frozen=True):
    position: int


class Bounds(_Value, frozen=True):
    log_id: str
    tail: int
    head: int
    found: int


class EventsRead(_Value, frozen=True):
    """Everything up to `through` that matches; `scanned` events were looked at."""

    through: int
    events: ReceivedEvents
    scanned: int


class EncodedEvents(_Value, frozen=True):
    """The same, with the bytes of the events as they are in the log: nobody has looked whether they are sound."""

    through: int
    log_id: str
    positions: list[int]
    events: EventBytes  # a msgpack array of events
    scanned: int


class CursorForgotten(_Value, frozen=True):
    existed: bool


class PartStaged(_Value, frozen=True):
    count: int


class PartsCommitted(_Value, frozen=True):
    first: int
    last: int
    already: bool


# ---------------------------------------------------------------------------------------------------------- reports
class CursorLost(_Value, frozen=True):
    """The broker has nothing more for us under this cursor."""

    cursor: int
    reason: Refusal
    problem: str
    tail: int = 0
