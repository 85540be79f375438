"""What clients and brokers say to each other about a broker's log.

A position is the number of an event in the log, from 1, without gaps. A cursor is a place in the log under a name: the
broker keeps what its owner has not acknowledged. Everything here may be said again after a loss.
"""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.kernel.messages import NOMINAL_WEIGHT, Message
from holdfast.model.event import EventBytes, event_ids
from holdfast.protocols.sessions.messages import Refusal

# Where a new cursor begins, if not at a position.
NEW: Final = -1  # behind the last event that is there
EARLIEST: Final = 0  # at the first one


# --------------------------------------------------------------------------------------------------------- cursors
class OpenCursor(Message, frozen=True):
    """Opens the cursor of a name, makes it if there is none, or takes it over. `cursor` is the client's number for it.

    `start` counts for a new name, and if `move` also for one that exists. `generation` is 0, or that of the cursor when
    this very client had it: then it is not taken back from whoever took it over since, and events up to `received` have
    arrived, of which its application has still to take `unconsumed`.
    """

    cursor: int
    name: str
    filter: str
    start: int = NEW
    move: bool = False
    window: int = 1024
    generation: int = 0
    received: int = 0
    unconsumed: int = 0


class CursorOpened(Message, frozen=True):
    """Events up to `acknowledged` are done with; what follows comes, from behind `after`."""

    cursor: int
    generation: int
    acknowledged: int
    after: int


class CursorRefused(Message, frozen=True):
    """`offset` and `expected` are those of a filter's error, `tail` is the first position that there is."""

    cursor: int
    reason: Refusal
    problem: str
    offset: int = 0
    expected: str = ""
    tail: int = 0


class CloseCursor(Message, frozen=True):
    """The client is done for now; the cursor stays where it is. Also the answer to `CursorEnded`."""

    cursor: int


class CursorClosed(Message, frozen=True):
    cursor: int


class CursorEnded(Message, frozen=True):
    """The broker has nothing more for this client."""

    cursor: int
    reason: Refusal
    problem: str
    tail: int = 0


class CursorEvents(Message, frozen=True):
    """All events of the cursor behind position `after`, up to `through`. `attempts`, if any is not the first.

    `expired`: the positions of those that are left out, since they have expired.
    """

    cursor: int
    after: int
    through: int
    positions: list[int]
    events: EventBytes  # a msgpack array of events
    attempts: list[int] = []  # noqa: RUF012 - a field's default, which is copied
    expired: list[int] = []  # noqa: RUF012

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.events)

    def event_ids(self) -> list[str]:
        return event_ids(self.events)


class CursorProgress(Message, frozen=True):
    """How far the client is. `missing`: say again what comes after `received`. `expired`: how many events its
    application did not get in this life of the cursor, since they have expired. `unconsumed`: how many of those up to
    `received` its application has still to take."""

    cursor: int
    received: int
    consumed: int
    missing: bool = False
    expired: int = 0
    unconsumed: int = 0


class Acknowledge(Message, frozen=True):
    """Events up to the position are done with, and never come again."""

    cursor: int
    position: int


class Acknowledged(Message, frozen=True):
    cursor: int
    position: int


# -------------------------------------------------------------------------------------------------- asking the log
class ForgetName(Message, frozen=True):
    """Gives a cursor up: what was kept for it alone may go."""

    request: int
    name: str


class NameForgotten(Message, frozen=True):
    request: int
    existed: bool


class AskLog(Message, frozen=True):
    """Where does the log begin and end? `since`: and which is the first event accepted then or later? (wall time)

    Answered when the log has reached position `at_least`.
    """

    request: int
    since: int = 0
    at_least: int = 0


class LogTold(Message, frozen=True):
    """The log's first position (one more than `head` if it is empty) and its last; `found` answers `since`."""

    request: int
    log_id: str
    tail: int
    head: int
    found: int = 0


class ReadRange(Message, frozen=True):
    """Events from position `start` to `end` that match, as many as fit; answered when `at_least` is reached."""

    request: int
    filter: str
    start: int
    end: int
    at_least: int = 0
    bytes_max: int = 256 * 1024


class RangeRead(Message, frozen=True):
    """All that match from `start` up to `through`."""

    request: int
    log_id: str
    through: int
    positions: list[int]
    events: EventBytes  # a msgpack array of events
    scanned: int = 0  # events that were looked at

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.events)


class LogRefused(Message, frozen=True):
    """The answer to any of these requests that can't be met; `tail` if what was asked for is gone."""

    request: int
    reason: Refusal
    problem: str
    tail: int = 0
    offset: int = 0
    expected: str = ""


# ---------------------------------------------------------------------------------------------- publishing in stages
class StageEvents(Message, frozen=True):
    """A part of a stage, which nobody sees until it is committed. Parts are numbered from 1, and come in order."""

    request: int
    query: str
    epoch: int
    task: int
    stage: str
    part: int
    events: EventBytes  # a msgpack array of events

    def weight(self) -> int:
        return NOMINAL_WEIGHT + len(self.events)


class Staged(Message, frozen=True):
    """So many events are in the stage now."""

    request: int
    count: int


class CommitStages(Message, frozen=True):
    """Publishes stages, in this order, at positions without gaps; once for each epoch of a query."""

    request: int
    query: str
    epoch: int
    stages: tuple[str, ...]


class StagesCommitted(Message, frozen=True):
    """`already`: it was done before. `first` is 0 if nothing is known of it any more, or there were no events."""

    request: int
    first: int
    last: int
    already: bool = False


# --------------------------------------------------------------------------------------- between replicas of a group
class LoggedBatch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Events that were accepted together, as they are in the log."""

    first: int
    wall: int
    events: EventBytes


class AskEvents(Message, frozen=True):
    """Events of the log from this position on, for a replica that lacks them."""

    first: int


class EventsTold(Message, frozen=True):
    """`first` is what was asked for; the first batch may begin before it."""

    first: int
    batches: list[LoggedBatch]

    def weight(self) -> int:
        return NOMINAL_WEIGHT + sum(len(batch.events) for batch in self.batches)


class EventsGone(Message, frozen=True):
    """The log begins at `tail`, behind what was asked for."""

    first: int
    tail: int


CURSOR_MESSAGES: dict[int, type[Message]] = {
    50: OpenCursor,
    51: CursorOpened,
    52: CursorRefused,
    53: CloseCursor,
    54: CursorClosed,
    55: CursorEnded,
    56: CursorEvents,
    57: CursorProgress,
    58: Acknowledge,
    59: Acknowledged,
    60: ForgetName,
    61: NameForgotten,
    62: AskLog,
    63: LogTold,
    64: ReadRange,
    65: RangeRead,
    66: LogRefused,
    67: StageEvents,
    68: Staged,
    69: CommitStages,
    70: StagesCommitted,
    71: AskEvents,
    72: EventsTold,
    73: EventsGone,
}
LARGE_CURSOR_MESSAGES: Final = (CursorEvents, RangeRead, StageEvents, CommitStages, EventsTold)
